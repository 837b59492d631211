import { type Clock, systemClock } from '@wheelhouse/machinery';

/** A clock with shortened delays, which can be moved forward. */
export interface QuickClock extends Clock {
  /** Advances the time; running timers keep their delay. */
  skip(ms: number): void;
  /** Advances only the wall clock, as an operator or a resumed host does. */
  stepWall(ms: number): void;
  /** The requested delays of timers in milliseconds. */
  readonly waits: number[];
  /** Number of runs of periodic tasks. */
  readonly ticks: number;
}

/**
 * Creates a clock from the host's whose delays are `factor` times shorter than requested. With
 * `monotonic: 'still'`, its monotonic time advances only by `skip`, so that a slow host does not
 * refill limits on rates.
 */
export function quickClock(
  factor: number,
  { monotonic = 'runs' }: { readonly monotonic?: 'runs' | 'still' } = {},
): QuickClock {
  // Whole milliseconds, so that sums of skips meet limits exactly.
  const startMs = Math.floor(systemClock.monotonic());
  let ahead = 0;
  let wallAhead = 0;
  const waits: number[] = [];
  let ticks = 0;
  return {
    waits,
    get ticks() {
      return ticks;
    },
    skip: (ms) => {
      ahead += ms;
    },
    stepWall: (ms) => {
      wallAhead += ms;
    },
    now: () => systemClock.now() + ahead + wallAhead,
    monotonic: () => (monotonic === 'still' ? startMs : systemClock.monotonic()) + ahead,
    after(delayMs, task) {
      waits.push(delayMs);
      return systemClock.after(delayMs / factor, task);
    },
    every: (periodMs, task) =>
      systemClock.every(Math.max(5, periodMs / factor), () => {
        ticks += 1;
        task();
      }),
  };
}
