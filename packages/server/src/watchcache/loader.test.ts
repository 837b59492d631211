import { emptyOrderedMap } from '@wheelhouse/machinery';
import { collectGarbage, FakeClock } from '@wheelhouse/machinery/testing';
import type { Revision } from '@wheelhouse/store';
import { expect, test } from 'vitest';
import type { Entry } from './entry.ts';
import { HistoricSnapshots } from './loader.ts';
import type { Snapshot } from './window.ts';

const mebibyte = 2 ** 20;

function open({ bytes = 0 } = {}) {
  const clock = new FakeClock();
  const loads: Revision[] = [];
  const loaded: WeakRef<Snapshot>[] = [];
  const historic = new HistoricSnapshots({
    clock,
    historyMs: 300_000,
    async load(revision) {
      loads.push(revision);
      const snapshot: Snapshot = { ...emptyOrderedMap<Entry>() };
      loaded.push(new WeakRef(snapshot));
      return { snapshot, bytes };
    },
  });
  return { clock, loads, loaded, historic };
}

test('TRUST-4: two snapshots are kept for half a minute, but only one if they are large', async () => {
  const { clock, loads, historic } = open({ bytes: mebibyte });
  for (const revision of [1, 2, 1, 3, 2, 1]) await historic.at(revision);
  expect(loads).toEqual([1, 2, 3, 1]);
  clock.advance(30_000);
  await historic.at(1);
  expect(loads).toEqual([1, 2, 3, 1, 1]);
  const large = open({ bytes: 40 * mebibyte });
  for (const revision of [1, 1, 2, 2, 1]) await large.historic.at(revision);
  expect(large.loads).toEqual([1, 2, 1]);
});

test('LIST-6: a snapshot is kept while its chunks are read, but not longer than history', async () => {
  const { clock, loads, historic } = open();
  for (let chunk = 0; chunk < 15; chunk += 1) {
    await historic.at(1);
    clock.advance(20_000);
  }
  expect(loads).toEqual([1]);
  await historic.at(1);
  expect(loads).toEqual([1, 1]);
});

test('TRUST-4: a snapshot that is no longer kept is freed', async () => {
  const { clock, loaded, historic } = open();
  for (const revision of [1, 2, 3, 4]) await historic.at(revision);
  const alive = async () => {
    await new Promise((resolve) => setTimeout(resolve, 1));
    collectGarbage();
    return loaded.filter((snapshot) => snapshot.deref() !== undefined).length;
  };
  await expect.poll(alive).toBe(2);
  clock.advance(30_000);
  await expect.poll(alive).toBe(0);
});

test('TRUST-4: a load that waits for too long is abandoned, and those after it as well', async () => {
  const { clock, loads, historic } = open();
  const first = historic.at(1);
  const waiting = [2, 3].map((revision) => historic.at(revision).catch((error: unknown) => error));
  clock.advance(30_001);
  await first.catch(() => {});
  for (const outcome of await Promise.all(waiting)) {
    expect(outcome).toMatchObject({ code: 'timed-out' });
  }
  expect(loads).toEqual([]);
  await historic.at(2);
  expect(loads).toEqual([2]);
});
