import { type Clock, systemClock } from '@wheelhouse/machinery';

/** A clock on which waits are short, and which can be moved ahead. */
export interface QuickClock extends Clock {
  /** Moves what the clock shows; waits under way are as long as they were. */
  skip(ms: number): void;
  /** Sets the wall clock alone, as an operator or a host that resumes does. */
  stepWall(ms: number): void;
  /** The waits asked for, in milliseconds, as they were asked for. */
  readonly waits: number[];
  /** How often periodic tasks have run. */
  readonly ticks: number;
}

/** Makes a clock of the host's, waits being `factor` times shorter than asked for. */
export function quickClock(factor: number): QuickClock {
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
    monotonic: () => systemClock.monotonic() + ahead,
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
