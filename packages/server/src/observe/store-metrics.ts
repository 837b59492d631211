import type { ResourceDef } from '@wheelhouse/kinds';
import {
  type Counter,
  type Histogram,
  type MetricRegistry,
  qualifiedResource,
} from '@wheelhouse/machinery';
import type {
  ListObserver,
  Store,
  StoreAlarm,
  StoreObserver,
  StoreOperation,
} from '@wheelhouse/store';

/** Registers the metric of a store's size; returns a function that updates it. */
export function sizeUpdater(
  registry: MetricRegistry,
  store: Pick<Store, 'sizeBytes'>,
): () => Promise<void> {
  const family = registry.gauge({
    name: 'apiserver_storage_size_bytes',
    help: 'Size of the stored data in bytes.',
    stability: 'STABLE',
    labels: ['storage_cluster_id'],
  });
  return async () => {
    try {
      family.of('etcd-0').set(await store.sizeBytes());
    } catch {
      // The size of an unreachable store is unknown; its health check reports the failure.
      family.clear();
    }
  };
}

/** Why a store rejects writes. */
export interface StoreSpace {
  /** Rejects with the reason if the store rejects writes; settles in bounded time. */
  check(): Promise<void>;
  /** Alarms as of the last write or check. */
  alarms(): readonly StoreAlarm[];
}

const alarms = ['quota', 'low-space', 'disk-failed'] as const satisfies readonly StoreAlarm[];

/** Registers the metric of a store's alarms (TRUST-8); returns a function that updates it. */
export function alarmUpdater(registry: MetricRegistry, space: StoreSpace): () => Promise<void> {
  const family = registry.gauge({
    name: 'apiserver_storage_alarm',
    help: 'Whether the store rejects writes because of its quota, low disk space, or disk errors.',
    stability: 'ALPHA',
    labels: ['alarm'],
  });
  return async () => {
    await space.check().catch(() => {});
    const raised = space.alarms();
    for (const alarm of alarms) family.of(alarm).set(raised.includes(alarm) ? 1 : 0);
  };
}

const latencyBuckets = [
  0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45,
  60,
];

interface OperationSeries {
  readonly total: Counter;
  readonly duration: Histogram;
}

/** Registers the metrics of store operations, under the names of kube-apiserver's etcd metrics. */
export function storeObservers(
  registry: MetricRegistry,
  kinds: readonly ResourceDef[],
): { readonly observe: StoreObserver; readonly observeList: ListObserver } {
  const labels = ['operation', 'type'];
  const stability = 'ALPHA';
  const total = registry.counter({
    name: 'etcd_requests_total',
    help: 'Store request counts for each operation and object type.',
    stability,
    labels,
  });
  const errors = registry.counter({
    name: 'etcd_request_errors_total',
    help: 'Store failed request counts for each operation and object type.',
    stability,
    labels,
  });
  const duration = registry.histogram({
    name: 'etcd_request_duration_seconds',
    help: 'Store request latency in seconds for each operation and object type.',
    stability,
    labels,
    buckets: latencyBuckets,
  });
  const typeOfKey = keyTypes(kinds);
  const seriesByOperation = new Map<StoreOperation, Map<string, OperationSeries>>();
  const seriesOf = (operation: StoreOperation, type: string): OperationSeries => {
    const existing = seriesByOperation.get(operation)?.get(type);
    if (existing !== undefined) return existing;
    const created = { total: total.of(operation, type), duration: duration.of(operation, type) };
    const ofOperation = seriesByOperation.get(operation) ?? new Map<string, OperationSeries>();
    seriesByOperation.set(operation, ofOperation.set(type, created));
    return created;
  };
  return {
    observe({ operation, key, durationMs, failed }) {
      const type = typeOfKey(key);
      const series = seriesOf(operation, type);
      series.total.add(1);
      series.duration.observe(durationMs / 1000);
      if (failed) errors.of(operation, type).add(1);
    },
    observeList: listObserver(registry, typeOfKey),
  };
}

/**
 * Counts the objects that watch caches list from the store; the three numbers are equal, because
 * the store does not filter.
 */
function listObserver(registry: MetricRegistry, typeOfKey: (key: string) => string): ListObserver {
  const counter = (name: string, help: string) =>
    registry.counter({
      name: `apiserver_storage_list_${name}`,
      help,
      stability: 'ALPHA',
      labels: ['resource'],
    });
  const lists = counter('total', 'Number of pages of lists read from the store.');
  const objects = [
    counter('fetched_objects_total', 'Number of objects read from the store for lists.'),
    counter('evaluated_objects_total', 'Number of objects evaluated for lists from the store.'),
    counter('returned_objects_total', 'Number of objects returned by lists from the store.'),
  ];
  return (prefix, records) => {
    const type = typeOfKey(prefix);
    lists.of(type).add(1);
    for (const family of objects) family.of(type).add(records);
  };
}

/**
 * Maps a key of the store to its kind: `/registry/pods/default/a` to `pods`,
 * `/registry/example.com/foos/a` to `foos.example.com`.
 */
export function keyTypes(kinds: readonly ResourceDef[]): (key: string) => string {
  const builtin = new Map<string, string>();
  for (const def of kinds) {
    const { prefix } = def.storage;
    if (!builtin.has(prefix)) builtin.set(prefix, qualifiedResource(def));
  }
  return (key) => {
    const first = key.indexOf('/', '/registry/'.length);
    const short = builtin.get(key.slice(0, first + 1));
    if (short !== undefined) return short;
    const second = key.indexOf('/', first + 1);
    const long = builtin.get(key.slice(0, second + 1));
    if (long !== undefined) return long;
    const [, , group = '', resource = ''] = key.split('/', 4);
    return qualifiedResource({ group, resource });
  };
}
