import { randomOf } from '@wheelhouse/machinery';
import { hasEtcd } from '@wheelhouse/store/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildPrograms, type Programs } from '../../support/program.ts';
import { type GroundName, startGround } from './ground.ts';
import { type HistoryReport, runHistory } from './history.ts';
import type { Fault } from './nemesis.ts';
import { type Resource, resources } from './resources.ts';

let programs: Programs;
beforeAll(async () => {
  programs = await buildPrograms();
}, 120_000);
afterAll(() => programs?.remove());

const seed = Date.now() % 1_000_000;

async function shortHistory(name: GroundName, faults: readonly Fault[]): Promise<HistoryReport> {
  const ground = await startGround(programs, { name, flags: [] });
  try {
    return await runHistory({
      ground,
      random: randomOf(seed),
      namespace: 'history',
      resource: resources[0] as Resource,
      milliseconds: 1500,
      leastWrites: 50,
      faultsMax: 2,
      workers: 5,
      keys: 2,
      thinkMs: 20,
      holdMs: 400,
      restMs: 300,
      faults,
    });
  } catch (cause) {
    throw new Error(`seed ${seed}: ${String(cause)}`, { cause });
  } finally {
    await ground.remove();
  }
}

function expectChecked({ undecided, changes, complete }: HistoryReport): void {
  expect(undecided, `seed ${seed}`).toBe(0);
  expect(complete, `seed ${seed}`).toBe(1);
  expect(changes, `seed ${seed}`).toBeGreaterThan(5);
}

describe('real processes keep their guarantees', () => {
  test('STORE-1, WATCH-2, WATCH-10: with kill -9 of a server on its own store', async () => {
    const report = await shortHistory('embedded', ['kill a server']);
    expectChecked(report);
    expect(report.faults.get('kill a server')).toBeGreaterThan(0);
  }, 120_000);

  test.skipIf(!hasEtcd)(
    'STORE-2, WATCH-2, WATCH-10: with kill -9 and SIGSTOP of two servers on one etcd',
    async () => {
      const faults: readonly Fault[] = ['kill a server', 'stop a server', 'kill a member'];
      expectChecked(await shortHistory('etcd', faults));
    },
    120_000,
  );
});
