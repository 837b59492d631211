import type { Clock, Timer } from '../base/clock.ts';
import type { Logger } from '../base/log.ts';

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

export function createWorkQueue(options: {
  readonly name: string;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly run: (key: string) => Promise<void>;
  /** Tasks that may run at once. */
  readonly workers: number;
}): WorkQueue {
  const { clock, logger, run, workers, name } = options;
  const ready = new Set<string>();
  const running = new Map<string, Promise<void>>();
  const waiting = new Map<string, Timer>();
  const failures = new Map<string, number>();
  let closed = false;

  const add = (key: string) => {
    if (closed) return;
    waiting.get(key)?.stop();
    waiting.delete(key);
    ready.add(key);
    startNext();
  };
  const addAfter = (key: string, delayMs: number) => {
    if (closed || ready.has(key)) return;
    waiting.get(key)?.stop();
    waiting.set(
      key,
      clock.after(delayMs, () => add(key)),
    );
  };
  const settle = (key: string, error: unknown) => {
    running.delete(key);
    if (error === undefined) failures.delete(key);
    else retry(key, error);
    startNext();
  };
  const retry = (key: string, error: unknown) => {
    const count = failures.get(key) ?? 0;
    failures.set(key, count + 1);
    const message = error instanceof Error ? error.message : String(error);
    logger.debug(2, 'will try again', { queue: name, key, failures: count + 1, error: message });
    addAfter(key, Math.min(lastRetryMs, firstRetryMs * 2 ** count));
  };
  const startNext = () => {
    for (const key of ready) {
      if (closed || running.size >= workers) return;
      if (running.has(key)) continue;
      ready.delete(key);
      const task = run(key).then(
        () => settle(key, undefined),
        (error: unknown) => settle(key, error ?? new Error('failed')),
      );
      running.set(key, task);
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
      await Promise.all(running.values());
    },
  };
}
