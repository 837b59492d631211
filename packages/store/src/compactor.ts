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
  const { store, clock, intervalMs, logger = silentLogger } = options;
  if (intervalMs <= 0) return { stop: () => {}, idle: async () => {} };
  let previousNewest: Revision | undefined;
  let round: Promise<void> | undefined;

  async function compact(): Promise<void> {
    try {
      const newest = await store.currentRevision();
      if (previousNewest !== undefined && previousNewest > 0) await store.compact(previousNewest);
      previousNewest = newest;
    } catch (error) {
      logger.warn('cannot compact the store', { error: String(error) });
    }
  }

  function tick(): void {
    if (round !== undefined) return;
    round = compact().finally(() => {
      round = undefined;
    });
  }

  tick();
  const timer: Timer = clock.every(intervalMs, tick);
  return { stop: () => timer.stop(), idle: async () => round };
}
