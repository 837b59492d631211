import type { ResourceDef } from '@wheelhouse/kinds';
import {
  aggregateText,
  type Clock,
  dialectOf,
  errorText,
  type MetricRegistry,
  pause,
} from '@wheelhouse/machinery';
import {
  type ChooseTransformer,
  chooseTransformers,
  type EncryptedStore,
  encryptedStore,
  type KmsProviders,
  loadEncryptionConfiguration,
  openKmsProviders,
  type Store,
  type TransformationObserver,
} from '@wheelhouse/store';
import { rangeKeys } from '../../controllers/services/range-allocations.ts';
import {
  createReloadMetrics,
  followFile,
  type ReloadOutcome,
  readConfigurationFile,
} from '../../files/followed-files.ts';
import { defaultGates } from '../../flags/feature-gates.ts';
import type { HealthCheck } from '../../observe/health.ts';
import { createKmsMeter } from '../../observe/kms-metrics.ts';
import { keyTypes } from '../../observe/store-metrics.ts';
import type { ServerConfig } from '../config.ts';

/** A store with encrypted values, and its configuration file. */
interface OpenEncryption {
  readonly store: EncryptedStore;
  /** Health of the KMS plugins, for healthz and readyz. */
  readonly checks: readonly HealthCheck[];
  /** Stops following the file and disconnects the plugins; the underlying store stays open. */
  stop(): void;
}

interface Around {
  readonly config: ServerConfig;
  readonly store: Store;
  /** The text to which a value is bound: its key in etcd, like that of kube-apiserver. */
  readonly contextOf: ((key: string) => string) | undefined;
  readonly kinds: readonly ResourceDef[];
  readonly registry: MetricRegistry;
}

/** A configuration in use. */
interface Loaded {
  readonly choose: ChooseTransformer;
  readonly kms: KmsProviders;
}

/**
 * Encrypts values in the store according to the file (STORE-3), and follows the file if configured.
 * Rejects with a one-line error without secrets when the file is unusable.
 */
export async function openEncryption(
  { file, reload }: NonNullable<ServerConfig['encryption']>,
  { config, store, contextOf, kinds, registry }: Around,
): Promise<OpenEncryption> {
  const read = createReader({ config, registry, reload, onRecovered: () => retry() });
  const text = await parsing(file, () => readConfigurationFile(file));
  const first = await read(text, file);
  const typeOf = keyTypes(kinds);
  // kube-apiserver never encrypts the bitmaps of allocated numbers.
  const resourceOf = (key: string) => (key.startsWith(rangeKeys) ? undefined : typeOf(key));
  const encrypted = encryptedStore(store, { resourceOf, contextOf, choose: first.choose });
  let current = first;
  const retry = () => encrypted.change(current.choose);
  const checks = kmsChecks(() => current.kms, { reload });
  if (reload === 'off') return { store: encrypted, checks, stop: () => first.kms.close() };
  const { clock } = config;
  /**
   * Plugins of the configuration in use, of a new one under test, and of old ones in their grace
   * period.
   */
  const connected = new Set([first.kms]);
  const disconnect = (kms: KmsProviders) => {
    connected.delete(kms);
    kms.close();
  };
  const stopping = new AbortController();
  const load = async (changed: string) => {
    const next = await read(changed, file);
    connected.add(next.kms);
    try {
      await becomeHealthy(next.kms, { clock, signal: stopping.signal });
    } catch (error) {
      disconnect(next.kms);
      throw error;
    }
    const { kms } = current;
    current = next;
    encrypted.change(next.choose);
    clock.after(kms.graceMs, () => disconnect(kms));
  };
  const followed = followFile({
    file,
    text,
    clock,
    load,
    observe: reloadObserver(registry, { config, file }),
    isTemporary: (error) => error instanceof UnhealthyProviders,
  });
  const stop = () => {
    followed.stop();
    stopping.abort();
    for (const kms of connected) kms.close();
  };
  return { store: encrypted, checks: [...checks, reloadHook], stop };
}

/** Reports the follower among the checks; passes once it runs. */
const reloadHook: HealthCheck = {
  name: 'poststarthook/start-encryption-provider-config-automatic-reload',
  run: () => {},
};

/** Runs work and names the file in its errors. */
async function parsing<T>(file: string, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw new Error(`error while parsing file: ${file}: ${errorText(error)}`);
  }
}

/** Returns a function that reads a configuration and connects to its KMS plugins. */
function createReader(options: {
  readonly config: ServerConfig;
  readonly registry: MetricRegistry;
  readonly reload: 'automatic' | 'off';
  readonly onRecovered: () => void;
}): (text: string, file: string) => Promise<Loaded> {
  const { config, registry, reload, onRecovered } = options;
  const { clock, logger } = config;
  const dialect = dialectOf(config.dialect);
  const observerOf = createObservers(registry, config);
  const meter = createKmsMeter(registry, { clock, dialect });
  const v1 = (config.featureGates ?? defaultGates).enabled('KMSv1') ? 'allowed' : 'refused';
  const onFailed = (provider: string, error: unknown) =>
    logger.error('a KMS plugin failed its health check', {
      name: provider,
      error: errorText(error),
    });
  return async (text, file) => {
    const rules = await parsing(file, () => loadEncryptionConfiguration(text, { dialect, reload }));
    try {
      const kms = await openKmsProviders(rules, { clock, meter, onFailed, onRecovered, v1 });
      return { choose: chooseTransformers(rules, { observerOf, kms: kms.of, clock }), kms };
    } catch (error) {
      throw new Error(`error while building transformers: ${errorText(error)}`);
    }
  };
}

/**
 * One check for all plugins if the file is followed or all speak v2; otherwise one for each plugin.
 */
function kmsChecks(
  current: () => KmsProviders,
  { reload }: { readonly reload: 'automatic' | 'off' },
): readonly HealthCheck[] {
  const { checks, versions } = current();
  if (reload === 'automatic' || (versions.has('v2') && !versions.has('v1'))) {
    return [{ name: 'kms-providers', run: () => checkAll(current()) }];
  }
  return checks.map((run, index) => ({ name: `kms-provider-${index}`, run }));
}

async function checkAll({ checks }: KmsProviders): Promise<void> {
  const outcomes = await Promise.allSettled(checks.map((check) => check()));
  const problems = outcomes.flatMap((outcome, index) =>
    outcome.status === 'rejected' ? [`kms-provider-${index}: ${errorText(outcome.reason)}`] : [],
  );
  if (problems.length > 0) throw new Error(aggregateText(problems));
}

/** A new configuration is refused for now because its plugins are unhealthy. */
class UnhealthyProviders extends Error {}

/** Interval and grace period of checks on a new configuration's plugins. */
const newProviders = { everyMs: 100, graceMs: 10_000 };

/** Resolves when all plugins are healthy. Rejects on timeout and when the signal aborts. */
async function becomeHealthy(
  kms: KmsProviders,
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<void> {
  const deadlineMs = clock.monotonic() + Math.max(newProviders.graceMs, kms.graceMs);
  for (;;) {
    const error = await checkAll(kms).then(
      () => undefined,
      (reason: unknown) => reason,
    );
    signal.throwIfAborted();
    if (error === undefined) return;
    if (clock.monotonic() >= deadlineMs) {
      const why = `health check for new transformers failed: ${errorText(error)}`;
      throw new UnhealthyProviders(why);
    }
    await pause(clock, { ms: newProviders.everyMs, signal, where: 'store' });
  }
}

function reloadObserver(
  registry: MetricRegistry,
  { config, file }: { readonly config: ServerConfig; readonly file: string },
): (outcome: ReloadOutcome) => void {
  const { clock, logger } = config;
  const reloads = createReloadMetrics(registry, {
    controller: 'encryption_config_controller',
    former: '1.30',
    what: 'encryption configuration',
    clock,
    dialect: dialectOf(config.dialect),
  });
  return (outcome) => {
    reloads(outcome.status);
    if (outcome.status === 'success') logger.info('the encryption keys have changed');
    else {
      const error = errorText(outcome.error);
      logger.error('cannot reload the encryption configuration', { file, error });
    }
  };
}

/** kube-apiserver's buckets: from 5 µs, doubling. */
const durationBuckets = Array.from({ length: 25 }, (_, index) => 5e-6 * 2 ** index);

function createObservers(
  registry: MetricRegistry,
  { clock }: ServerConfig,
): (resource: string) => TransformationObserver {
  const stability = 'ALPHA';
  const durations = registry.histogram({
    name: 'apiserver_storage_transformation_duration_seconds',
    help: 'Latencies in seconds of value transformation operations.',
    stability,
    labels: ['transformation_type', 'transformer_prefix'],
    buckets: durationBuckets,
  });
  const operations = registry.counter({
    name: 'apiserver_storage_transformation_operations_total',
    help: "Total number of transformations. Successful transformation will have a status 'OK' and a varied status string when the transformation fails.",
    stability,
    labels: ['resource', 'transformation_type', 'transformer_prefix', 'status'],
  });
  const now = () => clock.monotonic();
  return (resource) => ({
    now,
    observe({ type, prefix, durationMs, status }) {
      operations.of(resource, type, prefix, status).add(1);
      if (status === 'OK') durations.of(type, prefix).observe(durationMs / 1000);
    },
  });
}
