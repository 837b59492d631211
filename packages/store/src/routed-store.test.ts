import { expect, test } from 'vitest';
import { createMemoryStore } from './memory/memory-store.ts';
import { storeSuite } from './suite.ts';
import { routedStore } from './wrapped-stores.ts';

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
