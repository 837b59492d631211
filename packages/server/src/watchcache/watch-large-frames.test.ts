import { setImmediate as nextTurn } from 'node:timers/promises';
import { FakeClock } from '@wheelhouse/machinery/testing';
import { createMemoryStore } from '@wheelhouse/store/testing';
import { expect, test } from 'vitest';
import type { EventEncoder } from './contract.ts';
import {
  lineEncoder,
  openCache,
  putWidget,
  removeWidget,
  settle,
  TestReader,
  watchSpec,
} from './testing.ts';

const stepsOfFrame = 20;
const filler = 'x'.repeat(20_000);

/** A cache of an encoding whose large frames take 20 steps of a millisecond. */
async function slowFrames() {
  const clock = new FakeClock();
  const store = createMemoryStore();
  const cache = openCache(store, clock);
  await cache.ready();
  const count = { steps: 0, frames: 0, stepsInTurn: 0, mostInTurn: 0 };
  const encoder = (key: string): EventEncoder => ({
    ...lineEncoder,
    key,
    *frameSteps(type, entry) {
      for (let step = 0; step < stepsOfFrame; step++) {
        clock.advance(1);
        count.steps += 1;
        count.stepsInTurn += 1;
        count.mostInTurn = Math.max(count.mostInTurn, count.stepsInTurn);
        yield;
      }
      count.frames += 1;
      return lineEncoder.frame(type, entry);
    },
  });
  const until = async (condition: () => boolean) => {
    for (let turns = 0; !condition() && turns < 500; turns++) {
      count.stepsInTurn = 0;
      await nextTurn();
    }
    expect(condition()).toBe(true);
  };
  const put = (name: string, size: 'large' | 'small', value = 0) =>
    putWidget(store, { namespace: 'a', name, value, ...(size === 'large' && { team: filler }) });
  return { store, cache, encoder, count, until, put };
}

test('TRUST-2, WATCH-1: large changes are framed in slices, once, and in order', async () => {
  const { store, cache, encoder, count, until, put } = await slowFrames();
  const readers = Array.from({ length: 5 }, () => new TestReader());
  const keys = ['one', 'one', 'one', 'two'];
  const filters = [undefined, undefined, () => true];
  for (const [index, reader] of readers.entries()) {
    const key = keys[index];
    const used = key === undefined ? lineEncoder : encoder(key);
    await cache.watch(watchSpec(reader, { encoder: used, filter: filters[index] }));
  }
  await put('a', 'small');
  await put('b', 'large');
  await put('a', 'small', 1);
  await put('c', 'large');
  await put('d', 'small');
  await removeWidget(store, 'a/b');
  await put('e', 'small');
  await until(() => readers.every(({ events }) => events.length === 7));
  await settle();
  expect(readers[4]?.short.map((text) => text.split('@')[0])).toEqual([
    'ADDED a/a',
    'ADDED a/b',
    'MODIFIED a/a',
    'ADDED a/c',
    'ADDED a/d',
    'DELETED a/b',
    'ADDED a/e',
  ]);
  for (const { events } of readers) expect(events).toEqual(readers[4]?.events);
  expect(count.frames, 'three large frames in two encodings').toBe(6);
  // A slice is 5 ms, and a turn as this test counts them touches two slices.
  expect(count.mostInTurn).toBeLessThanOrEqual(12);
  await put('f', 'small');
  await settle();
  for (const { events } of readers) expect(events.length).toBe(8);
  cache.close();
});

test('TRUST-2, WATCH-5: large initial events are framed in slices', async () => {
  const { cache, encoder, count, until, put } = await slowFrames();
  for (const name of ['a', 'b', 'c', 'd']) await put(name, name > 'b' ? 'large' : 'small');
  const readers = [new TestReader(), new TestReader()];
  const initial = { sendInitialEvents: true, allowBookmarks: true };
  for (const [index, reader] of readers.entries()) {
    await cache.watch(watchSpec(reader, { ...initial, encoder: encoder(`${index}`) }));
  }
  await put('e', 'small');
  await until(() => readers.every(({ events }) => events.length === 6));
  for (const { short, events } of readers) {
    const names = short.slice(0, 4).map((text) => text.split('@')[0]);
    expect(names).toEqual(['ADDED a/a', 'ADDED a/b', 'ADDED a/c', 'ADDED a/d']);
    expect(events[4]).toMatchObject({ type: 'BOOKMARK', initialEventsEnd: true });
    expect(short[5]).toMatch(/^ADDED a\/e@/);
  }
  expect(count.mostInTurn).toBeLessThanOrEqual(12);
  cache.close();
});

test('TRUST-2: an unfinished frame is abandoned when its watcher ends', async () => {
  const { cache, encoder, count, until, put } = await slowFrames();
  const [leaver, stayer] = [new TestReader(), new TestReader()];
  const leaving = await cache.watch(watchSpec(leaver, { encoder: encoder('one') }));
  await put('a', 'large');
  await until(() => count.steps > 0);
  expect(count.frames).toBe(0);
  leaving.close();
  const { steps } = count;
  await settle();
  await settle();
  expect(count).toMatchObject({ steps, frames: 0 });

  const again = await cache.watch(watchSpec(leaver, { encoder: encoder('one') }));
  await cache.watch(watchSpec(stayer, { encoder: encoder('two') }));
  await until(() => count.steps > steps);
  again.close();
  await put('b', 'small');
  await until(() => stayer.events.length === 2);
  expect(stayer.short.map((text) => text.split('@')[0])).toEqual(['ADDED a/a', 'ADDED a/b']);
  expect(leaver.events).toEqual([]);
  cache.close();
});

test('WATCH-7: a watcher with a slow reader does not delay others', async () => {
  const { cache, encoder, until, put } = await slowFrames();
  const [slow, quick] = [new TestReader(), new TestReader()];
  await cache.watch(watchSpec(slow, { encoder: encoder('one') }));
  await cache.watch(watchSpec(quick, { encoder: encoder('two') }));
  slow.pause();
  await put('a', 'small');
  for (const name of ['b', 'c', 'd']) await put(name, 'large');
  await until(() => quick.events.length === 4);
  expect(slow.events.length).toBeLessThanOrEqual(2);
  slow.resume();
  await until(() => slow.events.length === 4);
  expect(slow.events).toEqual(quick.events);
  cache.close();
});

test('WATCH-1: a large object that an encoding cannot represent ends only its watches', async () => {
  const { cache, put, until } = await slowFrames();
  const readers = [new TestReader(), new TestReader(), new TestReader()];
  const failing: EventEncoder = {
    ...lineEncoder,
    key: 'failing',
    *frameSteps() {
      yield;
      throw new Error('cannot encode');
    },
  };
  for (const [index, reader] of readers.entries()) {
    await cache.watch(watchSpec(reader, { encoder: index === 2 ? lineEncoder : failing }));
  }
  await put('a', 'large');
  await until(() => readers.slice(0, 2).every(({ ended }) => ended !== undefined));
  await put('b', 'small');
  await until(() => readers[2]?.events.length === 2);
  expect(readers.map(({ ended }) => ended?.type)).toEqual(['error', 'error', undefined]);
  cache.close();
});
