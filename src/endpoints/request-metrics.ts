import type { Exchange } from '../base/exchange.ts';
import type { Counter, Gauge, Histogram, MetricRegistry } from '../base/metrics.ts';
import type { CatalogueSnapshot, VersionDef } from '../catalogue/resource-def.ts';
import type { RequestInfo } from '../request/request-info.ts';

/** A request for a version that is on its way out (VER-3). */
export interface DeprecatedUse {
  readonly info: RequestInfo;
  readonly version: VersionDef;
}

/** Counts requests under upstream's names (OPS-1). */
export interface RequestMetrics extends DeadlineMetrics {
  /** The request is answered; one whose answer is a stream says so by `longRunning`. */
  finished(request: {
    exchange: Exchange;
    info: RequestInfo;
    startMs: number;
    endMs: number;
  }): void;
  /** A watch has begun; the function is called at its end, once or more often. */
  longRunning(exchange: Exchange, info: RequestInfo): () => void;
  deprecated(use: DeprecatedUse): void;
}

/** Counts requests whose time was up. */
interface DeadlineMetrics {
  /** The server has answered in the place of what took too long. */
  terminated(exchange: Exchange, info: RequestInfo): void;
  /** An answer has been cut off half-way. */
  aborted(exchange: Exchange, info: RequestInfo): void;
  /** What went on behind a timeout has come to its end, or is waited for no longer. */
  afterTimeout(of: 'request' | 'write', came: Afterlife): void;
}

/** How what went on behind a timeout ended; `pending`: not yet, after minutes. */
export type Afterlife = 'ok' | 'error' | 'panic' | 'pending';

const durationBuckets = [
  0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45,
  60,
];
const common = ['group', 'version', 'resource', 'subresource', 'scope', 'component'];
const component = 'apiserver';

/**
 * Counts in `registry`. Only what the catalogue knows becomes a label: a client cannot make series
 * by asking for names of its own.
 */
export function createRequestMetrics(options: {
  readonly registry: MetricRegistry;
  readonly snapshot: () => CatalogueSnapshot;
  /** Monotonic milliseconds. */
  readonly now: () => number;
}): RequestMetrics {
  const { now } = options;
  const families = createFamilies(options.registry);
  const root = createNode();
  const seriesOf = (exchange: Exchange, info: RequestInfo): Series | undefined => {
    const code = exchange.answeredStatus;
    if (code === undefined) return undefined;
    const verb = reportedVerb(exchange, info);
    const scope = scopeOf(info);
    const isDryRun = info.query.size > 0 && info.query.get('dryRun') === 'All';
    const { group, version, resource } = info;
    const place = placeOf(info);
    if (place === undefined) return undefined;
    const rest = restKey({ verb, scope, code, isDryRun });
    const groupNode = root.children.get(group);
    const node = groupNode?.children.get(resource)?.children.get(version)?.children.get(place);
    const known = node?.series.get(rest);
    if (known !== undefined) return known;
    const named = namedParts(options.snapshot(), { info, place });
    if (named === undefined) return undefined;
    const dryRun = isDryRun ? 'All' : '';
    const series = createSeries(families, { verb, dryRun, scope, named, code: String(code) });
    nodeAt(root, [group, resource, version, place]).series.set(rest, series);
    return series;
  };
  return {
    finished({ exchange, info, startMs, endMs }) {
      const isStream = info.verb === 'watch' && exchange.answeredStatus === 200;
      if (isStream && info.isResourceRequest) return;
      count(seriesOf(exchange, info), endMs - startMs);
    },
    longRunning(exchange, info) {
      const startMs = now();
      const series = seriesOf(exchange, info);
      series?.running.add(1);
      let isOver = false;
      return () => {
        if (isOver) return;
        isOver = true;
        series?.running.add(-1);
        count(series, now() - startMs);
      };
    },
    ...deadlineMetrics(options),
    deprecated({ info, version }) {
      const { group, resource, subresource } = info;
      const release = version.removedRelease ?? '';
      families.deprecated.of(group, version.version, resource, subresource, release).set(1);
    },
  };
}

/**
 * Series by group, then resource, version, and subresource or path, then by a number for the rest:
 * a few looks at short names cost less than making one long key for each request.
 */
interface Node {
  readonly children: Map<string, Node>;
  readonly series: Map<number, Series>;
}

function createNode(): Node {
  return { children: new Map(), series: new Map() };
}

function nodeAt(root: Node, names: readonly string[]): Node {
  let node = root;
  for (const name of names) {
    const child = node.children.get(name) ?? createNode();
    node.children.set(name, child);
    node = child;
  }
  return node;
}

const scopes = ['', 'cluster', 'namespace', 'resource'];

function restKey(of: {
  readonly verb: string;
  readonly scope: string;
  readonly code: number;
  readonly isDryRun: boolean;
}): number {
  const kind = (verbIndex.get(of.verb) ?? 0) * scopes.length + scopes.indexOf(of.scope);
  return (kind * 2 + Number(of.isDryRun)) * 1000 + of.code;
}

interface Series {
  readonly total: Counter;
  readonly duration: Histogram;
  readonly running: Gauge;
}

function count(series: Series | undefined, durationMs: number): void {
  if (series === undefined) return;
  series.total.add(1);
  series.duration.observe(durationMs / 1000);
}

function createFamilies(registry: MetricRegistry) {
  return {
    total: registry.counter({
      name: 'apiserver_request_total',
      help: 'Counter of apiserver requests broken out for each verb, dry run value, group, version, resource, scope, component, and HTTP response code.',
      stability: 'STABLE',
      labels: ['verb', 'dry_run', ...common, 'code'],
    }),
    duration: registry.histogram({
      name: 'apiserver_request_duration_seconds',
      help: 'Response latency distribution in seconds for each verb, dry run value, group, version, resource, subresource, scope and component.',
      stability: 'STABLE',
      labels: ['verb', 'dry_run', ...common],
      buckets: durationBuckets,
    }),
    running: registry.gauge({
      name: 'apiserver_longrunning_requests',
      help: 'Gauge of all active long-running apiserver requests broken out by verb, group, version, resource, scope and component. Not all requests are tracked this way.',
      stability: 'STABLE',
      labels: ['verb', ...common],
    }),
    deprecated: registry.gauge({
      name: 'apiserver_requested_deprecated_apis',
      help: 'Gauge of deprecated APIs that have been requested, broken out by API group, version, resource, subresource, and removed_release.',
      stability: 'STABLE',
      labels: ['group', 'version', 'resource', 'subresource', 'removed_release'],
    }),
  };
}

function deadlineMetrics(options: {
  readonly registry: MetricRegistry;
  readonly snapshot: () => CatalogueSnapshot;
}): DeadlineMetrics {
  const { registry, snapshot } = options;
  const terminations = registry.counter({
    name: 'apiserver_request_terminations_total',
    help: 'Number of requests which apiserver terminated in self-defense.',
    stability: 'ALPHA',
    labels: ['verb', ...common, 'code'],
  });
  const aborts = registry.counter({
    name: 'apiserver_request_aborts_total',
    help: 'Number of requests which apiserver aborted possibly due to a timeout, for each group, version, verb, resource, subresource and scope',
    stability: 'ALPHA',
    labels: ['verb', 'group', 'version', 'resource', 'subresource', 'scope'],
  });
  const afterTimeouts = registry.counter({
    name: 'apiserver_request_post_timeout_total',
    help: 'Tracks the activity of the request handlers after the associated requests have been timed out by the apiserver',
    stability: 'ALPHA',
    labels: ['source', 'status'],
  });
  const labelsOf = (exchange: Exchange, info: RequestInfo): string[] | undefined => {
    const place = placeOf(info);
    const named = place === undefined ? undefined : namedParts(snapshot(), { info, place });
    return named && [reportedVerb(exchange, info), ...named, scopeOf(info)];
  };
  return {
    terminated(exchange, info) {
      const labels = labelsOf(exchange, info);
      const code = String(exchange.answeredStatus);
      if (labels !== undefined) terminations.of(...labels, component, code).add(1);
    },
    aborted(exchange, info) {
      const labels = labelsOf(exchange, info);
      if (labels !== undefined) aborts.of(...labels).add(1);
    },
    afterTimeout(of, came) {
      afterTimeouts.of(of === 'write' ? 'rest-handler' : 'timeout-handler', came).add(1);
    },
  };
}

function createSeries(
  families: ReturnType<typeof createFamilies>,
  labels: {
    readonly verb: string;
    readonly dryRun: string;
    readonly scope: string;
    readonly code: string;
    /** Group, version, resource, subresource. */
    readonly named: readonly string[];
  },
): Series {
  const { verb, dryRun, scope, code, named } = labels;
  const place = [...named, scope, component];
  // Only watches run long; the others' gauge would be a series that is always 0.
  const running = verb === 'WATCH' ? families.running.of(verb, ...place) : noGauge;
  return {
    total: families.total.of(verb, dryRun, ...place, code),
    duration: families.duration.of(verb, dryRun, ...place),
    running,
  };
}

const noGauge: Gauge = { set: () => {}, add: () => {} };

/** Paths that are told apart, as upstream tells them by the label `subresource`. */
const plainPaths = new Set(['/backup', '/healthz', '/livez', '/readyz', '/metrics', '/version']);
const documentPaths = /^\/(api|apis|openapi)(\/|$)/;

/** Sub-resource or path; a client's own paths are none, and all documents of the API are one. */
function placeOf({ isResourceRequest, subresource, path }: RequestInfo): string | undefined {
  if (isResourceRequest) return subresource;
  if (plainPaths.has(path)) return path;
  return documentPaths.test(path) ? '' : undefined;
}

function namedParts(
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
  ['deletecollection', 'DELETECOLLECTION'],
]);
const verbIndex: ReadonlyMap<string, number> = new Map(
  ['other', 'APPLY', ...verbNames.values()].map((verb, index) => [verb, index]),
);

function reportedVerb(exchange: Exchange, { verb }: RequestInfo): string {
  if (verb === 'patch') {
    return exchange.header('content-type')?.startsWith('application/apply-patch') === true
      ? 'APPLY'
      : 'PATCH';
  }
  return verbNames.get(verb) ?? 'other';
}

function scopeOf({ isResourceRequest, verb, name, namespace }: RequestInfo): string {
  if (!isResourceRequest) return '';
  if (name !== '' || verb === 'create') return 'resource';
  return namespace === '' ? 'cluster' : 'namespace';
}
