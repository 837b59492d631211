import { expect, test } from 'vitest';
import { type Clock, type DeadlineEntry, Deadlines, FakeClock, type Timer } from './clock.ts';

class Work implements DeadlineEntry {
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

test('each entry expires once, soon after its deadline, and only if it has not ended', () => {
  const clock = new FakeClock();
  const deadlines = new Deadlines(clock);
  const expired: string[] = [];
  const works = [300, 100, 200, 100].map(
    (dueMs, index) => new Work(dueMs, () => expired.push(`${index} at ${clock.monotonic()}`)),
  );
  for (const work of works) deadlines.add(work);
  deadlines.remove(works[3] as Work);
  deadlines.remove(works[3] as Work);
  clock.advance(99);
  expect(expired).toEqual([]);
  clock.advance(1000);
  expect(expired).toEqual(['1 at 100', '2 at 200', '0 at 300']);
  expect(works.map(({ place }) => place)).toEqual([-1, -1, -1, -1]);
});

test('a deadline may be moved, and an expiring entry may end another', () => {
  const clock = new FakeClock();
  const deadlines = new Deadlines(clock);
  const expired: string[] = [];
  const ended = new Work(100, () => expired.push('ended'));
  const first = new Work(100, () => {
    expired.push('first');
    deadlines.remove(ended);
  });
  const moved = new Work(60_000, () => expired.push('moved'));
  for (const work of [first, ended, moved]) deadlines.add(work);
  moved.dueMs = 150;
  clock.advance(200);
  expect(expired).toEqual(['first', 'moved']);
});

test('one timer serves all entries, and none runs while there are none', () => {
  const { clock, counted, running } = countingClock();
  const deadlines = new Deadlines(counted);
  expect(running()).toBe(0);
  const works = Array.from({ length: 100 }, () => new Work(1000, () => {}));
  for (const work of works) deadlines.add(work);
  expect(running()).toBe(1);
  for (const work of works) deadlines.remove(work);
  clock.advance(100);
  expect(running()).toBe(0);
  deadlines.add(new Work(1000, () => {}));
  expect(running()).toBe(1);
  clock.advance(2000);
  expect(running()).toBe(0);
});
