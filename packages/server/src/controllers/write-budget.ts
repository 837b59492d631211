import type { Clock } from '@wheelhouse/machinery';

const periodMs = 60_000;
/** Writes of one object in a period. */
const writesMax = 6;

/**
 * Bounds how often an object is put right. Two servers that disagree about it (of two releases, say)
 * would otherwise write it against each other as fast as they can.
 */
export class WriteBudget {
  readonly #clock: Clock;
  /** When each object was written in the last period, oldest first. */
  readonly #writes = new Map<string, number[]>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Takes one write; else gives how long to wait until there is one again, ms. */
  take(key: string): number | undefined {
    const nowMs = this.#clock.monotonic();
    const recent = (this.#writes.get(key) ?? []).filter((atMs) => nowMs - atMs < periodMs);
    this.#writes.set(key, recent);
    const [oldest] = recent;
    if (oldest !== undefined && recent.length >= writesMax) return oldest + periodMs - nowMs;
    recent.push(nowMs);
    return undefined;
  }

  /** An object that is gone need not be remembered. */
  forget(key: string): void {
    this.#writes.delete(key);
  }
}
