import { type Clock, errorText, type Logger, type Timer } from '@wheelhouse/machinery';
import type { QueueMeters, QueueState } from './queue-metrics.ts';

/**
 * Runs one task per key at a time. A key added while its task runs, runs once more afterwards; one
 * that fails is tried again later, after twice the time each time, up to a bound.
 *
 * A key is in exactly one state:
 * | state   | add          | done    | failed            | delay over |
 * |---------|--------------|---------|-------------------|------------|
 * | absent  | running      |         |                   |            |
 * | running | running+dirty| absent (dirty: running) | waiting |      |
 * | waiting | running      |         |                   | running    |
 */
export interface WorkQueue {
  add(key: string): void;
  /** Like `add`, but after a while. */
  addAfter(key: string, delayMs: number): void;
  /** No task starts any more; resolves when those that run are done. */
  close(): Promise<void>;
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
    *begun() {
      for (const { beganMs } of running.values()) yield beganMs;
    },
  };
}

export interface WorkQueueOptions {
  readonly name: string;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly run: (key: string) => Promise<void>;
  /** Tasks that may run at once. */
  readonly workers: number;
  readonly queues?: QueueMeters | undefined;
}

export function createWorkQueue(options: WorkQueueOptions): WorkQueue {
  const { clock, logger, run, workers, name } = options;
  /** Since when each waits for a worker. */
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
    logger.debug(2, 'will try again', { ...queued, error: errorText(error) });
    addAfter(key, Math.min(lastRetryMs, firstRetryMs * 2 ** count));
  };
  const startNext = () => {
    for (const [key, readyMs] of ready) {
      if (closed || running.size >= workers) return;
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
