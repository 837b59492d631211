import {
  type Counter,
  type Gauge,
  type Histogram,
  isReadOnly,
  type MetricRegistry,
  type Stability,
} from '@wheelhouse/machinery';

/** Why a request is rejected. */
export type RejectionReason = 'queue-full' | 'concurrency-limit' | 'time-out' | 'cancelled';

/** Records the requests of one schema at one level. Times are in seconds. */
export interface FlowSeries {
  /** Records the estimated number of seats of a request. */
  observeEstimate(seats: number): void;
  /** Records that a request starts; `waited` is undefined for exempt levels. */
  begin(seats: number, waited: number | undefined): void;
  /** Records that a request was answered or its watch was established. */
  end(took: number, type: 'watch' | 'regular'): void;
  /** Records that a request's seats were released. */
  release(seats: number): void;
  /** Records that a request entered a queue, whose length includes it. */
  enqueue(queueLength: number): void;
  /** Records that a request starts (1) or stops (-1) waiting. */
  changeWaiting(requests: number, seats: number): void;
  reject(reason: RejectionReason, waited: number): void;
  /** Counts an attempt to dispatch a request that needs more seats than are free. */
  countNoAccommodation(): void;
  /** Records the number of watches that receive the events of a write. */
  observeWatches(watches: number): void;
}

/** The use of a level, which is constant between two changes. */
export interface LevelUsage {
  readonly seatsInUse: number;
  readonly seatsWaiting: number;
  readonly executing: { readonly length: number };
  readonly waiting: number;
  /** Nominal and current seats. */
  readonly nominal: number;
  readonly limit: number;
  /** Total capacity of its queues. */
  readonly room: number;
}

/** Records one level's use over time. */
export interface LevelSeries {
  /** Records that the usage was constant for this many nanoseconds. */
  observe(nanoseconds: number, usage: LevelUsage): void;
}

/** Returns the series of a flow schema at a priority level. */
export type SeriesOf = (level: string, schema: string) => FlowSeries;

const durationBuckets = [0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30];
const lengthBuckets = [0, 10, 25, 50, 100, 250, 500, 1000];
const seatsBuckets = [1, 2, 4, 10];
const watchBuckets = [0, 1, 10, 100, 1000, 10_000];
const demandBuckets = [0.2, 0.4, 0.6, 0.8, 1, 1.2, 1.4, 1.7, 2, 2.8, 4, 6];
const seatPartBuckets = [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1];
const requestPartBuckets = [0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.25, 0.5, 0.75, 1];

/** Maximum number of cached series; schemas come and go, and the registry bounds its own series. */
const seriesMax = 1000;

/** The priority level whose requests never wait. */
const exempt = 'exempt';

/** The values of a priority level that are measured, in seats. */
interface MeasuredLevel {
  readonly name: string;
  readonly nominal: number;
  readonly lower: number;
  readonly upper: number;
  readonly current: number;
  readonly demand: {
    readonly highWatermark: number;
    readonly average: number;
    readonly deviation: number;
    readonly smoothed: number;
    readonly target: number;
  };
  readonly set: { readonly progress: number; refresh(): void };
}

/** All priority levels, and the fraction of its target that each receives. */
interface MeasuredLevels {
  all(): Iterable<MeasuredLevel>;
  readonly fairFraction: number;
}

type Families = ReturnType<typeof createFamilies>;

/** Metrics of flow control under kube-apiserver's names (OPS-1, OPS-3). */
interface FlowMetrics {
  readonly seriesOf: SeriesOf;
  readonly levelSeriesOf: (level: string) => LevelSeries;
  /** Updates the gauges; called before metrics are read. */
  refresh(levels: MeasuredLevels): void;
}

/** Registers the metrics of flow control; series are created on first use. */
export function createFlowMetrics(registry: MetricRegistry): FlowMetrics {
  const families = createFamilies(registry);
  const updateLimits = limitGauges(registry);
  const seriesByKey = new Map<string, FlowSeries>();
  return {
    levelSeriesOf: levelSeries(registry),
    seriesOf(level, schema) {
      const key = `${level}\0${schema}`;
      let series = seriesByKey.get(key);
      if (series === undefined) {
        if (seriesByKey.size >= seriesMax) seriesByKey.clear();
        series = new CountedSeries(families, level, schema);
        seriesByKey.set(key, series);
      }
      return series;
    },
    refresh(levels) {
      families.progress.clear();
      for (const { name, set } of levels.all()) {
        set.refresh();
        families.progress.of(name).set(set.progress);
      }
      updateLimits(levels);
    },
  };
}

function metricMaker(registry: MetricRegistry) {
  const definition = (name: string, help: string, stability: Stability, labels: string[]) => ({
    name: `apiserver_flowcontrol_${name}`,
    help,
    stability,
    labels,
  });
  return {
    counter: (...of: Parameters<typeof definition>) => registry.counter(definition(...of)),
    gauge: (...of: Parameters<typeof definition>) => registry.gauge(definition(...of)),
    histogram: (buckets: readonly number[], ...of: Parameters<typeof definition>) =>
      registry.histogram({ ...definition(...of), buckets }),
  };
}

const flow = ['priority_level', 'flow_schema'];

function createFamilies(registry: MetricRegistry) {
  return { ...queueFamilies(registry), ...executionFamilies(registry) };
}

function queueFamilies(registry: MetricRegistry) {
  const { counter, gauge, histogram } = metricMaker(registry);
  return {
    rejected: counter('rejected_requests_total', 'Number of rejected requests.', 'BETA', [
      ...flow,
      'reason',
    ]),
    dispatched: counter('dispatched_requests_total', 'Number of executed requests.', 'BETA', flow),
    inQueue: gauge(
      'current_inqueue_requests',
      'Number of requests waiting in queues.',
      'BETA',
      flow,
    ),
    inQueueSeats: gauge(
      'current_inqueue_seats',
      'Number of seats that waiting requests need.',
      'ALPHA',
      flow,
    ),
    queueLength: histogram(
      lengthBuckets,
      'request_queue_length_after_enqueue',
      'Length of the queue that a request enters, including the request.',
      'ALPHA',
      flow,
    ),
    waited: histogram(
      durationBuckets,
      'request_wait_duration_seconds',
      'Time in seconds that requests waited in queues.',
      'BETA',
      [...flow, 'execute'],
    ),
  };
}

function executionFamilies(registry: MetricRegistry) {
  const { counter, gauge, histogram } = metricMaker(registry);
  return {
    executing: gauge('current_executing_requests', 'Number of executing requests.', 'BETA', flow),
    executingSeats: gauge('current_executing_seats', 'Number of seats in use.', 'BETA', flow),
    formerSeats: registry.gauge({
      name: 'apiserver_flowcontrol_request_concurrency_in_use',
      help: 'Number of seats in use.',
      stability: 'ALPHA',
      labels: flow,
      deprecatedFrom: '1.31',
    }),
    took: histogram(
      durationBuckets,
      'request_execution_seconds',
      'Execution time of requests in seconds; for watches, until they are established.',
      'ALPHA',
      [...flow, 'type'],
    ),
    watches: histogram(
      watchBuckets,
      'watch_count_samples',
      'Number of watches that receive the events of a write.',
      'ALPHA',
      flow,
    ),
    estimated: histogram(
      seatsBuckets,
      'work_estimated_seats',
      'Maximum number of seats that a request uses at once, as estimated.',
      'ALPHA',
      flow,
    ),
    tooWide: counter(
      'request_dispatch_no_accommodation_total',
      'Number of times that the next request to dispatch needed more seats than were free.',
      'ALPHA',
      flow,
    ),
    progress: gauge('current_r', 'Seat-seconds of service per queue (R).', 'ALPHA', [
      'priority_level',
    ]),
  };
}

/** The series of one schema at one level, created on first use. */
class CountedSeries implements FlowSeries {
  readonly #families: Families;
  readonly #level: string;
  readonly #schema: string;
  readonly #executing: Gauge;
  readonly #executingSeats: Gauge;
  readonly #formerSeats: Gauge;
  readonly #estimated: Histogram;
  #dispatched: Counter | undefined;
  #waited: Histogram | undefined;
  #took: Histogram | undefined;
  #queueLength: Histogram | undefined;
  #inQueue: Gauge | undefined;
  #inQueueSeats: Gauge | undefined;
  #watches: Histogram | undefined;

  constructor(families: Families, level: string, schema: string) {
    this.#families = families;
    this.#level = level;
    this.#schema = schema;
    this.#executing = families.executing.of(level, schema);
    this.#executingSeats = families.executingSeats.of(level, schema);
    this.#formerSeats = families.formerSeats.of(level, schema);
    this.#estimated = families.estimated.of(level, schema);
    if (level === exempt) return;
    this.#inQueue = families.inQueue.of(level, schema);
    this.#inQueueSeats = families.inQueueSeats.of(level, schema);
  }

  observeEstimate(seats: number): void {
    this.#estimated.observe(seats);
  }

  begin(seats: number, waited: number | undefined): void {
    this.#executing.add(1);
    this.#executingSeats.add(seats);
    this.#formerSeats.add(seats);
    this.#dispatched ??= this.#families.dispatched.of(this.#level, this.#schema);
    this.#dispatched.add(1);
    if (waited === undefined) return;
    this.#waited ??= this.#families.waited.of(this.#level, this.#schema, 'true');
    this.#waited.observe(waited);
  }

  end(took: number, type: 'watch' | 'regular'): void {
    this.#executing.add(-1);
    if (type === 'watch') {
      this.#families.took.of(this.#level, this.#schema, type).observe(took);
      return;
    }
    this.#took ??= this.#families.took.of(this.#level, this.#schema, type);
    this.#took.observe(took);
  }

  release(seats: number): void {
    this.#executingSeats.add(-seats);
    this.#formerSeats.add(-seats);
  }

  enqueue(queueLength: number): void {
    this.#queueLength ??= this.#families.queueLength.of(this.#level, this.#schema);
    this.#queueLength.observe(queueLength);
  }

  changeWaiting(requests: number, seats: number): void {
    this.#inQueue ??= this.#families.inQueue.of(this.#level, this.#schema);
    this.#inQueueSeats ??= this.#families.inQueueSeats.of(this.#level, this.#schema);
    this.#inQueue.add(requests);
    this.#inQueueSeats.add(seats);
  }

  reject(reason: RejectionReason, waited: number): void {
    this.#families.rejected.of(this.#level, this.#schema, reason).add(1);
    this.#families.waited.of(this.#level, this.#schema, 'false').observe(waited);
  }

  countNoAccommodation(): void {
    this.#families.tooWide.of(this.#level, this.#schema).add(1);
  }

  observeWatches(watches: number): void {
    this.#watches ??= this.#families.watches.of(this.#level, this.#schema);
    this.#watches.observe(watches);
  }
}

/** Registers histograms of each level's use, weighted by time in nanoseconds. */
function levelSeries(registry: MetricRegistry): (level: string) => LevelSeries {
  const { histogram } = metricMaker(registry);
  const level = ['priority_level'];
  const demand = histogram(
    demandBuckets,
    'demand_seats',
    'Demanded seats at each nanosecond, as a fraction of the nominal seats.',
    'ALPHA',
    level,
  );
  const seats = histogram(
    seatPartBuckets,
    'priority_level_seat_utilization',
    'Seats in use at each nanosecond, as a fraction of the current limit.',
    'ALPHA',
    ['phase', ...level],
  );
  const requests = histogram(
    requestPartBuckets,
    'priority_level_request_utilization',
    'Executing or waiting requests at each nanosecond, as a fraction of their limit.',
    'ALPHA',
    ['phase', ...level],
  );
  return (name) => {
    const demandHistogram = demand.of(name);
    const seatHistogram = seats.of('executing', name);
    const running = requests.of('executing', name);
    const waiting = requests.of('waiting', name);
    return {
      observe(nanoseconds, usage) {
        const limit = Math.max(1, usage.limit);
        const demandedSeats = usage.seatsInUse + usage.seatsWaiting;
        demandHistogram.observe(demandedSeats / Math.max(1, usage.nominal), nanoseconds);
        seatHistogram.observe(usage.seatsInUse / limit, nanoseconds);
        running.observe(usage.executing.length / limit, nanoseconds);
        waiting.observe(usage.waiting / Math.max(1, usage.room), nanoseconds);
      },
    };
  };
}

/** Registers gauges of the levels' limits and demand at the last adjustment. */
function limitGauges(registry: MetricRegistry): (levels: MeasuredLevels) => void {
  const { gauge } = metricMaker(registry);
  const level = ['priority_level'];
  const of = (name: string, help: string, stability: Stability = 'ALPHA') =>
    gauge(name, help, stability, level);
  const gauges: readonly (readonly [ReturnType<typeof of>, (level: MeasuredLevel) => number])[] = [
    [of('nominal_limit_seats', 'Nominal number of seats.', 'BETA'), ({ nominal }) => nominal],
    [
      registry.gauge({
        name: 'apiserver_flowcontrol_request_concurrency_limit',
        help: 'Nominal number of seats.',
        stability: 'ALPHA',
        labels: level,
        deprecatedFrom: '1.30',
      }),
      ({ nominal }) => nominal,
    ],
    [of('lower_limit_seats', 'Number of seats that are never lent.'), ({ lower }) => lower],
    [
      of('upper_limit_seats', 'Maximum number of seats, including borrowed ones.'),
      ({ upper }) => upper,
    ],
    [of('current_limit_seats', 'Current number of seats.'), ({ current }) => current],
    [
      of('demand_seats_high_watermark', 'Maximum demand for seats in the last adjustment period.'),
      ({ demand }) => demand.highWatermark,
    ],
    [
      of('demand_seats_average', 'Average demand for seats in the last adjustment period.'),
      ({ demand }) => demand.average,
    ],
    [
      of(
        'demand_seats_stdev',
        'Standard deviation of the demand for seats in the last adjustment period.',
      ),
      ({ demand }) => demand.deviation,
    ],
    [of('demand_seats_smoothed', 'Smoothed demand for seats.'), ({ demand }) => demand.smoothed],
    [of('target_seats', 'Target number of seats.'), ({ demand }) => demand.target],
  ];
  const fair = gauge(
    'seat_fair_frac',
    'Fraction of its target that each level receives.',
    'ALPHA',
    [],
  );
  return (levels) => {
    for (const [family, number] of gauges) {
      family.clear();
      for (const level of levels.all()) family.of(level.name).set(number(level));
    }
    fair.of().set(levels.fairFraction);
  };
}

/** Higher counts are recorded as this one. */
const countMax = 4095;
const buckets = [0, 0.001, 0.01, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1];

/** Accumulates the time spent at each number of requests, so that a change costs one addition. */
class TimeAtCounts {
  /** Milliseconds at each count since the last reading. */
  readonly #times: number[] = [0];
  #count = 0;
  #sinceMs: number;

  constructor(nowMs: number) {
    this.#sinceMs = nowMs;
  }

  change(by: number, nowMs: number): void {
    const at = Math.min(this.#count, countMax);
    this.#times[at] = (this.#times[at] ?? 0) + Math.max(0, nowMs - this.#sinceMs);
    this.#sinceMs = nowMs;
    this.#count += by;
    while (this.#times.length <= Math.min(this.#count, countMax)) this.#times.push(0);
  }

  /** Observes the time at each count, in nanoseconds, with the count as a fraction of `limit`. */
  flushTo(histogram: Histogram, limit: number): void {
    for (const [count, timeMs] of this.#times.entries()) {
      if (timeMs === 0) continue;
      histogram.observe(count / Math.max(1, limit), Math.round(timeMs * 1e6));
      this.#times[count] = 0;
    }
  }
}

interface Limits {
  readonly readOnly: number;
  readonly mutating: number;
  /** Total capacity of all queues. */
  readonly waiting: number;
}

/** Measures running and waiting requests, separately for reads and writes. Times are monotonic. */
export class KindUsage {
  readonly #executing: { readonly readOnly: TimeAtCounts; readonly mutating: TimeAtCounts };
  readonly #waiting: { readonly readOnly: TimeAtCounts; readonly mutating: TimeAtCounts };

  constructor(nowMs: number) {
    const pair = () => ({ readOnly: new TimeAtCounts(nowMs), mutating: new TimeAtCounts(nowMs) });
    this.#executing = pair();
    this.#waiting = pair();
  }

  executing(verb: string, by: 1 | -1, nowMs: number): void {
    const { readOnly, mutating } = this.#executing;
    (isReadOnly(verb) ? readOnly : mutating).change(by, nowMs);
  }

  waiting(verb: string, by: 1 | -1, nowMs: number): void {
    const { readOnly, mutating } = this.#waiting;
    (isReadOnly(verb) ? readOnly : mutating).change(by, nowMs);
  }

  /** Registers the metric; the returned function updates it (OPS-1). */
  measureIn(registry: MetricRegistry): (nowMs: number, limits: Limits) => void {
    const family = registry.histogram({
      name: 'apiserver_flowcontrol_read_vs_write_current_requests',
      help: 'Executing or waiting requests at each nanosecond, as a fraction of the limit of their kind.',
      stability: 'ALPHA',
      labels: ['phase', 'request_kind'],
      buckets,
    });
    return (nowMs, limits) => {
      for (const kind of ['readOnly', 'mutating'] as const) {
        const show = (phase: string, times: TimeAtCounts, limit: number) => {
          times.change(0, nowMs);
          times.flushTo(family.of(phase, kind), limit);
        };
        show('executing', this.#executing[kind], limits[kind]);
        show('waiting', this.#waiting[kind], limits.waiting);
      }
    };
  }
}
