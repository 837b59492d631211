import { readFileSync } from 'node:fs';
import { encodeTextSteps, loadYaml } from '@wheelhouse/codec';
import type { CatalogueSnapshot, ResourceDef } from '@wheelhouse/kinds';
import {
  type AllowedLabels,
  type Clock,
  type Counter,
  createMetricRegistry,
  dialectOf,
  errorText,
  type MetricRegistry,
  pause,
  qualifiedResource,
  runInSlices,
} from '@wheelhouse/machinery';
import { meteredStore, type Store } from '@wheelhouse/store';
import { listContent } from '../../controllers/tools.ts';
import { createQueueMeters, type QueueMeters } from '../../controllers/work-queue.ts';
import { apiRelease } from '../../documents/version.ts';
import type { PlainAnswer } from '../../endpoints/call.ts';
import { defaultGates } from '../../flags/feature-gates.ts';
import { FlagError } from '../../flags/flags.ts';
import type { FlowControl } from '../../gates/flowcontrol/contract.ts';
import { addProcessMetrics } from '../../observe/process-metrics.ts';
import { createRequestMetrics, type RequestMetrics } from '../../observe/request-metrics.ts';
import { sizeUpdater, storeObservers } from '../../observe/store-metrics.ts';
import type { CachePool } from '../../registry/caches.ts';
import { type CacheMeter, createCacheMeters } from '../../watchcache/cache-meter.ts';
import type { ServerConfig } from '../config.ts';
import { checkLabelKey } from './settings.ts';

/** The metrics of a server and the answers of `/metrics` (OPS-1). */
export interface Metrics {
  /** For parts that are loaded on demand. */
  readonly registry: MetricRegistry;
  /** The store with its operations measured. */
  measured(store: Store, kinds: readonly ResourceDef[]): Store;
  requests(snapshot: () => CatalogueSnapshot): RequestMetrics;
  countInFlight(flowControl: Pick<FlowControl, 'inFlight' | 'inQueue'>): void;
  /** Registers a function to call before the metrics are rendered. */
  beforeRender(update: () => void): void;
  countObjects(api: {
    readonly catalogue: { snapshot(): CatalogueSnapshot };
    readonly registry: { readonly caches: CachePool };
  }): void;
  /** Meters of the controllers' queues; called once. */
  queues(): QueueMeters;
  /** Measures the watch cache of a kind. */
  cacheMeter(def: ResourceDef): CacheMeter;
  /** Exposes the size of the store. */
  measureSize(store: Pick<Store, 'sizeBytes'>): void;
  /** Serves another registry at its own path. */
  serveAt(path: string, registry: MetricRegistry): void;
  /** The served paths. */
  paths(): readonly string[];
  /** Undefined when `path` is not one of them. */
  answer(path: string): Promise<PlainAnswer> | undefined;
}

/** Reads values when metrics are rendered, rather than counting events. */
type Update = () => void | Promise<void>;

/**
 * Creates the metrics of a server, with those of the process. Values that are read rather than
 * counted are updated before each answer. `allowedLabels` replaces other values of labels by
 * `unexpected`.
 */
export function createMetrics(options: {
  readonly config: ServerConfig;
  readonly allowedLabels?: AllowedLabels;
}): Metrics {
  const { config } = options;
  const { clock, logger } = config;
  let unexpected: Counter | undefined;
  const registry = createMetricRegistry({
    ...(config.metrics === undefined ? {} : { disabled: config.metrics.disabled }),
    ...(options.allowedLabels === undefined ? {} : { allowed: options.allowedLabels }),
    onUnexpected: () => unexpected?.add(1),
    release: `${apiRelease.major}.${apiRelease.minor}`,
    hidden: config.hiddenMetrics ?? 'hidden',
    onDeprecated: ({ name, from }) => logger.warn('a metric is deprecated', { name, from }),
  });
  unexpected = registry
    .counter({
      name: 'cardinality_enforcement_unexpected_categorizations_total',
      help: 'Number of label values that are not allowed.',
      stability: 'ALPHA',
      labels: [],
    })
    .of();
  const updates: Update[] = [addProcessMetrics(registry, clock)];
  updates.push(registeredUpdater(registry, new Set(config.metrics?.disabled)));
  addFeatures(registry, config.featureGates ?? defaultGates);
  const registriesByPath = new Map<string, MetricRegistry>();
  const cacheMeters = createCacheMeters(registry);
  updates.push(cacheMeters.refresh);
  return {
    registry,
    measured: (store, kinds) => meteredStore(store, { clock, ...storeObservers(registry, kinds) }),
    queues() {
      const meters = createQueueMeters(registry, clock);
      updates.push(meters.refresh);
      return meters;
    },
    cacheMeter: (def) => cacheMeters.of(qualifiedResource(def)),
    requests: (snapshot) => {
      const knownUsers = namedUsers(config);
      return createRequestMetrics({ registry, snapshot, clock, knownUsers });
    },
    countInFlight: (flowControl) => updates.push(inFlightUpdater(registry, flowControl)),
    beforeRender: (update) => updates.push(update),
    countObjects(api) {
      const { store } = config;
      const source = { ...api, clock };
      if (store.type !== 'etcd') updates.push(objectsUpdater(registry, source));
      else if (store.countMetricMs > 0) {
        updates.push(atMostEvery(store.countMetricMs, clock, objectsUpdater(registry, source)));
      }
    },
    measureSize(measured) {
      const { store } = config;
      if (store.type !== 'etcd') updates.push(sizeUpdater(registry, measured));
      else if (store.sizeMetricMs > 0) {
        updates.push(atMostEvery(store.sizeMetricMs, clock, sizeUpdater(registry, measured)));
      }
    },
    serveAt: (path, pathRegistry) => void registriesByPath.set(path, pathRegistry),
    paths: () => ['/metrics', ...registriesByPath.keys()],
    answer(path) {
      if (path === '/metrics') return answerOf({ registry, updates, clock });
      const pathRegistry = registriesByPath.get(path);
      return pathRegistry && answerOf({ registry: pathRegistry, updates: [], clock });
    },
  };
}

/** Users that kube-apiserver's request metrics distinguish. */
function namedUsers({ dialect }: ServerConfig): readonly string[] {
  const namespace = dialectOf(dialect).systemNamespace('system');
  const account = `system:serviceaccount:${namespace}:default`;
  return ['admin', 'client', 'kube_proxy', 'kubelet', account];
}

/** Renders metrics in slices: thousands of kinds have tens of megabytes of them (TRUST-2). */
async function answerOf(options: {
  readonly registry: MetricRegistry;
  readonly updates: readonly Update[];
  readonly clock: Clock;
}): Promise<PlainAnswer> {
  const { registry, updates, clock } = options;
  await Promise.all(updates.map((update) => update()));
  const headers = { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' };
  const body = await runInSlices(encodeTextSteps(registry.parts()), clock);
  return { status: 200, headers, body, compression: 'gzip' };
}

/** Counts the registered metrics and the hidden ones. */
function registeredUpdater(registry: MetricRegistry, names: ReadonlySet<string>): Update {
  const registered = registry.counter({
    name: 'registered_metrics_total',
    help: 'Registered metrics, by stability level and deprecated version.',
    stability: 'BETA',
    labels: ['stability_level', 'deprecated_version'],
  });
  const hidden = registry.counter({
    name: 'hidden_metrics_total',
    help: 'Metrics that are hidden because they are deprecated.',
    stability: 'BETA',
    labels: [],
  });
  const disabled = registry.counter({
    name: 'disabled_metrics_total',
    help: 'Metrics that the configuration disables.',
    stability: 'BETA',
    labels: [],
  });
  return () => {
    registered.clear();
    hidden.clear();
    disabled.clear();
    hidden.of().add(0);
    disabled.of().add(0);
    for (const { definition, isHidden } of registry.definitions()) {
      if (names.has(definition.name)) disabled.of().add(1);
      const { stability, deprecatedFrom: from } = definition;
      if (isHidden) hidden.of().add(1);
      else registered.of(stability, from === undefined ? '' : `${from}.0`).add(1);
    }
  };
}

/** Exposes the state and stage of each feature gate (VER-5). */
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

function inFlightUpdater(
  registry: MetricRegistry,
  flowControl: Parameters<Metrics['countInFlight']>[0],
): Update {
  const inFlight = registry.gauge({
    name: 'apiserver_current_inflight_requests',
    help: 'Number of currently used inflight request limit of this apiserver per request kind.',
    stability: 'STABLE',
    labels: ['request_kind'],
  });
  const inQueue = registry.gauge({
    name: 'apiserver_current_inqueue_requests',
    help: 'Number of queued requests, per request kind.',
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

/** How long metrics wait for kinds whose objects are being loaded, which are then omitted. */
const loadWaitMs = 1000;
const readable = { unreadable: 'omitted' } as const;

function objectsUpdater(
  registry: MetricRegistry,
  api: Parameters<Metrics['countObjects']>[0] & { readonly clock: Pick<Clock, 'after'> },
): Update {
  const family = registry.gauge({
    name: 'apiserver_storage_objects',
    help: 'Number of stored objects at the time of last check split by kind. In case of a fetching error, the value will be -1.',
    stability: 'STABLE',
    labels: ['resource'],
  });
  const { caches } = api.registry;
  const loadedCount = async (def: ResourceDef) => {
    const list = listContent(caches, { def, namespace: '' }, { resourceVersion: '0', ...readable });
    return (await list).count;
  };
  const countOf = async (def: ResourceDef, late: Promise<undefined>) =>
    caches.of(def).count() ?? Promise.race([loadedCount(def), late]);
  return async () => {
    const waiting = new AbortController();
    const late = pause(api.clock, { ms: loadWaitMs, signal: waiting.signal }).then(
      () => undefined,
      () => undefined,
    );
    // Two groups may share the objects of one prefix; they are counted for the first.
    const stored = new Map<string, ResourceDef>();
    for (const def of api.catalogue.snapshot().defs) {
      const { prefix } = def.storage;
      const isStored = def.isVirtual !== true && def.isComputed !== true;
      if (isStored && !stored.has(prefix)) stored.set(prefix, def);
    }
    const all = [...stored.values()];
    const counts = await Promise.all(all.map((def) => countOf(def, late).catch(() => -1)));
    waiting.abort();
    family.clear();
    for (const [index, def] of all.entries()) {
      const count = counts[index];
      if (count !== undefined) family.of(qualifiedResource(def)).set(count);
    }
  };
}

/** Skips calls within `periodMs` of the last one. */
function atMostEvery(periodMs: number, clock: Pick<Clock, 'monotonic'>, update: Update): Update {
  let lastMs: number | undefined;
  return () => {
    const nowMs = clock.monotonic();
    if (lastMs !== undefined && nowMs - lastMs < periodMs) return undefined;
    lastMs = nowMs;
    return update();
  };
}

/** The allowed values of labels. Rejects with a FlagError for an invalid file. */
export async function readAllowedLabels(config: ServerConfig): Promise<AllowedLabels> {
  const { labels } = config.metrics ?? {};
  if (labels === undefined) return new Map();
  const pairs = 'pairs' in labels ? labels.pairs : await pairsOf(labels.file);
  const allowed = new Map<string, Map<string, ReadonlySet<string>>>();
  for (const [key, values] of pairs) {
    const [metric = '', label = ''] = key.split(',');
    const ofMetric = allowed.get(metric) ?? new Map<string, ReadonlySet<string>>();
    allowed.set(metric, ofMetric.set(label, new Set(values.split(','))));
  }
  return allowed;
}

async function pairsOf(file: string): Promise<ReadonlyMap<string, string>> {
  const invalid = (problem: string) =>
    new FlagError(`--allow-metric-labels-manifest: ${file}: ${problem}`);
  const { decodeYaml } = await loadYaml();
  let value: unknown;
  try {
    ({ value } = await decodeYaml(readFileSync(file)));
  } catch (error) {
    throw invalid(errorText(error));
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw invalid('is not a map of strings');
  }
  const pairs = new Map<string, string>();
  for (const [key, texts] of Object.entries(value)) {
    checkLabelKey(key);
    if (typeof texts !== 'string') throw invalid(`${key} is not a string`);
    pairs.set(key, texts);
  }
  return pairs;
}
