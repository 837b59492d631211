import { createHash } from 'node:crypto';
import { hostname } from 'node:os';
import type { Clock, Dialect, Family, MetricRegistry } from '@wheelhouse/machinery';
import type { KmsMeter } from '@wheelhouse/store';
import { serverIdentityHash } from './server-identity.ts';

const stability = 'ALPHA' as const;
/** Maximum number of keys with metrics; a plugin may use many keys. */
const keysMax = 100;

const doublingFrom = (first: number, count: number) =>
  Array.from({ length: count }, (_, index) => first * 2 ** index);

/** Creates the metrics of KMS providers under kube-apiserver's names (OPS-1). */
export function createKmsMeter(
  registry: MetricRegistry,
  { clock, dialect }: { readonly clock: Clock; readonly dialect: Dialect },
): KmsMeter {
  return { ...createCallMeter(registry, clock), ...createKeyMeter(registry, { clock, dialect }) };
}

const envelope = (name: string, help: string, labels: readonly string[]) => ({
  name: `apiserver_envelope_encryption_${name}`,
  help,
  stability,
  labels,
});

function createCallMeter(registry: MetricRegistry, clock: Clock) {
  const latency = registry.histogram({
    ...envelope(
      'kms_operations_latency_seconds',
      'KMS operation duration with gRPC error code status total.',
      ['provider_name', 'method_name', 'grpc_status_code'],
    ),
    buckets: doublingFrom(0.0001, 20),
  });
  const arrivals = registry.histogram({
    ...envelope(
      'dek_cache_inter_arrival_time_seconds',
      'Time (in seconds) of inter arrival of transformation requests.',
      ['transformation_type'],
    ),
    buckets: doublingFrom(60, 10),
  });
  const fill = registry.gauge(
    envelope(
      'dek_cache_fill_percent',
      'Percent of the cache slots currently occupied by cached DEKs.',
      [],
    ),
  );
  const misses = registry.counter({
    name: 'apiserver_storage_envelope_transformation_cache_misses_total',
    help: 'Total number of cache misses while accessing key decryption key(KEK).',
    stability,
    labels: [],
  });
  const keyGenerations = registry.histogram({
    name: 'apiserver_storage_data_key_generation_duration_seconds',
    help: 'Latencies in seconds of data encryption key(DEK) generation operations.',
    stability,
    labels: [],
    buckets: doublingFrom(5e-6, 14),
  });
  const lastMs = new Map<string, number>();
  return {
    recordCall: (provider: string, method: string, status: string, seconds: number) =>
      latency.of(provider, method, status).observe(seconds),
    recordCacheMiss: () => misses.of().add(1),
    recordKeyGeneration: (seconds: number) => keyGenerations.of().observe(seconds),
    recordArrival(type: string) {
      const nowMs = clock.monotonic();
      arrivals.of(type).observe((nowMs - (lastMs.get(type) ?? nowMs)) / 1000);
      lastMs.set(type, nowMs);
    },
    recordCacheFill: (fraction: number) => fill.of().set(fraction),
  };
}

function createKeyMeter(
  registry: MetricRegistry,
  { clock, dialect }: { readonly clock: Clock; readonly dialect: Dialect },
) {
  const byKey = ['transformation_type', 'provider_name', 'key_id_hash', 'apiserver_id_hash'];
  const used = registry.counter(
    envelope(
      'key_id_hash_total',
      'Number of times a keyID is used split by transformation type, provider, and apiserver identity.',
      byKey,
    ),
  );
  const lastUsed = registry.gauge(
    envelope(
      'key_id_hash_last_timestamp_seconds',
      'The last time in seconds when a keyID was used.',
      byKey,
    ),
  );
  const lastReported = registry.gauge(
    envelope(
      'key_id_hash_status_last_timestamp_seconds',
      'The last time in seconds when a keyID was returned by the Status RPC call.',
      ['provider_name', 'key_id_hash', 'apiserver_id_hash'],
    ),
  );
  const invalidKeyIds = registry.counter(
    envelope(
      'invalid_key_id_from_status_total',
      'Number of times an invalid keyID is returned by the Status RPC call split by error.',
      ['provider_name', 'error'],
    ),
  );
  const size = registry.gauge(
    envelope(
      'dek_source_cache_size',
      'Number of records in data encryption key (DEK) source cache. On a restart, this value is an approximation of the number of decrypt RPC calls the server will make to the KMS plugin.',
      ['provider_name'],
    ),
  );
  const identity = serverIdentityHash(hostname(), dialect.serverProgram);
  const usedKeys = new RecentKeys([used, lastUsed]);
  const reportedKeys = new RecentKeys([lastReported]);
  return {
    recordKeyUse(type: string, provider: string, keyId: string) {
      const labels = usedKeys.use([type, provider, keyId], identity);
      used.of(...labels).add(1);
      lastUsed.of(...labels).set(clock.now() / 1000);
    },
    recordKeyStatus(provider: string, keyId: string) {
      const labels = reportedKeys.use([provider, keyId], identity);
      lastReported.of(...labels).set(clock.now() / 1000);
    },
    recordInvalidKeyId: (provider: string, why: string) => invalidKeyIds.of(provider, why).add(1),
    setCachedKeys: (provider: string, keys: number) => size.of(provider).set(keys),
  };
}

/** The recently used keys; the series of others are removed. */
class RecentKeys {
  readonly #families: readonly Pick<Family<unknown>, 'remove'>[];
  readonly #labels = new Map<string, readonly string[]>();

  constructor(families: readonly Pick<Family<unknown>, 'remove'>[]) {
    this.#families = families;
  }

  /** The labels of a key, with its identity replaced by a digest. */
  use(names: readonly string[], identity: string): readonly string[] {
    const key = names.join('\0');
    const labels = this.#labels.get(key) ?? labelsOf(names, identity);
    this.#labels.delete(key);
    this.#labels.set(key, labels);
    if (this.#labels.size > keysMax) {
      const [[oldest, removed] = ['', []]] = this.#labels;
      this.#labels.delete(oldest);
      for (const family of this.#families) family.remove(...removed);
    }
    return labels;
  }
}

function labelsOf(names: readonly string[], identity: string): readonly string[] {
  const digest = createHash('sha256')
    .update(names.at(-1) ?? '')
    .digest('hex');
  return [...names.slice(0, -1), `sha256:${digest}`, identity];
}
