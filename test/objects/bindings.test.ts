import { beforeAll, expect, test } from 'vitest';
import { freshNamespace } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

let namespace: string;
const server = await withServer();

beforeAll(async () => {
  namespace = await freshNamespace(server);
});

const at = (resource: string) => `/api/v1/namespaces/${namespace}/${resource}`;
const binding = (name: string, more: object = {}) => ({
  apiVersion: 'v1',
  kind: 'Binding',
  metadata: { name },
  target: { kind: 'Node', name: 'node-1' },
  ...more,
});

test('API-6: a Binding posted to the collection sets the node of its Pod', async () => {
  const containers = [{ name: 'main', image: 'example.com/main:1.0' }];
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a' }, spec: { containers } };
  const made = await server.post(at('pods'), pod);
  expect(made.status, made.text).toBe(201);
  const bound = await server.post(at('bindings'), binding('a'));
  expect([bound.status, bound.body.status]).toEqual([201, 'Success']);
  expect((await server.get(at('pods/a'))).body.spec.nodeName).toBe('node-1');
  const again = await server.post(at('bindings'), binding('a'));
  expect(again.status).toBe(409);
  expect(again.body.message).toContain('pod a is already assigned to node "node-1"');
});

test('API-6: a Binding without a Pod, node, or matching namespace is refused', async () => {
  expect((await server.post(at('bindings'), binding('none'))).status).toBe(404);
  const elsewhere = binding('a', { metadata: { name: 'a', namespace: 'other' } });
  expect((await server.post(at('bindings'), elsewhere)).status).toBe(400);
  const nowhere = await server.post(at('bindings'), binding('a', { target: {} }));
  expect(nowhere.status).toBe(422);
  expect(nowhere.body.message).toContain('target.name: Required value');
  expect((await server.get(at('bindings'))).status).toBe(405);
  const unnamed = await server.post(at('bindings'), binding('', { metadata: {} }));
  expect([unnamed.status, unnamed.body.message]).toEqual([400, 'Name parameter required.']);
});
