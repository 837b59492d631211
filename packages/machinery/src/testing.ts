/** Additional exports for tests, benchmarks, and the siege. Not stable. */

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Clock, Timer } from './base/clock.ts';

export { type Host, replaceHost } from './base/host.ts';

let collect: (() => void) | undefined;

/** Collects all garbage at once, so that a test can see what is alive. */
export function collectGarbage(): void {
  if (collect === undefined) {
    setFlagsFromString('--expose-gc');
    collect = runInNewContext('gc') as () => void;
  }
  collect();
}

interface Scheduled {
  readonly task: () => void;
  readonly periodMs: number | undefined;
  due: number;
}

/**
 * A clock that a test advances explicitly. Due tasks run in order of time, then of
 * scheduling.
 */
export class FakeClock implements Clock {
  #monotonic = 0;
  #wallOffset: number;
  readonly #scheduled = new Set<Scheduled>();

  /** @param startMs wall time at which the clock starts, milliseconds since the epoch */
  constructor(startMs = Date.UTC(2030, 0, 1)) {
    this.#wallOffset = startMs;
  }

  now(): number {
    return this.#wallOffset + this.#monotonic;
  }

  monotonic(): number {
    return this.#monotonic;
  }

  after(delayMs: number, task: () => void): Timer {
    return this.#schedule({ task, periodMs: undefined, due: this.#monotonic + delayMs });
  }

  every(periodMs: number, task: () => void): Timer {
    return this.#schedule({ task, periodMs, due: this.#monotonic + periodMs });
  }

  /** Moves time forward by `byMs` and runs the tasks that become due. */
  advance(byMs: number): void {
    const end = this.#monotonic + byMs;
    for (let next = this.#next(end); next !== undefined; next = this.#next(end)) {
      this.#monotonic = next.due;
      if (next.periodMs === undefined) this.#scheduled.delete(next);
      else next.due += next.periodMs;
      next.task();
    }
    this.#monotonic = end;
  }

  /** Changes only the wall time, by `byMs` (which may be negative); timers are not affected. */
  stepWall(byMs: number): void {
    this.#wallOffset += byMs;
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
