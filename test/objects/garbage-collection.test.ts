import { beforeAll, expect, test } from 'vitest';
import { definitionOf, definitions } from '../custom-kinds/custom-kinds.ts';
import { configMap, eventually, freshNamespace } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

let maps: string;

const server = await withServer();

beforeAll(async () => {
  maps = `/api/v1/namespaces/${await freshNamespace(server)}/configmaps`;
});

interface Reference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly blockOwnerDeletion?: boolean;
}

let count = 0;

/** Creates a ConfigMap; returns its path and a reference to it. */
async function made(metadata: Record<string, unknown> = {}) {
  count += 1;
  const name = `g${count}`;
  const answer = await server.post(maps, configMap(name, { metadata: { name, ...metadata } }));
  expect(answer.status, answer.text).toBe(201);
  const { uid } = answer.body.metadata;
  const owner: Reference = { apiVersion: 'v1', kind: 'ConfigMap', name, uid };
  return { path: `${maps}/${name}`, owner };
}

const isGone = (path: string) =>
  eventually(async () => (await server.get(path)).status === 404, `the removal of ${path}`);

/** Resolves when the collector has processed objects that were created after all others. */
async function collected() {
  const owner: Reference = { apiVersion: 'v1', kind: 'ConfigMap', name: 'never', uid: 'never' };
  for (let round = 0; round < 3; round += 1) {
    await isGone((await made({ ownerReferences: [owner] })).path);
  }
}

test('DEL-5: a cluster-scoped object with a namespaced owner is kept', async () => {
  const { owner } = await made();
  const roles = '/apis/rbac.authorization.svc.io/v1/clusterroles';
  const metadata = { name: 'owned', ownerReferences: [owner] };
  const role = { apiVersion: 'rbac.authorization.svc.io/v1', kind: 'ClusterRole', metadata };
  expect((await server.post(roles, { ...role, rules: [] })).status).toBe(201);
  await collected();
  const { status, body } = await server.get(`${roles}/owned`);
  expect(status).toBe(200);
  expect(body.metadata.ownerReferences).toEqual([owner]);
});

test('DEL-5: an object with an owner of a version that is not served is kept', async () => {
  const { owner } = await made();
  const ownerReferences = [
    { ...owner, apiVersion: 'v9', uid: 'gone' },
    { ...owner, apiVersion: 'apps/v9', kind: 'Deployment', uid: 'gone' },
  ];
  const kept = await Promise.all(ownerReferences.map((each) => made({ ownerReferences: [each] })));
  await collected();
  for (const { path } of kept) expect((await server.get(path)).status).toBe(200);
});

test('DEL-5: the dependents of custom objects go when their kind is removed', async () => {
  const group = 'collected.example.com';
  const definition = definitionOf({ group, plural: 'tabs', kind: 'Tab', scope: 'Cluster' });
  expect((await server.post(definitions, definition)).status).toBe(201);
  const tabs = `/apis/${group}/v1/tabs`;
  await eventually(async () => (await server.get(tabs)).status === 200, 'the kind to be served');
  const tab = { apiVersion: `${group}/v1`, kind: 'Tab', metadata: { name: 'tab' } };
  const { uid } = (await server.post(tabs, tab)).body.metadata;
  const owner = { apiVersion: `${group}/v1`, kind: 'Tab', name: 'tab', uid };
  const dependents = await Promise.all(
    Array.from({ length: 60 }, () => made({ ownerReferences: [owner] })),
  );
  await server.remove(`${definitions}/tabs.${group}`);
  for (const { path } of dependents) await isGone(path);
});

test('DEL-5: an owner does not wait for a dependent that another owner keeps', async () => {
  const [owner, other] = [await made(), await made()];
  const blocking = [owner, other].map((each) => ({ ...each.owner, blockOwnerDeletion: true }));
  const shared = await made({ ownerReferences: blocking });
  await server.remove(owner.path, { propagationPolicy: 'Foreground' });
  await isGone(owner.path);
  const { body } = await server.get(shared.path);
  expect(body.metadata.ownerReferences).toEqual([blocking[1]]);
});

test('DEL-5: owners in a cycle do not wait for each other', async () => {
  const first = await made();
  const second = await made({ ownerReferences: [{ ...first.owner, blockOwnerDeletion: true }] });
  const ownerReferences = [{ ...second.owner, blockOwnerDeletion: true }];
  expect((await server.patch(first.path, { metadata: { ownerReferences } }, 'merge')).status).toBe(
    200,
  );
  await server.remove(first.path, { propagationPolicy: 'Foreground' });
  await isGone(first.path);
  await isGone(second.path);
});

test('DEL-5: a dependent is deleted as its own finalizers request', async () => {
  const owner = await made();
  const ownerReferences = [owner.owner];
  const orphaning = await made({ ownerReferences, finalizers: ['orphan'] });
  const waiting = await made({ ownerReferences, finalizers: ['foregroundDeletion'] });
  const left = await made({ ownerReferences: [orphaning.owner] });
  const finalizers = ['example.com/hold'];
  const blocking = [{ ...waiting.owner, blockOwnerDeletion: true }];
  const held = await made({ ownerReferences: blocking, finalizers });
  await server.remove(owner.path, { propagationPolicy: 'Background' });
  await isGone(orphaning.path);
  const { body } = await server.get(left.path);
  expect(body.metadata).not.toHaveProperty('ownerReferences');
  expect(body.metadata).not.toHaveProperty('deletionTimestamp');
  await eventually(async () => {
    const { metadata } = (await server.get(held.path)).body;
    return metadata.deletionTimestamp !== undefined;
  }, 'the deletion of the blocking dependent');
  expect((await server.get(waiting.path)).status).toBe(200);
  await server.patch(held.path, { metadata: { finalizers: null } }, 'merge');
  await isGone(waiting.path);
});
