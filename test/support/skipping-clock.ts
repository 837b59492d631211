import { type Clock, systemClock, type Timer } from '@wheelhouse/machinery';
import { eventually } from './harness.ts';

/** The host's clock, which a test can move ahead. */
export interface SkippingClock extends Clock {
  /** Moves time ahead and runs the timers that are due then. Requests under way get older, too. */
  skip(ms: number): void;
  /** Whether a timer runs that was set for this long. */
  isWaiting(delayMs: number): boolean;
}

interface Waiting {
  readonly delayMs: number;
  readonly dueMs: number;
  readonly run: () => void;
  timer: Timer;
}

export function skippingClock(): SkippingClock {
  let aheadMs = 0;
  const waiting = new Set<Waiting>();
  const monotonic = () => systemClock.monotonic() + aheadMs;
  return {
    monotonic,
    now: () => systemClock.now() + aheadMs,
    after(delayMs, task) {
      const run = () => {
        one.timer.stop();
        if (waiting.delete(one)) task();
      };
      const timer = systemClock.after(delayMs, run);
      const one: Waiting = { delayMs, dueMs: monotonic() + delayMs, run, timer };
      waiting.add(one);
      return {
        stop: () => {
          one.timer.stop();
          waiting.delete(one);
        },
      };
    },
    every: systemClock.every,
    skip(ms) {
      aheadMs += ms;
      const inOrder = [...waiting].sort((one, other) => one.dueMs - other.dueMs);
      for (const one of inOrder) {
        one.timer.stop();
        one.timer = systemClock.after(Math.max(0, one.dueMs - monotonic()), one.run);
      }
    },
    isWaiting: (delayMs) => [...waiting].some((one) => one.delayMs === delayMs),
  };
}

/** Time that passes at once, in milliseconds: short, so that timers run in their order. */
const stepMs = 200;

/** Lets the time of a clock pass, without waiting for it, until a request is answered or fails. */
export async function passing<T>(clock: SkippingClock, pending: Promise<T>): Promise<T> {
  let isOver = false;
  const end = () => {
    isOver = true;
  };
  pending.then(end, end);
  await eventually(async () => {
    clock.skip(stepMs);
    return isOver;
  }, 'the answer');
  return pending;
}
