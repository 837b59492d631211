import type { Clock } from '@wheelhouse/machinery';
import type { Revision } from '@wheelhouse/store';
import type { Snapshot } from './window.ts';

const keptMax = 2;
const keptMs = 30_000;

/**
 * Snapshots that only the store still has, for lists at exactly an old revision. Each is a whole
 * load, so one is made at a time, and the last few are kept for the list's next chunks.
 */
export class HistoricSnapshots {
  readonly #load: (revision: Revision) => Promise<Snapshot>;
  readonly #clock: Clock;
  readonly #keptMs: number;
  readonly #kept = new Map<Revision, Promise<Snapshot>>();
  #last: Promise<unknown> = Promise.resolve();

  /** @param options.historyMs a snapshot is not kept longer than the store keeps history (LIST-6) */
  constructor(options: {
    clock: Clock;
    historyMs: number;
    load: (revision: Revision) => Promise<Snapshot>;
  }) {
    this.#clock = options.clock;
    this.#keptMs = Math.min(keptMs, options.historyMs);
    this.#load = options.load;
  }

  /** Rejects with the store's error when the revision is gone. */
  at(revision: Revision): Promise<Snapshot> {
    const cached = this.#kept.get(revision);
    if (cached !== undefined) return cached;
    const loading = this.#last.then(() => this.#load(revision));
    this.#last = loading.catch(() => {});
    this.#kept.set(revision, loading);
    const drop = () => {
      if (this.#kept.get(revision) === loading) this.#kept.delete(revision);
    };
    loading.catch(drop);
    this.#clock.after(this.#keptMs, drop);
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= keptMax) break;
      this.#kept.delete(oldest);
    }
    return loading;
  }
}
