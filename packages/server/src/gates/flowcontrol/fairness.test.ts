import { FakeClock } from '@wheelhouse/machinery/testing';
import { describe, expect, test } from 'vitest';
import type { Flow, Seat } from './seat.ts';
import { flowOf, queueSetOf, randomOf } from './testing.ts';

/** A deck so large that flows rarely share a queue. */
const deck = { queues: 1024, handSize: 1 };
const limit = 4;

interface Load {
  readonly flow: Flow;
  /** Number of requests that are always waiting or running. */
  readonly width: number;
  readonly serviceMs: number;
}

/** Runs the loads for a while; returns the seat-milliseconds that each was served. */
async function servedOf(loads: readonly Load[], forMs: number): Promise<number[]> {
  const clock = new FakeClock();
  const { set, seatOf } = queueSetOf(clock, Number.MAX_SAFE_INTEGER);
  set.configure({ type: 'Queue', ...deck, queueLengthLimit: 1000 }, limit);
  const served = loads.map(() => 0);
  const ends: { readonly atMs: number; readonly seat: Seat; readonly load: number }[] = [];
  const began = (seat: Seat, load: number) => {
    const { serviceMs = 1 } = loads[load] ?? {};
    ends.push({ atMs: clock.monotonic() + serviceMs, seat, load });
  };
  const send = (load: number) => {
    const entered = set.enter(seatOf((loads[load] as Load).flow));
    // Requests that still wait at the end are rejected.
    if (!(entered instanceof Promise)) began(entered, load);
    else
      entered.then(
        (seat) => began(seat, load),
        () => {},
      );
  };
  loads.forEach(({ width }, load) => {
    for (let sent = 0; sent < width; sent += 1) send(load);
  });
  while (clock.monotonic() < forMs) {
    const due = ends.filter(({ atMs }) => atMs <= clock.monotonic());
    for (const end of due) {
      ends.splice(ends.indexOf(end), 1);
      served[end.load] = (served[end.load] ?? 0) + (loads[end.load]?.serviceMs ?? 0);
      end.seat.release();
      send(end.load);
    }
    await Promise.resolve();
    await Promise.resolve();
    clock.advance(1);
  }
  set.close();
  return served;
}

describe('OPS-3: fairness among flows of a level', () => {
  test('OPS-3: flows with demand receive equal shares, regardless of their requests', async () => {
    const seed = Date.now() % 1_000_000;
    console.info(`fairness seed ${seed}`);
    const random = randomOf(seed);
    for (let round = 0; round < 8; round += 1) {
      const loads = Array.from({ length: 2 + random(5) }, (_, index) => ({
        flow: flowOf(`${round}-${index}-${random(1000)}`, deck),
        width: limit + random(40),
        serviceMs: 1 + random(20),
      }));
      const queues = new Set(loads.map(({ flow }) => flow.hand[0]));
      if (queues.size < loads.length) continue;
      const forMs = 4000;
      const served = await servedOf(loads, forMs);
      const share = (limit * forMs) / loads.length;
      for (const [index, seatMs] of served.entries()) {
        const what = `seed ${seed} round ${round} flow ${index} of ${JSON.stringify(served)}`;
        expect(seatMs / share, what).toBeGreaterThan(0.85);
        expect(seatMs / share, what).toBeLessThan(1.15);
      }
    }
  });

  test('OPS-3: a greedy flow does not take seats that a modest flow needs', async () => {
    const modest = { flow: flowOf('modest', deck), width: 1, serviceMs: 5 };
    const greedy = { flow: flowOf('greedy', deck), width: 200, serviceMs: 5 };
    const [small = 0, large = 0] = await servedOf([modest, greedy], 4000);
    // A single concurrent request gets a quarter of the seats, less its waits for a seat.
    expect(small).toBeGreaterThan(0.45 * 4000);
    expect(large).toBeGreaterThan(2.5 * 4000);
  });

  test('OPS-3: a request of a quiet flow overtakes the queue of a busy one', async () => {
    const clock = new FakeClock();
    const { set, seatOf } = queueSetOf(clock);
    set.configure({ type: 'Queue', ...deck, queueLengthLimit: 50 }, 1);
    const busy = flowOf('busy', deck);
    const running = seatOf(busy);
    set.enter(running);
    const order: string[] = [];
    const note = (entered: Seat | Promise<Seat>, name: string) => {
      void Promise.resolve(entered).then((seat) => {
        order.push(name);
        seat.release();
      });
    };
    for (let sent = 0; sent < 5; sent += 1) note(set.enter(seatOf(busy)), 'busy');
    clock.advance(30);
    note(set.enter(seatOf(flowOf('quiet', deck))), 'quiet');
    running.release();
    for (let turn = 0; turn < 50 && order.length < 6; turn += 1) await Promise.resolve();
    expect(order).toHaveLength(6);
    expect(order.indexOf('quiet')).toBeLessThanOrEqual(1);
  });
});
