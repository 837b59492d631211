import { describe, expect, test } from 'vitest';
import { admissionCall, dialect } from '../testing.ts';
import { factsOf, isExempt, showKind } from './rules.ts';

describe('ADM-2: facts about a write', () => {
  test('name the kind of a subresource', () => {
    const scale = admissionCall({
      resource: 'deployments.apps',
      subresource: 'scale',
      name: 'web',
    });
    expect(factsOf(scale)).toMatchObject({
      resource: { group: 'apps', version: 'v1', resource: 'deployments' },
      kind: { group: 'autoscaling', version: 'v1', kind: 'Scale' },
      subresource: 'scale',
      name: 'web',
      namespace: 'default',
    });
    const status = admissionCall({ resource: 'deployments.apps', subresource: 'status' });
    expect(factsOf(status).kind).toEqual({ group: 'apps', version: 'v1', kind: 'Deployment' });
  });

  test('place a Namespace in itself, and a node nowhere', () => {
    expect(factsOf(admissionCall({ resource: 'namespaces', name: 'team' })).namespace).toBe('team');
    expect(factsOf(admissionCall({ resource: 'nodes', name: 'n' })).namespace).toBe('');
  });
});

test.each([
  ['validatingwebhookconfigurations.admissionregistration', true, false],
  ['mutatingwebhookconfigurations.admissionregistration', true, false],
  ['validatingadmissionpolicies.admissionregistration', true, true],
  ['validatingadmissionpolicybindings.admissionregistration', true, true],
  ['configmaps', false, false],
])(
  'ADM-2: a write of %s is exempt from webhooks: %s, and policies: %s',
  (resource, ...expected) => {
    const call = admissionCall({ resource, name: 'one' });
    const isExemptFrom = (from: 'webhooks' | 'policies') => isExempt(call, { from, dialect });
    expect([isExemptFrom('webhooks'), isExemptFrom('policies')]).toEqual(expected);
  },
);

test('a kind has its group and version', () => {
  expect(showKind({ group: 'apps', version: 'v1', kind: 'Deployment' })).toBe(
    'apps/v1, Kind=Deployment',
  );
});
