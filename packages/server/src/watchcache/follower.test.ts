import { FakeClock } from '@wheelhouse/machinery/testing';
import { type Store, StoreError } from '@wheelhouse/store';
import { createMemoryStore, type WatchRequest } from '@wheelhouse/store/testing';
import { expect, test } from 'vitest';
import type { EntryChange } from './contract.ts';
import {
  openCache,
  prefix,
  putWidget,
  removeWidget,
  settle,
  TestReader,
  watchSpec,
} from './testing.ts';

interface Flaky {
  readonly store: Store;
  /** The error of the next ranges. */
  rangeFails: StoreError | undefined;
  /** The error of the next watches. */
  watchFails: StoreError | undefined;
  /** Ends the open watches. */
  cut(reason: StoreError): void;
}

function unavailable(): StoreError {
  return new StoreError({ code: 'unavailable', message: 'no connection' });
}

/** A store whose connection can be cut. */
function flakyStore(): Flaky {
  const inner = createMemoryStore();
  const open = new Set<{ request: WatchRequest; close: () => void }>();
  const flaky: Flaky = {
    rangeFails: undefined,
    watchFails: undefined,
    cut(reason) {
      for (const watch of open) {
        open.delete(watch);
        watch.close();
        watch.request.onEnd(reason);
      }
    },
    store: {
      ...boundTo(inner),
      async range(request) {
        if (flaky.rangeFails !== undefined) throw flaky.rangeFails;
        return inner.range(request);
      },
      async watch(request) {
        if (flaky.watchFails !== undefined) throw flaky.watchFails;
        const watch = await inner.watch(request);
        open.add({ request, close: () => watch.close() });
        return watch;
      },
    },
  };
  return flaky;
}

function boundTo(inner: Store): Store {
  return {
    currentRevision: () => inner.currentRevision(),
    compactRevision: () => inner.compactRevision(),
    get: (key, at) => inner.get(key, at),
    range: (request) => inner.range(request),
    put: (request) => inner.put(request),
    delete: (request) => inner.delete(request),
    watch: (request) => inner.watch(request),
    sharing: inner.sharing,
    compact: (revision) => inner.compact(revision),
    ping: () => inner.ping(),
    sizeBytes: () => inner.sizeBytes(),
    snapshot: () => inner.snapshot(),
    close: () => inner.close(),
  };
}

test('a store that is not ready is retried', async () => {
  const flaky = flakyStore();
  const clock = new FakeClock();
  await putWidget(flaky.store, { namespace: 'a', name: 'x' });
  flaky.rangeFails = unavailable();
  const cache = openCache(flaky.store, clock);
  const early = cache.get('a/x', undefined);
  const watching = cache.watch(watchSpec(new TestReader()));
  const ready = cache.ready();
  // Readers get an error at once instead of waiting for an unknown time.
  await expect(early).rejects.toMatchObject({ status: { code: 503 } });
  await expect(watching).rejects.toMatchObject({ status: { code: 503 } });
  flaky.rangeFails = undefined;
  clock.advance(1000);
  await ready;
  expect((await cache.get('a/x', undefined))?.revision).toBe(1);
});

test('a store that answers ranges but not watches is retried', async () => {
  const flaky = flakyStore();
  const clock = new FakeClock();
  await putWidget(flaky.store, { namespace: 'a', name: 'x' });
  flaky.watchFails = unavailable();
  const cache = openCache(flaky.store, clock);
  await expect(cache.get('a/x', undefined)).rejects.toMatchObject({ status: { code: 503 } });
  flaky.watchFails = undefined;
  clock.advance(1000);
  await cache.ready();
  expect((await cache.get('a/x', undefined))?.revision).toBe(1);
});

test('a lost connection is resumed where it broke, and watches continue', async () => {
  const flaky = flakyStore();
  const clock = new FakeClock();
  const cache = openCache(flaky.store, clock);
  await cache.ready();
  const reader = new TestReader();
  await cache.watch(watchSpec(reader));
  flaky.cut(unavailable());
  await putWidget(flaky.store, { namespace: 'a', name: 'x' });
  const late = cache.list({
    namespace: '',
    resourceVersion: undefined,
    resourceVersionMatch: undefined,
    limit: undefined,
    continueToken: undefined,
    filter: undefined,
  });
  expect(late).toBeInstanceOf(Promise);
  clock.advance(1000);
  expect((await late).count).toBe(1);
  await settle();
  expect(reader.short).toEqual(['ADDED a/x@1']);
});

test('lost history reloads the cache, ends watches, and updates subscribers', async () => {
  const flaky = flakyStore();
  const { store } = flaky;
  const clock = new FakeClock();
  await putWidget(store, { namespace: 'a', name: 'gone' });
  await putWidget(store, { namespace: 'a', name: 'same' });
  const cache = openCache(store, clock);
  await cache.ready();
  const seen: EntryChange[] = [];
  cache.subscribe((change) => seen.push(change));
  const reader = new TestReader();
  await cache.watch(watchSpec(reader));
  flaky.cut(new StoreError({ code: 'compacted', message: 'too old' }));
  await removeWidget(store, 'a/gone');
  await putWidget(store, { namespace: 'a', name: 'new' });
  await store.compact(4);
  clock.advance(1000);
  await settle();
  expect(reader.ended).toEqual({ type: 'shutdown' });
  expect(seen.map(({ previous, current }) => [previous?.key, current?.key])).toEqual([
    ['a/gone', undefined],
    [undefined, 'a/new'],
  ]);
  expect(cache.peek('a/new')?.revision).toBe(4);
});

test('a cache that fails to take over a change is loaded again', async () => {
  const store = createMemoryStore();
  const clock = new FakeClock();
  let isBroken = false;
  const cache = openCache(store, clock, {
    defer(task) {
      if (isBroken) throw new Error('broken');
      queueMicrotask(task);
    },
  });
  await cache.ready();
  const reader = new TestReader();
  await cache.watch(watchSpec(reader));
  isBroken = true;
  const revision = await putWidget(store, { namespace: 'a', name: 'x' });
  isBroken = false;
  await settle();
  clock.advance(1000);
  await settle();
  // The reader lists again, so it misses nothing.
  expect(reader.ended).toEqual({ type: 'shutdown' });
  expect((await cache.get('a/x', undefined))?.revision).toBe(revision);
  const next = new TestReader();
  await cache.watch(watchSpec(next));
  await putWidget(store, { namespace: 'a', name: 'y' });
  await settle();
  expect(next.short).toEqual(['ADDED a/x@1', 'ADDED a/y@2']);
});

test('a damaged record is skipped and does not affect others', async () => {
  const store = createMemoryStore();
  await store.put({ key: `${prefix}a/bad`, value: Buffer.from('\0\x01'), expect: 0 });
  await putWidget(store, { namespace: 'a', name: 'good' });
  const cache = openCache(store, new FakeClock());
  await cache.ready();
  expect(cache.peek('a/bad')).toBeUndefined();
  expect(cache.peek('a/good')?.revision).toBe(2);
});

test('a long filtered list yields to other work and is not affected by it', async () => {
  const store = createMemoryStore();
  const total = 12_000;
  for (let i = 0; i < total; i++) {
    await putWidget(store, { namespace: 'a', name: `n${i}`, team: i % 100 === 0 ? 'red' : 'blue' });
  }
  const cache = openCache(store, new FakeClock());
  await cache.ready();
  const list = cache.list({
    namespace: '',
    resourceVersion: undefined,
    resourceVersionMatch: undefined,
    limit: undefined,
    continueToken: undefined,
    filter: (index) => index.labels.team === 'red',
  });
  expect(list).toBeInstanceOf(Promise);
  await putWidget(store, { namespace: 'a', name: 'n100', team: 'blue' });
  expect((await list).count).toBe(total / 100);
  expect((await list).revision).toBe(total);
});

test('a watch that resumes far back is not disconnected as slow', async () => {
  const store = createMemoryStore();
  const cache = openCache(store, new FakeClock(), { watchLagChangesMax: 10 });
  await cache.ready();
  for (let i = 0; i < 50; i++) await putWidget(store, { namespace: 'a', name: 'x', value: i });
  const reader = new TestReader();
  reader.pause();
  await cache.watch(watchSpec(reader, { resourceVersion: '1' }));
  await putWidget(store, { namespace: 'a', name: 'x', value: 99 });
  await settle();
  expect(reader.ended).toBeUndefined();
  reader.resume();
  await settle();
  expect(reader.events).toHaveLength(50);
});

test('STORE-3: an object that becomes unreadable is reported, not removed', async () => {
  const flaky = flakyStore();
  const { store } = flaky;
  const clock = new FakeClock();
  await putWidget(store, { namespace: 'a', name: 'x' });
  const cache = openCache(store, clock);
  await cache.ready();
  const reader = new TestReader();
  const changes: EntryChange[] = [];
  await cache.watch(watchSpec(reader));
  cache.subscribe((change) => void changes.push(change));
  const key = `${prefix}a/x`;
  await store.put({ key, value: Buffer.from('k8s:enc:'), expect: 1 });
  await settle();
  const read = async () => cache.get('a/x', undefined);
  await expect(read()).rejects.toThrow(/StorageError: corrupt object, Code: 7, Key: .*a\/x,/);
  const list = async (namespace: string) =>
    cache.list({
      namespace,
      resourceVersion: undefined,
      resourceVersionMatch: undefined,
      limit: undefined,
      continueToken: undefined,
      filter: undefined,
    });
  await expect(list('')).rejects.toThrow(/^failed to read one or more .* from the storage$/);
  expect((await list('b')).count).toBe(0);
  expect(changes).toEqual([]);
  expect(reader.short).toEqual(['ADDED a/x@1']);

  // The object is still reported while everything is reloaded.
  flaky.rangeFails = unavailable();
  flaky.cut(new StoreError({ code: 'compacted', message: 'gone' }));
  await expect(read()).rejects.toThrow('corrupt object');
  clock.advance(1000);
  await settle();
  flaky.rangeFails = undefined;
  clock.advance(1000);
  await cache.ready();
  await expect(read()).rejects.toThrow('corrupt object');
  expect(changes).toEqual([]);

  await store.delete({ key, expect: 2 });
  await settle();
  expect(changes).toMatchObject([{ previous: { key: 'a/x' }, current: undefined }]);
  expect(await read()).toBeUndefined();
  expect((await list('')).count).toBe(0);
});
