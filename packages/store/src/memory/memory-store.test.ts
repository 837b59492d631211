import { expect, test } from 'vitest';
import type { StoreEvent } from '../contract.ts';
import { storeSuite } from '../suite.ts';
import { createMemoryStore } from './memory-store.ts';

storeSuite({
  name: 'memory',
  open: async () => {
    const store = createMemoryStore();
    return { store, dispose: () => store.close() };
  },
});

const value = (text: string) => Buffer.from(text);
const lines = (events: readonly StoreEvent[]) => events.map(({ type, key }) => `${type} ${key}`);

test('a restore delivers to each watch the events with its prefix, in order', async () => {
  const store = createMemoryStore();
  const keys = ['/a/1', '/a/2', '/b/1', '/bb/1', '/c/1', '/c/x/1'];
  for (const key of keys.slice(0, 3)) await store.put({ key, value: value('old'), expect: 0 });
  const checkpoint = store.checkpoint();
  await store.put({ key: '/a/1', value: value('new'), expect: 1 });
  await store.delete({ key: '/b/1', expect: 3 });
  for (const key of keys.slice(3)) await store.put({ key, value: value('new'), expect: 0 });
  const prefixes = ['/', '/a/', '/b', '/b/', '/c/', '/c/x/', '/d/', '/a/1', '/0'];
  const seen = new Map(prefixes.map((prefix) => [prefix, [] as StoreEvent[]]));
  for (const [prefix, events] of seen) {
    const onEvents = (arrived: readonly StoreEvent[]) => void events.push(...arrived);
    await store.watch({ prefix, after: store.revision, onEvents, onEnd: () => {} });
  }
  expect(store.restore(checkpoint, { last: '/c/x/' }).changes).toBe(5);
  const all = ['delete /bb/1', 'delete /c/1', 'put /a/1', 'put /b/1', 'delete /c/x/1'];
  for (const [prefix, events] of seen) {
    expect(lines(events)).toEqual(all.filter((line) => line.split(' ')[1]?.startsWith(prefix)));
    const revisions = events.map(({ revision }) => revision);
    expect(revisions).toEqual(revisions.toSorted((a, b) => a - b));
  }
  await store.close();
});

test('compaction keeps the states of checkpoints and updates the size', async () => {
  const store = createMemoryStore();
  await store.put({ key: '/a', value: value('first'), expect: 0 });
  await store.put({ key: '/b', value: value('gone'), expect: 0 });
  const checkpoint = store.checkpoint();
  await store.put({ key: '/a', value: value('2'), expect: 1 });
  await store.put({ key: '/a', value: value('3'), expect: 3 });
  await store.delete({ key: '/b', expect: 2 });
  await store.compact(store.revision);
  expect(await store.sizeBytes()).toBe('/a3'.length);
  expect(store.restore(checkpoint, { last: '/z' }).changes).toBe(2);
  const { records } = await store.range({ prefix: '/' });
  expect(records.map(({ key, value: at }) => `${key} ${at}`)).toEqual(['/a first', '/b gone']);
  await store.delete({ key: '/b', expect: store.revision });
  await store.put({ key: '/b', value: value('back'), expect: 0 });
  await store.compact(store.revision - 1);
  expect(await store.get('/b', store.revision - 1)).toBeUndefined();
  expect(await store.sizeBytes()).toBe('/afirst'.length + '/bback'.length);
  await store.close();
});

test('TRUST-2: compaction proceeds in steps beside writes and other compactions', async () => {
  const store = createMemoryStore();
  const count = 10_000;
  const write = async (text: string, previous: number) => {
    for (let n = 0; n < count; n++) {
      await store.put({ key: `/${n}`, value: value(text), expect: previous && previous + n });
    }
  };
  await write('a', 0);
  await write('b', 1);
  let turns = 0;
  let isDone = false;
  const compacted = store.compact(store.revision).then(() => {
    isDone = true;
  });
  await store.delete({ key: '/9999', expect: 2 * count });
  const again = store.compact(store.revision);
  while (!isDone) {
    turns += 1;
    await new Promise(setImmediate);
  }
  await Promise.all([compacted, again]);
  expect(turns).toBeGreaterThanOrEqual(4);
  const { records } = await store.range({ prefix: '/' });
  expect(records).toHaveLength(count - 1);
  expect(await store.sizeBytes()).toBe(records.reduce((sum, { key }) => sum + key.length + 1, 0));
  await store.close();
});

test('TRUST-2: compaction drops the many states of one key in steps', async () => {
  const store = createMemoryStore();
  const count = 10_000;
  for (let expect = 0; expect < count; expect++) {
    await store.put({ key: '/hot', value: value('a'), expect });
  }
  await store.delete({ key: '/hot', expect: count });
  await store.put({ key: '/hot', value: value('b'), expect: 0 });
  let turns = 0;
  let isDone = false;
  const compacted = store.compact(count + 1).then(() => {
    isDone = true;
  });
  while (!isDone) {
    turns += 1;
    await new Promise(setImmediate);
  }
  await compacted;
  expect(turns).toBeGreaterThanOrEqual(4);
  expect(await store.get('/hot', count + 1)).toBeUndefined();
  await store.compact(count + 2);
  expect(await store.sizeBytes()).toBe('/hotb'.length);
  await store.close();
});
