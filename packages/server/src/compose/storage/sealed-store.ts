import type { ResourceDef } from '@wheelhouse/kinds';
import type { MetricRegistry } from '@wheelhouse/machinery';
import type { Registry } from '../../registry/registry.ts';
import type { ServerConfig } from '../flags/config.ts';
import type { Health } from '../health/health.ts';
import type { OpenedStore } from './opened-store.ts';

/** The store with its values encrypted, where that is asked for; loaded only then (STORE-3). */
export async function sealedStore(
  opened: OpenedStore,
  around: {
    readonly config: ServerConfig;
    readonly kinds: readonly ResourceDef[];
    readonly registry: MetricRegistry;
    readonly health: Health;
  },
): Promise<OpenedStore & Pick<Registry, 'isStale'>> {
  const { encryption } = around.config;
  if (encryption === undefined) return opened;
  const { openEncryption } = await import('./encryption.ts');
  const sealing = openEncryption(encryption, { ...around, store: opened.store });
  const { store, checks, stop } = await sealing.catch(async (error: unknown) => {
    await opened.close();
    throw error;
  });
  for (const check of checks) around.health.addWithoutLivez(check);
  const close = () => {
    stop();
    return opened.close();
  };
  return { ...opened, store, close, isStale: (key) => store.isStale(key) };
}
