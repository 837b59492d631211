import type { Service } from '@wheelhouse/kinds/types/core/v1';
import { beforeAll, describe, expect, test } from 'vitest';
import { definitionOf, definitions, establish } from '../custom-kinds/custom-kinds.ts';
import { freshNamespace, type ResponseOf } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

let namespace: string;
const server = await withServer();

beforeAll(async () => {
  namespace = await freshNamespace(server);
});

const at = (plural: string, api = '/api/v1') => `${api}/namespaces/${namespace}/${plural}`;
const named = (rest: object) => ({ metadata: { name: 'x' }, ...rest });

describe('Go type names', () => {
  const container = (rest: object) => named({ spec: { containers: [rest] } });

  test.each([
    ['a named string', { spec: { restartPolicy: 3 } }, 'number', 'v1.RestartPolicy'],
    ['one without a list of its values', { spec: { os: { name: [] } } }, 'array', 'v1.OSName'],
    ['one of another package', { metadata: { uid: {} } }, 'object', 'types.UID'],
    ['a plain string', { spec: { nodeName: true } }, 'bool', 'string'],
    [
      'a list of them',
      { spec: { containers: [{ securityContext: { capabilities: { add: 'x' } } }] } },
      'string',
      '[]v1.Capability',
    ],
    [
      'what is in such a list',
      { spec: { containers: [{ securityContext: { capabilities: { drop: [1] } } }] } },
      'number',
      'v1.Capability',
    ],
  ])('API-7: %s', async (_, body, what, type) => {
    const answer = await server.post(at('pods'), named(body));
    expect(answer.status).toBe(400);
    expect(answer.body.message).toMatch(
      /^Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal /,
    );
    expect(answer.body.message).toContain(` unmarshal ${what} into Go struct field `);
    expect(answer.body.message.endsWith(` of type ${type}`), answer.body.message).toBe(true);
  });

  test('API-7: a map is named with its key type', async () => {
    const status = { allocatedResourceStatuses: [] };
    const claims = await server.post(at('persistentvolumeclaims'), named({ status }));
    expect(claims.body.message).toContain('of type map[v1.ResourceName]v1.ClaimResourceStatus');
    const pod = await server.post(at('pods'), container({ imagePullPolicy: 1 }));
    expect(pod.body.message).toContain(
      'struct field Container.spec.containers.imagePullPolicy of type v1.PullPolicy',
    );
  });
});

describe('bytes', () => {
  const secret = (value: unknown) => server.post(`${at('secrets')}?dryRun=All`, body(value));
  const body = (value: unknown) => named({ data: { k: value } });

  test.each([
    [[], ''],
    [[1, 2, 3], 'AQID'],
    [[null, 65], 'AEE='],
    [null, ''],
    ['QQ==', 'QQ=='],
  ])('FV-2: %j is accepted', async (given, kept) => {
    const answer = await secret(given);
    expect(answer.status, answer.text).toBe(201);
    expect(answer.body.data).toEqual({ k: kept });
  });

  test.each([
    [[256], 'number 256 into Go struct field Secret.data of type uint8'],
    [[1.5], 'number 1.5 into Go struct field Secret.data of type uint8'],
    [['x'], 'string into Go struct field Secret.data of type uint8'],
    [{}, 'object into Go struct field Secret.data of type []uint8'],
  ])('FV-2: %j is refused', async (given, why) => {
    const answer = await secret(given);
    expect(answer.status).toBe(400);
    expect(answer.body.message.endsWith(`json: cannot unmarshal ${why}`)).toBe(true);
  });

  test('PATCH-3: a strategic merge truncates a number to eight bits', async () => {
    const made = await server.post(at('secrets'), { metadata: { name: 'patched' } });
    expect(made.status).toBe(201);
    const path = `${at('secrets')}/patched`;
    const patched = await server.patch(path, { data: { k: [256, 65] } }, 'strategic');
    expect(patched.body.data).toEqual({ k: 'AEE=' });
    const refused = await server.patch(path, { data: { k: ['x'] } }, 'strategic');
    expect(refused.status).toBe(422);
    expect(refused.body.message.endsWith(': unrecognized type: uint8')).toBe(true);
  });
});

test('FV-2: unknown fields of a patched object are reported by name', async () => {
  const path = `${at('configmaps')}/strict`;
  await server.post(at('configmaps'), { metadata: { name: 'strict' } });
  const patch = { zoo: 1, ant: { a: 1 }, metadata: { odd: 1, labels: { a: 'b' } } };
  const { headers } = await server.patch(path, patch, 'merge');
  const unknown = ['ant', 'metadata.odd', 'zoo'];
  expect(headers.warning).toBe(
    unknown.map((field) => `299 - "unknown field \\"${field}\\""`).join(', '),
  );
});

test('PATCH-3: kind and version in a strategic merge are ignored', async () => {
  const path = `${at('configmaps')}/same`;
  await server.post(at('configmaps'), { metadata: { name: 'same' } });
  const patch = { kind: 'Other', apiVersion: 'v9', data: { a: 'b' } };
  const answer = await server.patch(path, patch, 'strategic');
  expect(answer.status, answer.text).toBe(200);
  expect(answer.body).toMatchObject({ kind: 'ConfigMap', apiVersion: 'v1', data: { a: 'b' } });
  expect((await server.patch(path, patch, 'merge')).status).toBe(422);
});

describe('an apply', () => {
  const apply = (plural: string, body: object) =>
    server.patch<ResponseOf<Service>>(
      `${at(plural)}/x?fieldManager=m&dryRun=All`,
      JSON.stringify(body),
      'apply',
    );
  const pod = (spec: object) => ({ apiVersion: 'v1', kind: 'Pod', ...named({ spec }) });
  const containers = [{ name: 'c', image: 'i' }];

  test.each([
    [{ terminationGracePeriodSeconds: 1.5 }, 'cannot convert float64 to int64'],
    [{ overhead: { cpu: 'much' } }, 'quantities must match the regular expression'],
  ])('SSA-1: a body that does not fit the kind is reported: %j', async (member, why) => {
    const { status, body } = await apply('pods', pod({ ...member, containers }));
    expect(status).toBe(400);
    expect(body.message).toContain(
      'failed to convert new object (/x; /v1, Kind=Pod) to proper version: ' +
        `unable to convert unstructured object to /v1, Kind=Pod: ${why}`,
    );
  });

  test('SSA-1: a long number is truncated', async () => {
    const service = { ports: [{ port: 80, nodePort: 4294967296 }] };
    const body = { apiVersion: 'v1', kind: 'Service', ...named({ spec: service }) };
    const answer = await apply('services', body);
    expect(answer.status, answer.text).toBe(201);
    expect(answer.body.spec.ports[0]).not.toHaveProperty('nodePort');
    // The low bits of a number beyond the exact range of a double are ones.
    const text = JSON.stringify(body).replace('80', '9223372036854775807');
    const headers = { 'content-type': 'application/apply-patch+yaml' };
    const path = `${at('services')}/x?dryRun=All&fieldManager=m`;
    const refused = await server.request('PATCH', path, { body: text, headers });
    expect(refused.status, refused.text).toBe(422);
    expect(refused.text).toContain('Invalid value: -1: ');
  });
});

test('CODEC-2: infinite numbers are keys, and those beyond 64 bits are not', async () => {
  const headers = { 'content-type': 'application/yaml' };
  const path = `${at('configmaps')}?dryRun=All`;
  const post = (key: string) =>
    server.request('POST', path, { body: `metadata: {name: x}\ndata: {${key}: a}\n`, headers });
  const answer = await post('.inf: a, -1.5e-7');
  expect(answer.status, answer.text).toBe(201);
  expect(answer.body.data).toEqual({ '.inf': 'a', '-1.5e-07': 'a' });
  const refused = await post('18446744073709551615');
  expect(refused.status).toBe(400);
  expect(refused.text).toContain('unsupported map key of type: uint64');
});

test('FV-2: a duplicate key is reported with the line of its value', async () => {
  const lines = ['metadata:', '  name: x', '  labels:', '    a: b', '  labels:', '', '    a: c'];
  const headers = { 'content-type': 'application/yaml' };
  const path = `${at('configmaps')}?dryRun=All`;
  const answer = await server.request('POST', path, { body: `${lines.join('\n')}\n`, headers });
  expect(answer.status, answer.text).toBe(201);
  expect(answer.headers.warning).toBe('299 - "line 7: key \\"labels\\" already set in map"');
});

test("PATCH-2: nulls go from objects in lists, save those in an object's place", async () => {
  const open = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
  const schema = { type: 'object', properties: { spec: open } };
  await establish(server, { group: 'nulls.example.com', plural: 'bins', kind: 'Bin', schema });
  const path = '/apis/nulls.example.com/v1/namespaces/default/bins';
  const spec = { list: [1], object: { a: 1 } };
  const metadata = { name: 'a' };
  await server.post(path, { apiVersion: 'nulls.example.com/v1', kind: 'Bin', metadata, spec });
  const list = [{ a: null, b: [{ c: null, d: 1 }] }, null];
  const patch = { spec: { list, added: list, object: list } };
  const answer = await server.patch(`${path}/a`, patch, 'merge');
  const cut = [{ b: [{ d: 1 }] }, null];
  expect(answer.body.spec).toEqual({ list: cut, added: cut, object: list });
});

test('CRD-3: invalid values are printed as in Go', async () => {
  const atomic = { 'x-kubernetes-map-type': 'atomic', properties: { a: { type: 'integer' } } };
  const set = {
    type: 'array',
    items: { type: 'object', ...atomic },
    'x-kubernetes-list-type': 'set',
  };
  const choice = { type: 'array', items: { type: 'integer' }, enum: [[1]] };
  const spec = { type: 'object', properties: { set, choice } };
  const schema = { type: 'object', properties: { spec } };
  await establish(server, { group: 'twice.example.com', plural: 'tins', kind: 'Tin', schema });
  const path = '/apis/twice.example.com/v1/namespaces/default/tins';
  const tin = { apiVersion: 'twice.example.com/v1', kind: 'Tin', metadata: { name: 'a' } };
  const made = await server.post(path, {
    ...tin,
    spec: { set: [{ a: 1 }, { a: 1 }], choice: [2] },
  });
  expect(made.status).toBe(422);
  const messages = made.body.details.causes.map((cause: { message: string }) => cause.message);
  expect(messages.sort()).toEqual([
    'Duplicate value: map[string]interface {}{"a":1}',
    'Unsupported value: []interface {}{2}: supported values: "[1]"',
  ]);
});

test('PATCH-4: a missing resourceVersion is reported for the resource', async () => {
  const made = await server.post(definitions, {
    ...definitionOf({ group: 'bare.example.com', plural: 'cans', kind: 'Can' }),
  });
  expect(made.status).toBe(201);
  const path = `${definitions}/cans.bare.example.com`;
  const answer = await server.patch(path, { metadata: { resourceVersion: null } }, 'merge');
  expect(answer.status).toBe(422);
  expect(answer.body.details.kind).toBe('customresourcedefinitions');
});

describe('a patch that changes the type', () => {
  const configMap = async (name: string) => {
    await server.post(at('configmaps'), { metadata: { name, labels: { b: '1', a: '2' } } });
    return `${at('configmaps')}/${name}`;
  };

  test.each([
    [{ kind: 'Odd' }, 'no kind "Odd" is registered for version "v1" in scheme '],
    [{ apiVersion: 'v9' }, 'no kind "ConfigMap" is registered for version "v9" in scheme '],
    [
      { apiVersion: '', kind: 'Odd' },
      'no kind "Odd" is registered for the internal version of group "" in scheme ',
    ],
    [{ kind: 'Secret' }, 'converting (v1.Secret) to (core.ConfigMap): unknown conversion'],
    [
      { kind: 3 },
      "couldn't get version/kind; json parse error: json: cannot unmarshal number into ",
    ],
    [{ apiVersion: 'a/b/c' }, 'unexpected GroupVersion string: a/b/c'],
  ])('PATCH-2: %j is 422 and shows the document with sorted patch members', async (patch, why) => {
    const path = await configMap('patched');
    const { status, body } = await server.patch(path, { ...patch, zoo: 1 }, 'merge');
    expect(status).toBe(422);
    const start = ' "" is invalid: patch: Invalid value: ';
    expect(body.message.startsWith(start)).toBe(true);
    expect(body.message).toContain(`: ${why}`);
    const shown = body.message.slice(start.length, body.message.lastIndexOf(`: ${why}`));
    const document = JSON.parse(JSON.parse(shown));
    expect(Object.keys(document)).toEqual(['apiVersion', 'kind', 'metadata', 'zoo']);
    expect(Object.keys(document.metadata).slice(0, 3)).toEqual(['name', 'namespace', 'uid']);
    expect(Object.keys(document.metadata.labels)).toEqual(['a', 'b']);
  });

  test('PATCH-2: a custom kind is validated', async () => {
    await establish(server, { group: 'says.example.com', plural: 'pegs', kind: 'Peg' });
    const path = '/apis/says.example.com/v1/namespaces/default/pegs';
    const metadata = { name: 'a' };
    await server.post(path, { apiVersion: 'says.example.com/v1', kind: 'Peg', metadata });
    const patch = { kind: 'Odd', apiVersion: 'apps/v1' };
    const wrong = await server.patch(`${path}/a`, patch, 'merge');
    expect([wrong.status, wrong.body.message]).toEqual([
      422,
      'Odd.apps "a" is invalid: [kind: Invalid value: "Odd": must be Peg, ' +
        'apiVersion: Invalid value: "apps/v1": must be says.example.com/v1]',
    ]);
    const none = await server.patch(`${path}/a`, { kind: null }, 'merge');
    expect(none.status).toBe(422);
    expect(none.body.message).toContain(`: Object 'Kind' is missing in '{"apiVersion":`);
  });
});
