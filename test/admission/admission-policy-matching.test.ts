import type { JsonObject } from '@wheelhouse/machinery';
import { beforeEach, describe, expect, test } from 'vitest';
import { establish, versionOf } from '../custom-kinds/custom-kinds.ts';
import { withServer } from '../support/with-server.ts';
import { type PolicyKit, policyKit } from './admission-policies.ts';
import { registration } from './admission-service.ts';

let kit: PolicyKit;

const server = await withServer();
beforeEach(async () => {
  await kit?.clear();
  kit = await policyKit(server);
});

const ruleFor = (apiGroup: string, apiVersion: string, resource: string): JsonObject => ({
  operations: ['CREATE'],
  apiGroups: [apiGroup],
  apiVersions: [apiVersion],
  resources: [resource],
});

describe('ADM-3: what policies match', () => {
  test('ADM-3: policies apply to webhook configurations, which they can refuse', async () => {
    const resourceRules = [ruleFor(registration, 'v1', '*')];
    const validations = [{ expression: 'false', messageExpression: 'request.kind.kind' }];
    await kit.bound({ validations }, {}, { resourceRules, namespaceSelector: {} });
    for (const kind of ['ValidatingWebhookConfiguration', 'MutatingWebhookConfiguration']) {
      const path = `/apis/${registration}/v1/${kind.toLowerCase()}s`;
      const refused = await server.post(path, { metadata: { name: 'hooks' }, webhooks: [] });
      expect([refused.status, refused.body.message]).toEqual([
        422,
        expect.stringContaining(`denied request: ${kind}`),
      ]);
    }
  });

  test('ADM-3: rules may name a version that a definition does not serve', async () => {
    const group = `unserved-${kit.namespace}.example.com`;
    const schema = { type: 'object', properties: { size: { type: 'integer' } } };
    const versions = [
      versionOf('v1', schema, { storage: true }),
      versionOf('v2', schema, { served: false }),
    ];
    await establish(server, { group, plural: 'boxes', kind: 'Box', versions });
    const boxes = `/apis/${group}/v1/namespaces/${kit.namespace}/boxes`;
    const validations = [
      { expression: 'object.size < 2', messageExpression: 'object.apiVersion + " is too large"' },
    ];
    await kit.bound({ validations }, {}, { resourceRules: [ruleFor(group, 'v2', 'boxes')] });
    const box = (name: string, size: number) =>
      server.post(boxes, { apiVersion: `${group}/v1`, kind: 'Box', metadata: { name }, size });
    expect((await box('a', 1)).status).toBe(201);
    expect((await box('b', 2)).body.message).toContain(`${group}/v2 is too large`);
  });
});
