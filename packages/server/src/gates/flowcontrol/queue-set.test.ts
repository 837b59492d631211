import { FakeClock } from '@wheelhouse/machinery/testing';
import { describe, expect, test } from 'vitest';
import { Overloaded } from './contract.ts';
import type { Seat, WorkEstimate } from './seat.ts';
import { flowOf, queueSetOf, queuing, type requestOf, userOf } from './testing.ts';

const queue = { type: 'Queue', ...queuing } as const;

/** The state of a request, updated when it changes. */
function outcomeOf(entered: Seat | Promise<Seat>): { now: string } {
  const outcome = { now: 'running' };
  if (!(entered instanceof Promise)) return outcome;
  outcome.now = 'waiting';
  entered.then(
    () => {
      outcome.now = 'running';
    },
    (error: unknown) => {
      outcome.now = error instanceof Overloaded ? 'rejected' : String(error);
    },
  );
  return outcome;
}

const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

describe('OPS-3: the seats of a level', () => {
  test('OPS-3: a free seat is granted synchronously', () => {
    const { set, seatOf } = queueSetOf(new FakeClock());
    set.configure(queue, 1);
    const seat = seatOf(flowOf('a'));
    expect(set.enter(seat)).toBe(seat);
    expect([set.executing.length, set.seatsInUse, set.isIdle]).toEqual([1, 1, false]);
    seat.release();
    seat.release();
    expect([set.executing.length, set.seatsInUse, set.isIdle]).toEqual([0, 0, true]);
    expect(set.totals).toEqual({ dispatched: 1, rejected: 0, timedOut: 0, cancelled: 0 });
  });

  test('OPS-3: a rejecting level has no queue', () => {
    const { set, seatOf } = queueSetOf(new FakeClock());
    set.configure({ type: 'Reject' }, 2);
    set.enter(seatOf(flowOf('a')));
    set.enter(seatOf(flowOf('b')));
    expect(() => set.enter(seatOf(flowOf('a')))).toThrow(Overloaded);
    expect(set.totals.rejected).toBe(1);
  });

  test('OPS-3: an exempt level grants every request a seat', () => {
    const { set, seatOf } = queueSetOf(new FakeClock());
    set.configure({ type: 'Exempt' }, 0);
    for (let sent = 0; sent < 50; sent += 1) {
      const seat = seatOf(flowOf('a'));
      expect(set.enter(seat)).toBe(seat);
    }
    expect(set.executing.length).toBe(50);
  });

  test('OPS-3: a request waits for a seat and gets the first free one', async () => {
    const { set, seatOf } = queueSetOf(new FakeClock());
    set.configure(queue, 1);
    const first = seatOf(flowOf('a'));
    set.enter(first);
    const second = outcomeOf(set.enter(seatOf(flowOf('a'))));
    expect([second.now, set.waiting]).toEqual(['waiting', 1]);
    first.release();
    await settled();
    expect([second.now, set.waiting]).toEqual(['running', 0]);
  });

  test('OPS-3: a request is rejected once all queues of its hand are full', async () => {
    const { set, seatOf } = queueSetOf(new FakeClock());
    set.configure({ ...queue, queueLengthLimit: 2 }, 1);
    const flow = flowOf('a');
    set.enter(seatOf(flow));
    const waiting = Array.from({ length: 4 }, () => outcomeOf(set.enter(seatOf(flow))));
    // The flow's hand has two queues with two places each.
    expect(set.waiting).toBe(4);
    expect(() => set.enter(seatOf(flow))).toThrow(Overloaded);
    const otherFlow = flowOf('b');
    expect(otherFlow.hand.some((card) => !flow.hand.includes(card))).toBe(true);
    expect(outcomeOf(set.enter(seatOf(otherFlow))).now).toBe('waiting');
    set.close();
    await settled();
    expect(new Set(waiting.map(({ now }) => now))).toEqual(new Set(['rejected']));
  });

  test('OPS-3: requests that wait too long are rejected', async () => {
    const clock = new FakeClock();
    const { set, seatOf } = queueSetOf(clock, 1000);
    set.configure(queue, 1);
    const running = seatOf(flowOf('a'));
    set.enter(running);
    const early = outcomeOf(set.enter(seatOf(flowOf('a'))));
    clock.advance(400);
    const late = outcomeOf(set.enter(seatOf(flowOf('b'))));
    clock.advance(599);
    await settled();
    expect([early.now, late.now]).toEqual(['waiting', 'waiting']);
    clock.advance(1);
    await settled();
    expect([early.now, late.now]).toEqual(['rejected', 'waiting']);
    clock.advance(400);
    await settled();
    expect(late.now).toBe('rejected');
    expect(set.totals).toEqual({ dispatched: 1, rejected: 2, timedOut: 2, cancelled: 0 });
    running.release();
    expect([set.isIdle, set.seatsInUse, set.seatsWaiting]).toEqual([true, 0, 0]);
  });

  test('OPS-3: a disconnecting client leaves the queue', async () => {
    const { set, seatOf } = queueSetOf(new FakeClock());
    set.configure(queue, 1);
    set.enter(seatOf(flowOf('a')));
    const seat = seatOf(flowOf('b'));
    const waiting = outcomeOf(set.enter(seat));
    (seat.request as ReturnType<typeof requestOf>).abort();
    await settled();
    expect([waiting.now, set.waiting, set.totals.cancelled]).toEqual(['rejected', 0, 1]);
    const gone = seatOf(flowOf('b'));
    (gone.request as ReturnType<typeof requestOf>).abort();
    expect(outcomeOf(set.enter(gone)).now).toBe('waiting');
    await settled();
    expect([set.waiting, set.totals.cancelled]).toEqual([0, 2]);
    expect(userOf('b').name).toBe('b');
  });

  test('OPS-3: a client that disconnects when its seat is due holds no seat', async () => {
    class LateClock extends FakeClock {
      /** Milliseconds by which timers are late. */
      lateMs = 0;
      override monotonic() {
        return super.monotonic() + this.lateMs;
      }
    }
    const clock = new LateClock();
    const { set, seatOf } = queueSetOf(clock);
    set.configure(queue, 1);
    const write = seatOf(flowOf('a'), { initialSeats: 1, finalSeats: 1, lingerMs: 5 });
    set.enter(write);
    const seat = seatOf(flowOf('b'));
    const next = outcomeOf(set.enter(seat));
    write.release();
    clock.lateMs = 5;
    (seat.request as ReturnType<typeof requestOf>).abort();
    await settled();
    expect([next.now, set.waiting, set.seatsInUse]).toEqual(['running', 0, 1]);
    seat.release();
    expect([set.isIdle, set.waiting, set.seatsInUse]).toEqual([true, 0, 0]);
  });

  test('OPS-3: a wide request waits for all its seats, and no other request overtakes it', async () => {
    const { set, seatOf } = queueSetOf(new FakeClock());
    const deck = { queues: 64, handSize: 1 };
    set.configure({ ...queue, ...deck }, 3);
    const flow = flowOf('a', deck);
    const [first, second] = [seatOf(flow), seatOf(flow)];
    set.enter(first);
    set.enter(second);
    const wide: WorkEstimate = { initialSeats: 2, finalSeats: 0, lingerMs: 0 };
    const large = outcomeOf(set.enter(seatOf(flowOf('b', deck), wide)));
    // A seat is free, but the flow has used its share.
    const small = outcomeOf(set.enter(seatOf(flow)));
    await settled();
    expect([large.now, small.now, set.seatsInUse]).toEqual(['waiting', 'waiting', 2]);
    first.release();
    await settled();
    expect([large.now, small.now, set.seatsInUse]).toEqual(['running', 'waiting', 3]);
  });

  test('OPS-3: a request wider than the level runs alone', () => {
    const { set, seatOf } = queueSetOf(new FakeClock());
    set.configure(queue, 2);
    const huge = seatOf(flowOf('a'), { initialSeats: 10, finalSeats: 0, lingerMs: 0 });
    expect(set.enter(huge)).toBe(huge);
    expect(outcomeOf(set.enter(seatOf(flowOf('b')))).now).toBe('waiting');
    set.close();
  });

  test('OPS-3: seats are held while the events of a write are sent', async () => {
    const clock = new FakeClock();
    const { set, seatOf } = queueSetOf(clock);
    set.configure(queue, 4);
    const write = seatOf(flowOf('a'), { initialSeats: 1, finalSeats: 4, lingerMs: 20 });
    set.enter(write);
    expect(set.seatsInUse).toBe(4);
    const next = outcomeOf(set.enter(seatOf(flowOf('b'))));
    write.release();
    clock.advance(19);
    await settled();
    expect([next.now, set.executing.length]).toEqual(['waiting', 0]);
    clock.advance(1);
    await settled();
    expect([next.now, set.seatsInUse]).toEqual(['running', 1]);
  });

  test('OPS-3: more seats admit waiting requests, and fewer seats end no running request', async () => {
    const { set, seatOf } = queueSetOf(new FakeClock());
    set.configure(queue, 1);
    const seats = [1, 2, 3].map(() => seatOf(flowOf('a')));
    const outcomes = seats.map((seat) => outcomeOf(set.enter(seat)));
    set.configure(queue, 3);
    await settled();
    expect(outcomes.map(({ now }) => now)).toEqual(['running', 'running', 'running']);
    set.configure({ type: 'Reject' }, 1);
    expect(set.executing.length).toBe(3);
    for (const seat of seats) seat.release();
    expect([set.isIdle, set.seatsInUse]).toEqual([true, 0]);
  });
});
