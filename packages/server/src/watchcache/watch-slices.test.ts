import { setImmediate as nextTurn } from 'node:timers/promises';
import { FakeClock } from '@wheelhouse/machinery/testing';
import { createMemoryStore } from '@wheelhouse/store/testing';
import { expect, test } from 'vitest';
import {
  DecodeMeter,
  lineEncoder,
  openCache,
  putWidget,
  settle,
  TestReader,
  watchSpec,
} from './testing.ts';

const objects = 40;

test('TRUST-2: initial events of all watches share one slice per turn of the loop', async () => {
  const clock = new FakeClock();
  const store = createMemoryStore();
  for (let n = 0; n < objects; n++) await putWidget(store, { namespace: 'a', name: `w${n}` });
  const cache = openCache(store, clock);
  await cache.ready();
  let framed = 0;
  let mostFramed = 0;
  const encoder = {
    ...lineEncoder,
    frame: (...event: Parameters<typeof lineEncoder.frame>) => {
      clock.advance(1);
      framed += 1;
      mostFramed = Math.max(mostFramed, framed);
      return lineEncoder.frame(...event);
    },
  };
  const readers = [new TestReader(), new TestReader(), new TestReader()];
  await Promise.all(
    readers.map((reader) => cache.watch(watchSpec(reader, { encoder, sendInitialEvents: true }))),
  );
  const sent = () => readers.reduce((sum, { events }) => sum + events.length, 0);
  for (let turns = 0; sent() < readers.length * objects && turns < 200; turns++) {
    framed = 0;
    await nextTurn();
  }
  await settle();
  // A slice is 5 ms, each event takes 1 ms, and a turn as this test counts them touches two slices.
  expect(mostFramed).toBeLessThanOrEqual(12);
  const names = readers.map(({ events }) => new Set(events.map(({ name }) => name)).size);
  expect(names).toEqual([objects, objects, objects]);
  expect(sent(), 'nothing is sent twice').toBe(readers.length * objects);
  cache.close();
});

test('TRUST-2: a load decodes the objects in slices', async () => {
  const clock = new FakeClock();
  const store = createMemoryStore();
  for (let n = 0; n < objects; n++) {
    await putWidget(store, { namespace: 'a', name: `w${n}`, hint: false });
  }
  const meter = new DecodeMeter(clock);
  const cache = openCache(store, clock, { indexOf: meter.indexOf });
  for (let turns = 0; cache.count() === undefined && turns < 200; turns++) {
    meter.startTurn();
    await nextTurn();
  }
  expect(meter.most).toBeLessThanOrEqual(12);
  expect(cache.count()).toBe(objects);
  cache.close();
});
