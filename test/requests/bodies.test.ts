import { beforeAll, describe, expect, test } from 'vitest';
import { configMap, freshNamespace, startTestServer } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

let namespace: string;
let maps: string;

const server = await withServer();

beforeAll(async () => {
  namespace = await freshNamespace(server);
  maps = `/api/v1/namespaces/${namespace}/configmaps`;
});

const metaStruct =
  'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; ' +
  'Kind string "json:\\"kind,omitempty\\"" }';
const unread = 'the object provided is unrecognized (must be of type ConfigMap): ';
const notJson = `${unread}couldn't get version/kind; json parse error: `;
const untyped = `${notJson}json: cannot unmarshal`;
const intoMap = 'cannot be handled as a ConfigMap: ';
const mapIn = (version: string) => `ConfigMap in version "${version}" ${intoMap}`;
const noKind = 'pkg/api/legacyscheme/scheme.go:30';

describe('invalid bodies', () => {
  test.each([
    [
      '/apis/apiextensions.svc.io/v1/customresourcedefinitions',
      'svc.io/apiextensions-apiserver/pkg/apiserver/apiserver.go:53',
    ],
    [
      '/apis/apiregistration.svc.io/v1/apiservices',
      'svc.io/kube-aggregator/pkg/apiserver/scheme/scheme.go:28',
    ],
  ])('API-9: another kind for %s is 400 with its own scheme', async (path, scheme) => {
    const answer = await server.post(path, { kind: 'Nope', metadata: { name: 'a' } });
    expect(answer.status).toBe(400);
    expect(answer.body.message).toContain(`in scheme "${scheme}"`);
  });

  test.each([
    ['', `${notJson}unexpected end of JSON input (<empty>)`],
    ['{', `${notJson}unexpected end of JSON input ({)`],
    ['x', `${notJson}invalid character 'x' looking for beginning of value (78)`],
    ['{"a":1}}', `${notJson}invalid character '}' after top-level value ({"a":1}})`],
    [
      '{"a":1,}',
      `${notJson}invalid character '}' looking for beginning of object key string ({"a":1,})`,
    ],
    ['[]', `${untyped} array into Go value of type ${metaStruct} (5b5d)`],
    ['"a"', `${untyped} string into Go value of type ${metaStruct} (226122)`],
    ['true', `${untyped} bool into Go value of type ${metaStruct} (74727565)`],
    ['{"kind":5}', `${untyped} number into Go struct field .kind of type string ({"kind":5})`],
    [
      '{"apiVersion":{}}',
      `${untyped} object into Go struct field .apiVersion of type string ({"apiVersion":{}})`,
    ],
    [
      '{"apiVersion":"a/b/c"}',
      `${unread}unexpected GroupVersion string: a/b/c ({"apiVersion":"a/b/c"})`,
    ],
    [
      '{"apiVersion":"a/b/c","xxxxxxxxxx":1}',
      `${unread}unexpected GroupVersion string: a/b/c ({"apiVersion":"a/b/c","xxxxxxx ...)`,
    ],
    [
      '{"kind":"Secret"}',
      `Secret in version "v1" ${intoMap}converting (v1.Secret) to (core.ConfigMap): unknown conversion`,
    ],
    [
      '{"kind":"ConfigMapList","apiVersion":"v1","items":[]}',
      `ConfigMapList in version "v1" ${intoMap}` +
        'converting (v1.ConfigMapList) to (core.ConfigMap): unknown conversion',
    ],
    [
      '{"kind":"List","apiVersion":"v1","items":[]}',
      `List in version "v1" ${intoMap}converting (v1.List) to (core.ConfigMap): unknown conversion`,
    ],
    [
      '{"kind":"DeleteOptions","apiVersion":"apps/v1"}',
      `DeleteOptions in version "v1" ${intoMap}` +
        'converting (v1.DeleteOptions) to (core.ConfigMap): unknown conversion',
    ],
    [
      '{"kind":"Status","apiVersion":"v1"}',
      `Status in version "v1" ${intoMap}` +
        'converting (v1.Status) to (core.ConfigMap): unknown conversion',
    ],
    [
      '{"kind":"Eviction","apiVersion":"policy/v1"}',
      `Eviction in version "v1" ${intoMap}` +
        'converting (v1.Eviction) to (core.ConfigMap): unknown conversion',
    ],
    [
      '{"kind":"Container","apiVersion":"v1"}',
      `Container in version "v1" ${intoMap}` +
        `no kind "Container" is registered for version "v1" in scheme "${noKind}"`,
    ],
    [
      '{"kind":"Nope","apiVersion":"v1"}',
      `Nope in version "v1" ${intoMap}` +
        `no kind "Nope" is registered for version "v1" in scheme "${noKind}"`,
    ],
    [
      '{"apiVersion":"v2"}',
      `${mapIn('v2')}no kind "ConfigMap" is registered for version "v2" in scheme "${noKind}"`,
    ],
    [
      '{"data":{"a":5}}',
      `${mapIn('v1')}json: cannot unmarshal number into Go struct field ConfigMap.data of type string`,
    ],
  ])('API-9: %j is 400 with the decoder’s reason', async (body, message) => {
    const { status, body: answer } = await server.post(maps, body);
    expect(answer).toEqual({
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message,
      reason: 'BadRequest',
      code: 400,
    });
    expect(status).toBe(400);
  });

  test('API-9: Events of both groups are the same kind', async () => {
    const [core, events] = ['v1', 'events.svc.io/v1'];
    const post = async (apiVersion: string, stated: string, kind: string) => {
      const root = apiVersion === core ? '/api/v1' : `/apis/${apiVersion}`;
      const body = { apiVersion: stated, kind, metadata: { name: 'x' } };
      const answer = await server.post(`${root}/namespaces/${namespace}/events`, body);
      expect(answer.status).toBe(400);
      return answer.body.message;
    };
    for (const [path, stated] of [
      [core, events],
      [events, core],
    ] as const) {
      expect(await post(path, stated, 'Event')).toBe(
        `the API version in the data (${stated}) does not match the expected API version (${path})`,
      );
    }
    expect(await post(events, core, 'Pod')).toContain('converting (v1.Pod) to (core.Event)');
  });

  test('API-9: a version that the path does not name is 400', async () => {
    const body = {
      apiVersion: 'autoscaling/v1',
      kind: 'HorizontalPodAutoscaler',
      metadata: { name: 'x' },
    };
    const path = `/apis/autoscaling/v2/namespaces/${namespace}/horizontalpodautoscalers`;
    const answer = await server.post(path, body);
    expect(answer.status).toBe(400);
    expect(answer.body.message).toBe(
      'the API version in the data (autoscaling/v1) does not match ' +
        'the expected API version (autoscaling/v2)',
    );
  });

  test('API-9: an apiVersion without a version is 400', async () => {
    const body = { apiVersion: 'v1/', kind: 'ConfigMap', metadata: { name: 'x' } };
    const answer = await server.post(maps, body);
    expect(answer.status).toBe(400);
    expect(answer.body.message).toBe(
      'ConfigMap in version "" cannot be handled as a ConfigMap: ' +
        `Object 'apiVersion' is missing in '${JSON.stringify(body)}'`,
    );
  });

  test('API-9: definitions of custom kinds are not known as other kinds are', async () => {
    const definition = { apiVersion: 'apiextensions.svc.io/v1', kind: 'CustomResourceDefinition' };
    const map = { apiVersion: 'v1', kind: 'ConfigMap' };
    const pairs = [
      [maps, definition],
      ['/apis/apiextensions.svc.io/v1/customresourcedefinitions', map],
    ] as const;
    for (const [path, body] of pairs) {
      const { message } = (await server.post(path, body)).body;
      expect(message).toContain(
        `: no kind "${body.kind}" is registered for version "${body.apiVersion}"`,
      );
    }
  });

  test('API-9: invalid UTF-8 is 400', async () => {
    const answer = await server.post(maps, Buffer.from([0x7b, 0xff, 0x7d]));
    expect(answer.status).toBe(400);
    expect(answer.body.reason).toBe('BadRequest');
  });

  test('API-9: endless nesting is 400', async () => {
    const answer = await server.post(maps, '['.repeat(1_000_000));
    expect(answer.status).toBe(400);
    expect(answer.body.message).toContain('exceeded max depth');
  });

  test('API-9: a built-in object may omit kind and apiVersion', async () => {
    const answer = await server.post(maps, { metadata: { name: 'bare' } });
    expect(answer.status).toBe(201);
    expect(answer.body).toMatchObject({ kind: 'ConfigMap', apiVersion: 'v1' });
  });
});

describe('media types of bodies', () => {
  test.each(['text/plain', 'application/xml', 'application/jsonx', 'json', 'application/json; x'])(
    'API-9: Content-Type %s is 415',
    async (type) => {
      const answer = await server.post(maps, configMap('x'), { type });
      expect(answer.status).toBe(415);
      expect(answer.body.reason).toBe('UnsupportedMediaType');
      expect(answer.body.message).toMatch(
        /^the body of the request was in an unknown format - accepted media types include: /,
      );
      expect((await server.put(`${maps}/x`, configMap('x'), { type })).status).toBe(415);
      expect((await server.remove(`${maps}/x`, { kind: 'DeleteOptions' }, { type })).status).toBe(
        415,
      );
    },
  );

  test.each([
    ['a POST', 'POST', { accept: 406, large: 415, options: 415, largeToo: 413 }],
    ['a PUT', 'PUT', { accept: 406, large: 413, options: 422, largeToo: 413 }],
    ['a PATCH', 'PATCH', { accept: 415, large: 415, options: 415, largeToo: 413 }],
  ])('API-9: %s with several errors reports one in a fixed order', async (_what, method, codes) => {
    const path = method === 'POST' ? maps : `${maps}/absent`;
    const bad = 'text/plain';
    const good = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
    const send = async (query: string, body: string, options: object) =>
      (await server.request(method, `${path}${query}`, { ...options, body })).status;
    const large = ' '.repeat(3 * 1024 * 1024 + 1);
    expect(await send('', '{}', { type: bad, accept: 'text/plain' })).toBe(codes.accept);
    expect(await send('?dryRun=x', '{}', { type: good, accept: 'text/plain' })).toBe(406);
    expect(await send('', large, { type: bad })).toBe(codes.large);
    expect(await send('?dryRun=x', '{}', { type: bad })).toBe(codes.options);
    expect(await send('?dryRun=x', large, { type: good })).toBe(codes.largeToo);
    expect(await send('?dryRun=x', '{', { type: good })).toBe(422);
  });

  test('API-9: no Content-Type means JSON; parameters and case are ignored', async () => {
    for (const type of ['', 'application/json; charset=utf-8', 'Application/JSON']) {
      const answer = await server.post(maps, { metadata: { generateName: 'typed-' } }, { type });
      expect(answer.status, type).toBe(201);
    }
  });

  test('API-9: a body over the limit is 413, a body at the limit is accepted', async () => {
    const limit = 3 * 1024 * 1024;
    const filler = (bytes: number) => `${JSON.stringify(configMap('large')).padEnd(bytes, ' ')}`;
    const answer = await server.post(maps, filler(limit + 1));
    expect(answer.status).toBe(413);
    expect(answer.body).toEqual({
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message: `Request entity too large: limit is ${limit}`,
      reason: 'RequestEntityTooLarge',
      code: 413,
    });
    expect((await server.post(maps, filler(limit))).status).toBe(201);
  });

  test('CODEC-2: YAML for request and answer independently', async () => {
    const yaml = [
      '# a comment',
      'kind: ConfigMap',
      'metadata:',
      '  name: yaml',
      '  annotations: {date: "2001-01-01"}',
      'data:',
      '  answer: "yes"',
      '  text: |',
      '    two',
      '    lines',
      '',
    ].join('\n');
    const created = await server.post(maps, yaml, { type: 'application/yaml' });
    expect(created.status).toBe(201);
    expect(created.headers['content-type']).toBe('application/json');
    expect(created.body.data).toEqual({ answer: 'yes', text: 'two\nlines\n' });
    const read = await server.get(`${maps}/yaml`, { accept: 'application/yaml' });
    expect(read.headers['content-type']).toBe('application/yaml');
    expect(read.text).toContain('data:\n  answer: "yes"\n  text: |\n    two\n    lines\nkind:');
    expect(read.text).toContain('    date: "2001-01-01"\n');
    const put = await server.put(`${maps}/yaml`, read.text.replace('two', 'three'), {
      type: 'application/yaml',
      accept: 'application/yaml',
    });
    expect(put.status).toBe(200);
    expect(put.text).toContain('    three\n');
    const list = await server.get(maps, { accept: 'application/yaml' });
    expect(list.text).toMatch(/^apiVersion: v1\nitems:\n- metadata:\n/);
    const gone = await server.remove(`${maps}/yaml`, 'kind: DeleteOptions\napiVersion: v1\n', {
      type: 'application/yaml',
    });
    expect(gone.status).toBe(200);
  });

  test.each([
    ['a: b: c', 'yaml: mapping values are not allowed in this context (613a20623a2063)'],
    ['a:\n\tb: 1', 'yaml: line 2: found character that cannot start any token (613a0a09623a2031)'],
    ['a: "\\ud800"', 'yaml: found invalid Unicode character escape code (613a20225c756438303022)'],
    ['a: \x01', 'yaml: control characters are not allowed (613a2001)'],
    ['# \x7f', 'yaml: control characters are not allowed (23207f)'],
    ['a: \u0080', 'yaml: control characters are not allowed (613a20c280)'],
  ])('CODEC-2: YAML %j is 400', async (text, message) => {
    const answer = await server.post(maps, text, { type: 'application/yaml' });
    expect(answer.status).toBe(400);
    expect(answer.body.message).toBe(unread + message);
  });

  test.each(['\r', '\x85'])('CODEC-2: %j ends a line of YAML', async (end) => {
    const lines = ['metadata: {name: lines} # a comment', 'data:', '  a: "b', '    c"', ''];
    const answer = await server.post(`${maps}?dryRun=All`, lines.join(end), {
      type: 'application/yaml',
    });
    expect([answer.status, answer.body.data]).toEqual([201, { a: 'b c' }]);
  });

  test('CODEC-2: a plain scalar beyond the range of numbers is a string', async () => {
    const text = 'metadata: {name: hash}\ndata: {commit: 12e4567}\n';
    const answer = await server.post(`${maps}?dryRun=All`, text, { type: 'application/yaml' });
    expect([answer.status, answer.body.data]).toEqual([201, { commit: '12e4567' }]);
  });

  test.each([
    'metadata: {name: first}\n---\nmetadata: {name: second}\n',
    '# a comment\n---\nmetadata: {name: first}\n---\n[unclosed',
    '{"metadata":{"name":"first"}}\n...\n%bad',
  ])('CODEC-2: of the documents in %j the first one counts', async (text) => {
    const path = `${maps}?dryRun=All`;
    const answer = await server.post(path, text, { type: 'application/yaml' });
    expect(answer.status, answer.text).toBe(201);
    expect(answer.body.metadata.name).toBe('first');
    const typed = text.replaceAll(
      '{name: first}',
      '{name: first}\napiVersion: v1\nkind: ConfigMap',
    );
    if (typed === text) return;
    const apply = await server.patch(`${maps}/first?dryRun=All&fieldManager=x`, typed, 'apply');
    expect(apply.status, apply.text).toBe(201);
  });

  test('CODEC-2: a duplicate YAML key warns, or is refused when strict', async () => {
    const yaml = 'metadata:\n  name: twice\ndata:\n  a: one\n  a: two\n';
    const options = { type: 'application/yaml' };
    const strict = await server.post(`${maps}?fieldValidation=Strict`, yaml, options);
    expect(strict.status).toBe(400);
    expect(strict.body.message).toBe(
      'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: ' +
        'yaml: unmarshal errors:\n  line 5: key "a" already set in map',
    );
    const warned = await server.post(maps, yaml, options);
    expect(warned.status).toBe(201);
    expect(warned.body.data).toEqual({ a: 'two' });
    expect(warned.warnings).toEqual(['line 5: key "a" already set in map']);
  });

  test('CODEC-8: 64-bit integers survive every read and write', async () => {
    const lease = (more: object) => ({ metadata: { name: 'long' }, spec: more });
    const leases = `/apis/coordination.svc.io/v1/namespaces/${namespace}/leases`;
    const time = '2020-01-02T03:04:05.123456Z';
    expect((await server.post(leases, lease({ renewTime: time }))).body.spec.renewTime).toBe(time);
    const text = '{"metadata":{"name":"exact","annotations":{"n":"9223372036854775807"}}}';
    expect((await server.post(maps, text)).status).toBe(201);
    const jobs = `/apis/batch/v1/namespaces/${namespace}/jobs`;
    const template = '{"spec":{"restartPolicy":"Never","containers":[{"name":"a","image":"b"}]}}';
    const spec = `{"activeDeadlineSeconds":9007199254740993,"template":${template}}`;
    const job = `{"metadata":{"name":"long"},"spec":${spec}}`;
    const created = await server.post(jobs, job);
    expect(created.status, created.text).toBe(201);
    expect(created.text).toContain('"activeDeadlineSeconds":9007199254740993');
    const patched = await server.patch(
      `${jobs}/long`,
      { metadata: { labels: { a: 'b' } } },
      'merge',
    );
    expect(patched.status, patched.text).toBe(200);
    expect(patched.text).toContain('"activeDeadlineSeconds":9007199254740993');
    const yaml = await server.get(`${jobs}/long`, { accept: 'application/yaml' });
    expect(yaml.text).toContain('activeDeadlineSeconds: 9007199254740993\n');
    const pretty = await server.get(`${jobs}/long?pretty=true`);
    expect(pretty.text).toContain('"activeDeadlineSeconds": 9007199254740993');
  });
});

describe('a refused upload', () => {
  test('API-9: leaves nothing that delays a shutdown', async () => {
    const own = await startTestServer({ limits: { requestTimeoutMs: 60_000 } });
    const body = Buffer.alloc(4 * 1024 * 1024, 'a');
    const answer = await own.post('/api/v1/namespaces/default/configmaps', body);
    expect(answer.status).toBe(413);
    const before = performance.now();
    await own.stop();
    expect(performance.now() - before).toBeLessThan(20_000);
  });
});
