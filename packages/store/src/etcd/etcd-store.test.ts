import { systemClock } from '@wheelhouse/machinery';
import { FakeClock } from '@wheelhouse/machinery/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { collect, storeSuite } from '../suite.ts';
import { type EtcdStoreOptions, openEtcdStore } from './etcd-store.ts';
import { methods } from './protocol.ts';
import { freshStore, hasEtcd, startTestEtcd, type TestEtcd } from './testing.ts';

describe.skipIf(!hasEtcd)('with an etcd', () => {
  let etcd: TestEtcd;
  beforeAll(async () => {
    etcd = await startTestEtcd();
  });
  afterAll(() => etcd.dispose());

  storeSuite({
    name: 'etcd',
    snapshots: 'none',
    open: async () => {
      const store = await freshStore(etcd);
      return { store, dispose: () => store.close() };
    },
  });

  const bytes = (text: string) => Buffer.from(text);
  const open = (etcdPrefix: string, more: Partial<EtcdStoreOptions> = {}) =>
    openEtcdStore({
      connection: { servers: [etcd.url] },
      clock: systemClock,
      keys: { storePrefix: '/registry', etcdPrefix },
      callTimeoutMs: 10_000,
      startTimeoutMs: 10_000,
      ...more,
    });

  test('a store reads history from before it was opened', async () => {
    const first = await open('/past');
    const before = await first.currentRevision();
    for (let i = 0; i < 5; i++) {
      await first.put({ key: `/registry/p/${i}`, value: bytes('v'), expect: 0 });
    }
    const later = await open('/past');
    const seen = await collect(later, { prefix: '/registry/p/', after: before + 1 });
    await seen.watch.reached(before + 5);
    expect(seen.events().map((event) => event.key)).toEqual(
      [1, 2, 3, 4].map((i) => `/registry/p/${i}`),
    );
    await first.put({ key: '/registry/p/new', value: bytes('v'), expect: 0 });
    await seen.watch.reached(before + 6);
    expect(seen.events().at(-1)?.key).toBe('/registry/p/new');
    await Promise.all([first.close(), later.close()]);
  });

  test('closing a store ends a watch that reads history', async () => {
    const first = await open('/long');
    const after = await first.currentRevision();
    // etcd sends at most 1,000 revisions of history at a time, with a pause between them.
    const put = (i: number) => first.put({ key: `/registry/l/${i}`, value: bytes('v'), expect: 0 });
    await Promise.all(Array.from({ length: 1200 }, (_, i) => put(i)));
    const later = await open('/long');
    const seen = await collect(later, { prefix: '/registry/l/', after });
    const reached = Promise.resolve(seen.watch.reached(after + 1200));
    await later.close();
    await expect(reached).rejects.toMatchObject({ code: 'closed' });
    expect(seen.events().length).toBeLessThan(1200);
    expect(seen.ended()).toMatchObject({ code: 'closed' });
    await first.close();
  });

  test('TRUST-2: etcd sends ranges of large records in pages of about a mebibyte', async () => {
    const store = await open('/pages');
    const fill = async (prefix: string, { count, size }: { count: number; size: number }) => {
      const value = Buffer.alloc(size, 'v');
      for (let i = 0; i < count; i++) await store.put({ key: `${prefix}${i}`, value, expect: 0 });
    };
    await fill('/registry/small/', { count: 300, size: 10 });
    await fill('/registry/large/', { count: 40, size: 100_000 });
    const limits: (number | undefined)[] = [];
    const { client } = store;
    const call = client.call.bind(client);
    client.call = (method, request, options) => {
      limits.push((request as { readonly limit?: number }).limit);
      return call(method, request, options);
    };
    expect((await store.range({ prefix: '/registry/small/' })).records).toHaveLength(300);
    expect(limits.splice(0)).toEqual([16, 1000]);
    expect((await store.range({ prefix: '/registry/large/' })).records).toHaveLength(40);
    expect(limits.splice(0)).toEqual([16, 11, 11, 11]);
    const some = await store.range({ prefix: '/registry/large/', limit: 1000 });
    expect([some.records.length, some.more]).toEqual([16, true]);
    await store.close();
  });

  test('each of two stores reads and watches what the other writes', async () => {
    const [first, second] = await Promise.all([open('/both'), open('/both')]);
    const after = await second.currentRevision();
    const seen = await collect(second, { prefix: '/registry/', after });
    for (let i = 0; i < 20; i++) {
      const key = `/registry/k/${i}`;
      const put = await first.put({ key, value: bytes(`${i}`), expect: 0, hint: { mine: i } });
      expect(put.ok).toBe(true);
      expect((await second.get(key))?.value.toString()).toBe(`${i}`);
      await seen.watch.reached(await second.currentRevision());
      expect(seen.events().at(-1)).toMatchObject({ type: 'put', key, value: bytes(`${i}`) });
      expect(seen.events().at(-1)).not.toHaveProperty('hint');
    }
    await Promise.all([first.close(), second.close()]);
  });

  test('keys of other users advance the progress of a watch and are not delivered', async () => {
    const [mine, others] = await Promise.all([open('/mine'), open('/others')]);
    const seen = await collect(mine, { prefix: '/registry/', after: await mine.currentRevision() });
    await others.put({ key: '/registry/x', value: bytes('v'), expect: 0 });
    await seen.watch.reached(await mine.currentRevision());
    expect(seen.events()).toEqual([]);
    expect((await mine.range({ prefix: '/registry/' })).records).toEqual([]);
    await Promise.all([mine.close(), others.close()]);
  });

  test('exactly the expiring keys disappear', async () => {
    const expiring = [{ prefix: '/registry/events/', ttlMs: 1000, leaseReuseMs: 60_000 }];
    const store = await open('/expiring', { expiring });
    const after = await store.currentRevision();
    const seen = await collect(store, { prefix: '/registry/', after });
    await store.put({ key: '/registry/events/a', value: bytes('v'), expect: 0 });
    await store.put({ key: '/registry/others/a', value: bytes('v'), expect: 0 });
    while (seen.events().length < 3) await Promise.resolve(seen.watch.reached(after + 3));
    expect(seen.events()[2]).toMatchObject({ type: 'delete', key: '/registry/events/a' });
    expect(await store.get('/registry/others/a')).toBeDefined();
    await store.close();
  });

  test('expiring keys get a new lease if the current one has expired', async () => {
    const expiring = [{ prefix: '/registry/events/', ttlMs: 3_600_000, leaseReuseMs: 60_000 }];
    const store = await open('/leased', { expiring });
    const put = (name: string) =>
      store.put({ key: `/registry/events/${name}`, value: bytes('v'), expect: 0 });
    await put('a');
    const { leases } = await store.client.call(methods.leases, {}, { repeatable: true });
    for (const { id } of leases) {
      await store.client.call(methods.leaseRevoke, { id }, { repeatable: true });
    }
    expect((await put('b')).ok).toBe(true);
    const left = await store.range({ prefix: '/registry/events/' });
    expect(left.records.map(({ key }) => key)).toEqual(['/registry/events/b']);
    await store.close();
  });

  test('a watch resumes at its last revision, and ends if that was compacted', async () => {
    const clock = new FakeClock();
    const store = await open('/broken', { clock });
    const [going, ending] = await Promise.all(
      ['/registry/a/', '/registry/'].map(async (prefix) =>
        collect(store, { prefix, after: await store.currentRevision() }),
      ),
    );
    const restart = async () => {
      await etcd.kill();
      await etcd.start();
      return open('/broken');
    };
    const value = bytes('v');
    // The store does not reconnect to etcd until the clock advances.
    const other = await restart();
    await other.put({ key: '/registry/a/1', value, expect: 0 });
    const revision = await other.currentRevision();
    expect(going?.events()).toEqual([]);
    await advanceUntil(clock, () => (going?.watch.progress ?? 0) >= revision);
    expect(going?.events().map(({ key }) => key)).toEqual(['/registry/a/1']);
    await other.close();

    const another = await restart();
    await another.put({ key: '/registry/a/2', value, expect: 0 });
    await another.put({ key: '/registry/a/3', value, expect: 0 });
    await another.compact(await another.currentRevision());
    await advanceUntil(clock, () => ending?.ended() !== undefined);
    expect(ending?.ended()).toMatchObject({ code: 'compacted' });
    const after = await another.currentRevision();
    const fresh = await collect(store, { prefix: '/registry/', after });
    await another.put({ key: '/registry/a/4', value, expect: 0 });
    await fresh.watch.reached(after + 1);
    expect(fresh.events().map(({ key }) => key)).toEqual(['/registry/a/4']);
    await Promise.all([store.close(), another.close()]);
  });

  test('the error for a snapshot names etcdctl', async () => {
    const store = await open('/copied');
    const message = expect.stringContaining('etcdctl snapshot save');
    await expect(store.snapshot()).rejects.toMatchObject({ code: 'unavailable', message });
    await store.close();
  });

  test('requests that etcd rejects fail with its own message', async () => {
    const store = await open('/large');
    const put = (size: number) =>
      store.put({ key: '/registry/large', value: Buffer.alloc(size, 'x'), expect: 0 });
    const refused = { code: 'too-large', message: 'etcdserver: request is too large' };
    await expect(put(1_700_000)).rejects.toMatchObject(refused);
    await expect(put(3_000_000)).rejects.toMatchObject(refused);
    expect(await store.get('/registry/large')).toBeUndefined();
    await store.close();
  });
});

const pause = () => new Promise<void>((resolve) => systemClock.after(10, resolve));

/** Advances a clock until a condition holds or a while has passed. */
async function advanceUntil(clock: FakeClock, holds: () => boolean): Promise<void> {
  for (let step = 0; step < 500; step++) {
    if (holds()) return;
    clock.advance(100);
    await pause();
  }
  throw new Error('the condition did not hold in time');
}
