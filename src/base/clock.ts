/** A timer that can be stopped; stopping twice is harmless. */
export interface Timer {
  stop(): void;
}

/**
 * The only source of time. Everything that waits or stamps takes one, so that a test can drive it.
 * `now` is wall time in milliseconds since the epoch, with sub-millisecond fraction where the host
 * has it; `monotonic` only ever grows and is for durations.
 */
export interface Clock {
  now(): number;
  monotonic(): number;
  /** Runs `task` once after `delayMs`; never keeps the process alive on its own. */
  after(delayMs: number, task: () => void): Timer;
  /** Runs `task` every `periodMs` until stopped; never keeps the process alive on its own. */
  every(periodMs: number, task: () => void): Timer;
}

/** The host's clock. */
export const systemClock: Clock = {
  now: () => performance.timeOrigin + performance.now(),
  monotonic: () => performance.now(),
  after(delayMs, task) {
    const handle = setTimeout(task, delayMs).unref();
    return { stop: () => clearTimeout(handle) };
  },
  every(periodMs, task) {
    const handle = setInterval(task, periodMs).unref();
    return { stop: () => clearInterval(handle) };
  },
};

/** As `systemClock`, for a program that does nothing but wait: what it waits for keeps it alive. */
export const programClock: Clock = {
  ...systemClock,
  after(delayMs, task) {
    const handle = setTimeout(task, delayMs);
    return { stop: () => clearTimeout(handle) };
  },
};

interface Scheduled {
  readonly task: () => void;
  readonly periodMs: number | undefined;
  due: number;
}

/** A clock that stands still until a test moves it; due tasks run in order of time, then of scheduling. */
export class FakeClock implements Clock {
  #now: number;
  readonly #start: number;
  readonly #scheduled = new Set<Scheduled>();

  /** @param startMs wall time at which the clock starts, milliseconds since the epoch */
  constructor(startMs = Date.UTC(2030, 0, 1)) {
    this.#now = startMs;
    this.#start = startMs;
  }

  now(): number {
    return this.#now;
  }

  monotonic(): number {
    return this.#now - this.#start;
  }

  after(delayMs: number, task: () => void): Timer {
    return this.#schedule({ task, periodMs: undefined, due: this.#now + delayMs });
  }

  every(periodMs: number, task: () => void): Timer {
    return this.#schedule({ task, periodMs, due: this.#now + periodMs });
  }

  /** Moves time forward by `byMs`, running what falls due on the way. */
  advance(byMs: number): void {
    const end = this.#now + byMs;
    for (let next = this.#next(end); next !== undefined; next = this.#next(end)) {
      this.#now = next.due;
      if (next.periodMs === undefined) this.#scheduled.delete(next);
      else next.due += next.periodMs;
      next.task();
    }
    this.#now = end;
  }

  #next(end: number): Scheduled | undefined {
    let first: Scheduled | undefined;
    for (const candidate of this.#scheduled) {
      if (candidate.due <= end && (first === undefined || candidate.due < first.due))
        first = candidate;
    }
    return first;
  }

  #schedule(entry: Scheduled): Timer {
    this.#scheduled.add(entry);
    return { stop: () => this.#scheduled.delete(entry) };
  }
}

/**
 * Keeps the process alive until the function it gives is called: clocks' timers do not, so that a
 * start that waits for a store to be there has nothing else.
 */
export function holdProcess(): () => void {
  const handle = setInterval(() => {}, 60_000);
  return () => clearInterval(handle);
}
