import { expect, test } from 'vitest';
import { createMemoryStore } from './memory/memory-store.ts';
import { storeSuite } from './suite.ts';
import { meteredStore, routedStore, type StoreObserver } from './wrapped-stores.ts';

storeSuite({
  name: 'metered memory',
  open: async () => {
    const store = meteredStore(createMemoryStore(), {
      clock: { monotonic: () => 0 },
      observe: () => {},
    });
    return { store, dispose: () => store.close() };
  },
});

test('each operation is reported with its key and duration', async () => {
  const seen: Parameters<StoreObserver>[0][] = [];
  let time = 0;
  const monotonic = () => {
    time += 1;
    return time;
  };
  const lists: [string, number][] = [];
  const store = meteredStore(createMemoryStore(), {
    clock: { monotonic },
    observe: (operation) => seen.push(operation),
    observeList: (prefix, records) => lists.push([prefix, records]),
  });
  const written = await store.put({ key: '/a/x', value: Buffer.from('1'), expect: 0 });
  const revision = written.ok ? written.revision : 0;
  await store.put({ key: '/a/x', value: Buffer.from('2'), expect: revision });
  await store.get('/a/x');
  await store.range({ prefix: '/a/' });
  await store.range({ prefix: '/a/', revision: 99 }).catch(() => {});
  const reported = seen.map(({ operation, key, failed }) => [operation, key, failed]);
  expect(reported).toEqual([
    ['create', '/a/x', false],
    ['update', '/a/x', false],
    ['get', '/a/x', false],
    ['list', '/a/', false],
    ['list', '/a/', true],
  ]);
  expect(lists).toEqual([['/a/', 1]]);
  expect(seen.every(({ durationMs }) => durationMs > 0)).toBe(true);
  await store.close();
});

storeSuite({
  name: 'routed',
  snapshots: 'none',
  open: async () => {
    const elsewhere = { prefix: '/elsewhere/', store: createMemoryStore() };
    const store = routedStore(createMemoryStore(), [elsewhere]);
    return { store, dispose: () => store.close() };
  },
});

test('keys of a route are in its store with separate revisions', async () => {
  const [main, other] = [createMemoryStore(), createMemoryStore()];
  const store = routedStore(main, [{ prefix: '/b/', store: other }]);
  const value = Buffer.from('v');
  for (const key of ['/a/1', '/a/2', '/b/1']) await store.put({ key, value, expect: 0 });
  expect(await store.currentRevision()).toBe(2);
  expect(await store.currentRevision('/a/')).toBe(2);
  expect(await store.currentRevision('/b/')).toBe(1);
  expect((await other.range({ prefix: '' })).records.map(({ key }) => key)).toEqual(['/b/1']);
  expect((await store.get('/b/1'))?.modRevision).toBe(1);
  await store.delete({ key: '/b/1', expect: 1 });
  expect((await store.range({ prefix: '/b/' })).records).toEqual([]);
  await store.close();
  await expect(other.ping()).rejects.toMatchObject({ code: 'closed' });
});
