import { type Clock, systemClock, type Timer } from './clock.ts';
import { contained } from './faults.ts';
import { nextTurn } from './host.ts';

/** Node's timers take no longer delays. */
const delayMsMax = 2 ** 31 - 1;
/** The end of the year 9999, the last whose times RFC 3339 can write. */
const timeMsMax = Date.UTC(10_000, 0) - 1;
/** Into so many steps an advance is cut, none shorter than a second. */
const stepsMax = 100;
const stepMsMin = 1000;
/** Turns of the event loop after each step, for what its timers have set going. */
const turnsAfterStep = 2;

interface Pending {
  readonly task: () => void;
  readonly periodMs: number | undefined;
  /** In this clock's monotonic milliseconds. */
  dueMs: number;
  handle: Timer | undefined;
}

/**
 * A clock that follows another one and can be moved ahead of it (PLANE-4). Both kinds of time move,
 * as on a host that was suspended: whatever falls due runs at once, in order of time, a periodic
 * task once for each step of an advance.
 */
export class MovableClock implements Clock {
  readonly #host: Clock;
  readonly #pending = new Set<Pending>();
  #offsetMs = 0;

  constructor(host: Clock = systemClock) {
    this.#host = host;
  }

  now(): number {
    return this.#host.now() + this.#offsetMs;
  }

  monotonic(): number {
    return this.#host.monotonic() + this.#offsetMs;
  }

  after(delayMs: number, task: () => void): Timer {
    return this.#add({ delayMs, task, periodMs: undefined });
  }

  every(periodMs: number, task: () => void): Timer {
    return this.#add({ delayMs: periodMs, task, periodMs });
  }

  /**
   * Moves time forward. In steps, between which the event loop turns: a lease that is renewed in
   * time stays held however far time moves. Rejects with RangeError unless `byMs` is a finite
   * number of milliseconds that is not negative and ends within the year 9999.
   */
  async advance(byMs: number): Promise<void> {
    if (!Number.isFinite(byMs) || byMs < 0) {
      throw new RangeError(`a clock cannot be advanced by ${byMs} ms`);
    }
    if (this.now() + byMs > timeMsMax) {
      throw new RangeError(`a clock cannot be advanced by ${byMs} ms, beyond the year 9999`);
    }
    const stepMs = Math.max(byMs / stepsMax, stepMsMin);
    for (let leftMs = byMs; leftMs > 0; leftMs -= stepMs) {
      this.#offsetMs += Math.min(stepMs, leftMs);
      this.#runDue();
      for (let turn = 0; turn < turnsAfterStep; turn += 1) await nextTurn();
    }
    for (const one of this.#pending) this.#arm(one);
  }

  #add(options: { delayMs: number; task: () => void; periodMs: number | undefined }): Timer {
    const { delayMs, periodMs } = options;
    const task = contained({ where: 'timer' }, options.task);
    const one: Pending = {
      task,
      periodMs,
      dueMs: this.monotonic() + Math.max(delayMs, 0),
      handle: undefined,
    };
    this.#pending.add(one);
    this.#arm(one);
    const stop = () => {
      this.#pending.delete(one);
      one.handle?.stop();
    };
    return { stop };
  }

  #arm(one: Pending): void {
    one.handle?.stop();
    const delayMs = Math.min(Math.max(one.dueMs - this.monotonic(), 0), delayMsMax);
    one.handle = this.#host.after(delayMs, () => this.#elapsed(one));
  }

  #elapsed(one: Pending): void {
    // Timers have whole milliseconds and may come a fraction early.
    if (one.dueMs - this.monotonic() >= 1) this.#arm(one);
    else this.#fire(one);
  }

  #fire(one: Pending): void {
    if (one.periodMs === undefined) {
      this.#pending.delete(one);
      one.handle?.stop();
    } else {
      one.dueMs = Math.max(one.dueMs + one.periodMs, this.monotonic());
      this.#arm(one);
    }
    one.task();
  }

  #runDue(): void {
    const now = this.monotonic();
    const due = [...this.#pending].filter(({ dueMs }) => dueMs <= now);
    // One task may stop another that is due too.
    for (const one of due.sort((a, b) => a.dueMs - b.dueMs)) {
      if (this.#pending.has(one)) this.#fire(one);
    }
  }
}
