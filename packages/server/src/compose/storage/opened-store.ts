import type { NumberClaims } from '@wheelhouse/kinds';
import type { Compactor, Store, StoreAlarm } from '@wheelhouse/store';
import type { SharedReservations } from '../../admission/quota/quota-ledger.ts';
import type { Presence } from '../controllers/presence.ts';
import type { StoreChecks } from './store-check.ts';

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
