import type { ResourceDef, VersionDef } from '@wheelhouse/kinds';
import type { Counter, MetricRegistry } from '@wheelhouse/machinery';
import type { RequestInfo } from '../request/parse-request.ts';
import { scopeOf } from './request-series.ts';

/** Metrics of lists and watches under kube-apiserver's names (OPS-1). */
export interface CollectionMetrics {
  /** A list was answered from the watch cache. */
  listed(
    def: ResourceDef,
    list: { readonly count: number; readonly examined?: number | undefined },
  ): void;
  /** A consistent read was answered from the watch cache, or timed out. */
  readNewest(def: ResourceDef, success: boolean): void;
  /** The counter of a version's watch events: bytes of an event, and its number of watchers. */
  eventsOf(def: ResourceDef, version: VersionDef): (bytes: number, watchers: number) => void;
  /** A watch has sent all of its initial objects. */
  watchListed(info: RequestInfo, tookMs: number): void;
}

const eventBuckets = Array.from({ length: 8 }, (_, step) => 1024 * 2 ** step);
const watchListBuckets = [0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 2, 4, 6, 8, 10, 15, 20, 30, 45, 60];

/** Registers the metrics; call it once per registry. */
export function createCollectionMetrics(registry: MetricRegistry): CollectionMetrics {
  return { ...listMetrics(registry), ...watchMetrics(registry) };
}

interface ListSeries {
  readonly lists: Counter;
  readonly examined: Counter;
  readonly returned: Counter;
}

function listMetrics(registry: MetricRegistry): Pick<CollectionMetrics, 'listed' | 'readNewest'> {
  const counter = (name: string, help: string, labels: readonly string[]) =>
    registry.counter({ name, help, stability: 'ALPHA', labels });
  const lists = counter('apiserver_cache_list_total', 'Lists answered from a watch cache.', [
    'resource_prefix',
    'index',
  ]);
  const examined = counter(
    'apiserver_cache_list_fetched_objects_total',
    'Objects that were looked at for lists in a watch cache.',
    ['resource_prefix', 'index'],
  );
  const returned = counter(
    'apiserver_cache_list_returned_objects_total',
    'Objects in lists that were answered from a watch cache.',
    ['resource_prefix'],
  );
  const newest = counter(
    'apiserver_watch_cache_consistent_read_total',
    'Lists of what is newest that a watch cache was to answer, by whether it could.',
    ['resource', 'success', 'fallback'],
  );
  const seriesByKind = new WeakMap<ResourceDef, ListSeries>();
  const seriesOf = (def: ResourceDef): ListSeries => {
    const found = seriesByKind.get(def);
    if (found !== undefined) return found;
    const prefix = shownPrefix(def);
    const made = {
      lists: lists.of(prefix, ''),
      examined: examined.of(prefix, ''),
      returned: returned.of(prefix),
    };
    seriesByKind.set(def, made);
    return made;
  };
  return {
    listed(def, list) {
      const series = seriesOf(def);
      series.lists.add(1);
      series.examined.add(list.examined ?? list.count);
      series.returned.add(list.count);
    },
    readNewest: (def, success) => newest.of(shownPrefix(def), String(success), 'false').add(1),
  };
}

/** The storage prefix as kube-apiserver shows it: `/pods`, `/example.com/foos`. */
function shownPrefix({ storage: { prefix } }: ResourceDef): string {
  return prefix.replace(/^\/registry/, '').replace(/\/$/, '');
}

function watchMetrics(
  registry: MetricRegistry,
): Pick<CollectionMetrics, 'eventsOf' | 'watchListed'> {
  const stability = 'ALPHA';
  const labels = ['group', 'version', 'kind'];
  const events = registry.counter({
    name: 'apiserver_watch_events_total',
    help: 'Events that were sent to watches.',
    stability,
    labels,
  });
  const sizes = registry.histogram({
    name: 'apiserver_watch_events_sizes',
    help: 'Bytes in the events that were sent to watches.',
    stability,
    labels,
    buckets: eventBuckets,
  });
  const watchLists = registry.histogram({
    name: 'apiserver_watch_list_duration_seconds',
    help: 'How long it took until watches that list first had sent their list.',
    stability,
    labels: ['group', 'version', 'resource', 'scope'],
    buckets: watchListBuckets,
  });
  const counterByVersion = new WeakMap<VersionDef, (bytes: number, watchers: number) => void>();
  return {
    eventsOf(def, version) {
      const found = counterByVersion.get(version);
      if (found !== undefined) return found;
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
    watchListed(info, tookMs) {
      const { group, version, resource } = info;
      watchLists.of(group, version, resource, scopeOf(info)).observe(tookMs / 1000);
    },
  };
}
