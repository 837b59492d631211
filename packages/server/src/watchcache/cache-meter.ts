import type { Counter, Family, Histogram, MetricRegistry } from '@wheelhouse/machinery';

/** The metrics of one cache; series are created on first use. */
export class CacheMeter {
  readonly #families: Families;
  readonly #resource: string;
  readonly #onClosed: () => void;
  #received: Counter | undefined;
  #storeEvents: Counter | undefined;
  #dispatched: Counter | undefined;
  #initial: Counter | undefined;
  #waited: Histogram | undefined;
  /** The newest revision that the cache has reached; undefined before it is loaded. */
  revision: () => number | undefined = () => undefined;
  /** Maximum number of changes that the cache keeps for watches from earlier versions. */
  capacity: number | undefined;

  constructor(families: Families, resource: string, onClosed: () => void) {
    this.#families = families;
    this.#resource = resource;
    this.#onClosed = onClosed;
  }

  /** Counts a load of all objects from the store. */
  countLoad(): void {
    this.#families.loads.of(this.#resource).add(1);
  }

  /** Counts changes that the store reported. */
  countReceived(events: number): void {
    this.#received ??= this.#families.received.of(this.#resource);
    this.#storeEvents ??= this.#families.storeEvents.of(this.#resource);
    this.#received.add(events);
    this.#storeEvents.add(events);
  }

  /** Counts changes sent to watchers. */
  countDispatched(events: number): void {
    this.#dispatched ??= this.#families.dispatched.of(this.#resource);
    this.#dispatched.add(events);
  }

  /** Counts initial objects sent to a watcher. */
  countInitial(events: number): void {
    this.#initial ??= this.#families.initial.of(this.#resource);
    this.#initial.add(events);
  }

  /** Counts a watcher that is disconnected because it is too slow. */
  countTerminated(): void {
    this.#families.cutOff.of(this.#resource).add(1);
  }

  /** Records how long a read waited for the cache to catch up, in seconds. */
  observeWait(seconds: number): void {
    this.#waited ??= this.#families.waited.of(this.#resource);
    this.#waited.observe(seconds);
  }

  /** Counts a stored object that cannot be read. */
  countUnreadable(): void {
    this.#families.unreadable.of(this.#resource).add(1);
  }

  /** Removes the cache's series when it is closed. */
  close(): void {
    this.#onClosed();
  }

  /** Updates the gauges. */
  refresh(): void {
    const revision = this.revision();
    if (revision !== undefined) this.#families.revision.of(this.#resource).set(revision);
    const { capacity } = this;
    if (capacity !== undefined) this.#families.capacity.of(this.#resource).set(capacity);
  }
}

/** Creates a meter for each cache, under kube-apiserver's names (OPS-1). */
interface CacheMeters {
  /** `resource`: `pods`, `deployments.apps`. */
  of(resource: string): CacheMeter;
  /** Updates all gauges. */
  refresh(): void;
}

/** Registers the metrics of watch caches; must be called once per registry. */
export function createCacheMeters(registry: MetricRegistry): CacheMeters {
  const families = createFamilies(registry);
  const meters = new Set<CacheMeter>();
  return {
    of(resource) {
      const meter: CacheMeter = new CacheMeter(families, resource, () => meters.delete(meter));
      meters.add(meter);
      return meter;
    },
    refresh() {
      families.revision.clear();
      families.capacity.clear();
      for (const meter of meters) meter.refresh();
    },
  };
}

type Families = ReturnType<typeof createFamilies>;

const waitBuckets = [0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3];

function createFamilies(registry: MetricRegistry) {
  const stability = 'ALPHA';
  const labels = ['resource'];
  const counter = (name: string, help: string): Family<Counter> =>
    registry.counter({ name, help, stability, labels });
  return {
    loads: counter(
      'apiserver_watch_cache_initializations_total',
      'Number of loads of all objects of a resource into its watch cache.',
    ),
    received: counter(
      'apiserver_watch_cache_events_received_total',
      'Number of changes that the watch cache of a resource received.',
    ),
    storeEvents: counter(
      'apiserver_storage_events_received_total',
      'Number of changes that the store reported, by resource.',
    ),
    dispatched: counter(
      'apiserver_watch_cache_events_dispatched_total',
      'Number of changes that the watch cache of a resource sent to its watchers.',
    ),
    initial: counter(
      'apiserver_init_events_total',
      'Number of existing objects sent as events at the start of watches, by resource.',
    ),
    cutOff: counter(
      'apiserver_terminated_watchers_total',
      'Number of watches ended because their clients did not keep up, by resource.',
    ),
    unreadable: counter(
      'apiserver_storage_decode_errors_total',
      'Number of stored objects that could not be decoded, by resource.',
    ),
    waited: registry.histogram({
      name: 'apiserver_watch_cache_read_wait_seconds',
      help: 'Time in seconds that reads waited for the watch cache to reach the requested version.',
      stability,
      labels,
      buckets: waitBuckets,
    }),
    capacity: registry.gauge({
      name: 'watch_cache_capacity',
      help: 'Maximum number of changes that the watch cache of a resource keeps.',
      stability,
      labels,
    }),
    revision: registry.gauge({
      name: 'apiserver_watch_cache_resource_version',
      help: 'The newest resourceVersion in the watch cache of a resource.',
      stability,
      labels,
    }),
  };
}
