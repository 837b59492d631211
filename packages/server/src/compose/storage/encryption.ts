import type { ResourceDef } from '@wheelhouse/kinds';
import { dialectOf, type MetricRegistry } from '@wheelhouse/machinery';
import {
  type ChooseTransformer,
  chooseTransformers,
  type EncryptedStore,
  encryptedStore,
  loadEncryptionConfiguration,
  type Observed,
  type Store,
} from '@wheelhouse/store';
import { createReloadMetrics } from '../certificates/reload-metrics.ts';
import { followFile, readConfigurationFile } from '../certificates/reloaded-file.ts';
import type { ServerConfig } from '../flags/config.ts';
import { keyTypes } from './store-metrics.ts';

/** A store whose values are encrypted, and the file that says how. */
export interface OpenEncryption {
  readonly store: EncryptedStore;
  /** Follows the file no more; the store below stays open. */
  stop(): void;
}

interface Around {
  readonly config: ServerConfig;
  readonly store: Store;
  readonly kinds: readonly ResourceDef[];
  readonly registry: MetricRegistry;
}

/**
 * Encrypts what goes into the store as the file says (STORE-3), and follows the file where that is
 * asked for. Rejects in one line, without any secret, when the file cannot be used.
 */
export async function openEncryption(
  { file, reload }: NonNullable<ServerConfig['encryption']>,
  { config, store, kinds, registry }: Around,
): Promise<OpenEncryption> {
  const { clock, logger } = config;
  const observed = createObserved(registry, config);
  const read = async (text: string): Promise<ChooseTransformer> => {
    const rules = await loadEncryptionConfiguration(text, dialectOf(config.dialect));
    return chooseTransformers(rules, observed);
  };
  let text: string;
  let choose: ChooseTransformer;
  try {
    text = readConfigurationFile(file);
    choose = await read(text);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(`error while parsing file: ${file}: ${why}`);
  }
  const sealed = encryptedStore(store, { resourceOf: keyTypes(kinds), choose });
  if (reload === 'off') return { store: sealed, stop: () => {} };
  const reloads = createReloadMetrics(registry, {
    controller: 'encryption_config_controller',
    what: 'encryption configuration',
    clock,
    dialect: dialectOf(config.dialect),
  });
  const followed = followFile({
    file,
    text,
    clock,
    load: async (changed) => sealed.change(await read(changed)),
    observe: (outcome) => {
      reloads(outcome.status);
      if (outcome.status === 'success') logger.info('the encryption keys have changed');
      else {
        const { error } = outcome;
        const why = error instanceof Error ? error.message : String(error);
        logger.error('the encryption configuration cannot be reloaded', { file, error: why });
      }
    },
  });
  return { store: sealed, stop: followed.stop };
}

/** Upstream's: from 5 µs, each twice the one before. */
const durationBuckets = Array.from({ length: 25 }, (_, index) => 5e-6 * 2 ** index);

function createObserved(
  registry: MetricRegistry,
  { clock }: ServerConfig,
): (resource: string) => Observed {
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
    observe({ type, prefix, durationMs, failed }) {
      operations.of(resource, type, prefix, failed ? 'unknown-non-grpc' : 'OK').add(1);
      if (!failed) durations.of(type, prefix).observe(durationMs / 1000);
    },
  });
}
