import {
  type Counter,
  type Gauge,
  type Histogram,
  largest,
  type MetricRegistry,
} from '@wheelhouse/machinery';

/** What a queue shows of itself when somebody asks. */
export interface QueueState {
  /** Keys that wait for a worker. */
  readonly depth: number;
  /** When each task that runs began, monotonic. */
  begun(): Iterable<number>;
}

/** Counts what one queue does. */
export interface QueueMeter {
  readonly adds: Counter;
  readonly retries: Counter;
  readonly waited: Histogram;
  readonly worked: Histogram;
  /** The queue is closed. */
  close(): void;
}

/** Makes a meter for each queue, under upstream's names (OPS-1). */
export interface QueueMeters {
  of(name: string, state: QueueState): QueueMeter;
  /** Brings up to date what is not counted as it happens. */
  look(): void;
}

/** 10 ns, and up to ten seconds, multiplied out as upstream does: queries name bounds by their text. */
const buckets: readonly number[] = Array.from({ length: 9 }).reduce<number[]>(
  (bounds) => [...bounds, (bounds.at(-1) ?? 0) * 10],
  [10e-9],
);

/** Registers the metrics; once for a registry. `now` gives monotonic milliseconds. */
export function createQueueMeters(registry: MetricRegistry, now: () => number): QueueMeters {
  const families = createFamilies(registry);
  const shown = new Map<QueueState, ShownQueue>();
  return {
    of(name, state) {
      const gauges = {
        depth: families.depth.of(name),
        unfinished: families.unfinished.of(name),
        longest: families.longest.of(name),
      };
      shown.set(state, { state, ...gauges });
      return {
        adds: families.adds.of(name),
        retries: families.retries.of(name),
        waited: families.waited.of(name),
        worked: families.worked.of(name),
        close() {
          shown.delete(state);
          for (const gauge of Object.values(gauges)) gauge.set(0);
        },
      };
    },
    look() {
      for (const queue of shown.values()) lookAt(queue, now());
    },
  };
}

interface ShownQueue {
  readonly state: QueueState;
  readonly depth: Gauge;
  readonly unfinished: Gauge;
  readonly longest: Gauge;
}

function lookAt({ state, depth, unfinished, longest }: ShownQueue, nowMs: number): void {
  const seconds = Array.from(state.begun(), (beganMs) => (nowMs - beganMs) / 1000);
  depth.set(state.depth);
  unfinished.set(seconds.reduce((sum, one) => sum + one, 0));
  longest.set(largest(0, seconds));
}

function createFamilies(registry: MetricRegistry) {
  const of = (name: string, help: string) =>
    ({ name: `workqueue_${name}`, help, stability: 'ALPHA', labels: ['name'] }) as const;
  return {
    depth: registry.gauge(of('depth', 'Keys that wait in a queue of a controller.')),
    adds: registry.counter(of('adds_total', 'Keys that were put into a queue.')),
    retries: registry.counter(of('retries_total', 'Keys that were put off after a failure.')),
    unfinished: registry.gauge(
      of('unfinished_work_seconds', 'How long all tasks that run have run so far, added up.'),
    ),
    longest: registry.gauge(
      of('longest_running_processor_seconds', 'How long the oldest task that runs has run.'),
    ),
    waited: registry.histogram({
      ...of('queue_duration_seconds', 'How long keys waited in a queue before their task began.'),
      buckets,
    }),
    worked: registry.histogram({
      ...of('work_duration_seconds', 'How long tasks of a queue took.'),
      buckets,
    }),
  };
}
