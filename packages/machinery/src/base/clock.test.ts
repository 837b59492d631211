import { afterEach, describe, expect, test, vi } from 'vitest';
import { collectGarbage, FakeClock } from '../testing.ts';
import {
  type Clock,
  type DeadlineEntry,
  Deadlines,
  MovableClock,
  pause,
  programClock,
  systemClock,
  type Timer,
  wallClock,
} from './clock.ts';

describe('the wall clock', () => {
  test('TRUST-9: follows changes of the system clock, with a finer resolution', () => {
    const host = { wallMs: 1_000_000, monotonicMs: 50.25 };
    const now = wallClock({
      wall: () => Math.floor(host.wallMs),
      monotonic: () => host.monotonicMs,
    });
    const advance = (ms: number) => {
      host.wallMs += ms;
      host.monotonicMs += ms;
    };
    expect(now()).toBe(1_000_000);
    advance(0.125);
    expect(now()).toBe(1_000_000.125);
    host.wallMs += 864_000_000;
    expect(now()).toBe(865_000_000);
    advance(0.5);
    expect(now()).toBe(865_000_000.5);
    host.wallMs -= 3_600_000;
    expect(now()).toBe(861_400_000);
  });

  test('TRUST-9: is never behind the system clock, and at most a few milliseconds ahead', () => {
    const host = { wallMs: 0, monotonicMs: 0 };
    const now = wallClock({
      wall: () => Math.floor(host.wallMs),
      monotonic: () => host.monotonicMs,
    });
    let last = 0;
    for (let step = 0; step < 10_000; step += 1) {
      host.monotonicMs += 0.7;
      host.wallMs += 0.7 * (step < 5000 ? 1.001 : 0.999);
      const time = now();
      expect(time).toBeGreaterThanOrEqual(Math.floor(host.wallMs));
      expect(time - host.wallMs).toBeLessThanOrEqual(5);
      expect(time).toBeGreaterThan(last - 5);
      last = time;
    }
  });
});

test('TRUST-9: a step of the fake wall clock fires no timer', () => {
  const clock = new FakeClock(0);
  let runs = 0;
  clock.after(100, () => {
    runs += 1;
  });
  clock.stepWall(1000);
  expect([clock.now(), clock.monotonic(), runs]).toEqual([1000, 0, 0]);
  clock.advance(100);
  expect([clock.now(), clock.monotonic(), runs]).toEqual([1100, 100, 1]);
});

describe('a system timer that is longer than those of Node.js', () => {
  const dayMs = 24 * 60 * 60 * 1000;

  afterEach(() => {
    vi.useRealTimers();
  });

  test.each([systemClock, programClock])('TRUST-9: fires after its delay', (clock) => {
    vi.useFakeTimers();
    const fired: string[] = [];
    clock.after(60 * dayMs, () => fired.push('60 days'));
    const stopped = clock.after(60 * dayMs, () => fired.push('stopped'));
    clock.after(Number.POSITIVE_INFINITY, () => fired.push('never'));
    vi.advanceTimersByTime(30 * dayMs);
    stopped.stop();
    vi.advanceTimersByTime(30 * dayMs - 1);
    expect(fired).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(fired).toEqual(['60 days']);
    vi.advanceTimersByTime(100 * dayMs);
    expect(fired).toEqual(['60 days']);
  });

  test('TRUST-9: fires every period until it is stopped, also by its task', () => {
    vi.useFakeTimers();
    let runs = 0;
    const timer = systemClock.every(30 * dayMs, () => {
      runs += 1;
      if (runs === 2) timer.stop();
    });
    vi.advanceTimersByTime(30 * dayMs - 1);
    expect(runs).toBe(0);
    vi.advanceTimersByTime(1);
    expect(runs).toBe(1);
    vi.advanceTimersByTime(300 * dayMs);
    expect(runs).toBe(2);
  });
});

const where = 'webhook';

test('TRUST-4: a stopped system timer leaves no memory behind, whatever its delay', () => {
  collectGarbage();
  const { heapUsed } = process.memoryUsage();
  for (let timer = 0; timer < 100_000; timer += 1) {
    systemClock.after(1_800_000 + timer, () => {}).stop();
  }
  collectGarbage();
  // Lists of timers without timers took 16 MB.
  expect(process.memoryUsage().heapUsed - heapUsed).toBeLessThan(5_000_000);
});

test('a pause ends after its time', async () => {
  const clock = new FakeClock();
  const waited = pause(clock, { ms: 100, signal: undefined, where });
  clock.advance(100);
  await waited;
});

test('a pause rejects with its signal’s reason, before and during it', async () => {
  const clock = new FakeClock();
  const reason = new Error('the server stops');
  const controller = new AbortController();
  const waited = pause(clock, { ms: 100, signal: controller.signal, where });
  controller.abort(reason);
  await expect(waited).rejects.toBe(reason);
  await expect(pause(clock, { ms: 100, signal: controller.signal, where })).rejects.toBe(reason);
});

test('a long-lived signal retains no listener of a pause', async () => {
  const clock = new FakeClock();
  const { signal } = new AbortController();
  const listeners = new Set<unknown>();
  signal.addEventListener = (_: string, listener: unknown) => void listeners.add(listener);
  signal.removeEventListener = (_: string, listener: unknown) => void listeners.delete(listener);
  const waited = pause(clock, { ms: 100, signal, where });
  expect(listeners.size).toBe(1);
  clock.advance(100);
  await waited;
  expect(listeners.size).toBe(0);
});

class Operation implements DeadlineEntry {
  place = -1;
  dueMs: number;
  readonly #onExpired: () => void;

  constructor(dueMs: number, onExpired: () => void) {
    this.dueMs = dueMs;
    this.#onExpired = onExpired;
  }

  expire(): void {
    this.#onExpired();
  }
}

/** A clock that counts its running timers. */
function countingClock() {
  const clock = new FakeClock();
  let running = 0;
  const every = (periodMs: number, task: () => void): Timer => {
    const timer = clock.every(periodMs, task);
    running += 1;
    return {
      stop: () => {
        running -= 1;
        timer.stop();
      },
    };
  };
  const counted: Clock = {
    now: () => clock.now(),
    monotonic: () => clock.monotonic(),
    after: (delayMs, task) => clock.after(delayMs, task),
    every,
  };
  return { clock, counted, running: () => running };
}

test('each entry expires once, soon after its deadline, unless it was removed', () => {
  const clock = new FakeClock();
  const deadlines = new Deadlines(clock);
  const expired: string[] = [];
  const operations = [300, 100, 200, 100].map(
    (dueMs, index) => new Operation(dueMs, () => expired.push(`${index} at ${clock.monotonic()}`)),
  );
  for (const operation of operations) deadlines.add(operation);
  deadlines.remove(operations[3] as Operation);
  deadlines.remove(operations[3] as Operation);
  clock.advance(99);
  expect(expired).toEqual([]);
  clock.advance(1000);
  expect(expired).toEqual(['1 at 100', '2 at 200', '0 at 300']);
  expect(operations.map(({ place }) => place)).toEqual([-1, -1, -1, -1]);
});

test('a deadline may be moved, and an expiring entry may end another', () => {
  const clock = new FakeClock();
  const deadlines = new Deadlines(clock);
  const expired: string[] = [];
  const ended = new Operation(100, () => expired.push('ended'));
  const first = new Operation(100, () => {
    expired.push('first');
    deadlines.remove(ended);
  });
  const moved = new Operation(60_000, () => expired.push('moved'));
  for (const operation of [first, ended, moved]) deadlines.add(operation);
  moved.dueMs = 150;
  clock.advance(200);
  expect(expired).toEqual(['first', 'moved']);
});

test('one timer serves all entries, and none runs while the list is empty', () => {
  const { clock, counted, running } = countingClock();
  const deadlines = new Deadlines(counted);
  expect(running()).toBe(0);
  const operations = Array.from({ length: 100 }, () => new Operation(1000, () => {}));
  for (const operation of operations) deadlines.add(operation);
  expect(running()).toBe(1);
  for (const operation of operations) deadlines.remove(operation);
  clock.advance(100);
  expect(running()).toBe(0);
  deadlines.add(new Operation(1000, () => {}));
  expect(running()).toBe(1);
  clock.advance(2000);
  expect(running()).toBe(0);
});

const dayMs = 86_400_000;

function movable() {
  const host = new FakeClock();
  const clock = new MovableClock(host);
  const ran: string[] = [];
  return { host, clock, ran, note: (name: string) => () => void ran.push(name) };
}

test('follows its host, and both kinds of time advance together', async () => {
  const { host, clock } = movable();
  host.advance(10);
  expect([clock.now(), clock.monotonic()]).toEqual([host.now(), host.monotonic()]);
  await clock.advance(dayMs);
  expect(clock.now() - host.now()).toBe(dayMs);
  expect(clock.monotonic() - host.monotonic()).toBe(dayMs);
});

test('tasks that become due run once, in order of time; stopped ones do not', async () => {
  const { clock, ran, note } = movable();
  clock.after(300, note('third'));
  clock.after(100, () => {
    note('first')();
    stopped.stop();
  });
  const stopped = clock.after(200, note('stopped'));
  clock.after(2000, note('later'));
  await clock.advance(500);
  expect(ran).toEqual(['first', 'third']);
  await clock.advance(1500);
  expect(ran).toEqual(['first', 'third', 'later']);
});

test('timers from before an advance fire earlier on the host', async () => {
  const { host, clock, ran, note } = movable();
  clock.after(1000, note('one'));
  clock.every(400, note('period'));
  await clock.advance(300);
  host.advance(99);
  expect(ran).toEqual([]);
  host.advance(1);
  expect(ran).toEqual(['period']);
  host.advance(600);
  expect(ran).toEqual(['period', 'period', 'one']);
});

test('a periodic task runs once per step, so a day does not take a million calls', async () => {
  const { clock, ran, note } = movable();
  const timer = clock.every(50, note('tick'));
  await clock.advance(dayMs);
  expect(ran.length).toBe(100);
  timer.stop();
  await clock.advance(dayMs);
  expect(ran.length).toBe(100);
});

test('a timer that is renewed in time does not expire during a long advance', async () => {
  const { clock } = movable();
  let renewedMs = clock.monotonic();
  let longestMs = 0;
  const renew = () => {
    longestMs = Math.max(longestMs, clock.monotonic() - renewedMs);
    renewedMs = clock.monotonic();
    clock.after(10_000, renew);
  };
  clock.after(10_000, renew);
  await clock.advance(3_600_000);
  expect(longestMs).toBeLessThanOrEqual(2 * 36_000);
});

test('a delay beyond the maximum of timers is split', () => {
  const { host, clock, ran, note } = movable();
  clock.after(60 * dayMs, note('late'));
  host.advance(59 * dayMs);
  expect(ran).toEqual([]);
  host.advance(dayMs);
  expect(ran).toEqual(['late']);
});

test('rejects invalid and excessive advances', async () => {
  const { clock } = movable();
  for (const wrong of [-1, Number.NaN, Number.POSITIVE_INFINITY]) {
    await expect(clock.advance(wrong)).rejects.toThrow(RangeError);
  }
  const before = clock.now();
  await expect(clock.advance(1e16)).rejects.toThrow('beyond the year 9999');
  expect(clock.now()).toBe(before);
});
