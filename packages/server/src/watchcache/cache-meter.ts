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
  /** The newest revision the cache has; undefined before it is loaded. */
  revision: () => number | undefined = () => undefined;
  /** Maximum number of changes that the cache keeps for watches from earlier versions. */
  capacity: number | undefined;

  constructor(families: Families, resource: string, onClosed: () => void) {
    this.#families = families;
    this.#resource = resource;
    this.#onClosed = onClosed;
  }

  /** Counts a load of all objects from the store. */
  loaded(): void {
    this.#families.loads.of(this.#resource).add(1);
  }

  /** Counts changes that the store reported. */
  received(events: number): void {
    this.#received ??= this.#families.received.of(this.#resource);
    this.#storeEvents ??= this.#families.storeEvents.of(this.#resource);
    this.#received.add(events);
    this.#storeEvents.add(events);
  }

  /** Counts changes that were sent to watchers. */
  dispatched(events: number): void {
    this.#dispatched ??= this.#families.dispatched.of(this.#resource);
    this.#dispatched.add(events);
  }

  /** Counts initial objects that were sent to a watcher. */
  sentInitial(events: number): void {
    this.#initial ??= this.#families.initial.of(this.#resource);
    this.#initial.add(events);
  }

  /** Counts a watcher that was disconnected because it was too slow. */
  cutOff(): void {
    this.#families.cutOff.of(this.#resource).add(1);
  }

  /** Counts a read that waited for freshness, in seconds. */
  waited(seconds: number): void {
    this.#waited ??= this.#families.waited.of(this.#resource);
    this.#waited.observe(seconds);
  }

  /** Counts a stored object that cannot be read. */
  unreadable(): void {
    this.#families.unreadable.of(this.#resource).add(1);
  }

  /** Removes the cache's series when it is closed. */
  closed(): void {
    this.#onClosed();
  }

  /** Updates the gauges. */
  look(): void {
    const revision = this.revision();
    if (revision !== undefined) this.#families.revision.of(this.#resource).set(revision);
    const { capacity } = this;
    if (capacity !== undefined) this.#families.capacity.of(this.#resource).set(capacity);
  }
}

/** Creates a meter for each cache, under kube-apiserver's names (OPS-1). */
export interface CacheMeters {
  /** `resource`: `pods`, `deployments.apps`. */
  of(resource: string): CacheMeter;
  /** Updates all gauges. */
  look(): void;
}

/** Registers the metrics; call it once per registry. */
export function createCacheMeters(registry: MetricRegistry): CacheMeters {
  const families = createFamilies(registry);
  const meters = new Set<CacheMeter>();
  return {
    of(resource) {
      const meter: CacheMeter = new CacheMeter(families, resource, () => meters.delete(meter));
      meters.add(meter);
      return meter;
    },
    look() {
      families.revision.clear();
      families.capacity.clear();
      for (const meter of meters) meter.look();
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
      'Number of times that the objects of a resource were loaded into its watch cache.',
    ),
    received: counter(
      'apiserver_watch_cache_events_received_total',
      'Changes that the watch cache of a resource received.',
    ),
    storeEvents: counter(
      'apiserver_storage_events_received_total',
      'Changes that the store reported, by resource.',
    ),
    dispatched: counter(
      'apiserver_watch_cache_events_dispatched_total',
      'Changes that the watch cache of a resource sent to its watchers.',
    ),
    initial: counter(
      'apiserver_init_events_total',
      'Existing objects that were sent as events at the start of a watch.',
    ),
    cutOff: counter(
      'apiserver_terminated_watchers_total',
      'Watches that were ended because their clients did not keep up, by resource.',
    ),
    unreadable: counter(
      'apiserver_storage_decode_errors_total',
      'Stored objects that could not be decoded, by resource.',
    ),
    waited: registry.histogram({
      name: 'apiserver_watch_cache_read_wait_seconds',
      help: 'Time that reads waited for the watch cache to reach the requested version.',
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
