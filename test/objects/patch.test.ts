import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { configMap, freshNamespace, type PatchType } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

let maps: string;
let path: string;
let count = 0;

const server = await withServer();

beforeAll(async () => {
  maps = `/api/v1/namespaces/${await freshNamespace(server)}/configmaps`;
});
beforeEach(async () => {
  count += 1;
  const name = `patched-${count}`;
  path = `${maps}/${name}`;
  const made = await server.post(
    maps,
    configMap(name, {
      metadata: { name, annotations: { 'x.io/y': '3' } },
      data: { a: '1', b: '2' },
    }),
  );
  expect(made.status).toBe(201);
});

const dataNow = async () => (await server.get(path)).body.data;
const versionNow = async () => (await server.get(path)).body.metadata.resourceVersion;

describe('JSON Patch', () => {
  test('PATCH-1: the six operations', async () => {
    const operations = [
      { op: 'test', path: '/data/a', value: '1' },
      { op: 'add', path: '/data/c', value: 'new' },
      { op: 'replace', path: '/data/a', value: 'other' },
      { op: 'remove', path: '/data/b' },
      { op: 'copy', from: '/data/c', path: '/data/d' },
      { op: 'move', from: '/metadata/annotations/x.io~1y', path: '/data/moved' },
      { op: 'add', path: '/metadata/labels', value: { l: 'v' } },
    ];
    const answer = await server.patch(path, operations, 'json');
    expect(answer.status, answer.text).toBe(200);
    expect(answer.body.data).toEqual({ a: 'other', c: 'new', d: 'new', moved: '3' });
    expect(answer.body.metadata.labels).toEqual({ l: 'v' });
    expect(await dataNow()).toEqual(answer.body.data);
  });

  test('PATCH-1: add and copy may address the whole document', async () => {
    const whole = { ...(await server.get(path)).body, data: { all: 'new' } };
    const nested = { op: 'copy', from: '', path: '/data/document' };
    const operations = [nested, { op: 'add', path: '', value: whole }];
    const { status, body } = await server.patch(path, operations, 'json');
    expect([status, body.data]).toEqual([200, { all: 'new' }]);
  });

  test.each([
    ['a test that fails', [{ op: 'test', path: '/data/a', value: '9' }]],
    ['a test of an absent value', [{ op: 'test', path: '/data/none', value: null }]],
    ['a path that is not there', [{ op: 'remove', path: '/data/none' }]],
    ['replacing in nothing', [{ op: 'replace', path: '/none/x', value: 'x' }]],
    ['an unknown operation', [{ op: 'merge', path: '/data/a', value: 'x' }]],
    ['replacing an absent value', [{ op: 'replace', path: '/data/none', value: 'x' }]],
    ['copying an absent value', [{ op: 'copy', from: '/data/none', path: '/data/c' }]],
    ['moving an absent value', [{ op: 'move', from: '/data/none', path: '/data/c' }]],
    ['an add without a value', [{ op: 'add', path: '/data/c' }]],
    ['a replace without a value', [{ op: 'replace', path: '/data/a' }]],
    ['a test without a value', [{ op: 'test', path: '/data/none' }]],
    ['moving a value into itself', [{ op: 'move', from: '/data', path: '/data/a' }]],
    ['a path without its first slash', [{ op: 'add', path: 'data/c', value: 'x' }]],
    ['an escape that means nothing', [{ op: 'add', path: '/data/~2', value: 'x' }]],
    ['a negative index', [{ op: 'add', path: '/metadata/finalizers/-1', value: 'x.io/b' }]],
    [
      'an index with a zero in front',
      [{ op: 'test', path: '/metadata/finalizers/00', value: 'x.io/a' }],
    ],
    ['a copy from nowhere', [{ op: 'copy', from: '/none/x', path: '/data/c' }]],
  ])('PATCH-1: %s is 422 and nothing changes', async (_, failing) => {
    const before = await server.get(path);
    const operations = [
      { op: 'add', path: '/data/first', value: 'x' },
      { op: 'add', path: '/metadata/finalizers', value: ['x.io/a'] },
      ...failing,
    ];
    const { status, body } = await server.patch(path, operations, 'json');
    expect(status).toBe(422);
    expect(body).toMatchObject({
      kind: 'Status',
      reason: 'Invalid',
      message: 'the server rejected our request due to an error in our request',
      code: 422,
    });
    // kube-apiserver gives no details.
    expect(body.details).toEqual({});
    expect((await server.get(path)).body).toEqual(before.body);
  });

  describe('of a client of kube-apiserver', () => {
    const tekton = [
      { op: 'replace', path: '/metadata/annotations/tekton.dev~1ready', value: 'READY' },
    ];
    test.each([
      [
        'replaces an absent value',
        tekton,
        ['metadata', 'annotations', 'tekton.dev/ready'],
        'READY',
      ],
      [
        'copies an absent value',
        [{ op: 'copy', from: '/data/none', path: '/data/c' }],
        ['data', 'c'],
        '',
      ],
      ['adds nothing', [{ op: 'add', path: '/data/c' }], ['data', 'c'], ''],
      [
        'counts from the end',
        [
          { op: 'add', path: '/metadata/finalizers', value: ['x.io/a', 'x.io/c'] },
          { op: 'add', path: '/metadata/finalizers/-1', value: 'x.io/b' },
        ],
        ['metadata', 'finalizers', '2'],
        'x.io/b',
      ],
    ])('PATCH-1, CLIENT-2: %s', async (_, operations, place, expected) => {
      const compatible = await withServer({ dialect: 'kubernetes' });
      const metadata = { name: 'patched', annotations: { 'x.io/y': '3' } };
      const collection = '/api/v1/namespaces/default/configmaps';
      await compatible.post(collection, configMap('patched', { metadata }));
      const answer = await compatible.patch(`${collection}/patched`, operations, 'json');
      expect(answer.status, answer.text).toBe(200);
      let value: unknown = answer.body;
      for (const step of place) value = Reflect.get(Object(value), step);
      expect(value).toBe(expected);
    });
  });

  test('PATCH-1: 10,000 operations are accepted, one more is 413', async () => {
    const operations = (length: number) =>
      Array.from({ length }, () => ({ op: 'test', path: '/data/a', value: '1' }));
    expect((await server.patch(path, operations(10_000), 'json')).status).toBe(200);
    const { status, body } = await server.patch(path, operations(10_001), 'json');
    expect(status).toBe(413);
    expect(body).toMatchObject({
      reason: 'RequestEntityTooLarge',
      message:
        'Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001',
      code: 413,
    });
  });

  test.each(['{', '', '5', '"x"', '{"op":"add"}', '[1]', '[{"op":5}]'])(
    'PATCH-1: a body %j that is not a patch is refused and nothing changes',
    async (body) => {
      const before = await server.get(path);
      const answer = await server.patch(path, body, 'json');
      expect(answer.status, answer.text).toBeGreaterThanOrEqual(400);
      expect(answer.status, answer.text).toBeLessThan(500);
      expect((await server.get(path)).body).toEqual(before.body);
    },
  );

  test('PATCH-1: unbounded growth is refused', async () => {
    const operations: object[] = [{ op: 'add', path: '/data/big', value: 'x'.repeat(10_000) }];
    for (let round = 0; round < 30; round += 1) {
      operations.push({ op: 'copy', from: '/metadata', path: `/metadata/c${round}` });
    }
    const { status } = await server.patch(path, operations, 'json');
    expect(status).toBe(422);
  });

  test('PATCH-1: `__proto__` is an ordinary name', async () => {
    const operations = [{ op: 'add', path: '/__proto__/polluted', value: 'yes' }];
    await server.patch(path, operations, 'json');
    await server.patch(path, '{"__proto__":{"polluted":"yes"}}', 'merge');
    expect(({} as { polluted?: string }).polluted).toBeUndefined();
  });
});

describe('JSON Merge Patch', () => {
  test('PATCH-2: sets, keeps, and, by null, deletes', async () => {
    const patch = { data: { a: null, b: 'two', c: 'three' }, metadata: { labels: { l: 'v' } } };
    const { status, body } = await server.patch(path, patch, 'merge');
    expect(status).toBe(200);
    expect(body.data).toEqual({ b: 'two', c: 'three' });
    expect(body.metadata.labels).toEqual({ l: 'v' });
    const gone = await server.patch(path, { data: null, metadata: { labels: null } }, 'merge');
    expect(gone.body.data).toBeUndefined();
    expect(gone.body.metadata.labels).toBeUndefined();
  });

  test.each(['{', '', '[]', '5', '"x"'])('PATCH-2: a body %j is 400', async (body) => {
    const answer = await server.patch(path, body, 'merge');
    expect(answer.status, answer.text).toBe(400);
    expect(answer.body.message).toContain('error decoding patch: ');
  });

  test('PATCH-2: a result that does not fit the kind is 422 and names the object', async () => {
    const { status, body } = await server.patch(path, { data: { a: 5 } }, 'merge');
    expect(status).toBe(422);
    expect(body.details.causes[0]).toMatchObject({ reason: 'FieldValueInvalid', field: 'patch' });
    expect(body.message).toContain('cannot unmarshal number');
    expect((await dataNow()).a).toBe('1');
  });

  test('PATCH-2: it can change neither the name nor the kind', async () => {
    const renamed = await server.patch(path, { metadata: { name: 'other' } }, 'merge');
    expect(renamed.status).toBe(400);
    expect(renamed.body.message).toMatch(
      /^the name of the object \(other\) does not match the name/,
    );
    const moved = await server.patch(path, { metadata: { namespace: 'other' } }, 'merge');
    expect(moved.status).toBe(400);
    const turned = await server.patch(path, { kind: 'Secret' }, 'merge');
    expect(turned.status).toBeGreaterThanOrEqual(400);
    expect(turned.status).toBeLessThan(500);
  });

  test('PATCH-2: a patch of a missing object is 404', async () => {
    const { status, body } = await server.patch(`${maps}/none`, { data: {} }, 'merge');
    expect(status).toBe(404);
    expect(body.message).toBe('configmaps "none" not found');
  });
});

describe('conditions', () => {
  test.each(['merge', 'strategic', 'json'] as const)(
    'PATCH-4: a resourceVersion in a %s patch makes it conditional',
    async (type) => {
      const patchWith = (resourceVersion: string, value: string) =>
        type === 'json'
          ? [
              { op: 'replace', path: '/metadata/resourceVersion', value: resourceVersion },
              { op: 'replace', path: '/data/a', value },
            ]
          : { metadata: { resourceVersion }, data: { a: value } };
      const stale = await versionNow();
      const first = await server.patch(path, patchWith(stale, 'first'), type);
      expect(first.status, first.text).toBe(200);
      const { status, body } = await server.patch(path, patchWith(stale, 'second'), type);
      const name = path.slice(maps.length + 1);
      expect(status).toBe(409);
      expect(body).toEqual({
        kind: 'Status',
        apiVersion: 'v1',
        metadata: {},
        status: 'Failure',
        message:
          `Operation cannot be fulfilled on configmaps "${name}": the object has been modified; ` +
          'please apply your changes to the latest version and try again',
        reason: 'Conflict',
        details: { name, kind: 'configmaps' },
        code: 409,
      });
      expect((await dataNow()).a).toBe('first');
    },
  );

  const noMap = (what: string) =>
    `json: cannot unmarshal ${what} into Go value of type map[string]interface {}`;
  const noOperations = (what: string, type: string) =>
    `json: cannot unmarshal ${what} into Go value of type ${type}`;
  test.each<[PatchType, string, string, string]>([
    ['merge', '[]', `error decoding patch: ${noMap('array')}`, 'Invalid JSON Patch'],
    ['merge', 'null', 'Invalid JSON Patch', 'Invalid JSON Patch'],
    ['merge', '{', 'error decoding patch: unexpected end of JSON input', 'Invalid JSON Patch'],
    ['strategic', '"x"', noMap('string'), noMap('string')],
    ['strategic', '{', 'unexpected end of JSON input', 'unexpected end of JSON input'],
    [
      'json',
      '{}',
      `error decoding patch: ${noOperations('object', '[]handlers.jsonPatchOp')}`,
      noOperations('object', 'jsonpatch.Patch'),
    ],
    [
      'json',
      '[1]',
      `error decoding patch: ${noOperations('number', 'handlers.jsonPatchOp')}`,
      noOperations('number', 'jsonpatch.Operation'),
    ],
  ])('PATCH-1, PATCH-2, PATCH-3: a %s patch %s is 400, by either decoder', async (...row) => {
    const [type, body, checked, ignored] = row;
    for (const [query, message] of [
      ['', checked],
      ['?fieldValidation=Ignore', ignored],
    ]) {
      const answer = await server.patch(`${path}${query}`, body, type);
      expect([answer.status, answer.body.message]).toEqual([400, message]);
    }
    // A missing object is reported before errors in the patch.
    expect((await server.patch(`${path}-absent`, body, type)).status).toBe(404);
  });

  test('PATCH-1: strict validation checks the types of operation members', async () => {
    const operations = [{ op: 1, path: '/data/a', value: 'x' }];
    const checked = await server.patch(path, operations, 'json');
    expect([checked.status, checked.body.message]).toEqual([
      400,
      'error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.op of type string',
    ]);
    const ignored = await server.patch(`${path}?fieldValidation=Ignore`, operations, 'json');
    expect(ignored.status).toBe(422);
  });

  test('PATCH-1, PATCH-3: null is an empty patch', async () => {
    for (const type of ['json', 'strategic'] as const) {
      const before = await server.get(path);
      const answer = await server.patch(path, 'null', type);
      expect([answer.status, answer.text]).toEqual([200, before.text]);
    }
  });

  test('PATCH-4: without a resourceVersion all concurrent patches succeed', async () => {
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, index) =>
        server.patch(path, { data: { [`k${index}`]: 'v' } }, 'merge'),
      ),
    );
    expect(answers.map(({ status }) => status)).toEqual(new Array(40).fill(200));
    expect(Object.keys(await dataNow())).toHaveLength(42);
  });

  test('PATCH-4: another uid is 409', async () => {
    const { status, body } = await server.patch(path, { metadata: { uid: 'x' } }, 'merge');
    expect(status).toBe(409);
    expect(body.message).toContain(
      'Precondition failed: UID in precondition: x, UID in object meta: ',
    );
  });

  test('PATCH-4: a stale patch of another object reports the revision', async () => {
    const metadata = { uid: 'x', resourceVersion: '1' };
    const { status, body } = await server.patch(path, { metadata }, 'merge');
    expect(status).toBe(409);
    expect(body.message).toMatch(/the object has been modified; please apply your changes to /);
    const { body: live } = await server.get(path);
    const put = await server.put(path, { ...live, metadata: { ...live.metadata, ...metadata } });
    expect(put.status).toBe(409);
    expect(put.body.message).toContain('Precondition failed: UID in precondition: x');
  });
});

describe('types', () => {
  test.each(['application/json', 'application/yaml', 'text/plain', ''])(
    'PATCH-5: Content-Type %j is 415 and lists the accepted types',
    async (type) => {
      const { status, body } = await server.request('PATCH', path, { body: '{}', type });
      expect(status).toBe(415);
      expect(body).toEqual({
        kind: 'Status',
        apiVersion: 'v1',
        metadata: {},
        status: 'Failure',
        message:
          'the body of the request was in an unknown format - accepted media types include: ' +
          'application/json-patch+json, application/merge-patch+json, ' +
          'application/strategic-merge-patch+json, application/apply-patch+yaml',
        reason: 'UnsupportedMediaType',
        code: 415,
      });
    },
  );

  test('PATCH-5: parameters of the type are ignored', async () => {
    const type = 'application/merge-patch+json; charset=utf-8';
    const { status } = await server.request('PATCH', path, { body: '{}', type });
    expect(status).toBe(200);
  });
});

describe('unchanged writes', () => {
  test('META-6: keep the resourceVersion, for any verb', async () => {
    const version = await versionNow();
    const object = (await server.get(path)).body;
    const answers = [
      await server.put(path, object),
      await server.put(path, {
        ...object,
        metadata: { ...object.metadata, resourceVersion: undefined },
      }),
      await server.patch(path, {}, 'merge'),
      await server.patch(path, { data: { a: '1' } }, 'merge'),
      await server.patch(path, {}, 'strategic'),
      await server.patch(path, [], 'json'),
      await server.patch(path, [{ op: 'replace', path: '/data/a', value: '1' }], 'json'),
    ];
    for (const { status, body, text } of answers) {
      expect(status, text).toBe(200);
      expect(body.metadata.resourceVersion, text).toBe(version);
    }
    expect(await versionNow()).toBe(version);
  });

  test('META-6: produce no event', async () => {
    const watch = await server.watch(`${maps}?watch=true&resourceVersion=${await versionNow()}`);
    await server.patch(path, { data: { a: '1' } }, 'merge');
    await server.patch(path, { data: { a: 'changed' } }, 'merge');
    await watch.until((events) => events.length > 0);
    expect(watch.events.map((event) => event.object.data.a)).toEqual(['changed']);
    watch.close();
  });

  test('META-6: include a repeated apply', async () => {
    const body = { apiVersion: 'v1', kind: 'ConfigMap', data: { applied: 'x' } };
    const apply = () => server.patch(`${path}?fieldManager=m`, body, 'apply');
    const first = await apply();
    expect(first.status, first.text).toBe(200);
    const again = await apply();
    expect(again.body.metadata.resourceVersion).toBe(first.body.metadata.resourceVersion);
  });
});
