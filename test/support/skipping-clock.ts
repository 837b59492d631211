import { type Clock, systemClock, type Timer } from '@wheelhouse/machinery';
import { eventually } from './harness.ts';

/** The host's clock, which a test can move ahead. */
export interface SkippingClock extends Clock {
  /** Advances time and runs the due timers. Requests in progress age, too. */
  skip(ms: number): void;
  /** Whether a timer with this delay is running. */
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

/** Step by which time advances in milliseconds; short, so that timers fire in order. */
const stepMs = 200;

/** Advances a clock, without waiting, until a request is answered or fails. */
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
