import type { NumberClaims } from '@wheelhouse/kinds';
import type { Clock } from '@wheelhouse/machinery';
import type { Compactor, Store } from '@wheelhouse/store';
import type { SharedReservations } from '../../admission/quota/quota-ledger.ts';
import type { StoreSpace } from '../../observe/store-metrics.ts';

/** Checks of external stores; a suffix extends the name of the store check. */
export interface StoreChecks {
  readonly health: readonly StoreCheck[];
  /** For readyz alone. */
  readonly ready: readonly StoreCheck[];
}

interface StoreCheck {
  readonly suffix: string;
  run(): Promise<void>;
}

/**
 * A check that answers in time, whatever the store does. It queries the store at most twice per
 * `timeoutMs`, however often it is called, and otherwise repeats the last answer.
 */
export function boundedCheck(options: {
  readonly ping: () => Promise<void>;
  readonly clock: Clock;
  readonly timeoutMs: number;
  /** Prefix of errors; that of etcd when absent. */
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

/** An open store and what comes with it. */
export interface OpenedStore {
  readonly store: Store;
  /** Starts to discard history older than the retention. */
  startCompactor(): Compactor;
  /** Whether the store is writable; present if it has its own disk (TRUST-8). */
  readonly space?: StoreSpace;
  /** Coordination of several servers on one store; absent if there can be only one. */
  readonly shared?: SharedStore;
  /** Closes the store, after releasing what this server holds there. */
  close(): Promise<void>;
}

/** Coordination through a store that several servers share. */
export interface SharedStore {
  /** Health checks that query the store. */
  readonly checks: StoreChecks;
  /** Claims on numbers for Services and on names in groups. */
  readonly claims: NumberClaims;
  /** Quota reservations of all servers. */
  readonly reservations: SharedReservations;
  /** The running servers. */
  readonly presence: Presence;
}

/** The addresses of the servers on one store, which each server keeps announcing. */
export interface Presence {
  /** Announces an address of this server until it is closed. */
  announce(address: string): { close(): Promise<void> };
  /** The recently announced addresses, sorted. Rejects with the store's errors. */
  addresses(): Promise<readonly string[]>;
  /** Calls `changed` when an address may have appeared or disappeared. */
  follow(changed: () => void): { close(): void };
}
