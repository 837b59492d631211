import type { MaybePromise } from '@wheelhouse/machinery';

/**
 * The byte contract that every store keeps: `memory`, `embedded`, `etcd`. Keys are strings, values
 * are bytes the store never looks into, and one counter, the revision, orders all writes of the
 * whole store. Everything richer (resource versions, paging, retries) is written once above it.
 */

/** Position in the store's history; grows by one with each write. 0 means "before any write". */
export type Revision = number;

/** One key as it stood at some revision. */
export interface StoredRecord {
  readonly key: string;
  readonly value: Buffer;
  readonly createRevision: Revision;
  readonly modRevision: Revision;
  /** Why the value cannot be read (STORE-3); then `value` is what the store holds. */
  readonly unreadable?: string;
  /** Set beside `unreadable` when the value was opened, but could not be decoded. */
  readonly failure?: 'decoding';
}

/**
 * What a write demands of the key's present state: `0` the key is absent, `n` its modRevision is
 * `n`. There is no unconditional write.
 */
export type Expectation = Revision;

export interface PutRequest {
  readonly key: string;
  readonly value: Buffer;
  readonly expect: Expectation;
  /**
   * Carried by reference to this process's watchers of the write, so that they need not decode what
   * the writer has just encoded. Not stored; a store may drop it.
   */
  readonly hint?: unknown;
  /**
   * `removal` for a step on an object's way out, which a store takes even where it has no room for
   * more (TRUST-8); `growth` when absent.
   */
  readonly purpose?: 'growth' | 'removal';
}

export interface DeleteRequest {
  readonly key: string;
  /** Never 0: deleting an absent key is a failed expectation. */
  readonly expect: Expectation;
}

/**
 * `ok: false` means the expectation did not hold; `current` is the record that stood in the way
 * (undefined: the key is absent) as of a durable revision.
 */
export type WriteResult =
  | { readonly ok: true; readonly revision: Revision }
  | { readonly ok: false; readonly current: StoredRecord | undefined };

export interface RangeRequest {
  /** All keys that start with it. */
  readonly prefix: string;
  /** Only keys strictly after this one, in byte order. */
  readonly after?: string;
  /** At most this many records; all when absent. */
  readonly limit?: number;
  /** The past revision to read at; the newest when absent. */
  readonly revision?: Revision;
}

export interface RangeResult {
  /** In byte order of keys. */
  readonly records: readonly StoredRecord[];
  /** The revision the records were read at. */
  readonly revision: Revision;
  /** Whether keys remain behind the last record. */
  readonly more: boolean;
}

export type StoreEvent =
  | ({
      readonly type: 'put';
      readonly revision: Revision;
      readonly hint?: unknown;
    } & Omit<StoredRecord, 'modRevision'>)
  | { readonly type: 'delete'; readonly key: string; readonly revision: Revision };

export interface WatchRequest {
  readonly prefix: string;
  /** Events with a revision greater than this one are delivered. */
  readonly after: Revision;
  /**
   * Receives every matching event once, in order of revision, only after it is durable; one call
   * may carry many. Called without a pause in which a later revision could become visible to a read.
   */
  readonly onEvents: (events: readonly StoreEvent[]) => void;
  /** Called once if the store ends the watch (closed, compacted away, connection lost for good). */
  readonly onEnd: (reason: StoreError) => void;
}

export interface StoreWatch {
  /** Everything up to and including this revision has been handed to `onEvents`. */
  readonly progress: Revision;
  /** Resolves when `progress` is at least `revision`; at once, without a promise, when it is. */
  reached(revision: Revision): MaybePromise<void>;
  close(): void;
}

/** A state of the whole store; the store keeps what it needs until it is closed. */
export interface StoreSnapshot {
  readonly revision: Revision;
  /**
   * All records in byte order of keys, values as they are stored, in pieces of about 1 MiB at most
   * unless one record is larger. To be read once. Fails with `closed` when the store is closed.
   */
  readonly records: AsyncIterable<readonly StoredRecord[]>;
  /** Harmless when called twice. */
  close(): void;
}

export interface Store {
  /**
   * Who writes to the store. `own`: this process alone, so a watch that has caught up has the newest
   * state. `shared`: other processes too, so only a round trip tells what is newest; a writer may
   * begin with what its watch has, as a write is on condition of the revision.
   */
  readonly sharing: 'own' | 'shared';
  /**
   * The newest durable revision, linearizable: no acknowledged write is later. A store whose parts
   * have revisions of their own is asked for the part that a prefix is in.
   */
  currentRevision(prefix?: string): MaybePromise<Revision>;
  /** The oldest revision still readable; reads and watches below it fail with `compacted`. */
  compactRevision(): MaybePromise<Revision>;
  get(key: string, at?: Revision): MaybePromise<StoredRecord | undefined>;
  range(request: RangeRequest): Promise<RangeResult>;
  /** Resolves only when the write is durable. */
  put(request: PutRequest): Promise<WriteResult>;
  /** Resolves only when the deletion is durable. */
  delete(request: DeleteRequest): Promise<WriteResult>;
  watch(request: WatchRequest): Promise<StoreWatch>;
  /** Forgets history: afterwards the oldest readable revision is `revision`. */
  compact(revision: Revision): Promise<void>;
  /** Really asks the store; rejects when it cannot serve (HEALTH-4). */
  ping(): Promise<void>;
  /** Bytes in use on disk (or in memory), for metrics. */
  sizeBytes(): Promise<number>;
  /**
   * Holds the newest durable state still for one reader (STORE-5), whatever is written or compacted
   * meanwhile. Rejects with `unavailable` where the service behind the store has its own way.
   */
  snapshot(): Promise<StoreSnapshot>;
  close(): Promise<void>;
}

/** A state of a store that the store can return to while it is open. */
export interface Checkpoint {
  readonly revision: Revision;
}

export interface RestoreResult {
  /** The newest revision after the restore. */
  readonly revision: Revision;
  /** How many keys were written or deleted. */
  readonly changes: number;
}

/** A store that can return to earlier states of its own (PLANE-3). */
export interface CheckpointedStore extends Store {
  /** Takes constant time and copies nothing. */
  checkpoint(): Checkpoint;
  /**
   * Writes what differs from the checkpoint as new revisions, in one turn of the event loop, so
   * that every reader and watcher sees all of it or nothing. Values come back as they were;
   * revisions only grow. Throws for a checkpoint of another store.
   * @param options.last prefix of keys to write after all others
   */
  restore(checkpoint: Checkpoint, options: { readonly last: string }): RestoreResult;
}

export type StoreErrorCode =
  | 'compacted'
  | 'future-revision'
  /** There is no room for the write; the message is fit to be shown. */
  | 'no-space'
  /** The disk did not do what it was told: nobody may know of the write. */
  | 'disk-failed'
  | 'damaged'
  | 'locked'
  /** The service behind the store refused; the message is its own, and fit to be shown. */
  | 'refused'
  /** The store does not keep values of this size; the message is fit to be shown. */
  | 'too-large'
  /** The value cannot be encrypted, so nothing was written; the message is fit to be shown. */
  | 'not-sealed'
  /** The lease that a write names is gone; nothing was written. */
  | 'lease-gone'
  /** No answer came in time: a write may have happened. */
  | 'timed-out'
  | 'unavailable'
  | 'closed';

/** The store's own small error enum; `registry/` translates it to the API's catalogue once. */
export class StoreError extends Error {
  readonly code: StoreErrorCode;
  /** With `compacted`: the oldest readable revision; with `future-revision`: the newest one. */
  readonly revision: Revision | undefined;

  constructor(options: {
    code: StoreErrorCode;
    message: string;
    revision?: Revision;
    cause?: unknown;
  }) {
    super(options.message, { cause: options.cause });
    this.name = 'StoreError';
    this.code = options.code;
    this.revision = options.revision;
  }
}
