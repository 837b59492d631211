import type { Service } from '@wheelhouse/kinds/types/core/v1';
import { beforeAll, describe, expect, test } from 'vitest';
import { apply, defineThing, type ThingKind } from '../objects/apply-kinds.ts';
import { type Answer, freshNamespace, type ResponseOf } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

let namespace: string;
let services: string;
let kind: ThingKind;
const server = await withServer();

beforeAll(async () => {
  namespace = await freshNamespace(server);
  services = `/api/v1/namespaces/${namespace}/services`;
  const spec = {
    type: 'object',
    required: ['size'],
    properties: {
      size: { type: 'integer' },
      ports: {
        type: 'array',
        items: { type: 'object', properties: { port: { type: 'integer' } } },
      },
      free: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
    },
  };
  kind = await defineThing(server, [{ properties: { spec } }]);
});

let count = 0;
const fresh = () => {
  count += 1;
  return `f${count}`;
};

/** Unknown and duplicate members at the top level, nested, and in a list. */
const service = (name: string) =>
  `{"apiVersion":"v1","kind":"Service","metadata":{"name":"x","name":"${name}","odd":1},` +
  '"spec":{"type":"ClusterIP","odd":{"deep":1,"deep":2},"type":"ClusterIP",' +
  '"ports":[{"port":80,"odd":1,"port":81}]},"odd":1,"odd":2}';
const serviceComplaints = [
  'duplicate field "metadata.name"',
  'unknown field "metadata.odd"',
  'unknown field "spec.odd"',
  'duplicate field "spec.type"',
  'unknown field "spec.ports[0].odd"',
  'duplicate field "spec.ports[0].port"',
  'unknown field "odd"',
];

const thing = (name: string) =>
  `{"apiVersion":"${kind.group}/v1","kind":"Thing","metadata":{"name":"${name}","odd":1},` +
  '"spec":{"size":1,"size":2,"odd":1,"ports":[{"port":1,"odd":1}],"free":{"x":1,"x":2}}}';
const thingComplaints = [
  'duplicate field "spec.size"',
  'duplicate field "spec.free.x"',
  'unknown field "metadata.odd"',
  'unknown field "spec.odd"',
  'unknown field "spec.ports[0].odd"',
];

describe('POST and PUT', () => {
  test('FV-2: Warn, the default, sends a header per field and stores the rest', async () => {
    for (const query of ['', '?fieldValidation=Warn', '?fieldValidation=']) {
      const name = fresh();
      const answer = await server.post<ResponseOf<Service>>(services + query, service(name));
      expect(answer.status).toBe(201);
      expect(answer.warnings).toEqual(serviceComplaints);
      expect(answer.body.spec.ports[0].port).toBe(81);
      expect(answer.body.odd).toBeUndefined();
    }
  });

  test('FV-2: Strict refuses with 400, names every field, and stores nothing', async () => {
    const name = fresh();
    const answer = await server.post(`${services}?fieldValidation=Strict`, service(name));
    expect(answer.status).toBe(400);
    expect(answer.body.reason).toBe('BadRequest');
    expect(answer.body.message).toBe(
      'Service in version "v1" cannot be handled as a Service: strict decoding error: ' +
        serviceComplaints.join(', '),
    );
    expect(answer.warnings).toEqual([]);
    expect((await server.get(`${services}/${name}`)).status).toBe(404);
  });

  test('FV-2: Ignore is silent', async () => {
    const name = fresh();
    const answer = await server.post(`${services}?fieldValidation=Ignore`, service(name));
    expect(answer.status).toBe(201);
    expect(answer.warnings).toEqual([]);
  });

  test('FV-2: PUT is validated like POST', async () => {
    const name = fresh();
    await server.post(`${services}?fieldValidation=Ignore`, service(name));
    const path = `${services}/${name}`;
    const warned = await server.put(path, service(name));
    expect(warned.status).toBe(200);
    expect(warned.warnings).toEqual(serviceComplaints);
    const refused = await server.put(`${path}?fieldValidation=Strict`, service(name));
    expect(refused.status).toBe(400);
    const ignored = await server.put(`${path}?fieldValidation=Ignore`, service(name));
    expect(ignored.warnings).toEqual([]);
  });

  test('FV-2: a duplicate is reported where it is repeated', async () => {
    const body =
      '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"},"immutable":true,' +
      '"one":1,"immutable":false,"two":2,"data":{"a":"1","a":"2"}}';
    const path = `/api/v1/namespaces/${namespace}/configmaps?fieldValidation=Strict`;
    const answer = await server.post(path, body);
    expect(answer.body.message).toMatch(
      /: strict decoding error: unknown field "one", duplicate field "immutable", unknown field "two", duplicate field "data.a"$/,
    );
  });

  test('FV-2: YAML reports duplicates by line and unknown fields by name', async () => {
    const yaml = [
      'apiVersion: v1',
      'kind: ConfigMap',
      `metadata: {name: ${fresh()}}`,
      'zoo: 1',
      'data:',
      '  a: "1"',
      '  a: "2"',
      'bar: 1',
      'zoo: 2',
    ].join('\n');
    const path = `/api/v1/namespaces/${namespace}/configmaps`;
    const type = 'application/yaml';
    const refused = await server.post(`${path}?fieldValidation=Strict`, yaml, { type });
    expect(refused.status).toBe(400);
    expect(refused.body.message).toBe(
      'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: ' +
        'yaml: unmarshal errors:\n  line 7: key "a" already set in map\n' +
        '  line 9: key "zoo" already set in map, unknown field "bar", unknown field "zoo"',
    );
    const warned = await server.post(path, yaml, { type });
    expect(warned.status).toBe(201);
    expect(warned.warnings).toEqual([
      'line 7: key "a" already set in map',
      'line 9: key "zoo" already set in map',
      'unknown field "bar"',
      'unknown field "zoo"',
    ]);
    expect(warned.body.data).toEqual({ a: '2' });
  });

  test('FV-2: YAML reports duplicates within a value before the value', async () => {
    const body = { apiVersion: 'v1', kind: 'ConfigMap' };
    const yaml = [
      ...Object.entries(body).map(([name, value]) => `${name}: ${value}`),
      `metadata: {name: ${fresh()}}`,
      'metadata:',
      `  name: ${fresh()}`,
      '  labels: {a: b}',
      '  labels: {a: b, a: c}',
    ].join('\n');
    const path = `/api/v1/namespaces/${namespace}/configmaps`;
    const warned = await server.post(path, yaml, { type: 'application/yaml' });
    expect(warned.status).toBe(201);
    expect(warned.warnings).toEqual([
      'line 7: key "a" already set in map',
      'line 7: key "labels" already set in map',
      'line 5: key "metadata" already set in map',
    ]);
  });

  test('FV-1: of two type errors in YAML the first name is reported', async () => {
    const yaml = [
      'apiVersion: v1',
      'kind: ConfigMap',
      'metadata:',
      `  name: ${fresh()}`,
      '  labels: {a: 1}',
      '  annotations: {a: {}}',
    ].join('\n');
    const path = `/api/v1/namespaces/${namespace}/configmaps`;
    const refused = await server.post(path, yaml, { type: 'application/yaml' });
    expect(refused.status).toBe(400);
    expect(refused.body.message).toMatch(
      /cannot unmarshal object into Go struct field ObjectMeta\.metadata\.annotations of type/,
    );
  });

  test('FV-2, PATCH-2: a patch that removes the type leaves all fields unknown', async () => {
    const name = fresh();
    const maps = `/api/v1/namespaces/${namespace}/configmaps`;
    await server.post(maps, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } });
    const patch = { apiVersion: null, data: { a: 'b' } };
    const refused = await server.patch(`${maps}/${name}`, patch, 'merge');
    expect(refused.status).toBe(400);
    expect(refused.body.message).toMatch(/undeterminable: name must be provided$/);
    expect(refused.warnings).toEqual(['unknown field "data"', 'unknown field "metadata"']);
    const strict = `${maps}/${name}?fieldValidation=Strict`;
    const replaced = [{ op: 'replace', path: '', value: { b: 1, a: 1 } }];
    const rejected = await server.patch(strict, replaced, 'json');
    expect(rejected.status).toBe(400);
    expect(rejected.body.message).toMatch(
      /: strict decoding error: unknown field "a", unknown field "b"$/,
    );
  });

  test('FV-1: apiVersion and kind match in any case, once', async () => {
    const path = `/api/v1/namespaces/${namespace}/configmaps`;
    const start = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"${fresh()}"}`;
    const number = await server.post(path, `${start},"Kind":1}`);
    expect(number.status).toBe(400);
    expect(number.body.message).toMatch(/cannot unmarshal number into Go struct field \.kind of/);
    const uppercase = await server.post(path, `${start},"KIND":"Secret"}`);
    expect(uppercase.status).toBe(400);
    expect(uppercase.body.message).toMatch(
      /^Secret in version "v1" cannot be handled as a ConfigMap:/,
    );
    const same = await server.post(path, `${start},"apiversion":null}`);
    expect(same.status).toBe(201);
    expect(same.warnings).toEqual(['unknown field "apiversion"']);
  });

  test('FV-2: custom kinds follow their schema, duplicates first', async () => {
    const path = kind.path(namespace);
    const name = fresh();
    const warned = await server.post(path, thing(name));
    expect(warned.status).toBe(201);
    expect(warned.warnings).toEqual(thingComplaints);
    expect(warned.body.spec).toEqual({ size: 2, ports: [{ port: 1 }], free: { x: 2 } });
    const refused = await server.post(`${path}?fieldValidation=Strict`, thing(fresh()));
    expect(refused.status).toBe(400);
    expect(refused.body.message).toContain(`strict decoding error: ${thingComplaints.join(', ')}`);
    const ignored = await server.put(`${path}/${name}?fieldValidation=Ignore`, thing(name));
    expect(ignored.warnings).toEqual([]);
  });

  test('API-7: a custom object without a kind is shown as it is decoded', async () => {
    const path = `${kind.path(namespace)}?fieldValidation=`;
    const missing = (text: string) => `Object 'Kind' is missing in '${text}'`;
    const unfit = 'Thing in version "v1" cannot be handled as a Thing: ';
    for (const [validation, type, text, message] of [
      ['Ignore', 'application/json', '{"b": 1}', unfit + missing('{"b": 1}')],
      ['Ignore', 'application/yaml', 'b: 1\na: 2', unfit + missing('{"a":2,"b":1}')],
      [
        'Warn',
        'application/yaml',
        'b: 1',
        `the object provided is unrecognized (must be of type Thing): ${missing('b: 1')} (623a2031)`,
      ],
    ] as const) {
      const refused = await server.request('POST', path + validation, { body: text, type });
      expect([refused.status, refused.body.message]).toEqual([400, message]);
    }
    const odd = `{"apiVersion":"${kind.group}/v1","kind":"Thing","a\u2028":1}`;
    const strict = await server.post(`${path}Strict`, odd);
    expect(strict.body.message).toContain('unknown field "a\u2028"');
  });

  test('FV-4: preserved fields are known', async () => {
    const body = kind.body(fresh(), { spec: { size: 1, free: { any: { thing: [1] } } } });
    const answer = await server.post(`${kind.path(namespace)}?fieldValidation=Strict`, body);
    expect(answer.status).toBe(201);
    expect(answer.body.spec.free).toEqual({ any: { thing: [1] } });
    const open = await defineThing(server, [{ preserve: true }]);
    const loose = open.body('one', { anything: { at: 'all' } });
    const kept = await server.post(`${open.path(namespace)}?fieldValidation=Strict`, loose);
    expect(kept.status).toBe(201);
    expect(kept.body.anything).toEqual({ at: 'all' });
  });
});

describe('types', () => {
  test.each(['Ignore', 'Warn', 'Strict'])('FV-1: with %s a wrong type is refused', async (mode) => {
    const body = {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: fresh() },
      spec: { ports: [{ port: 'http' }] },
    };
    const answer = await server.post(`${services}?fieldValidation=${mode}`, body);
    expect(answer.status).toBe(400);
    expect(answer.body.message).toContain('json: cannot unmarshal string into Go struct field');
    const custom = kind.body(fresh(), { spec: { size: 'big' } });
    const refused = await server.post(`${kind.path(namespace)}?fieldValidation=${mode}`, custom);
    expect(refused.status).toBe(422);
    expect(refused.body.message).toContain('spec.size: Invalid value: "string": ');
  });

  test.each(['Ignore', 'Warn', 'Strict'])(
    'FV-1: with %s a missing field is refused',
    async (mode) => {
      const query = `?fieldValidation=${mode}`;
      const custom = await server.post(
        kind.path(namespace) + query,
        kind.body(fresh(), { spec: {} }),
      );
      expect(custom.status).toBe(422);
      expect(custom.body.message).toContain('spec.size: Required value');
      const metadata = { name: fresh() };
      const body = { apiVersion: 'v1', kind: 'Service', metadata, spec: { ports: [{}] } };
      expect((await server.post(services + query, body)).status).toBe(422);
    },
  );

  test('FV-3: other values are 422', async () => {
    const path = `/api/v1/namespaces/${namespace}/configmaps`;
    const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'x' } };
    const expected = (options: string) =>
      `${options}.meta.svc.io "" is invalid: fieldValidation: Unsupported value: "Loud": ` +
      'supported values: "", "Ignore", "Strict", "Warn"';
    const created = await server.post(`${path}?fieldValidation=Loud`, body);
    expect(created.status).toBe(422);
    expect(created.body.message).toBe(expected('CreateOptions'));
    const put = await server.put(`${path}/x?fieldValidation=Loud`, body);
    expect(put.body.message).toBe(expected('UpdateOptions'));
    const patched = await server.patch(`${path}/x?fieldValidation=Loud`, {}, 'merge');
    expect(patched.body.message).toBe(expected('PatchOptions'));
  });
});

describe('patches', () => {
  const made = async () => {
    const name = fresh();
    await server.post(`${services}?fieldValidation=Ignore`, service(name));
    return `${services}/${name}`;
  };
  const ends = (answer: Answer, text: string) => {
    expect([answer.status, answer.body.reason]).toEqual([400, 'BadRequest']);
    expect(answer.body.message.endsWith(text)).toBe(true);
  };

  test.each(['merge', 'json'] as const)('FV-2: a %s patch of a custom object', async (type) => {
    const name = fresh();
    await server.post(kind.path(namespace), kind.body(name, { spec: { size: 1 } }));
    const path = `${kind.path(namespace)}/${name}`;
    const patch =
      type === 'merge'
        ? { spec: { one: 1, two: 2 } }
        : ['one', 'two'].map((odd) => ({ op: 'add', path: `/spec/${odd}`, value: 1 }));
    const refused = await server.patch(`${path}?fieldValidation=Strict`, patch, type);
    ends(refused, 'strict decoding error: unknown field "spec.one", unknown field "spec.two"');
    expect((await server.get(path)).body.spec).toEqual({ size: 1 });
  });

  test('FV-2: a JSON Patch is validated first, then its result', async () => {
    const path = await made();
    const patch =
      '[{"op":"add","path":"/spec/odd","value":1,"foo":1},' +
      '{"op":"replace","path":"/spec/x","path":"/spec/sessionAffinity","value":"ClientIP"}]';
    const complaints = [
      'json patch unknown field "[0].foo"',
      'json patch duplicate field "[1].path"',
      'unknown field "spec.odd"',
    ];
    const refused = await server.patch(`${path}?fieldValidation=Strict`, patch, 'json');
    ends(refused, `strict decoding error: ${complaints.join(', ')}`);
    const warned = await server.patch(path, patch, 'json');
    expect(warned.status).toBe(200);
    expect(warned.warnings).toEqual(complaints);
    const ignored = await server.patch(`${path}?fieldValidation=Ignore`, patch, 'json');
    expect(ignored.warnings).toEqual([]);
  });

  test.each(['merge', 'strategic'] as const)('FV-2: a %s patch', async (type) => {
    const path = await made();
    const patch = '{"spec":{"odd":1,"sessionAffinity":"None","sessionAffinity":"ClientIP"}}';
    const complaints = ['duplicate field "spec.sessionAffinity"', 'unknown field "spec.odd"'];
    const refused = await server.patch(`${path}?fieldValidation=Strict`, patch, type);
    ends(refused, `strict decoding error: ${complaints.join(', ')}`);
    const warned = await server.patch(path, patch, type);
    expect(warned.status).toBe(200);
    expect(warned.warnings).toEqual(complaints);
    expect(warned.body.spec.sessionAffinity).toBe('ClientIP');
    const ignored = await server.patch(`${path}?fieldValidation=Ignore`, patch, type);
    expect(ignored.warnings).toEqual([]);
  });

  test('FV-2: an apply reports duplicates by line and refuses unknown fields', async () => {
    const name = fresh();
    const path = `/api/v1/namespaces/${namespace}/configmaps/${name}`;
    const body =
      `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"${name}"},\n` +
      '"data":{"a":"1",\n"a":"2"}}';
    const line = 'line 3: key "a" already set in map';
    const refused = await apply(server, path, body, { query: 'fieldValidation=Strict' });
    expect(refused.status).toBe(400);
    expect(refused.body.message).toBe(
      'error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n' +
        `  ${line}`,
    );
    const warned = await apply(server, path, body);
    expect(warned.status).toBe(201);
    expect(warned.warnings).toEqual([line]);
    expect(warned.body.data).toEqual({ a: '2' });
    const ignored = await apply(server, path, body, { query: 'fieldValidation=Ignore' });
    expect(ignored.warnings).toEqual([]);
    const odd = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, odd: 1 };
    const unknown = await apply(server, path, odd, { query: 'fieldValidation=Ignore' });
    expect(unknown.status).toBe(400);
    expect(unknown.body.message).toContain('.odd: field not declared in schema');
  });

  test('FV-2: a strict apply lists every unknown and duplicate field', async () => {
    const name = fresh();
    const body =
      `{"apiVersion":"v1","kind":"Service","metadata":{"name":"${name}","odd":1},\n` +
      '"spec":{"ports":[{"port":1,"more":2}],"x":{"y":1},\n"sessionAffinity":"None",\n"sessionAffinity":"None"}}';
    const strict = { query: 'fieldValidation=Strict' };
    const refused = await apply(server, `${services}/${name}`, body, strict);
    expect(refused.status).toBe(400);
    expect(refused.body.message.slice(refused.body.message.indexOf(': ') + 2)).toBe(
      '.metadata.odd: field not declared in schema; strict decoding error: yaml: unmarshal errors:\n' +
        '  line 4: key "sessionAffinity" already set in map, ' +
        'unknown field "metadata.odd", unknown field "spec.ports[0].more", unknown field "spec.x"',
    );
    const custom = kind.body(name, { spec: { size: 1, one: 1, two: 2 } });
    const answer = await apply(server, `${kind.path(namespace)}/${name}`, custom, strict);
    expect(answer.status).toBe(400);
    expect(answer.body.message).toMatch(/: unknown field "spec.one", unknown field "spec.two"$/);
    expect(answer.body.message).toContain(': .spec.one: field not declared in schema; ');
  });
});
