import { systemClock } from '@wheelhouse/machinery';
import { openEmbeddedStore } from '@wheelhouse/store';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../support/cleanup.ts';
import { configMap, eventually, type TestServer } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

const namespaces = '/api/v1/namespaces';
const maps = `${namespaces}/default/configmaps`;
const hold = { finalizers: ['example.com/hold'] };

/** Replaces the stored bytes of objects with ones that are no object. */
async function damage(directory: string, ends: readonly string[]): Promise<void> {
  const store = await openEmbeddedStore({ directory, clock: systemClock });
  const { records } = await store.range({ prefix: '/registry/' });
  for (const end of ends) {
    const record = records.find(({ key }) => key.endsWith(end));
    if (record === undefined) throw new Error(`nothing is stored under ${end}`);
    const { key, modRevision } = record;
    await store.put({ key, value: Buffer.from('{"broken'), expect: modRevision });
  }
  await store.close();
}

const isGone = (server: TestServer, path: string) =>
  eventually(async () => (await server.get(path)).status === 404, `the removal of ${path}`);

test('STORE-3: controllers process the other objects of kinds with an unreadable one', async () => {
  const directory = temporaryFolder();
  const store = { type: 'embedded', directory } as const;
  let server = await withServer({ store });
  for (const name of ['broken', 'terminating']) {
    const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name } };
    expect((await server.post(namespaces, namespace)).status).toBe(201);
  }
  await server.post(maps, configMap('broken'));
  const { body: owner } = await server.post(maps, configMap('owner'));
  const ownerReferences = [
    { apiVersion: 'v1', kind: 'ConfigMap', name: 'owner', uid: owner.metadata.uid },
  ];
  const owned = { name: 'owned', ownerReferences };
  expect((await server.post(maps, configMap('owned', { metadata: owned }))).status).toBe(201);
  const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'held', ...hold } };
  const secrets = `${namespaces}/terminating/secrets`;
  expect((await server.post(secrets, secret)).status).toBe(201);
  expect((await server.remove(`${namespaces}/terminating`)).status).toBe(200);
  await server.stop();
  await damage(directory, ['/namespaces/broken', '/configmaps/default/broken']);

  server = await withServer({ store });
  await server.remove(`${maps}/owner`, { propagationPolicy: 'Background' });
  await isGone(server, `${maps}/owned`);
  expect((await server.get(`${maps}/broken`)).status).toBe(500);
  await server.patch(`${secrets}/held`, { metadata: { finalizers: null } }, 'merge');
  await isGone(server, `${namespaces}/terminating`);
});
