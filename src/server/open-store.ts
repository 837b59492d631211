import type { ResourceDef } from '../catalogue/resource-def.ts';
import { startCompactor } from '../storage/compactor.ts';
import type { Store } from '../storage/contract.ts';
import type { ServerConfig } from './config.ts';
import type { OpenedStore } from './opened-store.ts';

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
  return {
    store,
    startCompactor: () => startCompactor({ store, clock, logger, intervalMs }),
    close: () => store.close(),
  };
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
