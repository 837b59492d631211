import { beforeAll, expect, test } from 'vitest';
import { eventually, freshNamespace } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

const group = 'selection.example.com';
let namespace: string;
const path = (version: string) => `/apis/${group}/${version}/namespaces/${namespace}/gadgets`;

const schema = {
  openAPIV3Schema: {
    type: 'object',
    properties: { spec: { type: 'object', properties: { color: { type: 'string' } } } },
  },
};
// Another schema: the common part of all versions must not contain a version's own fields.
const olderSchema = {
  openAPIV3Schema: {
    type: 'object',
    properties: { ...schema.openAPIV3Schema.properties, note: { type: 'string' } },
  },
};
const selectableFields = [{ jsonPath: '.spec.color' }];

const server = await withServer();

beforeAll(async () => {
  namespace = await freshNamespace(server);
  const made = await server.post('/apis/apiextensions.svc.io/v1/customresourcedefinitions', {
    apiVersion: 'apiextensions.svc.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `gadgets.${group}` },
    spec: {
      group,
      scope: 'Namespaced',
      names: { plural: 'gadgets', singular: 'gadget', kind: 'Gadget', listKind: 'GadgetList' },
      versions: [
        { name: 'v1', served: true, storage: true, schema, selectableFields },
        { name: 'v1beta1', served: true, storage: false, schema: olderSchema },
      ],
    },
  });
  expect(made.status).toBe(201);
  await eventually(async () => (await server.get(path('v1'))).status === 200, 'the kind is served');
});

const gadget = (name: string, color: string, version = 'v1') => ({
  apiVersion: `${group}/${version}`,
  kind: 'Gadget',
  metadata: { name },
  spec: { color },
});

test('API-2: custom kinds list and watch in every served version', async () => {
  const empty = await server.get(path('v1'));
  expect(empty.body).toMatchObject({
    kind: 'GadgetList',
    apiVersion: `${group}/v1`,
    items: [],
  });
  const watch = await server.watch(`${path('v1beta1')}?watch=true`);
  expect((await server.post(path('v1'), gadget('one', 'red'))).status).toBe(201);
  expect((await server.post(path('v1beta1'), gadget('two', 'blue', 'v1beta1'))).status).toBe(201);
  for (const version of ['v1', 'v1beta1']) {
    const list = await server.get(path(version));
    expect(list.body).toMatchObject({ kind: 'GadgetList', apiVersion: `${group}/${version}` });
    expect(list.body.items).toMatchObject([
      { apiVersion: `${group}/${version}`, kind: 'Gadget', metadata: { name: 'one' } },
      { apiVersion: `${group}/${version}`, kind: 'Gadget', metadata: { name: 'two' } },
    ]);
  }
  await watch.until((events) => events.length === 2);
  for (const { object } of watch.events) expect(object.apiVersion).toBe(`${group}/v1beta1`);
  watch.close();
});

test('API-13: selectable fields of a custom kind, by version', async () => {
  const found = await server.get(`${path('v1')}?fieldSelector=spec.color%3Dred`);
  expect(found.body.items).toMatchObject([{ metadata: { name: 'one' } }]);
  const watch = await server.watch(`${path('v1')}?watch=true&fieldSelector=spec.color%3Dgreen`);
  await server.patch(`${path('v1')}/two`, { spec: { color: 'green' } }, 'merge');
  await server.patch(`${path('v1')}/two`, { spec: { color: 'blue' } }, 'merge');
  await watch.until((events) => events.length === 2);
  expect(watch.events.map(({ type }) => type)).toEqual(['ADDED', 'DELETED']);
  watch.close();
  for (const [version, field] of [
    ['v1beta1', 'spec.color'],
    ['v1', 'spec.size'],
    ['v1', 'constructor'],
  ] as const) {
    const refused = await server.get(`${path(version)}?fieldSelector=${field}%3Dred`);
    expect(refused.status).toBe(400);
    expect(refused.body).toMatchObject({
      reason: 'BadRequest',
      message: `field label not supported: ${field}`,
    });
  }
});
