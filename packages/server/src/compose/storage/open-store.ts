import type { ResourceDef } from '@wheelhouse/kinds';
import { loadEmbeddedStore, loadMemoryStore, startCompactor } from '@wheelhouse/store';
import type { ServerConfig } from '../flags/config.ts';
import type { OpenedStore } from './opened-store.ts';
import { boundedCheck } from './store-check.ts';

/** How long a disk may take to show that it can be written. */
const spaceTimeoutMs = 2000;

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
  const { store, space } = await openOwnStore(config, chosen);
  return {
    store,
    ...(space && { space }),
    startCompactor: () => startCompactor({ store, clock, logger, intervalMs }),
    close: () => store.close(),
  };
}

async function openOwnStore(
  { clock, logger, embedding }: ServerConfig,
  chosen: Exclude<ServerConfig['store'], { readonly type: 'etcd' }>,
): Promise<Pick<OpenedStore, 'store' | 'space'>> {
  if (chosen.type === 'memory') {
    const { createMemoryStore } = await loadMemoryStore();
    const store = createMemoryStore({ clock });
    embedding?.onStore?.(store);
    return { store };
  }
  const { openEmbeddedStore } = await loadEmbeddedStore();
  const { directory, quotaBytes } = chosen;
  const store = await openEmbeddedStore({
    directory,
    clock,
    logger,
    ...(quotaBytes !== undefined && { quotaBytes }),
  });
  const ping = () => store.checkWritable();
  const words = 'the store takes no new data';
  const check = boundedCheck({ ping, clock, timeoutMs: spaceTimeoutMs, words });
  return { store, space: { check, alarms: () => store.alarms } };
}
