import { describe, expect, test } from 'vitest';
import { type Answer, configMap, freshNamespace, itemNames } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

const server = await withServer();

const path = (namespace: string) => `/api/v1/namespaces/${namespace}/configmaps`;

/** Creates ConfigMaps `a`, `b`, … one after the other; returns their versions. */
async function makeMaps(namespace: string, count: number): Promise<string[]> {
  const versions: string[] = [];
  for (let i = 0; i < count; i++) {
    const answer = await server.post(path(namespace), configMap(letter(i)));
    expect(answer.status).toBe(201);
    versions.push(answer.body.metadata.resourceVersion);
  }
  return versions;
}
const letter = (i: number) => String.fromCharCode(97 + i);

function expectStatus(
  answer: Answer,
  expected: { code: number; reason: string; message: unknown },
) {
  expect(answer.body).toMatchObject({
    kind: 'Status',
    apiVersion: 'v1',
    status: 'Failure',
    ...expected,
  });
  expect(answer.status).toBe(expected.code);
}

/** Reads a list in chunks of `limit`, and calls `between` before each further chunk. */
async function readChunks(
  url: string,
  options: { limit: number; between?: () => Promise<unknown> },
): Promise<Answer[]> {
  const chunks: Answer[] = [];
  let token: string | undefined;
  for (let i = 0; i < 100; i++) {
    const more = token === undefined ? '' : `&continue=${encodeURIComponent(token)}`;
    const answer = await server.get(`${url}?limit=${options.limit}${more}`);
    expect(answer.status).toBe(200);
    chunks.push(answer);
    token = answer.body.metadata.continue;
    if (token === undefined || token === '') return chunks;
    await options.between?.();
  }
  throw new Error('the list never ends');
}

describe('contents of a list', () => {
  test('API-2: an empty collection is <Kind>List with items []', async () => {
    const namespace = await freshNamespace(server);
    const answer = await server.get(path(namespace));
    expect(answer.status).toBe(200);
    expect(answer.headers['content-type']).toBe('application/json');
    expect(answer.body).toEqual({
      kind: 'ConfigMapList',
      apiVersion: 'v1',
      metadata: { resourceVersion: expect.stringMatching(/^[1-9]\d*$/) },
      items: [],
    });
    const roles = await server.get(
      `/apis/rbac.authorization.svc.io/v1/namespaces/${namespace}/rolebindings`,
    );
    expect(roles.body).toMatchObject({
      kind: 'RoleBindingList',
      apiVersion: 'rbac.authorization.svc.io/v1',
      items: [],
    });
  });

  test('API-2: items are whole objects, ordered by namespace and name', async () => {
    const first = await freshNamespace(server);
    const second = await freshNamespace(server);
    const marked = { labels: { run: first } };
    for (const [namespace, name] of [
      [second, 'b'],
      [first, 'c'],
      [second, 'a'],
      [first, 'a'],
    ] as const) {
      await server.post(path(namespace), configMap(name, { metadata: { name, ...marked } }));
    }
    const all = await server.get(`/api/v1/configmaps?labelSelector=run%3D${first}`);
    const found = all.body.items.map(
      ({ metadata }: { metadata: { namespace: string; name: string } }) =>
        `${metadata.namespace}/${metadata.name}`,
    );
    expect(found).toEqual([...found].sort());
    expect(found).toHaveLength(4);
    const single = await server.get(`${path(first)}/a`);
    const { apiVersion: _, kind: __, ...item } = single.body;
    expect(all.body.items).toContainEqual(item);
  });

  test('API-2: HEAD of a collection returns the headers only', async () => {
    const namespace = await freshNamespace(server);
    await makeMaps(namespace, 2);
    const answer = await server.request('HEAD', path(namespace));
    expect(answer.status).toBe(200);
    expect(answer.headers['content-type']).toBe('application/json');
    expect(answer.text).toBe('');
  });

  test('API-2: the same list as YAML and pretty', async () => {
    const namespace = await freshNamespace(server);
    await makeMaps(namespace, 3);
    const plain = await server.get(path(namespace));
    const pretty = await server.get(`${path(namespace)}?pretty=true`);
    expect(pretty.text).toBe(JSON.stringify(plain.body, null, 2));
    const yaml = await server.get(path(namespace), { accept: 'application/yaml' });
    expect(yaml.headers['content-type']).toBe('application/yaml');
    const { parse } = await import('yaml');
    expect(parse(yaml.text)).toEqual(plain.body);
  });

  test('API-2: both groups list the same Events, each in its own form', async () => {
    const namespace = await freshNamespace(server);
    const posted = await server.post(`/api/v1/namespaces/${namespace}/events`, {
      metadata: { name: 'one' },
      involvedObject: { kind: 'Pod', namespace, name: 'web' },
      reason: 'Started',
      message: 'Started container',
      type: 'Normal',
    });
    expect(posted.status).toBe(201);
    const core = await server.get(`/api/v1/namespaces/${namespace}/events`);
    expect(core.body).toMatchObject({ kind: 'EventList', apiVersion: 'v1' });
    expect(core.body.items[0]).toMatchObject({
      message: 'Started container',
      involvedObject: { name: 'web' },
    });
    const group = '/apis/events.svc.io/v1';
    const newer = await server.get(`${group}/namespaces/${namespace}/events`);
    expect(newer.body).toMatchObject({ kind: 'EventList', apiVersion: 'events.svc.io/v1' });
    expect(newer.body.items).toHaveLength(1);
    expect(newer.body.items[0]).toMatchObject({
      note: 'Started container',
      regarding: { name: 'web' },
    });
    expect(newer.body.items[0]).not.toHaveProperty('message');
    const [newest] = newer.body.items;
    expect(newest?.metadata.uid).toBe(core.body.items[0]?.metadata.uid);
  });
});

describe('pagination', () => {
  test('LIST-1: all pages show one snapshot, although writes continue', async () => {
    const namespace = await freshNamespace(server);
    await makeMaps(namespace, 10);
    let next = 0;
    const chunks = await readChunks(path(namespace), {
      limit: 3,
      between: async () => {
        const name = letter(next);
        next += 1;
        await server.remove(`${path(namespace)}/${name}`);
        await server.post(path(namespace), configMap(`${name}-new`));
        const last = await server.get(`${path(namespace)}/j`);
        last.body.data = { a: String(next) };
        await server.put(`${path(namespace)}/j`, last.body);
      },
    });
    expect(chunks.map((chunk) => chunk.body.items.length)).toEqual([3, 3, 3, 1]);
    expect(chunks.flatMap(itemNames)).toEqual([...'abcdefghij']);
    const versions = new Set(chunks.map((chunk) => chunk.body.metadata.resourceVersion));
    expect(versions.size).toBe(1);
    expect(chunks[3]?.body.items[0]?.['data']).toEqual({ a: '1' });
    const now = await server.get(path(namespace));
    expect(itemNames(now)).toEqual(['a-new', 'b-new', 'c-new', ...'defghij']);
  });

  test('LIST-1: pages span namespaces, and a limit of 0 means none', async () => {
    const namespaces = [await freshNamespace(server), await freshNamespace(server)];
    for (const namespace of namespaces) await makeMaps(namespace, 3);
    const chunks = await readChunks('/api/v1/configmaps', { limit: 2 });
    const whole = await server.get('/api/v1/configmaps?limit=0');
    const uids = (answer: Answer) =>
      answer.body.items.map((item: { metadata: { uid: string } }) => item.metadata.uid);
    expect(chunks.flatMap(uids)).toEqual(uids(whole));
    expect(whole.body.metadata).not.toHaveProperty('continue');
  });

  test('LIST-1: pages of a namespace that a field selector names end with its objects', async () => {
    const namespace = await freshNamespace(server);
    const later = await freshNamespace(server);
    await makeMaps(namespace, 3);
    await server.post(path(later), configMap('a'));
    const selector = encodeURIComponent(`metadata.namespace=${namespace}`);
    const url = `/api/v1/configmaps?limit=2&fieldSelector=${selector}`;
    const first = await server.get(url);
    expect(itemNames(first)).toEqual(['a', 'b']);
    const second = await server.get(`${url}&continue=${first.body.metadata.continue}`);
    expect(itemNames(second)).toEqual(['c']);
    expect(second.body.metadata).not.toHaveProperty('continue');
    const exact = await server.get(`${url}%2Cmetadata.name%3Dc`);
    expect([itemNames(exact), exact.body.metadata.continue]).toEqual([['c'], undefined]);
  });

  test('LIST-2: remainingItemCount is exact, and absent on the last page', async () => {
    const namespace = await freshNamespace(server);
    await makeMaps(namespace, 7);
    const chunks = await readChunks(path(namespace), { limit: 3 });
    expect(chunks.map((chunk) => chunk.body.metadata.remainingItemCount)).toEqual([
      4,
      1,
      undefined,
    ]);
    const last = chunks[2]?.body.metadata;
    expect(last).not.toHaveProperty('continue');
    const whole = await server.get(`${path(namespace)}?limit=7`);
    expect(Object.keys(whole.body.metadata)).toEqual(['resourceVersion']);
  });

  test('LIST-2: remainingItemCount is absent with selectors', async () => {
    const namespace = await freshNamespace(server);
    for (const name of ['a', 'b', 'c', 'd']) {
      const labels = { tier: name === 'b' ? 'back' : 'front' };
      await server.post(path(namespace), configMap(name, { metadata: { name, labels } }));
    }
    const first = await server.get(`${path(namespace)}?limit=2&labelSelector=tier%3Dfront`);
    expect(itemNames(first)).toEqual(['a', 'c']);
    expect(first.body.metadata).not.toHaveProperty('remainingItemCount');
    const token = encodeURIComponent(first.body.metadata.continue);
    const more = `${path(namespace)}?limit=2&labelSelector=tier%3Dfront&continue=${token}`;
    const second = await server.get(more);
    expect(itemNames(second)).toEqual(['d']);
    expect(Object.keys(second.body.metadata)).toEqual(['resourceVersion']);
    const field = await server.get(`${path(namespace)}?limit=2&fieldSelector=metadata.name!%3Db`);
    expect(itemNames(field)).toEqual(['a', 'c']);
    expect(field.body.metadata).not.toHaveProperty('remainingItemCount');
  });

  test('LIST-3: a malformed continue token is 400', async () => {
    const namespace = await freshNamespace(server);
    const cases: readonly [string, RegExp][] = [
      ['%21%21', /^invalid continue token: continue key is not valid: illegal base64 data/],
      ['e30', /^invalid continue token: continue key is not valid: server does not recognize/],
      [
        Buffer.from('{"v":"meta.svc.io/v1","rv":0,"start":"a"}').toString('base64url'),
        /incorrect encoded start resourceVersion \(version meta\.svc\.io\/v1\)$/,
      ],
      [
        Buffer.from('{"v":"meta.svc.io/v1","rv":1,"start":""}').toString('base64url'),
        /encoded start key empty \(version meta\.svc\.io\/v1\)$/,
      ],
      [
        Buffer.from('{"v":"meta.svc.io/v1","rv":1,"start":"../x"}').toString('base64url'),
        /continue key is not valid: \.\.\/x$/,
      ],
    ];
    for (const [token, message] of cases) {
      const answer = await server.get(`${path(namespace)}?limit=2&continue=${token}`);
      expectStatus(answer, {
        code: 400,
        reason: 'BadRequest',
        message: expect.stringMatching(message),
      });
    }
  });
});

describe('the get table', () => {
  test('LIST-1, LIST-5: a list at resourceVersion=0 ignores its limit', async () => {
    const namespace = await freshNamespace(server);
    for (const name of ['a', 'b', 'c']) await server.post(path(namespace), configMap(name));
    for (const match of ['', '&resourceVersionMatch=NotOlderThan']) {
      const list = await server.get(`${path(namespace)}?limit=1&resourceVersion=0${match}`);
      expect(itemNames(list)).toEqual(['a', 'b', 'c']);
      expect(list.body.metadata.continue).toBeUndefined();
    }
    const first = await server.get(`${path(namespace)}?limit=1`);
    const { continue: token } = first.body.metadata;
    const next = `${path(namespace)}?limit=1&resourceVersion=0&continue=${token}`;
    expect(itemNames(await server.get(next))).toEqual(['b']);
  });

  test('LIST-4: unset reads the newest, 0 any, and a version at least that', async () => {
    const namespace = await freshNamespace(server);
    const [version = ''] = await makeMaps(namespace, 1);
    for (let i = 0; i < 20; i++) {
      const current = await server.get(`${path(namespace)}/a`);
      current.body.data = { a: String(i) };
      const written = await server.put(`${path(namespace)}/a`, current.body);
      const newest = await server.get(`${path(namespace)}/a`);
      expect(newest.body).toEqual(written.body);
      const version = written.body.metadata.resourceVersion;
      const exact = await server.get(`${path(namespace)}/a?resourceVersion=${version}`);
      expect(exact.body).toEqual(written.body);
    }
    const any = await server.get(`${path(namespace)}/a?resourceVersion=0`);
    expect(any.status).toBe(200);
    expect(any.body.metadata.name).toBe('a');
    const old = await server.get(`${path(namespace)}/a?resourceVersion=${version}`);
    expect(Number(old.body.metadata.resourceVersion)).toBeGreaterThan(Number(version));
  });

  test('LIST-4: a missing object is 404 in each case', async () => {
    const namespace = await freshNamespace(server);
    for (const query of ['', '?resourceVersion=0', '?resourceVersion=1', '?resourceVersion=']) {
      const answer = await server.get(`${path(namespace)}/none${query}`);
      expectStatus(answer, {
        code: 404,
        reason: 'NotFound',
        message: 'configmaps "none" not found',
      });
      expect(answer.body.details).toEqual({ name: 'none', kind: 'configmaps' });
    }
  });
});
