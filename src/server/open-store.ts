import type { Store } from '../storage/contract.ts';
import type { ServerConfig } from './config.ts';

/** Opens the configured store; its module is loaded only then. */
export async function openStore(config: ServerConfig): Promise<Store> {
  const { store, clock, logger } = config;
  if (store.type === 'memory') {
    const { createMemoryStore } = await import('../storage/memory/memory-store.ts');
    return createMemoryStore({ clock });
  }
  const { openEmbeddedStore } = await import('../storage/embedded/embedded-store.ts');
  return openEmbeddedStore({ directory: store.directory, clock, logger });
}
