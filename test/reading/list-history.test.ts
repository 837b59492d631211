import { MovableClock } from '@wheelhouse/machinery';
import { expect, test } from 'vitest';
import {
  type Answer,
  configMap,
  eventually,
  freshNamespace,
  itemNames,
} from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

const historyMs = 300_000;

/** Moved by tests, so that history expires. */
const clock = new MovableClock();
const server = await withServer({ compactionIntervalMs: historyMs, clock });

const path = (namespace: string) => `/api/v1/namespaces/${namespace}/configmaps`;

async function makeMaps(namespace: string, wanted: string): Promise<string> {
  let version = '';
  for (const name of wanted) {
    const answer = await server.post(path(namespace), configMap(name));
    version = answer.body.metadata.resourceVersion;
  }
  return version;
}

/** Repeats the request while writing and moving time, until the answer is 410. */
function untilGone(namespace: string, query: string): Promise<Answer> {
  return eventually(async () => {
    await clock.advance(historyMs);
    await server.patch(`${path(namespace)}/a`, { data: { n: `${performance.now()}` } }, 'merge');
    const answer = await server.get(`${path(namespace)}?${query}`);
    if (answer.status !== 200) return answer;
    return undefined;
  }, 'the end of the history');
}

test('LIST-3: an expired token is 410 with a token to continue inconsistently', async () => {
  const namespace = await freshNamespace(server);
  await makeMaps(namespace, 'abcdef');
  const first = await server.get(`${path(namespace)}?limit=2`);
  const token = encodeURIComponent(first.body.metadata.continue);
  await server.remove(`${path(namespace)}/d`);
  const gone = await untilGone(namespace, `limit=2&continue=${token}`);
  expect(gone.status).toBe(410);
  expect(gone.body).toEqual({
    kind: 'Status',
    apiVersion: 'v1',
    metadata: { continue: expect.any(String) },
    status: 'Failure',
    message:
      'The provided continue parameter is too old to display a consistent list result. You can ' +
      'start a new list without the continue parameter, or use the continue token in this ' +
      'response to retrieve the remainder of the results. Continuing with the provided token ' +
      'results in an inconsistent list - objects that were created, modified, or deleted between ' +
      'the time the first chunk was returned and now may show up in the list.',
    reason: 'Expired',
    code: 410,
  });
  const offered = encodeURIComponent(gone.body.metadata.continue);
  const second = await server.get(`${path(namespace)}?limit=2&continue=${offered}`);
  expect(second.status).toBe(200);
  expect(itemNames(second)).toEqual(['c', 'e']);
  const version = Number(second.body.metadata.resourceVersion);
  expect(version).toBeGreaterThan(Number(first.body.metadata.resourceVersion));
  const rest = encodeURIComponent(second.body.metadata.continue);
  const third = await server.get(`${path(namespace)}?limit=2&continue=${rest}`);
  expect(itemNames(third)).toEqual(['f']);
  expect(third.body.metadata).toEqual({ resourceVersion: String(version) });
});

test('LIST-6: Exact serves the old snapshot while it is retained, then 410', async () => {
  const namespace = await freshNamespace(server);
  const version = await makeMaps(namespace, 'abc');
  await server.remove(`${path(namespace)}/b`);
  await server.post(path(namespace), configMap('d'));
  const query = `resourceVersion=${version}&resourceVersionMatch=Exact`;
  const kept = await server.get(`${path(namespace)}?${query}`);
  expect(itemNames(kept)).toEqual(['a', 'b', 'c']);
  expect(kept.body.metadata).toEqual({ resourceVersion: version });
  const gone = await untilGone(namespace, query);
  expect(gone.body).toEqual({
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: 'The resourceVersion for the provided list is too old.',
    reason: 'Expired',
    code: 410,
  });
  const withLimit = await server.get(`${path(namespace)}?limit=1&resourceVersion=${version}`);
  expect(withLimit.body).toEqual(gone.body);
  const notOlder = await server.get(`${path(namespace)}?resourceVersion=${version}`);
  expect(itemNames(notOlder)).toEqual(['a', 'c', 'd']);
});

test('WATCH-3: a version older than the history is 410 as an ERROR event', async () => {
  const namespace = await freshNamespace(server);
  const version = await makeMaps(namespace, 'abc');
  await untilGone(namespace, `resourceVersion=${version}&resourceVersionMatch=Exact`);
  const watch = await server.watch(`${path(namespace)}?watch=true&resourceVersion=${version}`);
  expect(watch.status).toBe(200);
  await watch.ended;
  expect(watch.events).toEqual([
    {
      type: 'ERROR',
      object: {
        kind: 'Status',
        apiVersion: 'v1',
        metadata: {},
        status: 'Failure',
        message: expect.stringMatching(`^too old resource version: ${version} \\(\\d+\\)$`),
        reason: 'Expired',
        code: 410,
      },
    },
  ]);
});

test('WATCH-3: a continuous watcher never sees its history expire', async () => {
  const namespace = await freshNamespace(server);
  const version = await makeMaps(namespace, 'a');
  const watch = await server.watch(`${path(namespace)}?watch=true&resourceVersion=${version}`);
  await untilGone(namespace, `resourceVersion=${version}&resourceVersionMatch=Exact`);
  await server.post(path(namespace), configMap('z'));
  await watch.until((events) => events.some(({ object }) => object.metadata.name === 'z'));
  expect(watch.events.every(({ type }) => type === 'ADDED' || type === 'MODIFIED')).toBe(true);
  watch.close();
});

test('WATCH-3, TRUST-4: the history of an idle resource expires, too', async () => {
  const namespace = await freshNamespace(server);
  const version = await makeMaps(namespace, 'abc');
  const watched = `${path(namespace)}?watch=true&resourceVersion=${version}`;
  const early = await server.watch(`${path(namespace)}?watch=true&resourceVersion=0`);
  await early.until((events) => events.length === 3);
  const [first] = early.events;
  const { resourceVersion } = first?.object.metadata ?? {};
  const afterFirst = `${path(namespace)}?watch=true&resourceVersion=${resourceVersion}`;
  const kept = await server.watch(afterFirst);
  await kept.until((events) => events.length === 2);
  const gone = await eventually(async () => {
    await clock.advance(historyMs);
    const watch = await server.watch(afterFirst);
    await watch.until((events) => events.length > 0);
    watch.close();
    return watch.events.find(({ type }) => type === 'ERROR');
  }, 'the end of the history');
  expect(gone.object).toMatchObject({ code: 410, reason: 'Expired' });
  // Clients that have seen the newest change miss nothing and need no history.
  const newest = await server.watch(watched);
  await server.post(path(namespace), configMap('z'));
  for (const watch of [newest, kept, early]) {
    await watch.until((events) => events.some(({ object }) => object.metadata.name === 'z'));
    expect(watch.events.every(({ type }) => type === 'ADDED')).toBe(true);
    watch.close();
  }
});
