import { describe, expect, test } from 'vitest';
import { configMap, freshNamespace } from '../support/harness.ts';
import { passing, skippingClock } from '../support/skipping-clock.ts';
import { withServer } from '../support/with-server.ts';

const clock = skippingClock();
const minRequestTimeoutMs = 600_000;
const server = await withServer({ clock, limits: { minRequestTimeoutMs } });

const path = (namespace: string, name = '') =>
  `/api/v1/namespaces/${namespace}/configmaps${name === '' ? '' : `/${name}`}`;

interface Seen {
  readonly type: string;
  readonly object: { metadata: { name: string; resourceVersion: string } };
}
const summaries = (events: readonly Seen[]) =>
  events.map(({ type, object }) => `${type} ${object.metadata.name ?? ''}`.trim());

async function make(namespace: string, name: string, labels: Record<string, string> = {}) {
  const answer = await server.post(
    path(namespace),
    configMap(name, { metadata: { name, labels } }),
  );
  expect(answer.status).toBe(201);
  return answer.body;
}
const change = (namespace: string, name: string, patch: object) =>
  server.patch(path(namespace, name), patch, 'merge');

describe('the stream', () => {
  test('WATCH-1: ADDED, MODIFIED, and DELETED, the last with the deletion’s version', async () => {
    const namespace = await freshNamespace(server);
    const watch = await server.watch(`${path(namespace)}?watch=1`);
    expect(watch.status).toBe(200);
    expect(watch.headers['content-type']).toBe('application/json');
    const created = await make(namespace, 'a');
    const changed = await change(namespace, 'a', { data: { a: '2' } });
    await server.remove(path(namespace, 'a'));
    await make(namespace, 'b');
    await watch.until((events) => events.length === 4);
    expect(summaries(watch.events)).toEqual(['ADDED a', 'MODIFIED a', 'DELETED a', 'ADDED b']);
    expect(watch.events[0]?.object).toEqual(created);
    expect(watch.events[1]?.object).toEqual(changed.body);
    const version = watch.events[2]?.object.metadata.resourceVersion;
    expect(Number(version)).toBeGreaterThan(Number(changed.body.metadata.resourceVersion));
    const metadata = { ...changed.body.metadata, resourceVersion: version };
    expect(watch.events[2]?.object).toEqual({ ...changed.body, metadata });
    watch.close();
  });

  test('WATCH-1: events of a kind in two groups, each in its own form', async () => {
    const namespace = await freshNamespace(server);
    const core = `/api/v1/namespaces/${namespace}/events`;
    const newer = `/apis/events.svc.io/v1/namespaces/${namespace}/events`;
    const watches = [
      await server.watch(`${core}?watch=true`),
      await server.watch(`${newer}?watch=true`),
    ];
    const involvedObject = { kind: 'Pod', namespace, name: 'web' };
    const body = { metadata: { name: 'one' }, involvedObject, message: 'Started', type: 'Normal' };
    expect((await server.post(core, body)).status).toBe(201);
    for (const watch of watches) await watch.until((events) => events.length === 1);
    expect(watches[0]?.events[0]?.object).toMatchObject({
      apiVersion: 'v1',
      message: 'Started',
      involvedObject,
    });
    expect(watches[1]?.events[0]?.object).toMatchObject({
      apiVersion: 'events.svc.io/v1',
      note: 'Started',
      regarding: involvedObject,
    });
    for (const watch of watches) watch.close();
  });

  test('WATCH-1: a collection across namespaces, and the legacy /watch/ paths', async () => {
    const namespace = await freshNamespace(server);
    const { resourceVersion } = (await make(namespace, 'first')).metadata;
    const after = `resourceVersion=${resourceVersion}`;
    const watches = [
      await server.watch(`/api/v1/configmaps?watch=true&${after}`),
      await server.watch(`/api/v1/watch/configmaps?${after}`),
      await server.watch(`/api/v1/watch/namespaces/${namespace}/configmaps?${after}`),
      await server.watch(`/api/v1/watch/namespaces/${namespace}/configmaps/x?${after}`),
    ];
    await make(namespace, 'x');
    for (const watch of watches) {
      expect(watch.status).toBe(200);
      await watch.until((events) => summaries(events).includes('ADDED x'));
      watch.close();
    }
  });

  test('WATCH-1: a watch that cannot start returns a Status', async () => {
    const notFound = await server.get('/api/v1/namespaces/default/nothings?watch=true');
    expect(notFound.status).toBe(404);
    const named = await server.get('/api/v1/configmaps/x?watch=true');
    expect(named.status).toBe(404);
    expect(named.body.message).toBe('the server could not find the requested resource');
  });
});

describe('the start of a watch', () => {
  test.each(['', '&resourceVersion=', '&resourceVersion=0'])(
    'WATCH-2: current state first, then changes (%j)',
    async (query) => {
      const namespace = await freshNamespace(server);
      for (const name of ['b', 'a', 'c']) await make(namespace, name);
      await server.remove(path(namespace, 'b'));
      const watch = await server.watch(`${path(namespace)}?watch=true${query}`);
      await watch.until((events) => events.length === 2);
      await change(namespace, 'a', { data: { a: '2' } });
      await server.remove(path(namespace, 'c'));
      await watch.until((events) => events.length === 4);
      const expected = ['ADDED a', 'ADDED c', 'MODIFIED a', 'DELETED c'];
      expect(summaries(watch.events)).toEqual(expected);
      watch.close();
    },
  );

  test('WATCH-2: from a version only later changes, in order, nothing twice', async () => {
    const namespace = await freshNamespace(server);
    const versions: string[] = [];
    for (let i = 0; i < 20; i++) {
      const made = await make(namespace, `m${i}`);
      versions.push(made.metadata.resourceVersion);
    }
    for (const from of [0, 7, 18]) {
      const watch = await server.watch(
        `${path(namespace)}?watch=true&resourceVersion=${versions[from]}`,
      );
      await watch.until((events) => events.length >= 19 - from);
      const expected = versions.slice(from + 1);
      expect(watch.events.map(({ object }) => object.metadata.resourceVersion)).toEqual(expected);
      watch.close();
    }
  });

  test('WATCH-2: a watch from a future version waits for it', async () => {
    const namespace = await freshNamespace(server);
    const made = await make(namespace, 'a');
    const future = Number(made.metadata.resourceVersion) + 2;
    const watch = await server.watch(`${path(namespace)}?watch=true&resourceVersion=${future}`);
    expect(watch.status).toBe(200);
    for (const name of ['b', 'c', 'd']) await make(namespace, name);
    await watch.until((events) => events.length === 1);
    expect(summaries(watch.events)).toEqual(['ADDED d']);
    watch.close();
  });
});

describe('bookmarks and initial events', () => {
  test('WATCH-4: a bookmark precedes the end by timeout', async () => {
    const namespace = await freshNamespace(server);
    const made = await make(namespace, 'a');
    const from = `resourceVersion=${made.metadata.resourceVersion}`;
    const query = `watch=true&timeoutSeconds=10&allowWatchBookmarks=true&${from}`;
    const watch = await server.watch(`${path(namespace)}?${query}`);
    await passing(clock, watch.ended);
    expect(summaries(watch.events)).toEqual(['BOOKMARK']);
    const version = watch.events[0]?.object.metadata.resourceVersion;
    expect(watch.events[0]?.object).toEqual({
      kind: 'ConfigMap',
      apiVersion: 'v1',
      metadata: { resourceVersion: expect.stringMatching(/^\d+$/), creationTimestamp: null },
    });
    expect(Number(version)).toBeGreaterThanOrEqual(Number(made.metadata.resourceVersion));
    const next = await server.watch(`${path(namespace)}?watch=true&resourceVersion=${version}`);
    await make(namespace, 'b');
    await next.until((events) => events.length === 1);
    expect(summaries(next.events)).toEqual(['ADDED b']);
    next.close();
  });

  test('WATCH-5: initial events, the annotated bookmark, then changes', async () => {
    const namespace = await freshNamespace(server);
    for (const name of ['a', 'b']) await make(namespace, name);
    const asked = 'sendInitialEvents=true&resourceVersionMatch=NotOlderThan';
    const blueprint = Buffer.from(
      '{"kind":"ConfigMapList","apiVersion":"v1","metadata":{},"items":null}\n',
    );
    // A watch without a version requests the same implicitly.
    for (const query of [
      ...['', '&resourceVersion=', '&resourceVersion=0', '&resourceVersion=1'].map(
        (version) => asked + version,
      ),
      ...['resourceVersion=', 'resourceVersion=0', ''],
    ]) {
      const watch = await server.watch(
        `${path(namespace)}?watch=true&allowWatchBookmarks=true&${query}`,
      );
      await watch.until((events) => events.length === 3);
      expect(summaries(watch.events)).toEqual(['ADDED a', 'ADDED b', 'BOOKMARK']);
      expect(watch.events[2]?.object).toEqual({
        kind: 'ConfigMap',
        apiVersion: 'v1',
        metadata: {
          resourceVersion: expect.stringMatching(/^\d+$/),
          creationTimestamp: null,
          annotations: {
            'svc.io/initial-events-end': 'true',
            'svc.io/initial-events-list-blueprint': blueprint.toString('base64'),
          },
        },
      });
      await change(namespace, 'a', { data: { a: `${performance.now()}` } });
      await watch.until((events) => events.length === 4);
      expect(summaries(watch.events)[3]).toBe('MODIFIED a');
      watch.close();
    }
  });

  test('WATCH-5: in the kubernetes dialect the two annotations have their own domains', async () => {
    const kubernetes = await withServer({ dialect: 'kubernetes' });
    const query = 'watch=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan';
    const watch = await kubernetes.watch(`/api/v1/nodes?${query}&sendInitialEvents=true`);
    await watch.until((events) => events.length === 1);
    expect(Object.keys(watch.events[0]?.object.metadata.annotations ?? {})).toEqual([
      'k8s.io/initial-events-end',
      'kubernetes.io/initial-events-list-blueprint',
    ]);
    watch.close();
  });

  test('WATCH-5: without bookmarks nothing marks the end; false sends no initial events', async () => {
    const namespace = await freshNamespace(server);
    await make(namespace, 'a');
    const query = 'watch=true&resourceVersionMatch=NotOlderThan&sendInitialEvents=';
    const quiet = await server.watch(`${path(namespace)}?${query}true`);
    const later = await server.watch(`${path(namespace)}?${query}false&allowWatchBookmarks=true`);
    await make(namespace, 'b');
    await quiet.until((events) => events.length === 2);
    await later.until((events) => events.length === 1);
    expect(summaries(quiet.events)).toEqual(['ADDED a', 'ADDED b']);
    expect(summaries(later.events)).toEqual(['ADDED b']);
    quiet.close();
    later.close();
  });

  const match = 'resourceVersionMatch';
  const needs = `${match}: Forbidden: sendInitialEvents requires setting ${match} to NotOlderThan`;
  const unless = `${match}: Forbidden: ${match} is forbidden for watch unless sendInitialEvents is provided`;
  const only = `${match}: Unsupported value: "Exact": supported values: "NotOlderThan"`;
  test.each([
    ['sendInitialEvents=true', needs],
    ['sendInitialEvents=false', needs],
    [`${match}=NotOlderThan`, unless],
    [`${match}=Exact&resourceVersion=1`, `[${unless}, ${only}]`],
    [`${match}=Exact&sendInitialEvents=true`, `[${needs}, ${only}]`],
    [
      `${match}=NotOlderThan&sendInitialEvents=true&continue=x`,
      `${match}: Forbidden: ${match} is forbidden when continue is provided`,
    ],
    ['continue=x', `${match}: Forbidden: ${match} is forbidden when continue is provided`],
    [
      'resourceVersion=0&continue=x',
      `${match}: Forbidden: ${match} is forbidden when continue is provided`,
    ],
  ])('WATCH-5: refused with 422: %s', async (query, why) => {
    await expectRefused(`${path('default')}?watch=true&${query}`, why);
    await expectRefused(`/api/v1/watch/namespaces/default/configmaps?watch=1&${query}`, why);
  });

  test('WATCH-5: legacy watch paths validate options as lists do', async () => {
    const old = '/api/v1/watch/namespaces/default/configmaps';
    const forList = 'sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list';
    await expectRefused(`${old}?sendInitialEvents=true`, forList);
    await expectRefused(
      `${old}?${match}=Exact`,
      `${match}: Forbidden: ${match} is forbidden unless resourceVersion is provided`,
    );
    const watch = await server.watch(`${old}?continue=&timeoutSeconds=30`);
    expect(watch.status).toBe(200);
    watch.close();
  });

  async function expectRefused(url: string, why: string) {
    const answer = await server.get(url);
    expect(answer.status, url).toBe(422);
    expect(answer.body).toMatchObject({
      reason: 'Invalid',
      message: `ListOptions.meta.svc.io "" is invalid: ${why}`,
      details: { group: 'meta.svc.io', kind: 'ListOptions' },
    });
  }
});

describe('selectors', () => {
  test('WATCH-6: objects that leave are DELETED, objects that enter ADDED', async () => {
    const namespace = await freshNamespace(server);
    await make(namespace, 'a', { tier: 'front' });
    await make(namespace, 'b', { tier: 'back' });
    const watch = await server.watch(`${path(namespace)}?watch=true&labelSelector=tier%3Dfront`);
    await watch.until((events) => events.length === 1);
    const left = await change(namespace, 'a', { metadata: { labels: { tier: 'back' } } });
    await change(namespace, 'a', { data: { unseen: '1' } });
    await change(namespace, 'b', { metadata: { labels: { tier: 'front' } } });
    await change(namespace, 'b', { data: { seen: '1' } });
    await server.remove(path(namespace, 'a'));
    await server.remove(path(namespace, 'b'));
    await watch.until((events) => events.length === 5);
    const expected = ['ADDED a', 'DELETED a', 'ADDED b', 'MODIFIED b', 'DELETED b'];
    expect(summaries(watch.events)).toEqual(expected);
    const { metadata } = watch.events[1]?.object ?? {};
    expect(metadata?.resourceVersion).toBe(left.body.metadata.resourceVersion);
    expect(metadata?.labels).toEqual({ tier: 'front' });
    watch.close();
  });

  test('WATCH-6: a field selector does the same', async () => {
    const namespace = await freshNamespace(server);
    const pods = `/api/v1/namespaces/${namespace}/pods`;
    const spec = { containers: [{ name: 'main', image: 'example.com/image' }] };
    expect((await server.post(pods, { metadata: { name: 'web' }, spec })).status).toBe(201);
    const watch = await server.watch(`${pods}?watch=true&fieldSelector=status.phase%3DRunning`);
    const phase = (value: string) =>
      server.patch(`${pods}/web/status`, { status: { phase: value } }, 'merge');
    await phase('Running');
    await phase('Failed');
    await watch.until((events) => events.length === 2);
    expect(summaries(watch.events)).toEqual(['ADDED web', 'DELETED web']);
    watch.close();
  });

  test.each(['fieldSelector', 'fieldSelector of name and namespace', 'named path', 'old path'])(
    'WATCH-8: a single object by %s',
    async (way) => {
      const namespace = await freshNamespace(server);
      for (const name of ['a', 'b']) await make(namespace, name);
      const urls: Readonly<Record<string, string>> = {
        fieldSelector: `${path(namespace)}?watch=true&fieldSelector=metadata.name%3Da`,
        'fieldSelector of name and namespace': `/api/v1/configmaps?watch=true&fieldSelector=${encodeURIComponent(
          `metadata.name=a,metadata.namespace=${namespace}`,
        )}`,
        'named path': `${path(namespace, 'a')}?watch=true`,
        'old path': `/api/v1/watch/namespaces/${namespace}/configmaps/a`,
      };
      const watch = await server.watch(urls[way] as string);
      await watch.until((events) => events.length === 1);
      await change(namespace, 'b', { data: { a: '2' } });
      await change(namespace, 'a', { data: { a: '2' } });
      await server.remove(path(namespace, 'b'));
      await server.remove(path(namespace, 'a'));
      await make(namespace, 'a');
      await watch.until((events) => events.length === 4);
      expect(summaries(watch.events)).toEqual(['ADDED a', 'MODIFIED a', 'DELETED a', 'ADDED a']);
      watch.close();
    },
  );

  test('WATCH-6: the objects of a namespace that a field selector names', async () => {
    const namespace = await freshNamespace(server);
    const other = await freshNamespace(server);
    for (const one of [other, namespace]) await make(one, 'a');
    const selector = encodeURIComponent(`metadata.namespace=${namespace}`);
    const watch = await server.watch(`/api/v1/configmaps?watch=1&fieldSelector=${selector}`);
    await watch.until((events) => events.length === 1);
    for (const one of [other, namespace]) await make(one, 'b');
    await watch.until((events) => events.length === 2);
    expect(summaries(watch.events)).toEqual(['ADDED a', 'ADDED b']);
    expect(watch.events[1]?.object.metadata.namespace).toBe(namespace);
    watch.close();
  });

  test('WATCH-8: a missing name may appear later; a selector must match the path', async () => {
    const namespace = await freshNamespace(server);
    const watch = await server.watch(`${path(namespace, 'later')}?watch=1`);
    expect(watch.status).toBe(200);
    await make(namespace, 'other');
    await make(namespace, 'later');
    await watch.until((events) => events.length === 1);
    expect(summaries(watch.events)).toEqual(['ADDED later']);
    watch.close();
    const url = `${path(namespace, 'a')}?watch=true&fieldSelector=metadata.name%3D`;
    const refused = await server.get(`${url}b`);
    expect(refused.status).toBe(400);
    expect(refused.body.message).toBe("fieldSelector metadata.name doesn't match requested name");
    const same = await server.watch(`${url}a`);
    expect(same.status).toBe(200);
    same.close();
  });
});

describe('the end', () => {
  test('WATCH-7: timeoutSeconds ends the stream cleanly', async () => {
    const namespace = await freshNamespace(server);
    const startMs = clock.monotonic();
    const watch = await server.watch(`${path(namespace)}?watch=true&timeoutSeconds=10`);
    await passing(clock, watch.ended);
    expect(clock.monotonic() - startMs).toBeGreaterThan(9900);
    expect(clock.monotonic() - startMs).toBeLessThan(30_000);
    expect(watch.events).toEqual([]);
  });

  test('WATCH-7: without it, the stream ends after the minimum to twice the minimum', async () => {
    const namespace = await freshNamespace(server);
    const watches = await Promise.all(
      Array.from({ length: 4 }, () => server.watch(`${path(namespace)}?watch=true`)),
    );
    clock.skip(minRequestTimeoutMs - 60_000);
    await make(namespace, 'late');
    for (const watch of watches) await watch.until((events) => events.length === 1);
    clock.skip(minRequestTimeoutMs + 60_000);
    await passing(clock, Promise.all(watches.map((watch) => watch.ended)));
  });

  test('WATCH-7: a negative timeoutSeconds ends the stream at once', async () => {
    const namespace = await freshNamespace(server);
    const watch = await server.watch(`${path(namespace)}?watch=true&timeoutSeconds=-1`);
    expect(watch.status).toBe(200);
    await watch.ended;
    expect(watch.events).toEqual([]);
  });
});
