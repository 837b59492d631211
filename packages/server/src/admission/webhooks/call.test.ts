import { compileLabelSelector } from '@wheelhouse/machinery';
import { expect, test } from 'vitest';
import type { AdmissionTools } from '../tools.ts';
import { callHook, type Invocation } from './call.ts';
import type { Hook } from './hooks.ts';

const everything = compileLabelSelector({});
const hook: Hook = {
  uid: 'c/a.example.com/0',
  configuration: 'c',
  name: 'a.example.com',
  address: { url: 'https://example.com', caPem: undefined },
  rules: [],
  matchPolicy: 'Exact',
  namespaceSelector: everything,
  objectSelector: everything,
  conditions: [],
  failurePolicy: 'Ignore',
  timeoutMs: 1000,
  knowsDryRuns: false,
  isReinvocable: false,
  reviewVersions: ['v2'],
};

function ask(dryRun: boolean): Promise<unknown> {
  const tools = { dialect: {} } as unknown as AdmissionTools;
  const invocation = {
    hook,
    convertedCall: { call: { context: { dryRun } } },
  } as unknown as Invocation;
  return callHook(invocation, { tools, phase: 'validating' });
}

// Such configurations are no longer accepted but may be stored.
test('ADM-2: a dry run is refused when the webhook may have side effects', async () => {
  await expect(ask(true)).rejects.toMatchObject({
    status: {
      code: 400,
      reason: 'BadRequest',
      message: 'admission webhook "a.example.com" does not support dry run',
    },
  });
});

test('ADM-2: a webhook without a known review version cannot be called', async () => {
  await expect(ask(false)).rejects.toThrow(
    'failed calling webhook "a.example.com": could not create admission objects: webhook does ' +
      'not accept known AdmissionReview versions (v1, v1beta1)',
  );
});
