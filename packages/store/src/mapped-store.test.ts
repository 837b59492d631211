import { notFound } from '@wheelhouse/machinery';
import { FakeClock } from '@wheelhouse/machinery/testing';
import { expect, test } from 'vitest';
import { type Store, type StoreError, type StoreEvent, unchangedOperations } from './contract.ts';
import { type ConvertRecords, convertedStore, mappedStore } from './mapped-store.ts';
import { createMemoryStore } from './memory/memory-store.ts';

const put = async (store: Store, key: string, value: string, expect = 0) => {
  const result = await store.put({ key, value: Buffer.from(value), expect, hint: 'own' });
  if (!result.ok) throw new Error(`${key} exists`);
  return result.revision;
};

const upper: ConvertRecords = (records) =>
  records.map(({ value }) => Buffer.from(value.toString().toUpperCase()));

/** A converter that is released batch by batch. */
function pausedConverter() {
  const waiting: (() => void)[] = [];
  const batches: string[][] = [];
  const convert: ConvertRecords = (records) => {
    batches.push(records.map(({ value }) => value.toString()));
    return new Promise((resolve) => {
      waiting.push(() => resolve(upper(records) as readonly Buffer[]));
    });
  };
  const turn = () => new Promise<void>((resolve) => setImmediate(resolve));
  return {
    convert,
    batches,
    async release() {
      waiting.shift()?.();
      await turn();
    },
  };
}

async function watchEvents(store: Store, after = 0) {
  const events: StoreEvent[] = [];
  const ended: StoreError[] = [];
  const watch = await store.watch({
    prefix: '/a/',
    after,
    onEvents: (some) => events.push(...some),
    onEnd: (reason) => ended.push(reason),
  });
  const shown = () =>
    events.map((event) => (event.type === 'put' ? event.value.toString() : `-${event.key}`));
  return { watch, events, ended, shown };
}

test('reads and events are converted, and hints of the original form are dropped', async () => {
  const memory = createMemoryStore();
  const store = convertedStore(memory, upper);
  const first = await put(memory, '/a/x', 'one');
  const { events, shown, watch } = await watchEvents(store);
  const last = await put(memory, '/a/y', 'two');
  await watch.reached(last);
  expect(shown()).toEqual(['ONE', 'TWO']);
  expect(events.some((event) => 'hint' in event && event.hint !== undefined)).toBe(false);
  expect(watch.progress).toBe(last);
  const { records } = await store.range({ prefix: '/a/' });
  expect(records.map(({ key, value, modRevision }) => `${key}=${value}@${modRevision}`)).toEqual([
    `/a/x=ONE@${first}`,
    `/a/y=TWO@${last}`,
  ]);
  expect((await store.get('/a/x'))?.value.toString()).toBe('ONE');
  await expect(store.put({ key: '/a/z', value: Buffer.from(''), expect: 0 })).rejects.toThrow();
  await memory.close();
});

test('a failing receiver ends its watch, in steps or not, and no event is lost', async () => {
  const atOnce: ConvertRecords = upper;
  const later: ConvertRecords = async (records) => upper(records);
  for (const convert of [atOnce, later]) {
    const memory = createMemoryStore();
    const store = convertedStore(memory, convert);
    const ended: StoreError[] = [];
    const watch = await store.watch({
      prefix: '/a/',
      after: 0,
      onEvents: () => {
        throw notFound({ group: '', resource: 'pods' }, 'x');
      },
      onEnd: (reason) => ended.push(reason),
    });
    const revision = await put(memory, '/a/x', 'one');
    await expect(async () => watch.reached(revision)).rejects.toMatchObject({
      code: 'unavailable',
    });
    // Only a value that cannot be converted has a cause.
    expect(ended.map(({ code, cause }) => [code, cause])).toEqual([['unavailable', undefined]]);
    expect(watch.progress).toBe(0);
    const again = await watchEvents(store, watch.progress);
    await again.watch.reached(revision);
    expect(again.shown()).toEqual(['ONE']);
    await memory.close();
  }
});

test('events are delivered in order, and progress waits for their conversion', async () => {
  const memory = createMemoryStore();
  const slow = pausedConverter();
  const { watch, shown } = await watchEvents(convertedStore(memory, slow.convert));
  const first = await put(memory, '/a/1', 'a');
  await put(memory, '/a/2', 'b');
  const removed = await memory.delete({ key: '/a/1', expect: first });
  const last = removed.ok ? removed.revision : 0;
  expect(slow.batches).toEqual([['a']]);
  expect(watch.progress).toBeLessThan(first);
  let reached = false;
  const done = Promise.resolve(watch.reached(last)).then(() => {
    reached = true;
  });
  await slow.release();
  expect(shown()).toEqual(['A']);
  expect(watch.progress).toBe(first);
  expect(slow.batches[1]).toEqual(['b']);
  expect(reached).toBe(false);
  await slow.release();
  await done;
  expect(shown()).toEqual(['A', 'B', '-/a/1']);
  expect(watch.progress).toBe(last);
  await memory.close();
});

test('an unconvertible value fails the read and ends the watch', async () => {
  const memory = createMemoryStore();
  const convert: ConvertRecords = async (records) => {
    if (records.some(({ value }) => value.toString() === 'bad')) throw new Error('cannot');
    return upper(records);
  };
  const store = convertedStore(memory, convert);
  const { ended, shown, watch } = await watchEvents(store);
  const good = await put(memory, '/a/1', 'good');
  await watch.reached(good);
  const bad = await put(memory, '/a/2', 'bad');
  await Promise.resolve(watch.reached(bad)).catch(() => {});
  // A watch that resumes there receives the event again.
  expect(watch.progress).toBe(good);
  expect(shown()).toEqual(['GOOD']);
  expect(ended.map(({ message, cause }) => [message, cause])).toEqual([
    ['cannot', new Error('cannot')],
  ]);
  await put(memory, '/a/3', 'later');
  expect(shown()).toEqual(['GOOD']);
  await expect(store.range({ prefix: '/a/' })).rejects.toMatchObject({ code: 'unavailable' });
  await memory.close();
});

test('a closed watch receives nothing, and the end of a store follows all events', async () => {
  const memory = createMemoryStore();
  const slow = pausedConverter();
  const store = convertedStore(memory, slow.convert);
  const closed = await watchEvents(store);
  const open = await watchEvents(store);
  await put(memory, '/a/1', 'a');
  closed.watch.close();
  await memory.close();
  expect(open.ended).toEqual([]);
  await slow.release();
  await slow.release();
  expect(closed.shown()).toEqual([]);
  expect(closed.ended).toEqual([]);
  expect(open.shown()).toEqual(['A']);
  expect(open.ended.map(({ code }) => code)).toEqual(['closed']);
});

test('a watch far behind its translation ends, so that its client reads anew', async () => {
  const memory = createMemoryStore();
  const slow = pausedConverter();
  const { watch, ended, events } = await watchEvents(convertedStore(memory, slow.convert));
  const value = Buffer.alloc(2 ** 20);
  let last = 0;
  for (let n = 0; n < 80; n++) {
    const result = await memory.put({ key: `/a/${n}`, value, expect: 0 });
    if (result.ok && ended.length === 0) last = result.revision;
  }
  expect(ended.map(({ code }) => code)).toEqual(['compacted']);
  // 64 MiB wait, and one value is in translation.
  expect(last).toBe(65);
  const reached = expect(watch.reached(1)).rejects.toMatchObject({ code: 'compacted' });
  await slow.release();
  await reached;
  expect(events).toEqual([]);
  expect(watch.progress).toBe(0);
  expect(slow.batches.length).toBe(1);
  await memory.close();
  expect(ended.length).toBe(1);
});

test('the events of a revision are delivered together, however many they are', async () => {
  const memory = createMemoryStore();
  let publish: (events: readonly StoreEvent[]) => void = () => {};
  const shared: Store = {
    ...unchangedOperations(memory),
    get: memory.get.bind(memory),
    range: memory.range.bind(memory),
    put: memory.put.bind(memory),
    delete: memory.delete.bind(memory),
    async watch({ onEvents }) {
      publish = onEvents;
      return { progress: 0, reached: () => undefined, close: () => {} };
    },
  };
  for (const convert of [upper, async (records: Parameters<ConvertRecords>[0]) => upper(records)]) {
    const batches: (readonly StoreEvent[])[] = [];
    const watch = await convertedStore(shared, convert).watch({
      prefix: '/a/',
      after: 0,
      onEvents: (events) => batches.push(events),
      onEnd: () => {},
    });
    const value = Buffer.from('x');
    const events = Array.from({ length: 1200 }, (_, i): StoreEvent => {
      const revision = i < 490 ? i + 1 : i < 1100 ? 500 : i;
      return { type: 'put', key: `/a/${i}`, value, createRevision: revision, revision };
    });
    publish(events);
    await watch.reached(1199);
    expect(batches.flat().map(({ key }) => key)).toEqual(events.map(({ key }) => key));
    expect(batches.map(({ length }) => length)).toEqual([1100, 100]);
  }
  await memory.close();
});

test('TRUST-2: values of ranges and events are translated in slices, large ones in steps', async () => {
  const memory = createMemoryStore();
  const clock = new FakeClock();
  const large = 'x'.repeat(20_000);
  let translated = 0;
  let mostTranslated = 0;
  const work = () => {
    clock.advance(1);
    translated += 1;
    mostTranslated = Math.max(mostTranslated, translated);
  };
  const result = (value: Buffer) => {
    if (value.includes('bad')) throw new Error('cannot');
    return Buffer.from(value.toString().toUpperCase());
  };
  const store = mappedStore(memory, {
    clock,
    read: (value) => {
      if (value.length >= large.length) throw new Error('a large value in one step');
      work();
      return result(value);
    },
    *readSteps(value) {
      for (let step = 0; step < 20; step++) {
        work();
        yield;
      }
      return result(value);
    },
  });
  for (let n = 0; n < 40; n++) await put(memory, `/a/${n}`, n === 3 ? 'bad' : `v${n}`);
  const largeKey = { key: '/a/large' };
  await put(memory, largeKey.key, large);
  const last = await put(memory, '/a/large-bad', `bad${large}`);
  const untilDone = async <T>(running: Promise<T>): Promise<T> => {
    let isDone = false;
    const finish = () => {
      isDone = true;
    };
    running.then(finish, finish);
    while (!isDone) {
      translated = 0;
      await new Promise((resolve) => setImmediate(resolve));
    }
    return running;
  };
  const lost = await untilDone(store.put({ ...largeKey, value: Buffer.from(''), expect: 0 }));
  expect(lost).toMatchObject({ ok: false, current: { value: Buffer.from(large.toUpperCase()) } });
  expect(await untilDone(Promise.resolve(store.get('/a/large')))).toEqual(
    lost.ok ? undefined : lost.current,
  );
  const { records } = await untilDone(store.range({ prefix: '/a/' }));
  const found = new Map(records.map((record) => [record.key, record]));
  expect(found.size).toBe(42);
  expect(found.get('/a/7')?.value.toString()).toBe('V7');
  expect(found.get('/a/large')?.value.toString()).toBe(large.toUpperCase());
  for (const key of ['/a/3', '/a/large-bad']) {
    expect(found.get(key)).toMatchObject({ unreadable: 'cannot', failure: 'decoding' });
  }
  const { watch, events, shown } = await watchEvents(store);
  const reached = untilDone(Promise.resolve(watch.reached(last)));
  const next = await put(memory, '/a/next', 'next');
  await reached;
  await watch.reached(next);
  expect(events.map(({ revision }) => revision)).toEqual(events.map((_, at) => at + 1));
  expect(shown()[40]).toBe(large.toUpperCase());
  expect(events[41]).toMatchObject({ unreadable: 'cannot', failure: 'decoding' });
  expect(shown()[42]).toBe('NEXT');
  // A slice is 5 ms, each translation takes 1 ms, and a turn as this test counts them touches two.
  expect(mostTranslated).toBeLessThanOrEqual(12);
  await memory.close();
});
