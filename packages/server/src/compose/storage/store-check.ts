import type { Clock } from '@wheelhouse/machinery';

/** Checks of stores that are elsewhere; their names are the store check's with something behind. */
export interface StoreChecks {
  readonly health: readonly StoreCheck[];
  /** On readyz alone. */
  readonly ready: readonly StoreCheck[];
}

export interface StoreCheck {
  readonly suffix: string;
  run(): Promise<void>;
}

/**
 * A check of a store that answers in time, whatever the store does. It asks at most twice in
 * `timeoutMs`, however often it is asked itself, and otherwise gives the last answer again.
 */
export function boundedCheck(options: {
  readonly ping: () => Promise<void>;
  readonly clock: Clock;
  readonly timeoutMs: number;
  /** What a failure begins with; as for etcd when absent. */
  readonly words?: string;
}): () => Promise<void> {
  const { ping, clock, timeoutMs, words = 'error getting data from etcd' } = options;
  let last: { readonly atMs: number; readonly answer: Promise<void> } | undefined;
  return () => {
    const nowMs = clock.monotonic();
    if (last === undefined || nowMs - last.atMs >= timeoutMs / 2) {
      last = { atMs: nowMs, answer: inTime(ping, { clock, timeoutMs, words }) };
      last.answer.catch(() => {});
    }
    return last.answer;
  };
}

function inTime(
  ping: () => Promise<void>,
  options: { readonly clock: Clock; readonly timeoutMs: number; readonly words: string },
): Promise<void> {
  const { clock, timeoutMs, words } = options;
  return new Promise((resolve, reject) => {
    const late = new Error(`${words}: context deadline exceeded`);
    const timer = clock.after(timeoutMs, () => reject(late));
    ping()
      .then(resolve, (error: unknown) => reject(new Error(`${words}: ${error}`)))
      .finally(() => timer.stop());
  });
}
