import type { NumberClaims } from '@wheelhouse/kinds';
import type { Clock } from '@wheelhouse/machinery';
import type { Compactor, Store, StoreAlarm } from '@wheelhouse/store';
import type { SharedReservations } from '../../admission/quota/quota-ledger.ts';

/** Checks of stores that are elsewhere; their names are the store check's with something behind. */
export interface StoreChecks {
  readonly health: readonly StoreCheck[];
  /** On readyz alone. */
  readonly ready: readonly StoreCheck[];
}

interface StoreCheck {
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

/** The store of a server, and what goes with it. */
export interface OpenedStore {
  readonly store: Store;
  /** Starts to forget history at the retention. */
  startCompactor(): Compactor;
  /** Whether the store can be written, where it has a disk of its own (TRUST-8). */
  readonly space?: StoreSpace;
  /** What several servers on one store need; absent where there can be but one. */
  readonly shared?: SharedStore;
  /** Closes the store, having given up what this server holds there. */
  close(): Promise<void>;
}

/** How much room a store has. */
export interface StoreSpace {
  /** Answers in time, whatever the disk does; rejects with why the store takes no more. */
  check(): Promise<void>;
  /** As of the last write or check. */
  alarms(): readonly StoreAlarm[];
}

/** What a server does, on a store that others use too, besides keeping objects there. */
export interface SharedStore {
  /** Ask the store. */
  readonly checks: StoreChecks;
  /** Numbers that this server is about to give to a Service, and groups it gives names in. */
  readonly claims: NumberClaims;
  /** What the servers charge quotas for. */
  readonly reservations: SharedReservations;
  /** Which servers there are. */
  readonly presence: Presence;
}

/** The addresses of the servers on one store: each tells of its own, again and again. */
export interface Presence {
  /** Tells of an address of this server's until it is closed. */
  announce(address: string): { close(): Promise<void> };
  /** Those that were told of lately, sorted. Rejects with the store's errors. */
  addresses(): Promise<readonly string[]>;
  /** Calls `changed` when an address may have come or gone. */
  follow(changed: () => void): { close(): void };
}
