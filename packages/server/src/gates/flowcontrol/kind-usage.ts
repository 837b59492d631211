import type { Histogram, MetricRegistry } from '@wheelhouse/machinery';
import { isReadOnly } from './contract.ts';

/** Counts above this are measured as this. */
const countMax = 4095;
const buckets = [0, 0.001, 0.01, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1];

/** How long there were how many requests. A change costs an addition; looking costs more. */
class TimeAtCounts {
  /** By count: milliseconds since the last look. */
  readonly #times: number[] = [0];
  #count = 0;
  #sinceMs: number;

  constructor(nowMs: number) {
    this.#sinceMs = nowMs;
  }

  change(by: number, nowMs: number): void {
    const at = Math.min(this.#count, countMax);
    this.#times[at] = (this.#times[at] ?? 0) + Math.max(0, nowMs - this.#sinceMs);
    this.#sinceMs = nowMs;
    this.#count += by;
    while (this.#times.length <= Math.min(this.#count, countMax)) this.#times.push(0);
  }

  /** Observes the time at each count, in nanoseconds, as a part of `limit`. */
  moveTo(histogram: Histogram, limit: number): void {
    for (const [count, timeMs] of this.#times.entries()) {
      if (timeMs === 0) continue;
      histogram.observe(count / Math.max(1, limit), Math.round(timeMs * 1e6));
      this.#times[count] = 0;
    }
  }
}

interface Limits {
  readonly readOnly: number;
  readonly mutating: number;
  /** Requests that all queues hold together. */
  readonly waiting: number;
}

/** Measures how many requests run and wait, reads and writes apart. Times are monotonic. */
export class KindUsage {
  readonly #executing: { readonly readOnly: TimeAtCounts; readonly mutating: TimeAtCounts };
  readonly #waiting: { readonly readOnly: TimeAtCounts; readonly mutating: TimeAtCounts };

  constructor(nowMs: number) {
    const pair = () => ({
      readOnly: new TimeAtCounts(nowMs),
      mutating: new TimeAtCounts(nowMs),
    });
    this.#executing = pair();
    this.#waiting = pair();
  }

  executing(verb: string, by: 1 | -1, nowMs: number): void {
    const { readOnly, mutating } = this.#executing;
    (isReadOnly(verb) ? readOnly : mutating).change(by, nowMs);
  }

  waiting(verb: string, by: 1 | -1, nowMs: number): void {
    const { readOnly, mutating } = this.#waiting;
    (isReadOnly(verb) ? readOnly : mutating).change(by, nowMs);
  }

  /** Registers the metric; the function brings it up to date (OPS-1). */
  measureIn(registry: MetricRegistry): (nowMs: number, limits: Limits) => void {
    const family = registry.histogram({
      name: 'apiserver_flowcontrol_read_vs_write_current_requests',
      help: 'At each nanosecond, requests that run or wait, as a part of the limit of their kind.',
      stability: 'ALPHA',
      shownStability: 'left-out',
      labels: ['phase', 'request_kind'],
      buckets,
    });
    return (nowMs, limits) => {
      for (const kind of ['readOnly', 'mutating'] as const) {
        const show = (phase: string, times: TimeAtCounts, limit: number) => {
          times.change(0, nowMs);
          times.moveTo(family.of(phase, kind), limit);
        };
        show('executing', this.#executing[kind], limits[kind]);
        show('waiting', this.#waiting[kind], limits.waiting);
      }
    };
  }
}
