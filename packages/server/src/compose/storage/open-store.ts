import { dirname } from 'node:path';
import { builtinKinds, loadOlderReleases, type ResourceDef } from '@wheelhouse/kinds';
import {
  badRequest,
  type DialectName,
  dialectNames,
  dialectOf,
  type MetricRegistry,
} from '@wheelhouse/machinery';
import {
  loadBackupWriter,
  loadEmbeddedStore,
  loadMemoryStore,
  type Store,
  startCompactor,
} from '@wheelhouse/store';
import type { Registry } from '../../registry/registry.ts';
import { encodedStore, storedVersions } from '../../registry/stored-encoding.ts';

import type { ServerConfig } from '../config.ts';
import type { Base } from '../context.ts';
import type { Health } from '../health/health.ts';
import { rangeAllocation } from '../service-network/range-allocations.ts';
import { boundedCheck, type OpenedStore } from './opened-store.ts';

/**
 * What gives backups of a running server (STORE-5), as its store has the values: sealed, where they
 * are encrypted. Throws 400 where objects are in etcd.
 */
export function onlineBackup(
  config: ServerConfig,
  store: Store,
): () => Promise<AsyncIterable<Buffer>> {
  return async () => {
    if (config.store.type === 'etcd') {
      throw badRequest(
        'the objects of this server are in etcd: back it up with etcdctl snapshot save',
      );
    }
    const { writeBackup } = await loadBackupWriter();
    return writeBackup(await store.snapshot(), { nowMs: config.clock.now() });
  };
}

/**
 * The store with objects in the encodings that the configuration names, above encryption, and in the
 * versions that are stored now.
 */
async function encodedObjects<Opened extends OpenedStore & Pick<Registry, 'isStale'>>(
  opened: Opened,
  { config, kinds }: { readonly config: ServerConfig; readonly kinds: readonly ResourceDef[] },
): Promise<Opened & Pick<Registry, 'encodeAhead'>> {
  const isShared = config.store.type === 'etcd';
  const dialect = dialectOf(config.dialect);
  const { kindsOfAllReleases } = await loadOlderReleases();
  const everyRelease = () => kindsOfAllReleases(builtinKinds(dialect), dialect);
  const encoded = encodedStore({
    store: opened.store,
    dialect,
    encodings: {
      builtin: config.storedBuiltins ?? (isShared ? 'protobuf' : 'json'),
      custom: config.cborServed === true ? 'cbor' : 'json',
    },
    versions: storedVersions({ kinds: [...kinds, rangeAllocation(dialect)], everyRelease }),
    writers: isShared ? 'any' : 'this',
  });
  const isStale = async (key: string) =>
    (await opened.isStale?.(key)) === true || encoded.isStale(key);
  return { ...opened, store: encoded.store, isStale, encodeAhead: encoded.encodeAhead };
}

/**
 * Opens the configured store: encrypted, where that is asked for, with objects in the encodings and
 * versions that are stored now. Rejects when it is locked or damaged; then nothing is left open.
 */
export async function openStorage(
  options: Base & { readonly kinds: readonly ResourceDef[]; readonly health: Health },
): Promise<OpenedStore & Pick<Registry, 'isStale' | 'encodeAhead'>> {
  const { config, kinds, metrics } = options;
  const opened = await openStore(config, kinds);
  const sealed = await sealedStore(opened, { ...options, registry: metrics.registry });
  return encodedObjects(sealed, { config, kinds });
}

/** The store with its values encrypted, where that is asked for; loaded only then (STORE-3). */
async function sealedStore(
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
  const { openEncryption } = await import('../encryption/encryption.ts');
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

/** How long a disk may take to show that it can be written. */
const spaceTimeoutMs = 2000;

/** Opens the configured store for objects of the kinds; its module is loaded only then. */
async function openStore(
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

/**
 * Refuses objects that a server of another dialect has stored, none of which could be decoded.
 * Throws an error of one line.
 */
async function refuseOtherDialect(
  store: Pick<Store, 'get'>,
  { dialect, directory }: { readonly dialect: DialectName; readonly directory: string },
): Promise<void> {
  // Every server makes its system namespace, at this key in the embedded store.
  const hasStarted = async (name: DialectName) => {
    const namespace = dialectOf(name).systemNamespace('system');
    return (await store.get(`/registry/namespaces/${namespace}`)) !== undefined;
  };
  if (await hasStarted(dialect)) return;
  for (const other of dialectNames) {
    if (!(await hasStarted(other))) continue;
    throw new Error(
      `data directory ${dirname(directory)} holds objects of --dialect=${other}: start with it, or give another --data-dir`,
    );
  }
}

async function openOwnStore(
  { clock, logger, embedding, dialect }: ServerConfig,
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
  await refuseOtherDialect(store, { dialect, directory }).catch(async (error: unknown) => {
    await store.close();
    throw error;
  });
  const ping = () => store.checkWritable();
  const words = 'the store takes no new data';
  const check = boundedCheck({ ping, clock, timeoutMs: spaceTimeoutMs, words });
  return { store, space: { check, alarms: () => store.alarms } };
}
