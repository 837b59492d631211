import type { CatalogueSnapshot, VersionDef } from '@wheelhouse/kinds';
import {
  type Clock,
  type Counter,
  type Exchange,
  eventCounter,
  type Histogram,
  isLongRunning,
  type MetricRegistry,
} from '@wheelhouse/machinery';
import { UnauthenticatedError } from '../gates/authn/authentication.ts';
import { ForbiddenError } from '../gates/authz/authorization.ts';
import { serverContext } from '../registry/registry.ts';
import type { RequestInfo } from '../request/parse-request.ts';
import type {
  Admitted,
  Answered,
  Authenticated,
  Authorized,
  Failure,
  Received,
  TimedOut,
} from '../request/request-state.ts';
import {
  type CollectionMetrics,
  common,
  component,
  count,
  createCollectionMetrics,
  createFamilies,
  createSeries,
  kindKey,
  measureBodies,
  measuredVerbs,
  measureStream,
  reportedVerb,
  requestKind,
  type Series,
  scopeOf,
  slowBuckets,
  subresourceLabel,
  targetLabels,
} from './request-series.ts';

/** A request for a deprecated version of a kind (VER-3). */
interface DeprecatedUse {
  readonly info: RequestInfo;
  readonly version: VersionDef;
}

/** Metrics of requests under kube-apiserver's names (OPS-1). */
export interface RequestMetrics extends DeadlineMetrics, CollectionMetrics {
  /** Records an answered request, except a stream that `beginStream` records. */
  observe(request: {
    exchange: Exchange;
    info: RequestInfo;
    startMs: number;
    endMs: number;
    /** Milliseconds spent in admission webhooks and flow-control queues. */
    othersMs: number;
  }): void;
  /** Counts a stream as running; the caller calls the result, which is idempotent, at its end. */
  beginStream(
    exchange: Exchange,
    info: RequestInfo,
    time: { readonly othersMs: number },
  ): () => void;
  /** Records the gates of a request that has passed them, or that one has rejected. */
  observeGates(request: Answered | TimedOut): void;
  countDeprecatedUse(use: DeprecatedUse): void;
  /** Counts the creation of an aggregated discovery document. */
  countDiscoveryAggregation(): void;
  readonly podLogs: PodLogMetrics;
}

/** Counts requests for the logs of Pods, by verification of the kubelet's certificate. */
interface PodLogMetrics {
  countRequest(verification: 'skipped' | 'as configured'): void;
  /** Counts a request that failed because the kubelet's certificate was rejected. */
  countRejectedCertificate(): void;
}

/** Counts requests that timed out or were terminated. */
interface DeadlineMetrics {
  /** Counts a request that took too long, or that flow control rejected, once it is answered. */
  countTermination(exchange: Exchange, info: RequestInfo): void;
  /** Counts a rejected request for the API of another server. */
  countAggregatorRejection(exchange: Exchange, info: RequestInfo, status: number): void;
  /** Counts an aborted answer. */
  countAbort(exchange: Exchange, info: RequestInfo): void;
  /** Counts work that continued after a timeout, once it ends or is considered stuck. */
  countAfterTimeout(of: 'request' | 'write', came: AfterTimeout): void;
}

/** The outcome of work after a timeout; `pending` means that it has not ended for minutes. */
export type AfterTimeout = 'ok' | 'error' | 'panic' | 'pending';

/**
 * Registers the metrics. Only names in the catalogue become labels, so that clients cannot create
 * series.
 */
export function createRequestMetrics(options: {
  readonly registry: MetricRegistry;
  readonly snapshot: () => CatalogueSnapshot;
  readonly clock: Pick<Clock, 'monotonic'>;
  /** Names of users with their own label. */
  readonly knownUsers: readonly string[];
}): RequestMetrics {
  const { clock } = options;
  const families = createFamilies(options.registry);
  const measureValidation = fieldValidationMetrics(options.registry);
  const root = createNode();
  const streams = new WeakSet<Exchange>();
  const seriesOf = (exchange: Exchange, info: RequestInfo): Series | undefined => {
    const code = exchange.responseCode;
    if (code === undefined) return undefined;
    const { group, version, resource } = info;
    const place = subresourceLabel(info);
    if (place === undefined) return undefined;
    const snapshot = options.snapshot();
    const kind = requestKind(exchange, info, snapshot);
    const rest = kindKey(kind, code);
    const groupNode = root.children.get(group);
    const node = groupNode?.children.get(resource)?.children.get(version)?.children.get(place);
    const cached = node?.series.get(rest);
    if (cached !== undefined) return cached;
    const named = targetLabels(snapshot, { info, place });
    if (named === undefined) return undefined;
    const measured = measuredVerbs(snapshot, info);
    const series = createSeries(families, { kind, named, measured, code: String(code) });
    nodeAt(root, [group, resource, version, place]).series.set(rest, series);
    return series;
  };
  return {
    observe({ exchange, info, startMs, endMs, othersMs }) {
      if (isLongRunning(info) && streams.has(exchange)) return;
      const series = seriesOf(exchange, info);
      if (series === undefined) return;
      count(series, { tookMs: endMs - startMs, othersMs });
      measureBodies(series, exchange);
      if (series.bodies !== undefined) measureValidation(info.query, endMs - startMs);
    },
    beginStream(exchange, info, time) {
      streams.add(exchange);
      const startMs = clock.monotonic();
      const series = seriesOf(exchange, info);
      series?.running?.add(1);
      let isOver = false;
      return () => {
        if (isOver) return;
        isOver = true;
        series?.running?.add(-1);
        if (series === undefined) return;
        count(series, { tookMs: clock.monotonic() - startMs, othersMs: time.othersMs });
        measureStream(series, exchange, info);
      };
    },
    countDiscoveryAggregation: discoveryCounter(options.registry),
    podLogs: podLogMetrics(options.registry),
    observeGates: createGateMetrics(options),
    ...createCollectionMetrics(options.registry),
    ...deadlineMetrics(options),
    countDeprecatedUse({ info, version }) {
      const { group, resource, subresource } = info;
      const release = version.removedRelease ?? '';
      families.deprecated.of(group, version.version, resource, subresource, release).set(1);
    },
  };
}

/**
 * Series by group, resource, version, and subresource or path, and then by a number for the other
 * labels. A few lookups of short names cost less than building a long key for every request.
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
    const place = subresourceLabel(info);
    const named = place === undefined ? undefined : targetLabels(snapshot(), { info, place });
    return named && [reportedVerb(exchange, info), ...named, scopeOf(info)];
  };
  return {
    countTermination(exchange, info) {
      const labels = labelsOf(exchange, info);
      const code = String(exchange.responseCode);
      if (labels !== undefined) terminations.of(...labels, component, code).add(1);
    },
    countAggregatorRejection(exchange, info, status) {
      // The client chooses the path, except the group and version of an APIService.
      const { group, version } = info;
      const place = [group, version, '', '', scopeOf(info), 'aggregator'];
      terminations.of(reportedVerb(exchange, info), ...place, String(status)).add(1);
    },
    countAbort(exchange, info) {
      const labels = labelsOf(exchange, info);
      if (labels !== undefined) aborts.of(...labels).add(1);
    },
    countAfterTimeout(of, came) {
      afterTimeouts.of(of === 'write' ? 'rest-handler' : 'timeout-handler', came).add(1);
    },
  };
}

const directives: ReadonlySet<string> = new Set(['Ignore', 'Warn', 'Strict']);

/**
 * Measures writes by their `fieldValidation` (OPS-1). kube-apiserver registers this metric but
 * never observes it.
 */
function fieldValidationMetrics(
  registry: MetricRegistry,
): (query: URLSearchParams, tookMs: number) => void {
  const family = registry.histogram({
    name: 'field_validation_request_duration_seconds',
    help: 'Response latency distribution in seconds of writes for each field validation value.',
    stability: 'ALPHA',
    labels: ['field_validation'],
    buckets: slowBuckets,
  });
  const unset = family.of('');
  const seriesOf = (query: URLSearchParams): Histogram => {
    const directive = query.size === 0 ? null : query.get('fieldValidation');
    if (directive === null || directive === '') return unset;
    return family.of(directives.has(directive) ? directive : 'invalid');
  };
  return (query, tookMs) => seriesOf(query).observe(tookMs / 1000);
}

const attemptBuckets = Array.from({ length: 15 }, (_, step) => 0.001 * 2 ** step);
const filterBuckets = [0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 5, 10, 15, 30];

/**
 * Metrics of the gates under kube-apiserver's names (OPS-1). The returned function is called once
 * for each request at its end, and finds all series by property access.
 */
function createGateMetrics(options: {
  readonly registry: MetricRegistry;
  readonly snapshot: () => CatalogueSnapshot;
  /** User names with their own label; others are only classified as e-mail addresses or not. */
  readonly knownUsers: readonly string[];
}): (request: Answered | TimedOut) => void {
  const { registry } = options;
  const authentication = attempts(registry, 'authentication');
  const authorization = attempts(registry, 'authorization');
  const filters = filterMetrics(registry);
  const countUser = userCounter(options);
  const countOwn = ownRequestCounter(options);
  const recordAuthentication = (result: 'success' | 'failure' | 'error', tookMs: number): void => {
    authentication(result, tookMs / 1000);
    filters.authentication.observe(tookMs / 1000);
  };
  return ({ last, failure }) => {
    if (last.phase === 'arrived') return;
    if (last.phase === 'received') {
      if (!(failure?.error instanceof UnauthenticatedError)) return;
      const result = failure.error.credential === 'bad' ? 'error' : 'failure';
      return recordAuthentication(result, failure.failedMs - last.startMs);
    }
    recordAuthentication('success', last.authenticatedMs - last.startMs);
    countUser(last.requester);
    if (last.user.name === serverContext.user.name) countOwn(last);
    filters.observeGates(last);
    if (last.phase === 'authorized') {
      const seconds = (last.authorizedMs - last.admittedMs) / 1000;
      authorization('allowed', seconds);
      filters.authorization.observe(seconds);
    } else if (last.phase === 'admitted') {
      const result = rejectionOf(failure);
      if (result === undefined || failure === undefined) return;
      authorization(result, (failure.failedMs - last.admittedMs) / 1000);
    }
  };
}

/** The label of a request that authorization rejected; undefined for other failures. */
function rejectionOf(failure: Failure | undefined): 'error' | 'denied' | 'no-opinion' | undefined {
  if (!(failure?.error instanceof ForbiddenError)) return undefined;
  const { decision, error } = failure.error.result;
  if (error !== undefined) return 'error';
  return decision === 'deny' ? 'denied' : 'no-opinion';
}

type Attempt = (result: string, seconds: number) => void;

/** Registers the metrics of attempts by result; series are created on first use. */
function attempts(registry: MetricRegistry, gate: 'authentication' | 'authorization'): Attempt {
  const stability = 'ALPHA';
  const labels = ['result'];
  const total = registry.counter({
    name: gate === 'authentication' ? 'authentication_attempts' : 'authorization_attempts_total',
    help: `Number of requests that reached ${gate}, by result.`,
    stability,
    labels,
  });
  const duration = registry.histogram({
    name: `${gate}_duration_seconds`,
    help: `Duration of ${gate} in seconds, by result.`,
    stability,
    labels,
    buckets: attemptBuckets,
  });
  const seriesByResult = new Map<
    string,
    { readonly total: Counter; readonly duration: Histogram }
  >();
  return (result, seconds) => {
    let series = seriesByResult.get(result);
    if (series === undefined) {
      series = { total: total.of(result), duration: duration.of(result) };
      seriesByResult.set(result, series);
    }
    series.total.add(1);
    series.duration.observe(seconds);
  };
}

function filterMetrics(registry: MetricRegistry) {
  const family = registry.histogram({
    name: 'apiserver_request_filter_duration_seconds',
    help: 'Time in seconds that requests spent at each gate before their endpoint.',
    stability: 'ALPHA',
    labels: ['filter'],
    buckets: filterBuckets,
  });
  const of = (filter: string) => family.of(filter);
  const [impersonation, fairness] = [of('impersonation'), of('priorityandfairness')];
  let audit: Histogram | undefined;
  return {
    authentication: of('authentication'),
    authorization: of('authorization'),
    /** Records the gates between authentication and authorization. */
    observeGates(request: Authenticated | Admitted | Authorized): void {
      const { authenticatedMs, recordedMs } = request;
      if (recordedMs !== undefined) {
        audit ??= of('audit');
        audit.observe((recordedMs - authenticatedMs) / 1000);
      }
      if (request.phase === 'authenticated') return;
      const { seat, admittedMs } = request;
      if (seat.arrivalMs === undefined) return;
      impersonation.observe((seat.arrivalMs - (recordedMs ?? authenticatedMs)) / 1000);
      fairness.observe((admittedMs - seat.arrivalMs) / 1000);
    },
  };
}

function discoveryCounter(registry: MetricRegistry): () => void {
  return eventCounter(registry, {
    name: 'aggregator_discovery_aggregation_count_total',
    help: 'Number of aggregated discovery documents created.',
    stability: 'ALPHA',
  });
}

function podLogMetrics(registry: MetricRegistry): PodLogMetrics {
  const definition = (name: string, help: string) =>
    ({ name: `kube_apiserver_pod_logs_${name}`, help, stability: 'ALPHA' }) as const;
  const requests = registry.counter({
    ...definition(
      'insecure_backend_total',
      "Number of requests for the logs of Pods, by whether the kubelet's certificate is verified.",
    ),
    labels: ['usage'],
  });
  const failures = registry.counter({
    ...definition(
      'backend_tls_failure_total',
      "Number of requests for the logs of Pods that failed because the kubelet's certificate was rejected.",
    ),
    labels: [],
  });
  const failed = failures.of();
  return {
    countRequest: (verification) =>
      requests.of(verification === 'skipped' ? 'skip_tls_allowed' : 'enforce_tls').add(1),
    countRejectedCertificate: () => failed.add(1),
  };
}

/** Counts requests by the server's own user. */
function ownRequestCounter({
  registry,
  snapshot,
}: Parameters<typeof createGateMetrics>[0]): (
  request: Pick<Received, 'exchange' | 'info'>,
) => void {
  const family = registry.counter({
    name: 'apiserver_selfrequest_total',
    help: 'Number of requests of the server to itself, by verb, resource, and subresource.',
    stability: 'ALPHA',
    labels: ['verb', 'resource', 'subresource'],
  });
  return ({ exchange, info }) => {
    const place = subresourceLabel(info);
    const named = place === undefined ? undefined : targetLabels(snapshot(), { info, place });
    const [, , resource = '', part = ''] = named ?? [];
    const { verb } = requestKind(exchange, info, snapshot());
    if (named !== undefined) family.of(verb, resource, part).add(1);
  };
}

/**
 * Counts requests by user; caches the last series, because a client's requests share a user value.
 */
function userCounter({
  registry,
  knownUsers,
}: Parameters<typeof createGateMetrics>[0]): (user: { readonly name: string }) => void {
  const family = registry.counter({
    name: 'authenticated_user_requests',
    help: 'Number of authenticated requests, by user name; other users share labels.',
    stability: 'ALPHA',
    labels: ['username'],
  });
  const names = new Set(knownUsers);
  const labelOf = (name: string): string => {
    if (names.has(name)) return name;
    return name.includes('@') ? 'email_id' : 'other';
  };
  let last: { readonly user: object; readonly counter: Counter } | undefined;
  return (user) => {
    if (last?.user !== user) last = { user, counter: family.of(labelOf(user.name)) };
    last.counter.add(1);
  };
}
