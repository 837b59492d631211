import { setImmediate as nextTurn } from 'node:timers/promises';
import type { StatusError } from '@wheelhouse/machinery';
import { FakeClock } from '@wheelhouse/machinery/testing';
import type { Store } from '@wheelhouse/store';
import { createMemoryStore } from '@wheelhouse/store/testing';
import { expect, test } from 'vitest';
import type { EntryChange, ResourceCache, WatchSpec } from './contract.ts';
import type { EntryFilter } from './entry.ts';
import type { ResourceCacheOptions } from './resource-cache.ts';
import {
  DecodeMeter,
  lineEncoder,
  openCache,
  prefix,
  putWidget,
  removeWidget,
  settle,
  TestReader,
  watchSpec,
  widget,
} from './testing.ts';

interface Setup {
  readonly store: Store;
  readonly clock: FakeClock;
  readonly cache: ResourceCache;
}

/** Writes a/x (revision 1), a/y (2), b/x (3) behind an open cache. */
async function setup(options: Partial<ResourceCacheOptions> = {}): Promise<Setup> {
  const store = createMemoryStore();
  const clock = new FakeClock();
  const cache = openCache(store, clock, { random: () => 0, ...options });
  await cache.ready();
  await putWidget(store, { namespace: 'a', name: 'x', team: 'red' });
  await putWidget(store, { namespace: 'a', name: 'y', team: 'blue' });
  await putWidget(store, { namespace: 'b', name: 'x', team: 'red' });
  return { store, clock, cache };
}

/** Waits for a condition, which is checked once per turn of the event loop. */
async function untilTrue(condition: () => boolean): Promise<void> {
  for (let turns = 0; !condition(); turns++) {
    if (turns === 10_000) throw new Error('the condition does not become true');
    await nextTurn();
  }
}

async function open(cache: ResourceCache, options: Partial<WatchSpec> = {}): Promise<TestReader> {
  const reader = new TestReader();
  await cache.watch(watchSpec(reader, options));
  await settle();
  return reader;
}

const red: EntryFilter = (index) => index.labels.team === 'red';

test('a watch begins with the current state, or after its resourceVersion', async () => {
  const { cache, store } = await setup();
  const unset = await open(cache);
  const anyVersion = await open(cache, { resourceVersion: '0', namespace: 'a' });
  const after = await open(cache, { resourceVersion: '2' });
  await putWidget(store, { namespace: 'a', name: 'x', value: 1 });
  await removeWidget(store, 'a/y');
  await settle();
  expect(unset.short).toEqual([
    'ADDED a/x@1',
    'ADDED a/y@2',
    'ADDED b/x@3',
    'MODIFIED a/x@4',
    'DELETED a/y@5',
  ]);
  expect(anyVersion.short).toEqual([
    'ADDED a/x@1',
    'ADDED a/y@2',
    'MODIFIED a/x@4',
    'DELETED a/y@5',
  ]);
  expect(after.short).toEqual(['ADDED b/x@3', 'MODIFIED a/x@4', 'DELETED a/y@5']);
  expect(after.events[2]?.object?.metadata.labels).toEqual({ team: 'blue' });
});

test('a selector turns leaving objects into DELETED and entering ones into ADDED', async () => {
  const { cache, store } = await setup();
  const reader = await open(cache, { resourceVersion: '3', filter: red });
  await putWidget(store, { namespace: 'a', name: 'x', team: 'blue', value: 5 });
  await putWidget(store, { namespace: 'a', name: 'y', team: 'red' });
  await putWidget(store, { namespace: 'a', name: 'y', team: 'red', value: 1 });
  await putWidget(store, { namespace: 'a', name: 'z', team: 'blue' });
  await removeWidget(store, 'a/z');
  await settle();
  expect(reader.short).toEqual(['DELETED a/x@4', 'ADDED a/y@5', 'MODIFIED a/y@6']);
  expect(reader.events[0]?.object?.metadata.labels).toEqual({ team: 'red' });
});

test('watches of one object, name, or namespace receive only its events', async () => {
  const { cache, store } = await setup();
  const object = await open(cache, { resourceVersion: '3', namespace: 'a', name: 'x' });
  const name = await open(cache, { resourceVersion: '0', name: 'x' });
  const namespace = await open(cache, { resourceVersion: '3', namespace: 'b' });
  await putWidget(store, { namespace: 'a', name: 'x', value: 1 });
  await putWidget(store, { namespace: 'a', name: 'y', value: 1 });
  await putWidget(store, { namespace: 'b', name: 'x', value: 1 });
  await settle();
  expect(object.short).toEqual(['MODIFIED a/x@4']);
  expect(name.short).toEqual(['ADDED a/x@1', 'ADDED b/x@3', 'MODIFIED a/x@4', 'MODIFIED b/x@6']);
  expect(namespace.short).toEqual(['MODIFIED b/x@6']);
});

test('watchers of one encoding share one buffer per batch', async () => {
  const { cache, store } = await setup();
  const readers = [];
  for (let i = 0; i < 3; i++) readers.push(await open(cache, { resourceVersion: '3' }));
  await Promise.all([
    putWidget(store, { namespace: 'a', name: 'x', value: 1 }),
    putWidget(store, { namespace: 'a', name: 'y', value: 1 }),
  ]);
  await settle();
  const [first, second, third] = readers;
  expect(first?.short).toHaveLength(2);
  expect(first?.writes[0]).toBe(second?.writes[0]);
  expect(first?.writes[0]).toBe(third?.writes[0]);
});

test('a watch from an expired version ends with an ERROR; a malformed one is rejected', async () => {
  const { cache, store, clock } = await setup({ historyMs: 1000 });
  clock.advance(5000);
  await putWidget(store, { namespace: 'a', name: 'x', value: 1 });
  await store.compact(4);
  const old = await open(cache, { resourceVersion: '1' });
  expect(old.ended).toMatchObject({ type: 'error', error: { message: expect.any(String) } });
  const error = old.ended?.type === 'error' ? (old.ended.error as StatusError) : undefined;
  expect([error?.code, error?.reason]).toEqual([410, 'Expired']);
  expect(error?.message).toBe('too old resource version: 1 (3)');
  const malformed = cache.watch(watchSpec(new TestReader(), { resourceVersion: 'x' }));
  await expect(malformed).rejects.toMatchObject({
    status: {
      code: 422,
      message:
        'widgets.test "" is invalid: resourceVersion: Invalid value: "x": ' +
        'strconv.ParseUint: parsing "x": invalid syntax',
    },
  });
});

test('a watch resumes from a version before a restart, also with a selector', async () => {
  const { store } = await setup();
  await putWidget(store, { namespace: 'a', name: 'x', team: 'blue' });
  await removeWidget(store, 'b/x');
  const cache = openCache(store, new FakeClock());
  await cache.ready();
  const all = await open(cache, { resourceVersion: '2' });
  const some = await open(cache, { resourceVersion: '1', filter: red });
  await putWidget(store, { namespace: 'c', name: 'x', team: 'red' });
  await settle();
  expect(all.short).toEqual(['ADDED b/x@3', 'MODIFIED a/x@4', 'DELETED b/x@5', 'ADDED c/x@6']);
  expect(some.short).toEqual(['ADDED b/x@3', 'DELETED a/x@4', 'DELETED b/x@5', 'ADDED c/x@6']);
  const list = { namespace: '', resourceVersion: '2', resourceVersionMatch: 'Exact' as const };
  const exact = { limit: undefined, continueToken: undefined, filter: undefined };
  expect((await cache.list({ ...list, ...exact })).count).toBe(2);
});

test('a watch from a future version sends nothing before that version', async () => {
  const { cache, store } = await setup();
  const reader = await open(cache, { resourceVersion: '5', allowBookmarks: true });
  for (let i = 0; i < 4; i++) await putWidget(store, { namespace: 'a', name: 'x', value: i });
  await settle();
  expect(reader.short).toEqual(['MODIFIED a/x@6', 'MODIFIED a/x@7']);
});

test('a watch that has ended does not wait for its version', async () => {
  const { cache, store } = await setup();
  const reader = new TestReader();
  const spec = watchSpec(reader, { resourceVersion: '18446744073709551615' });
  const handle = await cache.watch(spec);
  handle.close();
  await putWidget(store, { namespace: 'a', name: 'x', value: 1 });
  await settle();
  expect([reader.short, reader.ended]).toEqual([[], undefined]);
});

test('cluster-scoped objects can be watched together and by name', async () => {
  const store = createMemoryStore();
  const cache = openCache(store, new FakeClock(), { namespaced: false });
  await cache.ready();
  const put = async (name: string) => {
    const value = Buffer.from(JSON.stringify(widget({ namespace: '', name })));
    await store.put({ key: prefix + name, value, expect: 0 });
  };
  await put('node-1');
  await put('node-2');
  const all = await open(cache);
  const byName = await open(cache, { name: 'node-1' });
  const later = await open(cache, { name: 'node-3', resourceVersion: '2' });
  await put('node-3');
  await settle();
  expect(all.short).toEqual(['ADDED /node-1@1', 'ADDED /node-2@2', 'ADDED /node-3@3']);
  expect(byName.short).toEqual(['ADDED /node-1@1']);
  expect(later.short).toEqual(['ADDED /node-3@3']);
});

test('initial events end with the annotated bookmark, then the stream continues', async () => {
  const { cache, store } = await setup();
  const options = { sendInitialEvents: true, allowBookmarks: true };
  const reader = await open(cache, options);
  const atVersion = await open(cache, { ...options, resourceVersion: '2', namespace: 'b' });
  const silent = await open(cache, { ...options, allowBookmarks: false, namespace: 'none' });
  const none = await open(cache, { ...options, sendInitialEvents: false });
  await putWidget(store, { namespace: 'b', name: 'x', value: 1 });
  await settle();
  expect(reader.events[3]).toEqual({ type: 'BOOKMARK', revision: 3, initialEventsEnd: true });
  expect(reader.short.slice(3)).toEqual(['BOOKMARK@3', 'MODIFIED b/x@4']);
  expect(atVersion.short).toEqual(['ADDED b/x@3', 'BOOKMARK@3', 'MODIFIED b/x@4']);
  expect(silent.short).toEqual([]);
  expect(none.short).toEqual(['MODIFIED b/x@4']);
});

test('initial events at a version that is never reached end with 504', async () => {
  const { cache, clock } = await setup();
  const reader = new TestReader();
  const spec = watchSpec(reader, { sendInitialEvents: true, resourceVersion: '50' });
  const started = cache.watch(spec);
  await settle();
  clock.advance(3000);
  await started;
  expect(reader.ended).toMatchObject({ type: 'error', error: { status: { code: 504 } } });
});

test('allowed bookmarks are sent about once a minute and right before the timeout', async () => {
  const { cache, store, clock } = await setup();
  const withBookmarks = await open(cache, {
    resourceVersion: '3',
    allowBookmarks: true,
    timeoutMs: 100_000,
  });
  const without = await open(cache, { resourceVersion: '3', timeoutMs: 100_000 });
  clock.advance(62_000);
  expect(withBookmarks.short).toEqual(['BOOKMARK@3']);
  await store.put({ key: '/registry/others/x', value: Buffer.from('{}'), expect: 0 });
  clock.advance(40_000);
  expect(withBookmarks.short).toEqual(['BOOKMARK@3', 'BOOKMARK@4']);
  expect(withBookmarks.ended).toEqual({ type: 'timeout' });
  expect(without.short).toEqual([]);
  expect(without.ended).toEqual({ type: 'timeout' });
});

test('a slow reader resumes from the window where it stopped, and others continue', async () => {
  const { cache, store } = await setup();
  const slow = await open(cache, { resourceVersion: '3' });
  const quick = await open(cache, { resourceVersion: '3' });
  slow.pause();
  for (let i = 0; i < 20; i++) {
    await putWidget(store, { namespace: 'a', name: 'x', value: i });
    await settle();
  }
  expect(slow.short).toHaveLength(1);
  expect(quick.short).toHaveLength(20);
  slow.resume();
  await settle();
  expect(slow.short).toEqual(quick.short);
});

test('a watcher whose reader is too far behind is disconnected', async () => {
  const { cache, store } = await setup({ watchLagChangesMax: 10 });
  const slow = await open(cache, { resourceVersion: '3' });
  slow.pause();
  const stuck = new TestReader();
  stuck.pause();
  await cache.watch(watchSpec(stuck));
  for (let i = 0; i < 20; i++) {
    await putWidget(store, { namespace: 'a', name: 'x', value: i });
    await settle();
  }
  expect(slow.ended).toEqual({ type: 'slow' });
  expect(stuck.ended).toEqual({ type: 'slow' });
  slow.resume();
  expect(slow.short).toHaveLength(1);
});

test('initial events are sent in chunks and wait for a slow reader', async () => {
  const { cache, store } = await setup();
  const team = 'x'.repeat(500);
  for (let i = 0; i < 400; i++) await putWidget(store, { namespace: 'c', name: `n${i}`, team });
  const reader = new TestReader();
  reader.pause();
  await cache.watch(watchSpec(reader, { namespace: 'c' }));
  await settle();
  expect(reader.writes).toHaveLength(1);
  await putWidget(store, { namespace: 'c', name: 'n0', value: 1 });
  reader.resume();
  await settle();
  expect(reader.short).toHaveLength(401);
  expect(new Set(reader.short.slice(0, 400)).size).toBe(400);
  expect(reader.short[400]).toBe('MODIFIED c/n0@404');
});

test('a failing encoder ends only its own watch', async () => {
  const { cache, store } = await setup();
  const failing = new TestReader();
  const frame = () => {
    throw new Error('cannot encode');
  };
  const encoder = { key: 'broken', frame, bookmark: frame };
  await cache.watch(watchSpec(failing, { resourceVersion: '3', encoder }));
  const sound = await open(cache, { resourceVersion: '3' });
  await putWidget(store, { namespace: 'a', name: 'x', value: 1 });
  await settle();
  expect(failing.ended).toMatchObject({ type: 'error', error: { status: { code: 500 } } });
  expect(sound.short).toEqual(['MODIFIED a/x@4']);
});

test('an error while frames are sent ends the watches of that encoding and scope only', async () => {
  const { cache, store } = await setup();
  let isBroken = false;
  const countSent = () => {
    if (isBroken) throw new Error('broken');
  };
  const broken = await open(cache, {
    namespace: 'a',
    encoder: { ...lineEncoder, key: 'broken', countSent },
  });
  const sameScope = await open(cache, { namespace: 'a' });
  const everything = await open(cache);
  const other = await open(cache, { namespace: 'b' });
  const before = [sameScope, everything, other].map(({ events }) => events.length);
  isBroken = true;
  await putWidget(store, { namespace: 'a', name: 'new' });
  await putWidget(store, { namespace: 'b', name: 'new' });
  await settle();
  isBroken = false;
  await putWidget(store, { namespace: 'a', name: 'newer' });
  await putWidget(store, { namespace: 'b', name: 'newer' });
  await settle();
  expect(broken.ended).toMatchObject({ type: 'error' });
  const after = [sameScope, everything, other].map(({ events }) => events.length);
  expect(after.map((count, i) => count - (before[i] ?? 0))).toEqual([2, 4, 2]);
});

test('closing a watch stops it; closing the cache ends all of them', async () => {
  const { cache, store } = await setup();
  const reader = new TestReader();
  const handle = await cache.watch(watchSpec(reader, { resourceVersion: '3' }));
  handle.close();
  const remaining = await open(cache, { resourceVersion: '3' });
  await putWidget(store, { namespace: 'a', name: 'x', value: 1 });
  await settle();
  cache.close();
  expect(reader.short).toEqual([]);
  expect(remaining.short).toHaveLength(1);
  expect(remaining.ended).toEqual({ type: 'shutdown' });
  await expect(cache.watch(watchSpec(new TestReader()))).rejects.toMatchObject({
    status: { code: 503 },
  });
});

test('subscribers receive each change before the write is answered', async () => {
  const { cache, store } = await setup();
  const seen: EntryChange[] = [];
  const subscription = cache.subscribe((change) => seen.push(change));
  const revision = await putWidget(store, { namespace: 'a', name: 'x', value: 7 });
  expect(cache.peek('a/x')?.revision).toBe(revision);
  expect(seen).toHaveLength(1);
  expect(seen[0]?.previous?.revision).toBe(1);
  await removeWidget(store, 'a/x');
  expect(seen[1]?.current).toBeUndefined();
  subscription.close();
  await putWidget(store, { namespace: 'a', name: 'x' });
  expect(seen).toHaveLength(2);
});

test('TRUST-4, WATCH-3: more old changes than the cache may hold are not read back', async () => {
  const store = createMemoryStore();
  // One value that all revisions share.
  const text = 'x'.repeat(1024 * 1024);
  const value = Buffer.from(JSON.stringify({ ...widget({ namespace: 'a', name: 'x' }), text }));
  for (let expect = 0; expect < 160; expect++) {
    await store.put({ key: `${prefix}a/x`, value, expect });
  }
  const cache = openCache(store, new FakeClock());
  await cache.ready();
  const old = await open(cache, { resourceVersion: '1' });
  expect(old.ended).toMatchObject({ type: 'error', error: { status: { code: 410 } } });
  const recent = await open(cache, { resourceVersion: '150' });
  await untilTrue(() => recent.short.length === 10);
  expect(recent.short.at(-1)).toBe('MODIFIED a/x@160');
  expect(recent.ended).toBeUndefined();
  cache.close();
});

test('TRUST-2: old changes are read back in slices', async () => {
  const store = createMemoryStore();
  const last = 200;
  for (let value = 1; value <= last; value++) {
    await putWidget(store, { namespace: 'a', name: `x${value % 20}`, value, hint: false });
  }
  const clock = new FakeClock();
  const meter = new DecodeMeter(clock);
  const cache = openCache(store, clock, { indexOf: meter.indexOf });
  await untilTrue(() => cache.count() === 20);
  meter.most = 0;
  const reader = new TestReader();
  const opening = cache.watch(watchSpec(reader, { resourceVersion: '30' }));
  await untilTrue(() => {
    meter.startTurn();
    return reader.short.length === last - 30;
  });
  await opening;
  // A slice is 5 ms, and a turn as this test counts them touches two slices.
  expect(meter.most).toBeLessThanOrEqual(12);
  const revisions = reader.events.map(({ revision }) => revision);
  expect(revisions).toEqual(Array.from({ length: last - 30 }, (_, at) => 31 + at));
  for (const revision of [30, 31, 77, 140, 200]) {
    const found = await cache.list({
      namespace: '',
      resourceVersion: String(revision),
      resourceVersionMatch: 'Exact' as const,
      limit: undefined,
      continueToken: undefined,
      filter: undefined,
    });
    expect([...found.entries()].map((entry) => entry.revision).sort((a, b) => a - b)).toEqual(
      Array.from({ length: 20 }, (_, at) => revision - 19 + at),
    );
  }
  cache.close();
});
