import { acceptedMetaGroups, type Clock, type JsonObject } from '@wheelhouse/machinery/browser';
import { inParallel } from '../actions.ts';
import type { Api } from '../api.ts';
import { ApiFailure, failureOf, messageOf, objectOf, objectsOf, textOf } from '../failure.ts';
import { collectionPath, type Kind, type ObjectName } from '../kinds.ts';
import { fieldOwners } from '../ownership.ts';
import { isStaleVersion, pause } from '../table-store.ts';

/** The number of objects of a kind; undefined with the reason if it is unknown. */
export interface KindCount {
  readonly kind: Kind;
  readonly count: number | undefined;
  readonly message: string;
}

/** Media type for lists of metadata. */
export const metadataType = `application/json;as=PartialObjectMetadataList;v=v1;g=${acceptedMetaGroups[0]}`;

/** The kinds that can be listed, each in its preferred version. */
export function countedKinds(kinds: readonly Kind[]): Kind[] {
  return kinds.filter(({ preferred, verbs }) => preferred && verbs.includes('list'));
}

/**
 * Counts objects by lists with a limit of one, with bounded concurrency; calls `onCount` for each
 * kind. Rejects only with the signal's reason.
 */
export async function countObjects(
  api: Api,
  kinds: readonly Kind[],
  options: { readonly signal: AbortSignal; readonly onCount: (count: KindCount) => void },
): Promise<void> {
  const { signal, onCount } = options;
  await inParallel(kinds, async (kind) => {
    signal.throwIfAborted();
    try {
      const path = collectionPath(kind);
      const list = await api.json({ path, query: { limit: 1 }, accept: metadataType, signal });
      const { remainingItemCount: remaining } = objectOf(list, 'metadata');
      const rest = typeof remaining === 'number' ? remaining : 0;
      onCount({ kind, count: objectsOf(list, 'items').length + rest, message: '' });
    } catch (error) {
      signal.throwIfAborted();
      const message = error instanceof ApiFailure && error.code === 403 ? '' : messageOf(error);
      onCount({ kind, count: undefined, message });
    }
  });
}

/** A change of an object. */
export interface Activity {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly target: ObjectName;
  readonly resourceVersion: string;
  /** The manager of the last write; empty if unknown. */
  readonly manager: string;
  readonly atMs: number;
}

/** Media type for the metadata of one object. */
export const objectMetadataType = `application/json;as=PartialObjectMetadata;v=v1;g=${acceptedMetaGroups[0]}`;
/** Resources that change too often to be shown. */
const excludedResources = new Set(['leases', 'events']);
const rewatchMs = 3_000;

/** The kinds that can be watched, at most `streamsMax`. */
export function followedKinds(kinds: readonly Kind[], streamsMax: number): Kind[] {
  return kinds
    .filter(({ preferred, verbs, resource }) => {
      return (
        preferred &&
        verbs.includes('watch') &&
        verbs.includes('list') &&
        !excludedResources.has(resource)
      );
    })
    .slice(0, streamsMax);
}

/**
 * Watches kinds from now on and reports each change. Continues ended watches after a delay; skips
 * kinds that the user may not watch. Returns a function that stops all watches.
 */
export function followActivity(options: {
  readonly api: Api;
  readonly clock: Clock;
  readonly kinds: readonly Kind[];
  readonly onActivity: (activity: Activity) => void;
}): () => void {
  const { api, clock, kinds, onActivity } = options;
  const abort = new AbortController();
  const { signal } = abort;
  const writers = createWriterTracker();
  const follow = async (kind: Kind): Promise<void> => {
    let version = '';
    while (!signal.aborted) {
      try {
        version ||= await currentVersion(api, kind, signal);
        for await (const { type, metadata } of await changesSince({ api, kind, signal, version })) {
          version = textOf(metadata, 'resourceVersion') || version;
          if (type !== 'ADDED' && type !== 'MODIFIED' && type !== 'DELETED') continue;
          onActivity({
            type,
            target: targetOf(kind, metadata),
            resourceVersion: version,
            manager: writers.writerOf(metadata),
            atMs: clock.now(),
          });
        }
      } catch (error) {
        if (error instanceof ApiFailure && [401, 403, 404, 405].includes(error.code)) return;
        if (isStaleVersion(error)) version = '';
      }
      await pause(clock, rewatchMs, signal);
    }
  };
  for (const kind of kinds) void follow(kind);
  return () => abort.abort(new Error('closed'));
}

async function currentVersion(api: Api, kind: Kind, signal: AbortSignal): Promise<string> {
  const path = collectionPath(kind);
  const list = await api.json({ path, query: { limit: 1 }, accept: metadataType, signal });
  return textOf(objectOf(list, 'metadata'), 'resourceVersion');
}

/** The events of a watch, with bookmarks. */
async function* changesSince(of: {
  readonly api: Api;
  readonly kind: Kind;
  readonly signal: AbortSignal;
  readonly version: string;
}): AsyncGenerator<{ readonly type: string; readonly metadata: JsonObject }> {
  const { api, kind, signal, version: resourceVersion } = of;
  const path = collectionPath(kind);
  const query = { watch: 1, allowWatchBookmarks: 'true', resourceVersion };
  for await (const event of await api.stream({ path, query, accept: objectMetadataType, signal })) {
    const type = textOf(event, 'type');
    const object = objectOf(event, 'object');
    if (type === 'ERROR') throw failureOf(object, { code: 500 });
    yield { type, metadata: objectOf(object, 'metadata') };
  }
}

function targetOf(kind: Kind, metadata: JsonObject): ObjectName {
  const namespace = textOf(metadata, 'namespace') || undefined;
  return { kind, namespace, name: textOf(metadata, 'name') };
}

/** Maximum number of objects whose managed fields are tracked. */
const trackedMax = 1_000;

/**
 * Finds the manager of an object's last write: the one whose entry is new, or else has the latest
 * time.
 */
function createWriterTracker() {
  const entries = new Map<string, ReadonlySet<string>>();
  return {
    writerOf(metadata: JsonObject): string {
      const uid = textOf(metadata, 'uid');
      const owners = fieldOwners({ metadata });
      const before = entries.get(uid) ?? new Set();
      entries.delete(uid);
      entries.set(uid, new Set(owners.map((owner) => JSON.stringify(owner))));
      const [oldest] = entries.keys();
      if (entries.size > trackedMax && oldest !== undefined) entries.delete(oldest);
      const fresh = owners.filter((owner) => !before.has(JSON.stringify(owner)));
      const among = fresh.length > 0 ? fresh : owners;
      const newest = among.reduce((best, owner) => (owner.time >= best.time ? owner : best), {
        manager: '',
        time: '',
      });
      return newest.manager;
    },
  };
}

/** A sample of the server's metrics. */
export interface MetricsSample {
  readonly atMs: number;
  /** Total requests, by whether they failed. */
  readonly requests: { readonly all: number; readonly failed: number };
  /**
   * Cumulative histogram of request durations by bucket in seconds, without long-running requests.
   */
  readonly durations: ReadonlyMap<number, number>;
  /** Number of requests in flight. */
  readonly inFlight: number;
}

/** The difference between two samples. */
export interface TrafficPoint {
  readonly atMs: number;
  readonly requestsPerSecond: number;
  readonly errorsPerSecond: number;
  /** Undefined without requests. */
  readonly medianMs: number | undefined;
  readonly p99Ms: number | undefined;
  readonly inFlight: number;
}

const longRunning = /verb="(WATCH|CONNECT|WATCHLIST)"/i;

/** Parses the exposition text of `/metrics`; ignores other metrics. */
export function readMetrics(text: string, atMs: number): MetricsSample {
  let [all, failed, inFlight] = [0, 0, 0];
  const durations = new Map<number, number>();
  for (const line of text.split('\n')) {
    if (!line.startsWith('apiserver_')) continue;
    const value = Number(line.slice(line.lastIndexOf(' ') + 1));
    if (!Number.isFinite(value)) continue;
    if (line.startsWith('apiserver_request_total{')) {
      all += value;
      if (/code="[45]/.test(line)) failed += value;
    } else if (line.startsWith('apiserver_request_duration_seconds_bucket{')) {
      if (longRunning.test(line)) continue;
      const limit = Number(/le="([^"]+)"/.exec(line)?.[1]?.replace('+Inf', 'Infinity'));
      if (!Number.isNaN(limit)) durations.set(limit, (durations.get(limit) ?? 0) + value);
    } else if (line.startsWith('apiserver_current_inflight_requests{')) inFlight += value;
  }
  return { atMs, requests: { all, failed }, durations, inFlight };
}

/** The traffic between two samples; undefined if the server restarted in between. */
export function trafficBetween(
  before: MetricsSample,
  after: MetricsSample,
): TrafficPoint | undefined {
  const seconds = (after.atMs - before.atMs) / 1000;
  const requests = after.requests.all - before.requests.all;
  if (seconds <= 0 || requests < 0) return undefined;
  const counts = [...after.durations]
    .map(([limit, count]) => [limit, count - (before.durations.get(limit) ?? 0)] as const)
    .sort(([left], [right]) => left - right);
  return {
    atMs: after.atMs,
    requestsPerSecond: requests / seconds,
    errorsPerSecond: (after.requests.failed - before.requests.failed) / seconds,
    medianMs: quantileMs(counts, 0.5),
    p99Ms: quantileMs(counts, 0.99),
    inFlight: after.inFlight,
  };
}

/** Like `histogram_quantile`: interpolates linearly within a bucket. */
function quantileMs(
  buckets: readonly (readonly [limit: number, count: number])[],
  quantile: number,
): number | undefined {
  const total = buckets.at(-1)?.[1] ?? 0;
  if (total <= 0) return undefined;
  const rank = total * quantile;
  let [lower, below] = [0, 0];
  for (const [limit, count] of buckets) {
    if (count >= rank) {
      if (limit === Number.POSITIVE_INFINITY) return lower * 1000;
      const share = count === below ? 1 : (rank - below) / (count - below);
      return (lower + (limit - lower) * share) * 1000;
    }
    [lower, below] = [limit, count];
  }
  return lower * 1000;
}
