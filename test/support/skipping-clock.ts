import { type Clock, systemClock, type Timer } from '@wheelhouse/machinery';
import { eventually } from './harness.ts';

/** The host's clock, which a test can move forward. */
export interface SkippingClock extends Clock {
  /** Advances time and runs the due timers. The timeouts of requests in progress advance, too. */
  skip(ms: number): void;
  /** Whether a timer with this delay is running. */
  isWaiting(delayMs: number): boolean;
}

interface RunningTimer {
  readonly delayMs: number;
  readonly dueMs: number;
  readonly run: () => void;
  timer: Timer;
}

/** Creates a clock that starts at the host's time. */
export function skippingClock(): SkippingClock {
  let aheadMs = 0;
  const runningTimers = new Set<RunningTimer>();
  const monotonic = () => systemClock.monotonic() + aheadMs;
  return {
    monotonic,
    now: () => systemClock.now() + aheadMs,
    after(delayMs, task) {
      const run = () => {
        running.timer.stop();
        if (runningTimers.delete(running)) task();
      };
      const timer = systemClock.after(delayMs, run);
      const running: RunningTimer = { delayMs, dueMs: monotonic() + delayMs, run, timer };
      runningTimers.add(running);
      return {
        stop: () => {
          running.timer.stop();
          runningTimers.delete(running);
        },
      };
    },
    every: systemClock.every,
    skip(ms) {
      aheadMs += ms;
      const inOrder = [...runningTimers].sort((left, right) => left.dueMs - right.dueMs);
      for (const running of inOrder) {
        running.timer.stop();
        running.timer = systemClock.after(Math.max(0, running.dueMs - monotonic()), running.run);
      }
    },
    isWaiting: (delayMs) => [...runningTimers].some((running) => running.delayMs === delayMs),
  };
}

/** Step by which time advances in milliseconds; short, so that timers fire in order. */
const stepMs = 200;

/** Advances a clock until a pending request is answered or fails; returns its result. */
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
