import type { ResourceDef } from '../catalogue/resource-def.ts';
import { type Compactor, startCompactor } from '../storage/compactor.ts';
import type { Store } from '../storage/contract.ts';
import type { ServerConfig } from './config.ts';
import type { SharedStore } from './etcd.ts';

/** The store of a server, and what goes with it. */
export interface OpenedStore {
  readonly store: Store;
  /** Starts to forget history at the retention. */
  startCompactor(): Compactor;
  /** What several servers on one store need; absent where there can be but one. */
  readonly shared?: SharedStore;
}

/** Opens the configured store for objects of the kinds; its module is loaded only then. */
export async function openStore(
  config: ServerConfig,
  kinds: readonly ResourceDef[],
): Promise<OpenedStore> {
  const { store: chosen, clock, logger, compactionIntervalMs: intervalMs } = config;
  if (chosen.type === 'etcd') {
    const { openSharedStore } = await import('./etcd.ts');
    return openSharedStore(config, chosen, kinds);
  }
  const store = await openOwnStore(config, chosen);
  return { store, startCompactor: () => startCompactor({ store, clock, logger, intervalMs }) };
}

async function openOwnStore(
  { clock, logger }: ServerConfig,
  chosen: Exclude<ServerConfig['store'], { readonly type: 'etcd' }>,
): Promise<Store> {
  if (chosen.type === 'memory') {
    const { createMemoryStore } = await import('../storage/memory/memory-store.ts');
    return createMemoryStore({ clock });
  }
  const { openEmbeddedStore } = await import('../storage/embedded/embedded-store.ts');
  return openEmbeddedStore({ directory: chosen.directory, clock, logger });
}
