import { type Clock, type Logger, silentLogger, type Timer } from '@wheelhouse/machinery';
import type { Revision, Store } from './contract.ts';

export interface Compactor {
  stop(): void;
  /** Settles when the round under way, if any, is over. */
  idle(): Promise<void>;
}

/**
 * Forgets history at the retention (STORE-4): every `intervalMs` the store is compacted to the
 * revision it had one interval before, so that between one and two intervals of history are kept.
 * 0 disables. A failed round is logged and the next one tries again.
 */
export function startCompactor(options: {
  readonly store: Pick<Store, 'currentRevision' | 'compact'>;
  readonly clock: Clock;
  readonly intervalMs: number;
  readonly logger?: Logger;
}): Compactor {
  const { store, clock, intervalMs, logger = silentLogger } = options;
  if (intervalMs <= 0) return { stop: () => {}, idle: async () => {} };
  let remembered: Revision | undefined;
  let round: Promise<void> | undefined;

  async function compact(): Promise<void> {
    try {
      const newest = await store.currentRevision();
      if (remembered !== undefined && remembered > 0) await store.compact(remembered);
      remembered = newest;
    } catch (error) {
      logger.warn('Compacting the store failed', { error: String(error) });
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
