import type { Namespace } from '@wheelhouse/kinds/types/core/v1';
import { readFeatureGates } from '@wheelhouse/server/testing';
import { expect, test } from 'vitest';
import { configMap, eventually, type ResponseOf } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

const { gates } = readFeatureGates(['OrderedNamespaceDeletion=true']);
const server = await withServer({ featureGates: gates });

test('DEL-4: with OrderedNamespaceDeletion, Pods are deleted before everything else', async () => {
  const namespaces = '/api/v1/namespaces';
  await server.post(namespaces, { metadata: { name: 'ordered' } });
  const path = `${namespaces}/ordered`;
  await server.post(`${path}/configmaps`, configMap('kept'));
  const metadata = { name: 'last', finalizers: ['example.com/hold'] };
  const spec = { containers: [{ name: 'a', image: 'a' }], serviceAccountName: 'default' };
  await server.post(`${path}/serviceaccounts`, { metadata: { name: 'default' } });
  const made = await server.post(`${path}/pods`, { metadata, spec });
  expect(made.status).toBe(201);
  await server.request('DELETE', path);
  const remaining = async () => {
    const { status } = (await server.get<ResponseOf<Namespace>>(path)).body;
    const conditions: { type: string; message: string }[] = status.conditions ?? [];
    return conditions.find(({ type }) => type === 'NamespaceContentRemaining')?.message ?? '';
  };
  await eventually(async () => (await remaining()).includes('pods. has 1 resource instances'));
  expect(await remaining()).not.toContain('configmaps');
  expect((await server.get(`${path}/configmaps/kept`)).status).toBe(200);
  const type = 'application/merge-patch+json';
  const body = { metadata: { finalizers: null } };
  await server.request('PATCH', `${path}/pods/last`, { body, type });
  await eventually(async () => (await server.get(path)).status === 404, 'the namespace goes');
});
