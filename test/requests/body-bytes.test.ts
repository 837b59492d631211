import { openEnvelope, seal, WireWriter } from '@wheelhouse/codec';
import { beforeAll, describe, expect, test } from 'vitest';
import { freshNamespace } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

const server = await withServer();
const protobuf = 'application/vnd.svc.protobuf';
let namespace: string;

beforeAll(async () => {
  namespace = await freshNamespace(server);
});

const pathOf = (resource: string, group = '') =>
  `${group === '' ? '/api/v1' : `/apis/${group}/v1`}/namespaces/${namespace}/${resource}`;

/** The bytes of a field: an integer, a text, or a message of fields. */
function field(number: number, value: number | string | readonly Buffer[]): Buffer {
  const writer = new WireWriter();
  if (typeof value === 'number') writer.int64(value);
  else writer.bytes(typeof value === 'string' ? Buffer.from(value) : Buffer.concat(value));
  writer.key(number, typeof value === 'number' ? 0 : 2);
  return Buffer.from(writer.finish());
}

const named = (name: string) => field(1, [field(1, name)]);

/** Posts a message in its envelope. */
function post(kind: string, path: string, fields: readonly Buffer[], apiVersion = 'v1') {
  const body = seal({ apiVersion, kind }, Buffer.concat(fields));
  return server.request('POST', path, { body, type: protobuf });
}

const unfit = (kind: string) => `${kind} in version "v1" cannot be handled as a ${kind}: `;

describe('CODEC-3: protobuf as kube-apiserver reads it', () => {
  test('repeated occurrences of a message continue it', async () => {
    const made = await post('Service', pathOf('services'), [
      named('merged'),
      field(2, [field(2, [field(1, 'app'), field(2, 'a')])]),
      field(2, [
        field(1, [field(3, 81), field(4, [field(1, 1)]), field(4, [field(3, 'web')])]),
        field(3, '10.0.0.7'),
      ]),
      field(2, [field(3, 'None')]),
    ]);
    expect(made.status, made.body.message).toBe(201);
    expect(made.body.spec).toMatchObject({
      selector: { app: 'a' },
      ports: [{ port: 81, targetPort: 'web' }],
      clusterIP: 'None',
    });
  });

  test('an occurrence without the fields of a number, a text, or JSON keeps them', async () => {
    const port = [field(3, 80), field(4, [field(2, 8080)]), field(4, [field(1, 0)])];
    const service = [named('kept'), field(2, [field(1, port)])];
    const made = await post('Service', pathOf('services'), service);
    expect(made.body.spec.ports).toMatchObject([{ port: 80, targetPort: 8080 }]);

    const data = [field(2, [field(1, '{"a":1}')]), field(2, [])];
    const revision = [named('kept'), ...data, field(3, 1)];
    const path = pathOf('controllerrevisions', 'apps');
    const stored = await post('ControllerRevision', path, revision, 'apps/v1');
    expect(stored.body.data).toEqual({ a: 1 });
  });

  test('a quantity is parsed at each occurrence and must not be an empty text', async () => {
    const quota = (...quantity: Buffer[]) => [
      named('quantities'),
      field(2, [field(1, [field(1, 'pods'), ...quantity])]),
    ];
    const path = pathOf('resourcequotas');
    const why =
      "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
    for (const quantity of [field(2, [field(1, '')]), field(2, [field(1, 'x'), field(1, '1')])]) {
      const refused = await post('ResourceQuota', path, quota(quantity));
      expect([refused.status, refused.body.message]).toEqual([400, unfit('ResourceQuota') + why]);
    }
    const made = await post('ResourceQuota', path, quota(field(2, [])));
    expect(made.body.spec.hard).toEqual({ pods: '0' });
  });

  test('an entry of a map needs no key, and groups may contain any key', async () => {
    const entries = [field(2, [field(2, 'x')]), field(2, [field(1, 'a')])];
    const group = Buffer.from([0xa3, 0x06, 0x00, 0x01, 0xa4, 0x06]);
    const made = await post('ConfigMap', pathOf('configmaps'), [
      named('entries'),
      group,
      field(2, [field(1, 'a'), field(2, 'first')]),
      entries[1]!,
    ]);
    expect(made.status, made.body.message).toBe(201);
    expect(made.body.data).toEqual({ a: '' });
    const refused = await post('ConfigMap', pathOf('configmaps'), [named('no-key'), entries[0]!]);
    expect(refused.status).toBe(422);
    expect(refused.body.message).toContain('data[]');
  });

  test('errors name the field or the message', async () => {
    const cases: [Buffer, string][] = [
      [field(2, 5), 'proto: wrong wireType = 0 for field Data'],
      [field(1, 5), 'proto: wrong wireType = 0 for field ObjectMeta'],
      [field(1, [field(3, 5)]), 'proto: wrong wireType = 0 for field Namespace'],
      [field(1, [field(5, 5)]), 'proto: wrong wireType = 0 for field UID'],
      [field(1, [Buffer.from([0x00, 0x01])]), 'proto: ObjectMeta: illegal tag 0 (wire type 0)'],
      [Buffer.from([0x24]), 'proto: ConfigMap: wiretype end group for non-group'],
      [field(2, [Buffer.from([0x1c])]), 'proto: unexpected end of group'],
      [Buffer.from([0x3f]), 'proto: illegal wireType 7'],
    ];
    for (const [bytes, why] of cases) {
      const refused = await post('ConfigMap', pathOf('configmaps'), [bytes]);
      expect([refused.status, refused.body.message]).toEqual([400, unfit('ConfigMap') + why]);
    }
  });

  test('the encoding of the content, and an apiVersion that is none, are ignored', async () => {
    const path = pathOf('configmaps');
    for (const [index, apiVersion] of ['a/b/c', '/', 'v1/', '/v1'].entries()) {
      const made = await post('ConfigMap', path, [named(`typed-${index}`)], apiVersion);
      expect(made.status, made.body.message).toBe(201);
    }
    const sealed = seal({ apiVersion: 'v1', kind: 'ConfigMap' }, named('encoded'));
    const body = Buffer.concat([sealed.subarray(0, -4), field(3, 'gzip'), field(4, 'x')]);
    expect(openEnvelope(body).kind).toBe('ConfigMap');
    const made = await server.request('POST', path, { body, type: protobuf });
    expect(made.status, made.body.message).toBe(201);
  });
});

describe('FV-2: members that a JSON body repeats', () => {
  const create = (resource: string, group: string, text: string) =>
    server.request('POST', `${pathOf(resource, group)}?fieldValidation=Ignore`, {
      body: Buffer.from(text),
      type: 'application/json',
    });

  test('are merged if they are structs or maps, and null keeps what cannot be nil', async () => {
    const made = await create(
      'services',
      '',
      '{"metadata":{"name":"twice","labels":{"a":"1","b":"1"}},' +
        '"spec":{"ports":[{"port":80,"name":"a"},{"port":81,"name":"b"}],"type":"ClusterIP"},' +
        '"metadata":{"labels":{"b":"2"},"annotations":{"c":"3"}},"metadata":null,' +
        '"spec":{"ports":[{"targetPort":8080}],"selector":{"x":"y"},"type":null}}',
    );
    expect(made.status, made.body.message).toBe(201);
    const { metadata, spec } = made.body;
    expect(metadata).toMatchObject({
      name: 'twice',
      labels: { a: '1', b: '2' },
      annotations: { c: '3' },
    });
    expect(spec).toMatchObject({ type: 'ClusterIP', selector: { x: 'y' } });
    expect(spec.ports).toEqual([{ name: 'a', port: 80, protocol: 'TCP', targetPort: 8080 }]);
  });

  test('replace each other in maps of structs, and null removes maps', async () => {
    const made = await create(
      'configmaps',
      '',
      '{"metadata":{"name":"replaced","labels":{"a":"1"},"labels":null,"labels":{"b":"1"}},' +
        '"data":{"a":"1","a":"2"},"data":{"c":"3"}}',
    );
    expect(made.body.metadata.labels).toEqual({ b: '1' });
    expect(made.body.data).toEqual({ a: '2', c: '3' });
  });

  test('are merged in options of a deletion', async () => {
    await server.post(pathOf('configmaps'), { metadata: { name: 'deleted' } });
    const refused = await server.request('DELETE', `${pathOf('configmaps')}/deleted`, {
      body: Buffer.from('{"preconditions":{"uid":"x"},"preconditions":{}}'),
      type: 'application/json',
    });
    expect(refused.status).toBe(409);
  });
});

describe('CODEC-2: YAML as kube-apiserver reads it', () => {
  const send = (text: string, path = `${pathOf('configmaps')}?dryRun=All`) =>
    server.request('POST', path, { body: Buffer.from(text), type: 'application/yaml' });

  test('quoted texts continue at any indentation, and comments need no blank', async () => {
    const made = await send(
      'metadata:\n  name: "quoted"#c\ndata:\n  a: "x\ny"\n  b: \'x\n\n  y\'\n  c: "z"#c\n',
    );
    expect(made.status, made.body.message).toBe(201);
    expect(made.body.data).toEqual({ a: 'x y', b: 'x\ny', c: 'z' });
    const marked = await send('metadata: {name: "a\n--- b"}\n');
    expect(marked.status).toBe(400);
  });

  test('lines in flow collections have any indentation', async () => {
    for (const text of [
      'metadata: {name: flow}\ndata: {a: x,\nb: z}\n',
      'metadata:\n  name: flow\ndata:\n  {a: x,\n  b:\nz\n}\n',
      'metadata: {"name": "flow"\n}\ndata: {"a": "x",\n\n# c\n"b": z}\n',
    ]) {
      const made = await send(text);
      expect(made.status, made.body.message).toBe(201);
      expect(made.body.data, text).toEqual({ a: 'x', b: 'z' });
    }
  });

  test('what follows a document is not read, and the last line of a text may be open', async () => {
    const name = '{"metadata": {"name": "whole"}';
    const made = await send(`${name},\n "data": {"a": "b"\n}}\n} and more`);
    expect([made.status, made.body.data]).toEqual([201, { a: 'b' }]);
    const open = await send('metadata: {name: open}\ndata:\n  a: |\n    b\n    c');
    expect([open.status, open.body.data]).toEqual([201, { a: 'b\nc' }]);
  });

  test('a merge key adds to what precedes it, and what follows replaces it', async () => {
    const cases: [string, object, string | undefined][] = [
      ['data: {a: "1"}\n<<: {data: {b: "2"}}', { b: '2' }, 'line 3: key \\"data\\" already set'],
      ['<<: {data: {b: "2"}}\ndata: {a: "1"}', { a: '1' }, 'line 3: key \\"data\\" already set'],
      ['data: {<<: [{a: "1"}, {a: "2"}]}', { a: '1' }, 'line 2: key \\"a\\" already set in map'],
      ['data: {<<: {a: "1"}, <<: {b: "2"}}', { a: '1', b: '2' }, undefined],
      ['data: {<<: {<<: {a: "1"}, b: "2"}}', { a: '1', b: '2' }, undefined],
    ];
    for (const [text, data, warning] of cases) {
      const made = await send(`metadata: {name: merged}\n${text}\n`);
      expect(made.status, made.body.message).toBe(201);
      expect(made.body.data, text).toEqual(data);
      const warnings = String(made.headers.warning ?? '');
      if (warning === undefined) expect(warnings, text).toBe('');
      else expect(warnings).toContain(warning);
    }
  });

  test('errors say what kube-apiserver says', async () => {
    const start = 'metadata: {name: wrong}\n';
    for (const [text, why] of [
      [`${start}}`, 'yaml: line 1: did not find expected key'],
      [`${start}data: {a: b}}`, 'yaml: line 1: did not find expected key'],
      [`${start}data:\n- a: b\n\n  - c\n`, 'yaml: line 4: did not find expected key'],
      [`${start}data: {a: b\n  c: d}`, "yaml: line 2: did not find expected ',' or '}'"],
      [`${start}data: *a\nb: @`, "yaml: unknown anchor 'a' referenced"],
      [`${start}data: {a: "\\'"}`, 'yaml: line 2: found unknown escape character'],
      [`${start}data\n`, "yaml: line 3: could not find expected ':'"],
      [`${start}data: - a`, 'yaml: line 2: block sequence entries are not allowed in this context'],
      [`${start}data: {? : a}`, 'unsupported map key of type: %!s(<nil>), key: <nil>, value: "a"'],
      [`${start}data: {[a]: b}`, 'yaml: invalid map key: []interface {}{"a"}'],
      [`%YAML 1.2\n---\n${start}`, 'yaml: found incompatible YAML document'],
      [`...\n${start}`, 'yaml: did not find expected node content'],
      ["'\r\n...\n'", 'yaml: line 2: found unexpected document indicator'],
      ['a: "x\n---\ny"', 'yaml: line 2: found unexpected document indicator'],
    ] as const) {
      const refused = await send(text);
      const frame = 'the object provided is unrecognized (must be of type ConfigMap): ';
      expect(refused.status, text).toBe(400);
      expect(refused.body.message).toContain(`${frame}${why} (`);
    }
  });
});

describe('API-9: what is wrong with a body', () => {
  test('is said by its syntax before its encoding', async () => {
    for (const [bytes, why] of [
      [[0x9f, 0x7b], "invalid character '\\u009f' looking for beginning of value"],
      [[0xd9, 0x7b], "invalid character 'Ù' looking for beginning of value"],
      [[0x22, 0xff, 0x22], 'invalid UTF-8 in JSON text'],
    ] as const) {
      const body = Buffer.from(bytes);
      const refused = await server.request('POST', pathOf('configmaps'), { body });
      expect(refused.status).toBe(400);
      expect(refused.body.message).toContain(`json parse error: ${why} (`);
    }
  });

  test('is its media type if a parameter has two values', async () => {
    const send = (type: string) =>
      server.request('POST', `${pathOf('configmaps')}?dryRun=All`, {
        body: Buffer.from('{"metadata":{"name":"typed"}}'),
        type,
      });
    expect((await send('application/json; a=b; a=c')).status).toBe(415);
    expect((await send('application/json; a=b; A="b"')).status).toBe(201);
  });

  test('is quoted as Go does', async () => {
    const body = Buffer.from('{"metadata":{"name":"quoted","\u2028\u007f":1}}');
    const path = `${pathOf('configmaps')}?fieldValidation=Strict`;
    const refused = await server.request('POST', path, { body });
    expect(refused.body.message).toMatch(/: unknown field "metadata\.\\u2028\\x7f"$/);
    const kind = Buffer.from('{"kind":"A\u0085"}');
    const unknown = await server.request('POST', path, { body: kind });
    expect(unknown.body.message).toContain('no kind "A\\u0085" is registered for version');
  });

  test('DEL-2: the kind of options counts in each spelling, except inside of an Eviction', async () => {
    const remove = (text: string) =>
      server.request('DELETE', `${pathOf('configmaps')}/none`, {
        body: Buffer.from(text),
        type: 'application/json',
      });
    expect((await remove('{"kind":null,"apiVersion":null}')).status).toBe(404);
    expect((await remove('{"Kind":"Other"}')).status).toBe(400);
    const spec = { containers: [{ name: 'c', image: 'i' }] };
    await server.post(pathOf('pods'), { metadata: { name: 'evicted' }, spec });
    const evicted = await server.post(`${pathOf('pods')}/evicted/eviction`, {
      apiVersion: 'policy/v1',
      kind: 'Eviction',
      metadata: { name: 'evicted', namespace },
      deleteOptions: { kind: 'Other', apiVersion: 'a/b/c', preconditions: { uid: 'x' } },
    });
    expect(evicted.status, evicted.body.message).toBe(409);
  });

  test('DEL-2: options of a version without a name are refused', async () => {
    const refused = await server.request('DELETE', `${pathOf('configmaps')}/none`, {
      body: Buffer.from('{"apiVersion":"v1/"}'),
      type: 'application/json',
    });
    expect(refused.status).toBe(400);
    expect(refused.body.message).toBe(`Object 'apiVersion' is missing in '{"apiVersion":"v1/"}'`);
  });
});

test('the zero of times is an absent time, in each of its spellings', async () => {
  const create = (lastTimestamp: string, eventTime: string) =>
    server.post(`${pathOf('events')}?dryRun=All`, {
      metadata: { name: 'e', namespace },
      involvedObject: { namespace },
      ...{ reason: 'r', action: 'a', type: 'Normal' },
      ...{ reportingComponent: 'example.com/c', reportingInstance: 'i' },
      ...{ lastTimestamp, eventTime },
    });
  const zero = await create('0001-01-01T01:00:00+01:00', '0001-01-01T00:00:00.000000Z');
  expect(zero.status, zero.body.message).toBe(201);
  expect(zero.body).toMatchObject({ lastTimestamp: null, eventTime: null });
  const plain = await create('0001-01-01T00:00:00Z', '0001-01-01T00:00:00.000001Z');
  expect(plain.body).toMatchObject({
    lastTimestamp: null,
    eventTime: '0001-01-01T00:00:00.000001Z',
  });
});

test('a status without labels does not take those of its template from a Job', async () => {
  const template = { spec: { restartPolicy: 'Never', containers: [{ name: 'c', image: 'i' }] } };
  const job = { metadata: { name: 'j' }, spec: { template } };
  const made = await server.post(pathOf('jobs', 'batch'), job);
  const put = await server.put(`${pathOf('jobs', 'batch')}/j/status`, job);
  expect(put.status, put.body.message).toBe(200);
  expect(put.body.metadata.labels).toEqual(made.body.metadata.labels);
});
