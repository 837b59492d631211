import type { JsonObject } from '@wheelhouse/machinery';
import { hasEtcd, startTestEtcd, type TestEtcd } from '@wheelhouse/store/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Answer, configMap, startTestServer, type TestServer } from '../support/harness.ts';
import { onEtcd, reachedBy } from './etcd-config.ts';
import { type LaggingLine, startLaggingLine } from './etcd-lag.ts';

const maps = '/api/v1/namespaces/default/configmaps';

/**
 * A server starts a change with its cached object, which may be older than another server's writes.
 */
describe.skipIf(!hasEtcd)('writes on a server that lags behind another', () => {
  let etcd: TestEtcd;
  let line: LaggingLine;
  let ahead: TestServer;
  let behind: TestServer;
  beforeAll(async () => {
    etcd = await startTestEtcd();
    line = await startLaggingLine(etcd);
    const shared = onEtcd(etcd);
    ahead = await startTestServer(shared);
    behind = await startTestServer(reachedBy(shared, line.url));
  });
  afterAll(async () => {
    await Promise.all([ahead.stop(), behind.stop()]);
    await line.close();
    await etcd.dispose();
  });

  /** Creates an object that both servers have in their caches. */
  async function known(name: string, data: JsonObject = { a: '1' }): Promise<Answer['body']> {
    const made = await ahead.post(maps, configMap(name, { data }));
    expect(made.status, made.text).toBe(201);
    expect((await behind.get(`${maps}/${name}`)).body).toEqual(made.body);
    return made.body;
  }

  /** Runs `change` on the lagging server before it receives the writes of `news`. */
  async function whileLagging<T>(news: () => Promise<T>, change: (known: T) => Promise<Answer>) {
    line.hold();
    try {
      const seen = await news();
      const called = line.nextCall();
      const answer = change(seen);
      await called;
      line.release();
      return { seen, answer: await answer };
    } finally {
      line.release();
    }
  }

  test('STORE-2: an update of the latest version succeeds, and an older one conflicts', async () => {
    const first = await known('updated');
    const put = (body: object) => behind.put(`${maps}/updated`, body);
    const { answer } = await whileLagging(
      async () => (await ahead.put(`${maps}/updated`, { ...first, data: { n: '1' } })).body,
      (body) => put({ ...body, data: { n: '2' } }),
    );
    expect(answer.status, answer.text).toBe(200);
    const stale = await whileLagging(
      async () => (await ahead.put(`${maps}/updated`, { ...answer.body, data: { n: '3' } })).body,
      () => put({ ...answer.body, data: { n: '4' } }),
    );
    expect(stale.answer.status).toBe(409);
    expect((await behind.get(`${maps}/updated`)).body).toEqual(stale.seen);
  });

  test('STORE-2: unchanged writes are compared with the current object', async () => {
    await known('flipped', { v: 'a' });
    const set = (server: TestServer, v: string) =>
      server.patch(`${maps}/flipped`, { data: { v } }, 'merge');
    // A server that still sees `a` would have nothing to do, but `b` exists.
    const { seen, answer } = await whileLagging(
      () => set(ahead, 'b'),
      () => set(behind, 'a'),
    );
    expect(answer.body.data.v).toBe('a');
    const { resourceVersion } = answer.body.metadata;
    expect(Number(resourceVersion)).toBeGreaterThan(Number(seen.body.metadata.resourceVersion));
    expect((await set(behind, 'a')).body.metadata.resourceVersion).toBe(resourceVersion);
  });

  test('STORE-2: errors describe the current object', async () => {
    await known('locked');
    const change = (data: object) => behind.patch(`${maps}/locked`, { data }, 'merge');
    const locked = await whileLagging(
      () => ahead.patch(`${maps}/locked`, { immutable: true }, 'merge'),
      () => change({ a: '2' }),
    );
    expect(locked.answer.status).toBe(422);
    // A server that still sees the first object could not change it, but another one has replaced
    // it.
    const { seen, answer } = await whileLagging(
      async () => {
        await ahead.remove(`${maps}/locked`);
        return ahead.post(maps, configMap('locked'));
      },
      () => change({ a: '3' }),
    );
    expect(answer.status, answer.text).toBe(200);
    expect(answer.body.metadata.uid).toBe(seen.body.metadata.uid);
  });

  test('STORE-2: objects that another server created or changed can be deleted', async () => {
    const path = `${maps}/passing`;
    const made = await whileLagging(
      () => ahead.post(maps, configMap('passing')),
      () => behind.remove(path),
    );
    expect(made.answer.status, made.answer.text).toBe(200);
    expect((await ahead.get(path)).status).toBe(404);
    await known('passing');
    const gone = await whileLagging(
      () => ahead.remove(path),
      () => behind.put(path, configMap('passing')),
    );
    expect(gone.answer.status).toBe(404);
    await known('passing');
    const removed = await whileLagging(
      () => ahead.remove(path),
      () => behind.remove(path),
    );
    expect(removed.answer.status).toBe(404);
    await known('passing');
    const changed = await whileLagging(
      async () => (await ahead.patch(path, { data: { a: '2' } }, 'merge')).body.metadata,
      ({ uid, resourceVersion }) =>
        behind.remove(path, { preconditions: { uid, resourceVersion } }),
    );
    expect(changed.answer.status, changed.answer.text).toBe(200);
  });

  test('STORE-2: a dry run uses the current object, and concurrent writers lose nothing', async () => {
    await known('counted', { n: '0' });
    const add = (server: TestServer, data: object, query = '') =>
      server.patch(`${maps}/counted${query}`, { data }, 'merge');
    const tried = await whileLagging(
      () => add(ahead, { n: '1' }),
      () => add(behind, { x: '1' }, '?dryRun=All'),
    );
    expect(tried.answer.body.data).toEqual({ n: '1', x: '1' });
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, i) => add(i % 2 === 0 ? ahead : behind, { [`w${i}`]: '1' })),
    );
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    expect(Object.keys((await behind.get(`${maps}/counted`)).body.data)).toHaveLength(21);
  });
});
