import { describe, expect, test } from 'vitest';
import { eventually, freshNamespace, type TestServer } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

const rbac = 'rbac.authorization.svc.io';

/** Requests that trigger three controllers; returns whether all of them have acted. */
async function begin(server: TestServer, tag: string) {
  const namespace = await freshNamespace(server);
  const maps = `/api/v1/namespaces/${namespace}/configmaps`;
  const map = (name: string, metadata: object = {}) => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, ...metadata },
  });
  const owner = (await server.post(maps, map('owner'))).body;
  const ownerReferences = [
    { apiVersion: 'v1', kind: 'ConfigMap', name: 'owner', uid: owner.metadata.uid },
  ];
  await server.post(maps, map('dependent', { ownerReferences }));
  await server.remove(`${maps}/owner`);

  const doomed = await freshNamespace(server);
  await server.post(`/api/v1/namespaces/${doomed}/configmaps`, map('inside'));
  await server.remove(`/api/v1/namespaces/${doomed}`);

  const roles = `/apis/${rbac}/v1/clusterroles`;
  const role = (name: string, more: object) => ({
    apiVersion: `${rbac}/v1`,
    kind: 'ClusterRole',
    metadata: { name: `${name}-${tag}` },
    ...more,
  });
  const clusterRoleSelectors = [{ matchLabels: { tag } }];
  await server.post(roles, role('whole', { aggregationRule: { clusterRoleSelectors } }));
  const part = role('part', { rules: [{ apiGroups: [''], resources: ['x'], verbs: ['get'] }] });
  await server.post(roles, { ...part, metadata: { ...part.metadata, labels: { tag } } });

  return {
    collected: async () => (await server.get(`${maps}/dependent`)).status === 404,
    emptied: async () => (await server.get(`/api/v1/namespaces/${doomed}`)).status === 404,
    aggregated: async () => {
      const { body } = await server.get(`${roles}/whole-${tag}`);
      return Array.isArray(body.rules) && body.rules.length > 0;
    },
  };
}

describe('all controllers', () => {
  test('AUTHN-4: --controllers=* collects garbage, empties namespaces, aggregates roles', async () => {
    const server = await withServer({ controllers: ['*'] });
    const begun = await begin(server, 'on');
    await eventually(begun.collected, 'the collection');
    await eventually(begun.emptied, 'the deletion of the namespace');
    await eventually(begun.aggregated, 'the rules');
  });
});

describe('all except some', () => {
  test('AUTHN-4: a controller that --controllers omits does nothing', async () => {
    const off = ['-garbage-collector-controller', '-namespace', '-clusterrole-aggregation'];
    const server = await withServer({ controllers: ['*', ...off] });
    const begun = await begin(server, 'off');
    // A running controller has processed what came later.
    const later = await freshNamespace(server);
    const account = `/api/v1/namespaces/${later}/serviceaccounts/default`;
    await eventually(async () => (await server.get(account)).status === 200, 'the account');
    expect(await begun.collected()).toBe(false);
    expect(await begun.emptied()).toBe(false);
    expect(await begun.aggregated()).toBe(false);
  });
});
