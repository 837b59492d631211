import { StatusError } from '@wheelhouse/machinery';
import { expect, test } from 'vitest';
import type { AdmissionCall } from '../../registry/contract.ts';
import { alwaysAdmit, alwaysDeny } from './always.ts';

const call = {
  operation: 'CREATE',
  target: { def: { group: 'apps', resource: 'deployments' }, namespace: 'ns', subresource: '' },
  name: 'web',
} as unknown as AdmissionCall;

test('ADM-1: AlwaysDeny refuses everything', () => {
  const refused = () => alwaysDeny.mutate?.(call);
  expect(refused).toThrow(StatusError);
  expect(refused).toThrow(
    'deployments.apps "web" is forbidden: admission control is denying all modifications',
  );
});

test('ADM-1: AlwaysAdmit refuses nothing', () => {
  expect(alwaysAdmit.mutate).toBeUndefined();
  expect(alwaysAdmit.validate).toBeUndefined();
});
