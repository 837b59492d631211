import {
  type Counter,
  type Gauge,
  type Histogram,
  isReadOnly,
  type MetricRegistry,
  type Stability,
} from '@wheelhouse/machinery';

/** Why a request is rejected. */
export type Refusal = 'queue-full' | 'concurrency-limit' | 'time-out' | 'cancelled';

/** The metrics of one schema's requests at one level. Times are in seconds. */
export interface FlowSeries {
  /** A request was estimated at this many seats. */
  estimated(seats: number): void;
  /** A request starts; `waited` is undefined for exempt levels. */
  began(seats: number, waited: number | undefined): void;
  /** A request was answered, or its watch was established. */
  ended(took: number, type: 'watch' | 'regular'): void;
  /** A request's seats were released. */
  released(seats: number): void;
  /** A request entered a queue of this length. */
  arrived(queueLength: number): void;
  /** A request starts (1) or stops (-1) waiting. */
  waiting(requests: number, seats: number): void;
  refused(reason: Refusal, waited: number): void;
  /** The next request needs more seats than are free. */
  tooWide(): void;
  /** This many watches receive the events of a write. */
  watched(watches: number): void;
}

/** The use of a level between two changes. */
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

/** The metrics of one level's use over time. */
export interface LevelSeries {
  /** The usage was constant for this many nanoseconds. */
  lasted(nanoseconds: number, usage: LevelUsage): void;
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
const knownMax = 1000;

/** The priority level whose requests never wait. */
const exempt = 'exempt';

/** A priority level as its metrics show it; counts are of seats. */
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
  readonly set: { readonly progress: number; look(): void };
}

/** All priority levels, and the fraction of its target that each receives. */
interface MeasuredLevels {
  all(): Iterable<MeasuredLevel>;
  readonly fairPart: number;
}

type Families = ReturnType<typeof createFamilies>;

/** Metrics of flow control under kube-apiserver's names (OPS-1, OPS-3). */
export interface FlowMetrics {
  readonly seriesOf: SeriesOf;
  readonly levelSeriesOf: (level: string) => LevelSeries;
  /** Updates the gauges; called before metrics are read. */
  look(levels: MeasuredLevels): void;
}

/** Registers the metrics; series are created on first use. */
export function createFlowMetrics(registry: MetricRegistry): FlowMetrics {
  const families = createFamilies(registry);
  const showLimits = limitGauges(registry);
  const seriesByKey = new Map<string, FlowSeries>();
  return {
    levelSeriesOf: levelSeries(registry),
    seriesOf(level, schema) {
      const key = `${level}\0${schema}`;
      let series = seriesByKey.get(key);
      if (series === undefined) {
        if (seriesByKey.size >= knownMax) seriesByKey.clear();
        series = new CountedSeries(families, level, schema);
        seriesByKey.set(key, series);
      }
      return series;
    },
    look(levels) {
      families.progress.clear();
      for (const { name, set } of levels.all()) {
        set.look();
        families.progress.of(name).set(set.progress);
      }
      showLimits(levels);
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
    /** A time-weighted histogram, which kube-apiserver shows without a stability level. */
    timed: (buckets: readonly number[], ...of: Parameters<typeof definition>) =>
      registry.histogram({ ...definition(...of), buckets, shownStability: 'left-out' }),
  };
}

const flow = ['priority_level', 'flow_schema'];

function createFamilies(registry: MetricRegistry) {
  const { counter, gauge, histogram } = metricMaker(registry);
  return {
    rejected: counter('rejected_requests_total', 'Number of requests turned away.', 'BETA', [
      ...flow,
      'reason',
    ]),
    dispatched: counter('dispatched_requests_total', 'Number of requests run.', 'BETA', flow),
    inQueue: gauge('current_inqueue_requests', 'Number of requests that wait.', 'BETA', flow),
    inQueueSeats: gauge('current_inqueue_seats', 'Seats that are waited for.', 'ALPHA', flow),
    queueLength: histogram(
      lengthBuckets,
      'request_queue_length_after_enqueue',
      'Length of the queue that a request has come to, itself included.',
      'ALPHA',
      flow,
    ),
    executing: gauge('current_executing_requests', 'Number of requests that run.', 'BETA', flow),
    executingSeats: gauge('current_executing_seats', 'Seats taken.', 'BETA', flow),
    formerSeats: registry.gauge({
      name: 'apiserver_flowcontrol_request_concurrency_in_use',
      help: 'Seats taken.',
      stability: 'ALPHA',
      labels: flow,
      deprecatedFrom: '1.31',
    }),
    waited: histogram(
      durationBuckets,
      'request_wait_duration_seconds',
      'How long requests waited for their turn.',
      'BETA',
      [...flow, 'execute'],
    ),
    took: histogram(
      durationBuckets,
      'request_execution_seconds',
      'How long requests ran; of watches, until they stood.',
      'ALPHA',
      [...flow, 'type'],
    ),
    watches: histogram(
      watchBuckets,
      'watch_count_samples',
      'How many watches see what a request writes.',
      'ALPHA',
      flow,
    ),
    estimated: histogram(
      seatsBuckets,
      'work_estimated_seats',
      'Most seats that a request is given at once.',
      'ALPHA',
      flow,
    ),
    tooWide: counter(
      'request_dispatch_no_accommodation_total',
      'Times a request whose turn had come wanted more seats than were free.',
      'ALPHA',
      flow,
    ),
    progress: gauge('current_r', 'Seat-seconds served to each queue.', 'ALPHA', ['priority_level']),
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

  estimated(seats: number): void {
    this.#estimated.observe(seats);
  }

  began(seats: number, waited: number | undefined): void {
    this.#executing.add(1);
    this.#executingSeats.add(seats);
    this.#formerSeats.add(seats);
    this.#dispatched ??= this.#families.dispatched.of(this.#level, this.#schema);
    this.#dispatched.add(1);
    if (waited === undefined) return;
    this.#waited ??= this.#families.waited.of(this.#level, this.#schema, 'true');
    this.#waited.observe(waited);
  }

  ended(took: number, type: 'watch' | 'regular'): void {
    this.#executing.add(-1);
    if (type === 'watch') {
      this.#families.took.of(this.#level, this.#schema, type).observe(took);
      return;
    }
    this.#took ??= this.#families.took.of(this.#level, this.#schema, type);
    this.#took.observe(took);
  }

  released(seats: number): void {
    this.#executingSeats.add(-seats);
    this.#formerSeats.add(-seats);
  }

  arrived(queueLength: number): void {
    this.#queueLength ??= this.#families.queueLength.of(this.#level, this.#schema);
    this.#queueLength.observe(queueLength);
  }

  waiting(requests: number, seats: number): void {
    this.#inQueue ??= this.#families.inQueue.of(this.#level, this.#schema);
    this.#inQueueSeats ??= this.#families.inQueueSeats.of(this.#level, this.#schema);
    this.#inQueue.add(requests);
    this.#inQueueSeats.add(seats);
  }

  refused(reason: Refusal, waited: number): void {
    this.#families.rejected.of(this.#level, this.#schema, reason).add(1);
    this.#families.waited.of(this.#level, this.#schema, 'false').observe(waited);
  }

  tooWide(): void {
    this.#families.tooWide.of(this.#level, this.#schema).add(1);
  }

  watched(watches: number): void {
    this.#watches ??= this.#families.watches.of(this.#level, this.#schema);
    this.#watches.observe(watches);
  }
}

/** Registers histograms in which each nanosecond of a level is observed with its use. */
function levelSeries(registry: MetricRegistry): (level: string) => LevelSeries {
  const { timed } = metricMaker(registry);
  const level = ['priority_level'];
  const demand = timed(
    demandBuckets,
    'demand_seats',
    'At each nanosecond, seats that could be used, as a part of the nominal ones.',
    'ALPHA',
    level,
  );
  const seats = timed(
    seatPartBuckets,
    'priority_level_seat_utilization',
    'At each nanosecond, seats in use, as a part of those there are.',
    'ALPHA',
    ['phase', ...level],
  );
  const requests = timed(
    requestPartBuckets,
    'priority_level_request_utilization',
    'At each nanosecond, requests that run or wait, as a part of what may.',
    'ALPHA',
    ['phase', ...level],
  );
  return (name) => {
    const demanded = demand.of(name);
    const seated = seats.of('executing', name);
    const running = requests.of('executing', name);
    const waiting = requests.of('waiting', name);
    return {
      lasted(nanoseconds, usage) {
        const limit = Math.max(1, usage.limit);
        const wanted = usage.seatsInUse + usage.seatsWaiting;
        demanded.observe(wanted / Math.max(1, usage.nominal), nanoseconds);
        seated.observe(usage.seatsInUse / limit, nanoseconds);
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
  const shown: readonly (readonly [ReturnType<typeof of>, (level: MeasuredLevel) => number])[] = [
    [of('nominal_limit_seats', 'Seats by shares alone.', 'BETA'), ({ nominal }) => nominal],
    [
      registry.gauge({
        name: 'apiserver_flowcontrol_request_concurrency_limit',
        help: 'Seats by shares alone.',
        stability: 'ALPHA',
        labels: level,
        deprecatedFrom: '1.30',
      }),
      ({ nominal }) => nominal,
    ],
    [of('lower_limit_seats', 'Seats that are not lent.'), ({ lower }) => lower],
    [of('upper_limit_seats', 'Seats with all that may be borrowed.'), ({ upper }) => upper],
    [of('current_limit_seats', 'Seats as of now.'), ({ current }) => current],
    [
      of('demand_seats_high_watermark', 'Most seats wanted in the last period.'),
      ({ demand }) => demand.highWatermark,
    ],
    [
      of('demand_seats_average', 'Seats wanted on average in the last period.'),
      ({ demand }) => demand.average,
    ],
    [
      of('demand_seats_stdev', 'Deviation of the seats wanted in the last period.'),
      ({ demand }) => demand.deviation,
    ],
    [of('demand_seats_smoothed', 'Seats wanted of late.'), ({ demand }) => demand.smoothed],
    [of('target_seats', 'Seats a level would be given.'), ({ demand }) => demand.target],
  ];
  const fair = gauge('seat_fair_frac', 'Part of its target that each level gets.', 'ALPHA', []);
  return (levels) => {
    for (const [family, number] of shown) {
      family.clear();
      for (const level of levels.all()) family.of(level.name).set(number(level));
    }
    fair.of().set(levels.fairPart);
  };
}

/** Higher counts are measured as this one. */
const countMax = 4095;
const buckets = [0, 0.001, 0.01, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1];

/** Time spent at each number of requests. A change costs one addition; reading costs more. */
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
  moveTo(histogram: Histogram, limit: number): void {
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
  /** Requests that all queues hold together. */
  readonly waiting: number;
}

/** Measures running and waiting requests, separately for reads and writes. Times are monotonic. */
export class KindUsage {
  readonly #executing: { readonly readOnly: TimeAtCounts; readonly mutating: TimeAtCounts };
  readonly #waiting: { readonly readOnly: TimeAtCounts; readonly mutating: TimeAtCounts };

  constructor(nowMs: number) {
    const pair = () => ({
      readOnly: new TimeAtCounts(nowMs),
      mutating: new TimeAtCounts(nowMs),
    });
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
      help: 'At each nanosecond, requests that run or wait, as a part of the limit of their kind.',
      stability: 'ALPHA',
      shownStability: 'left-out',
      labels: ['phase', 'request_kind'],
      buckets,
    });
    return (nowMs, limits) => {
      for (const kind of ['readOnly', 'mutating'] as const) {
        const show = (phase: string, times: TimeAtCounts, limit: number) => {
          times.change(0, nowMs);
          times.moveTo(family.of(phase, kind), limit);
        };
        show('executing', this.#executing[kind], limits[kind]);
        show('waiting', this.#waiting[kind], limits.waiting);
      }
    };
  }
}
