import { expect, test } from 'vitest';
import { FakeClock } from '../testing.ts';
import { type Clock, type DeadlineEntry, Deadlines, type Timer } from './clock.ts';

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
