import { type Clock, systemClock } from '@wheelhouse/machinery';

/**
 * The host's clock, which counts its readings. Work in steps reads the clock between its steps, so
 * the count shows that work is divided, regardless of the speed of the machine (TRUST-2).
 */
export interface CountingClock extends Clock {
  /** Returns how often the monotonic time was read during some work. */
  readingsOf(work: () => Promise<void>): Promise<number>;
}

/** Creates a clock that has the host's time. */
export function countingClock(): CountingClock {
  let readings = 0;
  return {
    now: systemClock.now,
    monotonic: () => {
      readings += 1;
      return systemClock.monotonic();
    },
    after: systemClock.after,
    every: systemClock.every,
    async readingsOf(work) {
      const before = readings;
      await work();
      return readings - before;
    },
  };
}
