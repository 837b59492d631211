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
import { rangeAllocation } from '../../controllers/services/range-allocations.ts';
import { boundedCheck, type Health } from '../../observe/health.ts';
import type { Registry } from '../../registry/registry.ts';
import { encodedStore, storedVersions } from '../../registry/stored-encoding.ts';
import type { ServerConfig } from '../config.ts';
import type { Base } from '../context.ts';
import type { OpenedStore } from './etcd.ts';

/**
 * Creates backups of a running server (STORE-5) with values as stored: encrypted ones stay
 * encrypted. Throws 400 if objects are in etcd.
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
 * The store, which decrypts values and converts objects to the configured encodings and versions.
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
    clock: config.clock,
  });
  const isStale = async (key: string) =>
    (await opened.isStale?.(key)) === true || encoded.isStale(key);
  return { ...opened, store: encoded.store, isStale, encodeAhead: encoded.encodeAhead };
}

/**
 * Opens the configured store, with encryption if configured, and with objects in the current
 * encodings and versions. Rejects when it is locked or damaged; then nothing is left open.
 */
export async function openStorage(
  options: Base & { readonly kinds: readonly ResourceDef[]; readonly health: Health },
): Promise<OpenedStore & Pick<Registry, 'isStale' | 'encodeAhead'>> {
  const { config, kinds, metrics } = options;
  const opened = await openStore(config, kinds);
  const encrypted = await withEncryption(opened, { ...options, registry: metrics.registry });
  return encodedObjects(encrypted, { config, kinds });
}

/** Adds encryption at rest if configured; loads its code only then (STORE-3). */
async function withEncryption(
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
  const { store: plain, outerKey: contextOf } = opened;
  const sealing = openEncryption(encryption, { ...around, store: plain, contextOf });
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

/** Maximum time of a check that the disk is writable. */
const spaceTimeoutMs = 2000;

/** Opens the configured store for the kinds; loads only its module. */
async function openStore(
  config: ServerConfig,
  kinds: readonly ResourceDef[],
): Promise<OpenedStore> {
  const { store: storeSettings, clock, logger, compactionIntervalMs: intervalMs } = config;
  if (storeSettings.type === 'etcd') {
    const { openSharedStore } = await import('./etcd.ts');
    return openSharedStore(config, storeSettings, kinds);
  }
  const { store, space } = await openOwnStore(config, storeSettings);
  return {
    store,
    ...(space && { space }),
    startCompactor: () => startCompactor({ store, clock, logger, intervalMs }),
    close: () => store.close(),
  };
}

/**
 * Throws a one-line error if a store was written in another dialect, since its objects cannot be
 * decoded.
 */
async function requireDialect(
  store: Pick<Store, 'get'>,
  { dialect, directory }: { readonly dialect: DialectName; readonly directory: string },
): Promise<void> {
  // Every server creates its system namespace, at this key in the embedded store.
  const hasStarted = async (name: DialectName) => {
    const namespace = dialectOf(name).systemNamespace('system');
    return (await store.get(`/registry/namespaces/${namespace}`)) !== undefined;
  };
  if (await hasStarted(dialect)) return;
  for (const otherDialect of dialectNames) {
    if (!(await hasStarted(otherDialect))) continue;
    throw new Error(
      `data directory ${dirname(directory)} contains objects of --dialect=${otherDialect}: use that dialect or another --data-dir`,
    );
  }
}

async function openOwnStore(
  { clock, logger, embedding, dialect }: ServerConfig,
  storeSettings: Exclude<ServerConfig['store'], { readonly type: 'etcd' }>,
): Promise<Pick<OpenedStore, 'store' | 'space'>> {
  if (storeSettings.type === 'memory') {
    const { createMemoryStore } = await loadMemoryStore();
    const store = createMemoryStore();
    embedding?.onStore?.(store);
    return { store };
  }
  const { openEmbeddedStore } = await loadEmbeddedStore();
  const { directory, quotaBytes } = storeSettings;
  const store = await openEmbeddedStore({
    directory,
    clock,
    logger,
    ...(quotaBytes !== undefined && { quotaBytes }),
  });
  await requireDialect(store, { dialect, directory }).catch(async (error: unknown) => {
    await store.close();
    throw error;
  });
  const ping = () => store.checkWritable();
  const errorPrefix = 'the store takes no new data';
  const check = boundedCheck({ ping, clock, timeoutMs: spaceTimeoutMs, errorPrefix });
  return { store, space: { check, alarms: () => store.alarms } };
}
