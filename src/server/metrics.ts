import type { Clock } from '../base/clock.ts';
import { createMetricRegistry, type MetricRegistry } from '../base/metrics.ts';
import type { CatalogueSnapshot, ResourceDef } from '../catalogue/resource-def.ts';
import { dialectOf } from '../dialect.ts';
import type { PlainAnswer } from '../endpoints/call.ts';
import { createRequestMetrics, type RequestMetrics } from '../endpoints/request-metrics.ts';
import type { FlowControl } from '../flowcontrol/contract.ts';
import type { CachePool } from '../registry/cache-pool.ts';
import type { Store } from '../storage/contract.ts';
import { meteredStore, type StoreObserver } from '../storage/metered-store.ts';
import type { ServerConfig } from './config.ts';
import { defaultGates } from './feature-gates.ts';
import { addProcessMetrics } from './process-metrics.ts';
import { apiRelease } from './version.ts';

/** The numbers of a server and what `/metrics` answers (OPS-1). */
export interface Metrics {
  /** For parts that are loaded only when they are asked for. */
  readonly registry: MetricRegistry;
  /** The store, with its operations measured. */
  measured(store: Store): Store;
  requests(snapshot: () => CatalogueSnapshot): RequestMetrics;
  countInFlight(flowControl: Pick<FlowControl, 'inFlight' | 'inQueue'>): void;
  /** Has `look` called before the metrics are shown. */
  lookAt(look: () => void): void;
  countObjects(api: {
    readonly catalogue: { snapshot(): CatalogueSnapshot };
    readonly registry: { readonly caches: CachePool };
  }): void;
  /** Shows the size of a store that is elsewhere. */
  measureSize(store: Pick<Store, 'sizeBytes'>): void;
  /** Undefined when `path` is not that of the metrics. */
  answer(path: string): Promise<PlainAnswer> | undefined;
}

/** What is looked up when somebody asks, rather than counted as it happens. */
type Look = () => void | Promise<void>;

export function createMetrics(options: {
  readonly config: ServerConfig;
  readonly kinds: readonly ResourceDef[];
}): Metrics {
  const { config, kinds } = options;
  const { clock, logger } = config;
  const registry = createMetricRegistry({
    release: `${apiRelease.major}.${apiRelease.minor}`,
    hidden: config.hiddenMetrics ?? 'hidden',
    onDeprecated: ({ name, from }) => logger.warn('a metric is deprecated', { name, from }),
  });
  const looks: Look[] = [addProcessMetrics(registry, clock)];
  addFeatures(registry, config.featureGates ?? defaultGates);
  const now = () => clock.monotonic();
  return {
    registry,
    measured: (store) => meteredStore(store, { now, observe: storeObserver(registry, kinds) }),
    requests: (snapshot) => {
      const knownUsers = namedUsers(config);
      return createRequestMetrics({ registry, snapshot, now, knownUsers });
    },
    countInFlight: (flowControl) => looks.push(inFlightLook(registry, flowControl)),
    lookAt: (look) => looks.push(look),
    countObjects(api) {
      const { store } = config;
      if (store.type !== 'etcd') looks.push(objectsLook(registry, api));
      else if (store.countMetricMs > 0) {
        looks.push(atMostEvery(store.countMetricMs, clock, objectsLook(registry, api)));
      }
    },
    measureSize(measured) {
      const { store } = config;
      if (store.type !== 'etcd' || store.sizeMetricMs <= 0) return;
      looks.push(atMostEvery(store.sizeMetricMs, clock, sizeLook(registry, measured)));
    },
    answer: (path) => (path === '/metrics' ? answerOf(registry, looks) : undefined),
  };
}

/** Users that upstream tells apart in its count of requests. */
function namedUsers({ dialect }: ServerConfig): readonly string[] {
  const namespace = dialectOf(dialect).systemNamespace('system');
  const account = `system:serviceaccount:${namespace}:default`;
  return ['admin', 'client', 'kube_proxy', 'kubelet', account];
}

async function answerOf(registry: MetricRegistry, looks: readonly Look[]): Promise<PlainAnswer> {
  await Promise.all(looks.map((look) => look()));
  const headers = { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' };
  return { status: 200, headers, body: registry.render() };
}

/** Which features are on, and how far each has come (VER-5). */
function addFeatures(registry: MetricRegistry, gates: typeof defaultGates): void {
  const family = registry.gauge({
    name: 'kubernetes_feature_enabled',
    help: 'This metric records the data about the stage and enablement of a k8s feature.',
    stability: 'BETA',
    labels: ['name', 'stage'],
  });
  for (const { name, stage, on } of gates.all()) {
    family.of(name, stage === 'GA' ? '' : stage).set(on ? 1 : 0);
  }
}

function inFlightLook(
  registry: MetricRegistry,
  flowControl: Parameters<Metrics['countInFlight']>[0],
): Look {
  const inFlight = registry.gauge({
    name: 'apiserver_current_inflight_requests',
    help: 'Number of currently used inflight request limit of this apiserver per request kind.',
    stability: 'STABLE',
    labels: ['request_kind'],
  });
  const inQueue = registry.gauge({
    name: 'apiserver_current_inqueue_requests',
    help: 'Number of requests that wait for their turn, per request kind.',
    stability: 'ALPHA',
    labels: ['request_kind'],
  });
  return () => {
    for (const kind of ['readOnly', 'mutating'] as const) {
      inFlight.of(kind).set(flowControl.inFlight[kind]);
      inQueue.of(kind).set(flowControl.inQueue[kind]);
    }
  };
}

function objectsLook(registry: MetricRegistry, api: Parameters<Metrics['countObjects']>[0]): Look {
  const family = registry.gauge({
    name: 'apiserver_storage_objects',
    help: 'Number of stored objects at the time of last check split by kind. In case of a fetching error, the value will be -1.',
    stability: 'STABLE',
    labels: ['resource'],
  });
  const countOf = async (def: ResourceDef): Promise<number> => {
    const list = await api.registry.caches.of(def).list({
      namespace: '',
      resourceVersion: '0',
      resourceVersionMatch: undefined,
      limit: undefined,
      continueToken: undefined,
      filter: undefined,
    });
    return list.count;
  };
  return async () => {
    // Two groups may share the objects of one prefix; they are counted under the first.
    const stored = new Map<string, ResourceDef>();
    for (const def of api.catalogue.snapshot().defs) {
      const { prefix } = def.storage;
      const isStored = def.isVirtual !== true && def.isComputed !== true;
      if (isStored && !stored.has(prefix)) stored.set(prefix, def);
    }
    const all = [...stored.values()];
    const counts = await Promise.all(all.map((def) => countOf(def).catch(() => -1)));
    family.clear();
    all.forEach((def, index) => {
      family.of(typeOf(def)).set(counts[index] ?? -1);
    });
  };
}

/** Looks again only when the last look is that old. */
function atMostEvery(periodMs: number, clock: Pick<Clock, 'monotonic'>, look: Look): Look {
  let lastMs: number | undefined;
  return () => {
    const nowMs = clock.monotonic();
    if (lastMs !== undefined && nowMs - lastMs < periodMs) return undefined;
    lastMs = nowMs;
    return look();
  };
}

function sizeLook(registry: MetricRegistry, store: Pick<Store, 'sizeBytes'>): Look {
  const family = registry.gauge({
    name: 'apiserver_storage_size_bytes',
    help: 'Size of the storage database file physically allocated in bytes.',
    stability: 'STABLE',
    labels: ['storage_cluster_id'],
  });
  return async () => {
    try {
      family.of('etcd-0').set(await store.sizeBytes());
    } catch {
      // A store that does not answer has no size to show; its health check says so.
      family.clear();
    }
  };
}

/** `pods`, `deployments.apps`. */
function typeOf({ group, resource }: Pick<ResourceDef, 'group' | 'resource'>): string {
  return group === '' ? resource : `${resource}.${group}`;
}

const latencyBuckets = [
  0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45,
  60,
];

/** Measures the store under the names by which upstream measures etcd. */
function storeObserver(registry: MetricRegistry, kinds: readonly ResourceDef[]): StoreObserver {
  const labels = ['operation', 'type'];
  const stability = 'ALPHA';
  const requests = registry.counter({
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
  const durations = registry.histogram({
    name: 'etcd_request_duration_seconds',
    help: 'Store request latency in seconds for each operation and object type.',
    stability,
    labels,
    buckets: latencyBuckets,
  });
  const typeOfKey = keyTypes(kinds);
  return ({ operation, key, durationMs, failed }) => {
    const type = typeOfKey(key);
    requests.of(operation, type).add(1);
    durations.of(operation, type).observe(durationMs / 1000);
    if (failed) errors.of(operation, type).add(1);
  };
}

/**
 * Which kind a key of the store belongs to: `/registry/pods/default/a` to `pods`,
 * `/registry/example.com/foos/a` to `foos.example.com`.
 */
export function keyTypes(kinds: readonly ResourceDef[]): (key: string) => string {
  const builtin = new Map<string, string>();
  for (const def of kinds) {
    const { prefix } = def.storage;
    if (!builtin.has(prefix)) builtin.set(prefix, typeOf(def));
  }
  return (key) => {
    const first = key.indexOf('/', '/registry/'.length);
    const short = builtin.get(key.slice(0, first + 1));
    if (short !== undefined) return short;
    const second = key.indexOf('/', first + 1);
    const long = builtin.get(key.slice(0, second + 1));
    if (long !== undefined) return long;
    const [, , group = '', resource = ''] = key.split('/', 4);
    return typeOf({ group, resource });
  };
}
