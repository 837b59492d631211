import type { CatalogueSnapshot, ResourceDef, VersionDef } from '@wheelhouse/kinds';
import {
  type Counter,
  type Exchange,
  type Gauge,
  type Histogram,
  type MetricRegistry,
  qualifiedResource,
} from '@wheelhouse/machinery';
import { isWatchPath, type RequestInfo } from '../request/parse-request.ts';

/** Buckets, in seconds, of durations from 50 ms. */
export const slowBuckets = [
  0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60,
];
const durationBuckets = [0.005, 0.025, ...slowBuckets];
const sizeBuckets = [1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9];
const bodyBuckets = Array.from({ length: 31 }, (_, step) => 50_000 + step * 100_000);

/** The labels of most metrics of requests. */
export const common = ['group', 'version', 'resource', 'subresource', 'scope', 'component'];
/** The value of the label `component`, except for health checks. */
export const component = 'apiserver';
const healthPaths = new Set(['/healthz', '/livez', '/readyz']);

/** The series of requests with equal labels. */
export interface Series {
  readonly total: Counter;
  readonly duration: Histogram;
  /** Duration without webhooks and queues; absent for watches. */
  readonly own: Histogram | undefined;
  readonly ownDeprecated: Histogram | undefined;
  /** Absent for requests that are no streams. */
  readonly running: Gauge | undefined;
  /** Sizes of answers to reads, and of streams of watches. */
  readonly answers: Histogram | undefined;
  /** Sizes of bodies of writes. */
  readonly bodies: Histogram | undefined;
}

/** Counts one finished request. */
export function count(
  { total, duration, own, ownDeprecated }: Series,
  time: { readonly tookMs: number; readonly othersMs: number },
): void {
  const ownSeconds = (time.tookMs - time.othersMs) / 1000;
  total.add(1);
  duration.observe(time.tookMs / 1000);
  own?.observe(ownSeconds);
  ownDeprecated?.observe(ownSeconds);
}

/**
 * Records the sizes of a request's body and answer; that of a long list once it has been written.
 */
export function measureBodies({ answers, bodies }: Series, exchange: Exchange): void {
  if (bodies !== undefined && exchange.receivedBytes !== undefined) {
    bodies.observe(exchange.receivedBytes);
  }
  if (answers === undefined) return;
  const { responseBytes } = exchange;
  if (responseBytes !== undefined) answers.observe(responseBytes);
  else exchange.onResponseEnd?.((bytes) => answers.observe(bytes));
}

/** Records the size of a stream, whether it ended or was cut off. */
export function measureStream({ answers }: Series, exchange: Exchange, info: RequestInfo): void {
  // As in kube-apiserver, the deprecated paths are left out.
  if (!isWatchPath(info)) answers?.observe(exchange.streamedBytes ?? 0);
}

/** Registers the metrics of requests. */
export function createFamilies(registry: MetricRegistry) {
  const own = {
    help: 'Duration of requests in seconds, without the time spent in admission webhooks and flow-control queues.',
    stability: 'ALPHA',
    labels: ['verb', ...common],
    buckets: slowBuckets,
  } as const;
  return {
    ...stableFamilies(registry),
    own: registry.histogram({ ...own, name: 'apiserver_request_sli_duration_seconds' }),
    ownFormerly: registry.histogram({
      ...own,
      name: 'apiserver_request_slo_duration_seconds',
      deprecatedFrom: '1.27',
    }),
    answers: registry.histogram({
      name: 'apiserver_response_sizes',
      help: 'Size of the answers to reads in bytes.',
      stability: 'STABLE',
      labels: ['verb', ...common],
      buckets: sizeBuckets,
    }),
    bodies: registry.histogram({
      name: 'apiserver_request_body_size_bytes',
      help: 'Size of the bodies of writes in bytes, by resource and verb.',
      stability: 'ALPHA',
      labels: ['resource', 'verb'],
      buckets: bodyBuckets,
    }),
  };
}

function stableFamilies(registry: MetricRegistry) {
  const stability = 'STABLE';
  return {
    total: registry.counter({
      name: 'apiserver_request_total',
      help: 'Counter of apiserver requests broken out for each verb, dry run value, group, version, resource, scope, component, and HTTP response code.',
      stability,
      labels: ['verb', 'dry_run', ...common, 'code'],
    }),
    duration: registry.histogram({
      name: 'apiserver_request_duration_seconds',
      help: 'Response latency distribution in seconds for each verb, dry run value, group, version, resource, subresource, scope and component.',
      stability,
      labels: ['verb', 'dry_run', ...common],
      buckets: durationBuckets,
    }),
    running: registry.gauge({
      name: 'apiserver_longrunning_requests',
      help: 'Gauge of all active long-running apiserver requests broken out by verb, group, version, resource, scope and component. Not all requests are tracked this way.',
      stability,
      labels: ['verb', ...common],
    }),
    deprecated: registry.gauge({
      name: 'apiserver_requested_deprecated_apis',
      help: 'Gauge of deprecated APIs that have been requested, broken out by API group, version, resource, subresource, and removed_release.',
      stability,
      labels: ['group', 'version', 'resource', 'subresource', 'removed_release'],
    }),
  };
}

const bodyVerbs: ReadonlyMap<string, string> = new Map([
  ['POST', 'create'],
  ['PUT', 'update'],
  ['PATCH', 'patch'],
  ['APPLY', 'patch'],
  ['DELETE', 'delete'],
]);

/** Creates the series for these labels. */
export function createSeries(
  families: ReturnType<typeof createFamilies>,
  labels: {
    readonly kind: RequestKind;
    readonly code: string;
    /** Group, version, resource, subresource. */
    readonly named: readonly string[];
    /** Verbs whose answers are measured. */
    readonly measured: readonly string[];
  },
): Series {
  const { kind, code, named, measured } = labels;
  const { verb, dryRun, scope, target } = kind;
  const [group = '', , resource = '', part = ''] = named;
  const placeIn = (of: string) => [...named, of, healthPaths.has(part) ? '' : component];
  const place = placeIn(scope);
  const isCollection = verb === 'DELETE' && scope !== 'resource';
  const bodyVerb = isCollection ? 'delete_collection' : bodyVerbs.get(verb);
  const isWatch = verb === 'WATCH';
  return {
    total: families.total.of(verb, dryRun, ...place, code),
    duration: families.duration.of(verb, dryRun, ...place),
    own: isWatch ? undefined : families.own.of(verb, ...place),
    ownDeprecated: isWatch ? undefined : families.ownFormerly.of(verb, ...place),
    running:
      isWatch || verb === 'CONNECT' ? families.running.of(verb, ...placeIn(target)) : undefined,
    answers: measured.includes(verb) ? families.answers.of(verb, ...place) : undefined,
    bodies:
      resource === '' || bodyVerb === undefined
        ? undefined
        : families.bodies.of(qualifiedResource({ group, resource }), bodyVerb),
  };
}

/** The labels of a request other than its target. */
interface RequestKind {
  readonly verb: string;
  readonly scope: string;
  /** The scope of what the request selects, by which running streams are counted. */
  readonly target: string;
  readonly dryRun: string;
}

/** Reads the labels of a request other than its target. */
export function requestKind(
  exchange: Exchange,
  info: RequestInfo,
  snapshot: CatalogueSnapshot,
): RequestKind {
  const target = scopeOf(info);
  const isNarrowed = target === 'resource' && isCollection(info);
  const isOfCollection = isNarrowed && pathsOf(snapshot, info)?.countedBy !== 'target';
  const scope = isOfCollection ? collectionScope(info) : target;
  return { verb: reportedVerb(exchange, info, scope), scope, target, dryRun: dryRunOf(info) };
}

const pathsOf = (snapshot: CatalogueSnapshot, { group, version, resource }: RequestInfo) =>
  snapshot.find(group, version, resource)?.def.behavior.paths;

/** The verbs whose answers are measured for a request's kind. */
export function measuredVerbs(snapshot: CatalogueSnapshot, info: RequestInfo): readonly string[] {
  const isWatchMeasured = pathsOf(snapshot, info)?.countedBy === 'collection';
  return isWatchMeasured ? ['GET', 'LIST', 'WATCH'] : ['GET', 'LIST'];
}

/** Paths with their own value of the label `subresource`. */
const plainPaths = new Set(['/backup', '/healthz', '/livez', '/readyz', '/metrics', '/version']);
const documentPaths = /^\/(api|apis|openapi)(\/|$)/;

/**
 * The label `subresource` of a request: a subresource or a known path; undefined for other paths.
 * All API documents share one value.
 */
export function subresourceLabel({
  isResourceRequest,
  subresource,
  path,
}: RequestInfo): string | undefined {
  if (isResourceRequest) return subresource;
  if (plainPaths.has(path)) return path;
  return documentPaths.test(path) ? '' : undefined;
}

/** Group, version, resource, and subresource; undefined if they are not in the catalogue. */
export function targetLabels(
  snapshot: CatalogueSnapshot,
  { info, place }: { readonly info: RequestInfo; readonly place: string },
): readonly string[] | undefined {
  const { group, version, resource, isResourceRequest } = info;
  if (!isResourceRequest) return ['', '', '', place];
  const def = snapshot.find(group, version, resource)?.def;
  if (def === undefined) return undefined;
  const isKnown = place === '' || def.subresources.some(({ name }) => name === place);
  return isKnown ? [group, version, resource, place] : undefined;
}

const verbNames: ReadonlyMap<string, string> = new Map([
  ['get', 'GET'],
  ['head', 'GET'],
  ['list', 'LIST'],
  ['watch', 'WATCH'],
  ['create', 'POST'],
  ['post', 'POST'],
  ['update', 'PUT'],
  ['put', 'PUT'],
  ['patch', 'PATCH'],
  ['delete', 'DELETE'],
  // As in kube-apiserver, the scope distinguishes it.
  ['deletecollection', 'DELETE'],
]);
const verbIndex: ReadonlyMap<string, number> = new Map(
  ['other', 'APPLY', 'CONNECT', ...verbNames.values()].map((verb, index) => [verb, index]),
);
/** Subresources that count as CONNECT for every verb. */
const connectSubresources = new Set(['attach', 'exec', 'log', 'portforward', 'proxy']);

/** The label `verb` of a request that counts with this scope, by default that of its target. */
export function reportedVerb(exchange: Exchange, info: RequestInfo, scope = scopeOf(info)): string {
  const { verb, subresource } = info;
  // As in kube-apiserver, a list of one object counts as a read of it.
  if (verb === 'list' && scope === 'resource') return 'GET';
  if (subresource !== '' && info.isResourceRequest && connectSubresources.has(subresource))
    return 'CONNECT';
  if (verb === 'patch') {
    return exchange.header('content-type')?.startsWith('application/apply-patch') === true
      ? 'APPLY'
      : 'PATCH';
  }
  return verbNames.get(verb) ?? 'other';
}

/** The label `scope` of what a request selects. */
export function scopeOf({ isResourceRequest, verb, name, namespace }: RequestInfo): string {
  if (!isResourceRequest) return '';
  if (name !== '' || verb === 'create') return 'resource';
  return collectionScope({ namespace });
}

const isCollection = ({ verb, parts }: RequestInfo) =>
  (verb === 'list' || verb === 'watch') && parts.length === 1;

const collectionScope = ({ namespace }: Pick<RequestInfo, 'namespace'>) =>
  namespace === '' ? 'cluster' : 'namespace';

/** The label `dry_run` of a request. */
export function dryRunOf({ query }: RequestInfo): string {
  if (query.size === 0 || !query.has('dryRun')) return '';
  return query.getAll('dryRun').every((value) => value === 'All') ? 'All' : 'invalid';
}

const scopes = ['', 'cluster', 'namespace', 'resource'];
const dryRuns = ['', 'All', 'invalid'];

/** Returns a distinct number for each combination of labels. */
export function kindKey({ verb, scope, target, dryRun }: RequestKind, code: number): number {
  const counted = (verbIndex.get(verb) ?? 0) * scopes.length + scopes.indexOf(scope);
  const kind = counted * scopes.length + scopes.indexOf(target);
  return (kind * dryRuns.length + dryRuns.indexOf(dryRun)) * 1000 + code;
}

/** Metrics of lists and watches under kube-apiserver's names (OPS-1). */
export interface CollectionMetrics {
  /** Counts a list that was answered from the watch cache. */
  countList(
    def: ResourceDef,
    list: { readonly count: number; readonly examined?: number | undefined },
  ): void;
  /** Counts a consistent read that was answered from the watch cache or timed out. */
  countConsistentRead(def: ResourceDef, success: boolean): void;
  /** Returns the counter of a version's watch events, called with an event's bytes and watchers. */
  eventsOf(def: ResourceDef, version: VersionDef): (bytes: number, watchers: number) => void;
  /** Records the time until a watch has sent all of its initial objects. */
  observeWatchList(info: RequestInfo, tookMs: number): void;
}

const eventBuckets = Array.from({ length: 8 }, (_, step) => 1024 * 2 ** step);
const watchListBuckets = [0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 2, 4, 6, 8, 10, 15, 20, 30, 45, 60];

/** Registers the metrics of lists and watches; must be called once per registry. */
export function createCollectionMetrics(registry: MetricRegistry): CollectionMetrics {
  return { ...listMetrics(registry), ...watchMetrics(registry) };
}

interface ListSeries {
  readonly lists: Counter;
  readonly examined: Counter;
  readonly returned: Counter;
}

function listMetrics(
  registry: MetricRegistry,
): Pick<CollectionMetrics, 'countList' | 'countConsistentRead'> {
  const counter = (name: string, help: string, labels: readonly string[]) =>
    registry.counter({ name, help, stability: 'ALPHA', labels });
  const lists = counter(
    'apiserver_cache_list_total',
    'Number of lists answered from a watch cache.',
    ['resource_prefix', 'index'],
  );
  const examined = counter(
    'apiserver_cache_list_fetched_objects_total',
    'Number of objects that lists from a watch cache examined.',
    ['resource_prefix', 'index'],
  );
  const returned = counter(
    'apiserver_cache_list_returned_objects_total',
    'Number of objects that lists from a watch cache returned.',
    ['resource_prefix'],
  );
  const newest = counter(
    'apiserver_watch_cache_consistent_read_total',
    'Number of consistent reads from a watch cache, by whether the cache caught up in time.',
    ['resource', 'success', 'fallback'],
  );
  const seriesByKind = new WeakMap<ResourceDef, ListSeries>();
  const seriesOf = (def: ResourceDef): ListSeries => {
    const existing = seriesByKind.get(def);
    if (existing !== undefined) return existing;
    const prefix = prefixLabel(def);
    const created = {
      lists: lists.of(prefix, ''),
      examined: examined.of(prefix, ''),
      returned: returned.of(prefix),
    };
    seriesByKind.set(def, created);
    return created;
  };
  return {
    countList(def, list) {
      const series = seriesOf(def);
      series.lists.add(1);
      series.examined.add(list.examined ?? list.count);
      series.returned.add(list.count);
    },
    countConsistentRead: (def, success) =>
      newest.of(prefixLabel(def), String(success), 'false').add(1),
  };
}

/** The storage prefix in kube-apiserver's form: `/pods`, `/example.com/foos`. */
function prefixLabel({ storage: { prefix } }: ResourceDef): string {
  return prefix.replace(/^\/registry/, '').replace(/\/$/, '');
}

function watchMetrics(
  registry: MetricRegistry,
): Pick<CollectionMetrics, 'eventsOf' | 'observeWatchList'> {
  const stability = 'ALPHA';
  const labels = ['group', 'version', 'kind'];
  const events = registry.counter({
    name: 'apiserver_watch_events_total',
    help: 'Number of events sent to watches.',
    stability,
    labels,
  });
  const sizes = registry.histogram({
    name: 'apiserver_watch_events_sizes',
    help: 'Size of the events sent to watches in bytes.',
    stability,
    labels,
    buckets: eventBuckets,
  });
  const watchLists = registry.histogram({
    name: 'apiserver_watch_list_duration_seconds',
    help: 'Time in seconds until a watch has sent its initial objects.',
    stability,
    labels: ['group', 'version', 'resource', 'scope'],
    buckets: watchListBuckets,
  });
  const counterByVersion = new WeakMap<VersionDef, (bytes: number, watchers: number) => void>();
  return {
    eventsOf(def, version) {
      const counter = counterByVersion.get(version);
      if (counter !== undefined) return counter;
      const of = [def.group, version.version, def.kind] as const;
      let series: { total: Counter; size: ReturnType<typeof sizes.of> } | undefined;
      const count = (bytes: number, watchers: number) => {
        series ??= { total: events.of(...of), size: sizes.of(...of) };
        series.total.add(watchers);
        series.size.observe(bytes, watchers);
      };
      counterByVersion.set(version, count);
      return count;
    },
    observeWatchList(info, tookMs) {
      const { group, version, resource } = info;
      watchLists.of(group, version, resource, scopeOf(info)).observe(tookMs / 1000);
    },
  };
}
