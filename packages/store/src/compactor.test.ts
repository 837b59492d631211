import { FakeClock } from '@wheelhouse/machinery/testing';
import { expect, test } from 'vitest';
import { startCompactor } from './compactor.ts';
import { createMemoryStore } from './memory/memory-store.ts';

test('keeps between one and two intervals of history', async () => {
  const clock = new FakeClock();
  const store = createMemoryStore();
  const compactor = startCompactor({ store, clock, intervalMs: 300_000 });
  await compactor.idle();
  const compactedAfterRounds: number[] = [];
  for (let round = 0; round < 4; round++) {
    const key = `/k${round}`;
    await store.put({ key, value: Buffer.from('v'), expect: 0 });
    clock.advance(300_000);
    await compactor.idle();
    compactedAfterRounds.push(await store.compactRevision());
  }
  expect(compactedAfterRounds).toEqual([0, 1, 2, 3]);
  compactor.stop();
  clock.advance(900_000);
  await compactor.idle();
  expect(await store.compactRevision()).toBe(3);
});

test('an interval of 0 never compacts', async () => {
  const clock = new FakeClock();
  const store = createMemoryStore();
  const compactor = startCompactor({ store, clock, intervalMs: 0 });
  await store.put({ key: '/k', value: Buffer.from('v'), expect: 0 });
  clock.advance(10_000_000);
  await compactor.idle();
  expect(await store.compactRevision()).toBe(0);
});

test('a failed round is retried', async () => {
  const clock = new FakeClock();
  const compacted: number[] = [];
  let failing = true;
  const store = {
    currentRevision: () => 7,
    compact: async (revision: number) => {
      if (failing) throw new Error('unavailable');
      compacted.push(revision);
    },
  };
  const compactor = startCompactor({ store, clock, intervalMs: 1000 });
  await compactor.idle();
  clock.advance(1000);
  await compactor.idle();
  failing = false;
  clock.advance(1000);
  await compactor.idle();
  expect(compacted).toEqual([7]);
});
