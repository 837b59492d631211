import type { Clock, Timer } from './clock.ts';

/** Something that must be over by a time. */
export interface Bounded {
  /** Monotonic milliseconds; may be moved while it stands in the list. */
  readonly dueMs: number;
  /** Where it stands in the list, which keeps this; -1 when it does not. */
  place: number;
  /** Its time is up. It stands in the list no longer. */
  expire(): void;
}

/**
 * A deadline has passed this long before its time, in milliseconds: timers have whole milliseconds and
 * may come early, so that what was cut off at the deadline would find some of its time left.
 */
export const deadlineEarlyMs = 2;

/** How late something may be told that its time is up. */
const precisionMs = 50;

/**
 * Tells what is not over in time. Adding and removing cost a few steps and no timer, since nearly
 * everything is over long before: one look now and then finds what is not, and there is none while
 * nothing is under way.
 */
export class Deadlines {
  readonly #clock: Clock;
  readonly #open: Bounded[] = [];
  #looking: Timer | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add(one: Bounded): void {
    one.place = this.#open.push(one) - 1;
    this.#looking ??= this.#clock.every(precisionMs, this.#look);
  }

  /** Harmless where it does not stand in the list. */
  remove(one: Bounded): void {
    const { place } = one;
    if (place < 0) return;
    one.place = -1;
    const last = this.#open.pop() as Bounded;
    if (last === one) return;
    this.#open[place] = last;
    last.place = place;
  }

  readonly #look = (): void => {
    if (this.#open.length === 0) {
      this.#looking?.stop();
      this.#looking = undefined;
      return;
    }
    const now = this.#clock.monotonic();
    for (const one of this.#open.filter(({ dueMs }) => dueMs <= now)) {
      // What an earlier one did may have ended it.
      if (one.place < 0) continue;
      this.remove(one);
      one.expire();
    }
  };
}
