import type { CatalogueSnapshot, VersionDef } from '@wheelhouse/kinds';
import type { Exchange, Histogram, MetricRegistry } from '@wheelhouse/machinery';
import type { RequestInfo } from '../request/request-info.ts';
import type { Answered, TimedOut } from '../request/request-state.ts';
import { type CollectionMetrics, createCollectionMetrics } from './collection-metrics.ts';
import { createGateMetrics } from './gate-metrics.ts';
import { dryRunOf, kindKey, namedParts, placeOf, reportedVerb, scopeOf } from './request-labels.ts';
import {
  common,
  component,
  count,
  createFamilies,
  createSeries,
  measureBodies,
  type Series,
  slowBuckets,
} from './request-series.ts';

/** A request for a version that is on its way out (VER-3). */
export interface DeprecatedUse {
  readonly info: RequestInfo;
  readonly version: VersionDef;
}

/** Counts requests under upstream's names (OPS-1). */
export interface RequestMetrics extends DeadlineMetrics, CollectionMetrics {
  /** The request is answered; one whose answer is a stream says so by `longRunning`. */
  finished(request: {
    exchange: Exchange;
    info: RequestInfo;
    startMs: number;
    endMs: number;
    /** What of the time others took: webhooks of admission, and who was before it in a queue. */
    othersMs: number;
  }): void;
  /** A watch has begun; the function is called at its end, once or more often. */
  longRunning(
    exchange: Exchange,
    info: RequestInfo,
    time: { readonly othersMs: number },
  ): () => void;
  /** The request has come through the gates, or has been turned away at one. */
  passed(request: Answered | TimedOut): void;
  deprecated(use: DeprecatedUse): void;
}

/** Counts requests whose time was up. */
interface DeadlineMetrics {
  /** The server has answered in the place of what took too long. */
  terminated(exchange: Exchange, info: RequestInfo): void;
  /** An answer has been cut off half-way. */
  aborted(exchange: Exchange, info: RequestInfo): void;
  /** What went on behind a timeout has come to its end, or is waited for no longer. */
  afterTimeout(of: 'request' | 'write', came: AfterTimeout): void;
}

/** How what went on behind a timeout ended; `pending`: not yet, after minutes. */
export type AfterTimeout = 'ok' | 'error' | 'panic' | 'pending';

/**
 * Counts in `registry`. Only what the catalogue knows becomes a label: a client cannot make series
 * by asking for names of its own.
 */
export function createRequestMetrics(options: {
  readonly registry: MetricRegistry;
  readonly snapshot: () => CatalogueSnapshot;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  /** Names of users that are told apart. */
  readonly knownUsers: readonly string[];
}): RequestMetrics {
  const { now } = options;
  const families = createFamilies(options.registry);
  const measureValidation = fieldValidationMetrics(options.registry);
  const root = createNode();
  const seriesOf = (exchange: Exchange, info: RequestInfo): Series | undefined => {
    const code = exchange.answeredStatus;
    if (code === undefined) return undefined;
    const { group, version, resource } = info;
    const place = placeOf(info);
    if (place === undefined) return undefined;
    const verb = reportedVerb(exchange, info);
    const kind = { verb, scope: scopeOf(info), dryRun: dryRunOf(info) };
    const rest = kindKey(kind, code);
    const groupNode = root.children.get(group);
    const node = groupNode?.children.get(resource)?.children.get(version)?.children.get(place);
    const known = node?.series.get(rest);
    if (known !== undefined) return known;
    const named = namedParts(options.snapshot(), { info, place });
    if (named === undefined) return undefined;
    const series = createSeries(families, { kind, named, code: String(code) });
    nodeAt(root, [group, resource, version, place]).series.set(rest, series);
    return series;
  };
  return {
    finished({ exchange, info, startMs, endMs, othersMs }) {
      const isStream = info.verb === 'watch' && exchange.answeredStatus === 200;
      if (isStream && info.isResourceRequest) return;
      const series = seriesOf(exchange, info);
      if (series === undefined) return;
      count(series, { tookMs: endMs - startMs, othersMs });
      measureBodies(series, exchange);
      if (series.bodies !== undefined) measureValidation(info.query, endMs - startMs);
    },
    longRunning(exchange, info, time) {
      const startMs = now();
      const series = seriesOf(exchange, info);
      series?.running.add(1);
      let isOver = false;
      return () => {
        if (isOver) return;
        isOver = true;
        series?.running.add(-1);
        if (series === undefined) return;
        count(series, { tookMs: now() - startMs, othersMs: time.othersMs });
      };
    },
    passed: createGateMetrics(options),
    ...createCollectionMetrics(options.registry),
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

const directives: ReadonlySet<string> = new Set(['Ignore', 'Warn', 'Strict']);

/**
 * Measures writes by what their `fieldValidation` says (OPS-1). The reference has these series, and
 * never observes anything in them.
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
  const silent = family.of('');
  const seriesOf = (query: URLSearchParams): Histogram => {
    const given = query.size === 0 ? null : query.get('fieldValidation');
    if (given === null || given === '') return silent;
    return family.of(directives.has(given) ? given : 'invalid');
  };
  return (query, tookMs) => seriesOf(query).observe(tookMs / 1000);
}
