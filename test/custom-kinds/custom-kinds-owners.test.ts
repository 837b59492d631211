import type { JsonObject } from '@wheelhouse/machinery';
import { expect, test } from 'vitest';
import { apply, managersOf } from '../objects/apply-kinds.ts';
import type { DiscoveredGroups } from '../support/discovered-groups.ts';
import { withServer } from '../support/with-server.ts';
import { definitionOf, definitions, establish, versionOf } from './custom-kinds.ts';

const server = await withServer();

const text = { type: 'string' };
const holding = (...names: readonly string[]) => ({
  type: 'object',
  properties: {
    spec: {
      type: 'object',
      properties: Object.fromEntries(names.map((name) => [name, text])),
    },
  },
});

test('MF-2: ownership of fields that a version does not have is lost', async () => {
  const group = 'owners.example.com';
  const versions = [
    versionOf('v1', holding('a', 'one'), { storage: true }),
    versionOf('v2', holding('a', 'two')),
  ];
  await establish(server, { group, plural: 'cups', kind: 'Cup', versions });
  const at = (version: string, name = '') =>
    `/apis/${group}/${version}/namespaces/default/cups${name}`;
  const cup = (version: string, spec: JsonObject) => ({
    apiVersion: `${group}/${version}`,
    kind: 'Cup',
    metadata: { name: 'a' },
    spec,
  });
  await server.post(at('v1'), cup('v1', { a: '1' }));
  const known = await server.patch(at('v2', '/a'), { spec: { a: '2' } }, 'merge');
  expect(known.body.metadata.managedFields).toMatchObject([
    { apiVersion: `${group}/v1`, fieldsV1: { 'f:spec': {} } },
    { apiVersion: `${group}/v2`, fieldsV1: { 'f:spec': { 'f:a': {} } } },
  ]);

  await server.patch(at('v1', '/a'), { spec: { one: '1' } }, 'merge');
  const unknown = await server.patch(at('v2', '/a'), { spec: { a: '3', two: '2' } }, 'merge');
  expect(unknown.status, unknown.text).toBe(200);
  expect(unknown.body.metadata).not.toHaveProperty('managedFields');

  // The next apply starts without managed fields.
  const manager = 'm';
  const applied = await apply(server, at('v2', '/a'), cup('v2', { two: '2' }), { manager });
  expect(applied.status, applied.text).toBe(200);
  expect(managersOf(applied)).toEqual(['m/Apply', 'before-first-apply/Update']);
});

test('SSA-10: a version without a status subresource owns the status', async () => {
  const group = 'partly.example.com';
  const schema = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
  const versions = [
    versionOf('v1', schema, { storage: true, subresources: { status: {} } }),
    versionOf('v2', schema),
  ];
  await establish(server, { group, plural: 'bowls', kind: 'Bowl', versions });
  const bowl = (version: string, fields: JsonObject) => {
    const metadata = { name: version };
    const body = { apiVersion: `${group}/${version}`, kind: 'Bowl', metadata, ...fields };
    const path = `/apis/${group}/${version}/namespaces/default/bowls/${version}`;
    return apply(server, path, body, { manager: 'm' });
  };
  const fields = { spec: { a: 1 }, status: { b: 2 } };
  const [owner] = (await bowl('v2', fields)).body.metadata.managedFields;
  const spec = { '.': {}, 'f:a': {} };
  expect(owner.fieldsV1).toEqual({ 'f:spec': spec, 'f:status': { '.': {}, 'f:b': {} } });
  expect((await bowl('v2', { spec: { a: 1 } })).body).not.toHaveProperty('status');
  const [resetting] = (await bowl('v1', fields)).body.metadata.managedFields;
  expect(resetting.fieldsV1).toEqual({ 'f:spec': spec });
});

test('CRD-1: discovery lists the verbs of custom kinds in kube-apiserver’s order', async () => {
  const group = 'verbs.example.com';
  const versions = [versionOf('v1', holding('a'), { storage: true })];
  await establish(server, { group, plural: 'jugs', kind: 'Jug', versions });
  const verbs = 'delete deletecollection get list patch create update watch'.split(' ');
  const { body } = await server.get(`/apis/${group}/v1`);
  expect(body.resources[0].verbs).toEqual(verbs);
  const accept = 'application/json;g=apidiscovery.svc.io;v=v2;as=APIGroupDiscoveryList';
  const all = await server.get<DiscoveredGroups>('/apis', { headers: { accept } });
  const item = all.body.items.find((item) => item.metadata.name === group);
  expect(item?.versions[0].resources[0].verbs).toEqual(verbs);
});

test('CRD-1: a new definition has no conditions yet', async () => {
  const definition = definitionOf({ group: 'new.example.com', plural: 'pots', kind: 'Pot' });
  const { status, body } = await server.post(`${definitions}?dryRun=All`, definition);
  expect(status).toBe(201);
  expect(body.status).toMatchObject({ conditions: null, storedVersions: ['v1'] });
});

test('SSA-5: a value emptied by an apply is null, and refused where a value is required', async () => {
  const map = { type: 'object', additionalProperties: text };
  const any = { 'x-kubernetes-preserve-unknown-fields': true };
  const properties = { spec: { type: 'object', properties: { map, any } } };
  const group = 'emptied.example.com';
  await establish(server, {
    group,
    plural: 'urns',
    kind: 'Urn',
    schema: { type: 'object', properties },
  });
  const path = `/apis/${group}/v1/namespaces/default/urns/a`;
  const put = (spec: JsonObject | null, manager = 'm') =>
    apply(
      server,
      path,
      { apiVersion: `${group}/v1`, kind: 'Urn', metadata: { name: 'a' }, spec },
      { manager },
    );
  expect((await put({ map: { a: 'b' }, any: { c: 'd' } })).status).toBe(201);
  const emptied = await put({ map: {}, any: { c: 'd' } });
  expect(emptied.status).toBe(422);
  expect(emptied.body.details.causes).toEqual([
    {
      reason: 'FieldValueTypeInvalid',
      message: 'Invalid value: "null": spec.map in body must be of type object: "null"',
      field: 'spec.map',
    },
  ]);
  expect((await put({ map: null, any: { c: 'd' } })).status).toBe(422);
  // A member that is no longer named disappears. A null is accepted for a value of any type but
  // counts as absent.
  const gone = await put({ any: {} });
  expect(gone.status, gone.text).toBe(200);
  expect(gone.body.spec).toEqual({});
});

test('CRD-3: unreadable embedded metadata is reported like any such body', async () => {
  const embedded = {
    type: 'object',
    'x-kubernetes-embedded-resource': true,
    'x-kubernetes-preserve-unknown-fields': true,
  };
  const group = 'embedded.example.com';
  const schema = { type: 'object', properties: { child: embedded } };
  await establish(server, { group, plural: 'nests', kind: 'Nest', schema });
  const path = `/apis/${group}/v1/namespaces/default/nests`;
  const nest = { apiVersion: `${group}/v1`, kind: 'Nest', metadata: { name: 'a' } };
  const child = { apiVersion: 'v1', kind: 'K', metadata: { labels: { a: 1 } } };
  const why =
    'child.metadata: Invalid value: ' +
    'map[string]interface {}{"labels":map[string]interface {}{"a":1}}: ' +
    'json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string';
  const made = await server.post(path, { ...nest, child });
  expect([made.status, made.body.message]).toEqual([
    400,
    `Nest in version "v1" cannot be handled as a Nest: ${why}`,
  ]);
  await server.post(path, nest);
  const patched = await server.patch(`${path}/a`, { child }, 'merge');
  expect(patched.status).toBe(422);
  expect(patched.body.message.endsWith(why)).toBe(true);
  const placed = { ...child, metadata: { namespace: '-' } };
  const rejected = await server.patch(`${path}/a`, { child: placed }, 'merge');
  expect(rejected.body.details.causes).toMatchObject([
    { reason: 'FieldValueInvalid', field: 'child.metadata.namespace' },
  ]);
});

test('CRD-3: metadata errors are repeated as often as kube-apiserver validates them', async () => {
  const group = 'validated.example.com';
  await establish(server, { group, plural: 'vats', kind: 'Vat' });
  const path = `/apis/${group}/v1/namespaces/default/vats`;
  const vat = { apiVersion: `${group}/v1`, kind: 'Vat', metadata: { name: 'a' } };
  await server.post(path, vat);
  const metadata = { labels: { 'x y': 'ok' }, finalizers: ['-'] };
  const { status, body } = await server.patch(`${path}/a`, { metadata }, 'merge');
  expect(status).toBe(422);
  const fields = body.details.causes.map((cause: { field: string }) => cause.field);
  const [labels, finalizers] = ['metadata.labels', 'metadata.finalizers'];
  expect(fields).toEqual([labels, finalizers, labels, labels]);
  expect(body.message.match(/metadata\.labels/g)).toHaveLength(1);
  const made = await server.post(path, { ...vat, metadata: { name: 'b', ...metadata } });
  expect(made.body.details.causes).toHaveLength(2);
});
