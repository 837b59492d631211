import {
  background,
  type Clock,
  type Counter,
  errorText,
  type Gauge,
  type Histogram,
  type Logger,
  largest,
  type MetricRegistry,
  type Timer,
} from '@wheelhouse/machinery';

/**
 * Runs at most one task per key at a time. A key that is added while its task runs is run once more
 * afterwards; a task that fails is retried with exponential backoff, up to a minute.
 *
 * A key is in exactly one state:
 * | state   | add          | done    | failed            | delay over |
 * |---------|--------------|---------|-------------------|------------|
 * | absent  | running      |         |                   |            |
 * | running | running+dirty| absent (dirty: running) | waiting |      |
 * | waiting | running      |         |                   | running    |
 */
export interface WorkQueue {
  /** Runs the key as soon as a worker is free; has no effect once the queue is closed. */
  add(key: string): void;
  /** Adds the key after a delay, which replaces an earlier one. */
  addAfter(key: string, delayMs: number): void;
  /** Starts no further tasks; resolves when the running ones are done. */
  close(): Promise<void>;
}

/** Work in the background, until it is closed. */
export interface Controller {
  close(): Promise<void>;
}

/**
 * A queue and what feeds it, such as subscriptions, or the functions that end it. Closing closes the
 * sources and then waits for them and for the running tasks.
 */
export function runningQueue(
  queue: WorkQueue,
  ...sources: readonly ({ close(): unknown } | (() => unknown))[]
): Controller {
  return {
    async close() {
      const closing = sources.map((source) =>
        typeof source === 'function' ? source() : source.close(),
      );
      await Promise.all([...closing, queue.close()]);
    },
  };
}

const firstRetryMs = 5;
const lastRetryMs = 60_000;

interface Running {
  readonly beganMs: number;
  readonly task: Promise<void>;
}

function stateOf(
  ready: ReadonlyMap<string, number>,
  running: ReadonlyMap<string, Running>,
): QueueState {
  return {
    get depth() {
      return ready.size;
    },
    *startTimes() {
      for (const { beganMs } of running.values()) yield beganMs;
    },
  };
}

interface WorkQueueOptions {
  readonly name: string;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly run: (key: string) => Promise<void>;
  /** Maximum number of concurrent tasks. */
  readonly workers: number;
  /** Keys wait until this resolves. */
  readonly startAfter?: Promise<void>;
  readonly queues?: QueueMeters | undefined;
}

/** The number of tasks that may run now: none until `startAfter` resolves. */
function allowedTasks(
  { workers, startAfter }: WorkQueueOptions,
  onStart: () => void,
): { readonly count: number } {
  if (startAfter === undefined) return { count: workers };
  const allowed = { count: 0 };
  const start = () => {
    allowed.count = workers;
    onStart();
  };
  background({ where: 'controller' }, startAfter.then(start));
  return allowed;
}

/** Creates a queue of tasks. */
export function createWorkQueue(options: WorkQueueOptions): WorkQueue {
  const { clock, logger, run, name } = options;
  const allowed = allowedTasks(options, () => startNext());
  /** Monotonic milliseconds at which each key began to wait for a worker. */
  const ready = new Map<string, number>();
  const running = new Map<string, Running>();
  const waiting = new Map<string, Timer>();
  const failures = new Map<string, number>();
  let closed = false;
  const meter = options.queues?.of(name, stateOf(ready, running));

  const add = (key: string) => {
    if (closed) return;
    waiting.get(key)?.stop();
    waiting.delete(key);
    if (!ready.has(key)) {
      meter?.adds.add(1);
      ready.set(key, clock.monotonic());
    }
    startNext();
  };
  const addAfter = (key: string, delayMs: number) => {
    if (closed || ready.has(key)) return;
    waiting.get(key)?.stop();
    const timer = clock.after(delayMs, () => add(key));
    waiting.set(key, timer);
  };
  const settle = (key: string, error: unknown) => {
    const beganMs = running.get(key)?.beganMs ?? clock.monotonic();
    running.delete(key);
    meter?.worked.observe((clock.monotonic() - beganMs) / 1000);
    if (error === undefined) failures.delete(key);
    else retry(key, error);
    startNext();
  };
  const retry = (key: string, error: unknown) => {
    const count = failures.get(key) ?? 0;
    failures.set(key, count + 1);
    meter?.retries.add(1);
    const queued = { queue: name, key, failures: count + 1 };
    logger.debug(2, 'task failed; will retry', { ...queued, error: errorText(error) });
    addAfter(key, Math.min(lastRetryMs, firstRetryMs * 2 ** count));
  };
  const startNext = () => {
    for (const [key, readyMs] of ready) {
      if (closed || running.size >= allowed.count) return;
      if (running.has(key)) continue;
      ready.delete(key);
      const beganMs = clock.monotonic();
      meter?.waited.observe((beganMs - readyMs) / 1000);
      const task = run(key).then(
        () => settle(key, undefined),
        (error: unknown) => settle(key, error ?? new Error('failed')),
      );
      running.set(key, { beganMs, task });
    }
  };
  return {
    add,
    addAfter,
    async close() {
      closed = true;
      for (const timer of waiting.values()) timer.stop();
      waiting.clear();
      ready.clear();
      meter?.close();
      await Promise.all(Array.from(running.values(), ({ task }) => task));
    },
  };
}

/** The state that a queue exposes to its metrics. */
interface QueueState {
  /** Keys that wait for a worker. */
  readonly depth: number;
  /** Monotonic start time of each running task. */
  startTimes(): Iterable<number>;
}

/** Metrics of one queue. */
interface QueueMeter {
  readonly adds: Counter;
  readonly retries: Counter;
  readonly waited: Histogram;
  readonly worked: Histogram;
  /** Called when the queue is closed. */
  close(): void;
}

/** Creates a meter for each queue, under kube-controller-manager's names (OPS-1). */
export interface QueueMeters {
  of(name: string, state: QueueState): QueueMeter;
  /** Updates the gauges. */
  refresh(): void;
}

/**
 * From 10 ns to 10 s, multiplied step by step as in client-go, so that the bounds have the same
 * text.
 */
const buckets: readonly number[] = Array.from({ length: 9 }).reduce<number[]>(
  (bounds) => [...bounds, (bounds.at(-1) ?? 0) * 10],
  [10e-9],
);

/** Registers the metrics; must be called once per registry. */
export function createQueueMeters(
  registry: MetricRegistry,
  clock: Pick<Clock, 'monotonic'>,
): QueueMeters {
  const families = createFamilies(registry);
  const measured = new Map<QueueState, MeasuredQueue>();
  return {
    of(name, state) {
      const gauges = {
        depth: families.depth.of(name),
        unfinished: families.unfinished.of(name),
        longest: families.longest.of(name),
      };
      measured.set(state, { state, ...gauges });
      return {
        adds: families.adds.of(name),
        retries: families.retries.of(name),
        waited: families.waited.of(name),
        worked: families.worked.of(name),
        close() {
          measured.delete(state);
          for (const gauge of Object.values(gauges)) gauge.set(0);
        },
      };
    },
    refresh() {
      for (const queue of measured.values()) refreshQueue(queue, clock.monotonic());
    },
  };
}

interface MeasuredQueue {
  readonly state: QueueState;
  readonly depth: Gauge;
  readonly unfinished: Gauge;
  readonly longest: Gauge;
}

function refreshQueue({ state, depth, unfinished, longest }: MeasuredQueue, nowMs: number): void {
  const seconds = Array.from(state.startTimes(), (beganMs) => (nowMs - beganMs) / 1000);
  depth.set(state.depth);
  unfinished.set(seconds.reduce((sum, elapsed) => sum + elapsed, 0));
  longest.set(largest(0, seconds));
}

function createFamilies(registry: MetricRegistry) {
  const of = (name: string, help: string) =>
    ({ name: `workqueue_${name}`, help, stability: 'ALPHA', labels: ['name'] }) as const;
  return {
    depth: registry.gauge(of('depth', 'Number of keys waiting in a controller queue.')),
    adds: registry.counter(of('adds_total', 'Number of keys added to a controller queue.')),
    retries: registry.counter(of('retries_total', 'Number of retries of failed tasks.')),
    unfinished: registry.gauge(
      of('unfinished_work_seconds', 'Total time in seconds that running tasks have taken so far.'),
    ),
    longest: registry.gauge(
      of('longest_running_processor_seconds', 'Age in seconds of the longest-running task.'),
    ),
    waited: registry.histogram({
      ...of('queue_duration_seconds', 'Time in seconds that keys waited in a queue.'),
      buckets,
    }),
    worked: registry.histogram({
      ...of('work_duration_seconds', 'Duration of tasks in seconds.'),
      buckets,
    }),
  };
}
