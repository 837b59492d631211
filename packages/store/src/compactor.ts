import { type Clock, type Logger, silentLogger, type Timer } from '@wheelhouse/machinery';
import type { Revision, Store } from './contract.ts';

/** Periodic compaction of a store. */
export interface Compactor {
  stop(): void;
  /** Settles when the current round, if any, has ended. */
  idle(): Promise<void>;
}

/**
 * Compacts the store periodically (STORE-4): every `intervalMs`, to the revision of one interval
 * before, so that it retains between one and two intervals of history. 0 disables compaction. A
 * failed round is logged; the next one tries again.
 */
export function startCompactor(options: {
  readonly store: Pick<Store, 'currentRevision' | 'compact'>;
  readonly clock: Clock;
  readonly intervalMs: number;
  readonly logger?: Logger;
}): Compactor {
  const { store } = options;
  let previousNewest: Revision | undefined;
  return startRounds({
    ...options,
    what: 'the store',
    first: 'at once',
    async compact() {
      const newest = await store.currentRevision();
      if (previousNewest !== undefined && previousNewest > 0) await store.compact(previousNewest);
      previousNewest = newest;
    },
  });
}

/**
 * Compacts every `intervalMs`, never twice at once; 0 disables it. A failed round is logged; the
 * next one tries again.
 */
export function startRounds(options: {
  readonly compact: () => Promise<void>;
  /** What is compacted, for the log. */
  readonly what: string;
  readonly first: 'at once' | 'after an interval';
  readonly clock: Clock;
  readonly intervalMs: number;
  readonly logger?: Logger | undefined;
}): Compactor {
  const { compact, what, first, clock, intervalMs, logger = silentLogger } = options;
  if (intervalMs <= 0) return { stop: () => {}, idle: async () => {} };
  let round: Promise<void> | undefined;
  const tick = () => {
    round ??= compact()
      .catch((error: unknown) => logger.warn(`cannot compact ${what}`, { error: String(error) }))
      .finally(() => {
        round = undefined;
      });
  };
  if (first === 'at once') tick();
  const timer: Timer = clock.every(intervalMs, tick);
  return { stop: () => timer.stop(), idle: async () => round };
}
