import { errorText, type MaybePromise } from '@wheelhouse/machinery';

/**
 * The contract of every store: `memory`, `embedded`, and `etcd`. Keys are strings, values are bytes
 * that the store never interprets, and one counter, the revision, orders all writes to the store.
 * Resource versions, paging, and retries are built once on top of it.
 */

/**
 * A position in the store's history, which each write advances by one. 0 is the state before any
 * write.
 */
export type Revision = number;

/** The state of one key at some revision. */
export interface StoredRecord {
  readonly key: string;
  readonly value: Buffer;
  readonly createRevision: Revision;
  readonly modRevision: Revision;
  /** Why the value cannot be read (STORE-3); `value` then holds the stored bytes. */
  readonly unreadable?: string;
  /** Set with `unreadable` if the value was decrypted but could not be decoded. */
  readonly failure?: 'decoding';
}

/**
 * The state of the key that a write requires: `0` if the key must be absent, otherwise its
 * modRevision. There is no unconditional write.
 */
type Expectation = Revision;

/** A write of a key's value on condition of the key's state. */
export interface PutRequest {
  readonly key: string;
  readonly value: Buffer;
  readonly expect: Expectation;
  /**
   * Passed by reference to watchers in this process, so that they need not decode what the writer
   * has just encoded. Not stored; a store may drop it.
   */
  readonly hint?: unknown;
  /**
   * `removal` for a step of an object's deletion, which a store accepts even if it is out of space
   * (TRUST-8). Defaults to `growth`.
   */
  readonly purpose?: 'growth' | 'removal';
}

/** The deletion of a key on condition of its state. */
export interface DeleteRequest {
  readonly key: string;
  /** Never 0: deleting an absent key fails the expectation. */
  readonly expect: Expectation;
}

/**
 * `ok: false` means that the expectation did not hold. `current` is the conflicting record as of a
 * durable revision, or undefined if the key is absent.
 */
export type WriteResult =
  | { readonly ok: true; readonly revision: Revision }
  | { readonly ok: false; readonly current: StoredRecord | undefined };

/** Selects the records that `range` returns. */
export interface RangeRequest {
  /** Selects all keys with this prefix. */
  readonly prefix: string;
  /** Only keys strictly after this one, in byte order. */
  readonly after?: string;
  /**
   * At most this many records, and fewer if their values exceed `pieceBytes`; all when absent.
   */
  readonly limit?: number;
  /** The past revision to read at; the newest when absent. */
  readonly revision?: Revision;
}

/** The records of a range, all of one revision. */
export interface RangeResult {
  /** In byte order of keys. */
  readonly records: readonly StoredRecord[];
  /** The revision the records were read at. */
  readonly revision: Revision;
  /** Whether more keys may follow the last record, also if there are fewer than the limit. */
  readonly more: boolean;
}

/** A change of one key. */
export type StoreEvent =
  | ({
      readonly type: 'put';
      readonly revision: Revision;
      readonly hint?: unknown;
    } & Omit<StoredRecord, 'modRevision'>)
  | { readonly type: 'delete'; readonly key: string; readonly revision: Revision };

/** Selects the changes that a watch receives. */
export interface WatchRequest {
  readonly prefix: string;
  /** Events with a revision greater than this one are delivered. */
  readonly after: Revision;
  /**
   * Receives every matching event once, in order of revision, after it is durable; one call may
   * carry many. Several events have the same revision if another program changed several keys in
   * one transaction, or if their lease expired; one call carries them all. No read can see a later
   * revision before the call. If it throws, the watch ends with `unavailable`, and its progress does
   * not include the events of the call.
   */
  readonly onEvents: (events: readonly StoreEvent[]) => void;
  /**
   * Called once if the store ends the watch, because it was closed or compacted, lost its
   * connection permanently, or `onEvents` failed.
   */
  readonly onEnd: (reason: StoreError) => void;
}

/** An open watch. */
export interface StoreWatch {
  /** The revision up to and including which `onEvents` has received all events. */
  readonly progress: Revision;
  /**
   * Resolves when `progress` reaches `revision`. Returns undefined instead of a promise if it
   * already has.
   */
  reached(revision: Revision): MaybePromise<void>;
  close(): void;
}

/** A consistent state of the whole store, which the store retains until the snapshot is closed. */
export interface StoreSnapshot {
  readonly revision: Revision;
  /**
   * All records in byte order of keys with their stored values, in pieces of at most about 1 MiB
   * unless a single record is larger. Can be read once. Fails with `closed` if the store is closed.
   */
  readonly records: AsyncIterable<readonly StoredRecord[]>;
  /** Idempotent. */
  close(): void;
}

/** A store; every implementation passes `suite.ts` and follows `model.ts`. */
export interface Store {
  /**
   * Who writes to the store. `own`: only this process, so a watch that has caught up has the newest
   * state. `shared`: other processes too, so only a round trip finds the newest revision. A writer
   * may still start from the state of its watch, because every write is conditional on the
   * revision.
   */
  readonly sharing: 'own' | 'shared';
  /**
   * The newest durable revision. It is linearizable: no acknowledged write is later. If parts of a
   * store have separate revisions, `prefix` selects the part.
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
  /** Discards history, after which `revision` is the oldest readable revision. */
  compact(revision: Revision): Promise<void>;
  /** Makes a round trip to the store; rejects if the store cannot serve (HEALTH-4). */
  ping(): Promise<void>;
  /** The name of a key in the service behind the store, for messages; absent: the key itself. */
  shownKey?(key: string): string;
  /** Bytes in use on disk (or in memory), for metrics. */
  sizeBytes(): Promise<number>;
  /**
   * A snapshot of the newest durable state (STORE-5), unaffected by later writes and compaction.
   * Rejects with `unavailable` if the service behind the store makes its own backups.
   */
  snapshot(): Promise<StoreSnapshot>;
  close(): Promise<void>;
}

/** A key as messages show it. */
export function shownKey(store: Pick<Store, 'shownKey'>, key: string): string {
  return store.shownKey?.(key) ?? key;
}

/** Returns the operations that involve no values, for a store that wraps another one. */
export function unchangedOperations(
  store: Store,
): Omit<Store, 'get' | 'range' | 'put' | 'delete' | 'watch'> {
  return {
    sharing: store.sharing,
    // Bound rather than wrapped, because every read calls it.
    currentRevision: store.currentRevision.bind(store),
    compactRevision: store.compactRevision.bind(store),
    compact: store.compact.bind(store),
    ping: store.ping.bind(store),
    shownKey: (key) => shownKey(store, key),
    sizeBytes: store.sizeBytes.bind(store),
    snapshot: store.snapshot.bind(store),
    close: store.close.bind(store),
  };
}

/** A state to which an open store can return. */
export interface Checkpoint {
  readonly revision: Revision;
}

/**
 * What the return to a checkpoint did. Revisions do not return: the restored state has newer ones.
 */
export interface RestoreResult {
  /** The newest revision after the restore. */
  readonly revision: Revision;
  /** How many keys were written or deleted. */
  readonly changes: number;
}

/** A store that can return to its earlier states (PLANE-3). */
export interface CheckpointedStore extends Store {
  /** Takes constant time and copies nothing. */
  checkpoint(): Checkpoint;
  /**
   * Writes the differences from the checkpoint as new revisions in one turn of the event loop, so
   * that every reader and watcher sees all of them or none. Values are restored; revisions only
   * grow. Throws for a checkpoint of another store.
   * @param options.last prefix of keys to write after all others
   */
  restore(checkpoint: Checkpoint, options: { readonly last: string }): RestoreResult;
}

type StoreErrorCode =
  | 'compacted'
  | 'future-revision'
  /** The store is out of space. Clients may see the message. */
  | 'no-space'
  /** The disk failed, so the write must not become visible. */
  | 'disk-failed'
  | 'damaged'
  | 'locked'
  /** The service behind the store refused the request. Clients may see its message. */
  | 'refused'
  /** The value exceeds the store's limit. Clients may see the message. */
  | 'too-large'
  /** The value cannot be encrypted, so nothing was written. Clients may see the message. */
  | 'not-encrypted'
  /** The lease of the write has expired; nothing was written. */
  | 'lease-expired'
  /** No response arrived in time; a write may have succeeded. */
  | 'timed-out'
  | 'unavailable'
  | 'closed';

/** An error of a store. The server translates it to a Status in one place. */
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

/** Throws StoreError `future-revision` or `compacted` unless the revision `at` is readable. */
export function checkReadable(
  at: Revision,
  bounds: { readonly compacted: Revision; readonly newest: Revision },
): void {
  if (at > bounds.newest) {
    throw new StoreError({
      code: 'future-revision',
      message: `required revision ${at} is in the future; the newest is ${bounds.newest}`,
      revision: bounds.newest,
    });
  }
  if (at < bounds.compacted) {
    throw new StoreError({
      code: 'compacted',
      message: `required revision ${at} has been compacted; the oldest is ${bounds.compacted}`,
      revision: bounds.compacted,
    });
  }
}

/** Returns the error of every operation on a closed store. */
export function closedStore(): StoreError {
  return new StoreError({ code: 'closed', message: 'the store is closed' });
}

/**
 * Returns the error that ends a watch whose `onEvents` threw. It has no cause, because the cause of
 * such an error is a failed conversion of values.
 */
export function failedCallback(thrown: unknown): StoreError {
  const message = `the receiver of the watch failed: ${errorText(thrown)}`;
  return new StoreError({ code: 'unavailable', message });
}

/**
 * Bytes of values after which a piece of a snapshot, or a step that reads or translates records,
 * ends (TRUST-2). This bounds the memory of the reader of a snapshot.
 */
export const pieceBytes = 2 ** 20;

/** Splits records into pieces of at most `countMax` that end after `pieceBytes`. */
export function* piecesOf(
  records: readonly StoredRecord[],
  countMax = Number.POSITIVE_INFINITY,
): Generator<readonly StoredRecord[]> {
  let from = 0;
  let bytes = 0;
  for (const [at, { value }] of records.entries()) {
    bytes += value.length;
    const to = at + 1;
    if (to < records.length && to < from + countMax && bytes < pieceBytes) continue;
    yield records.slice(from, to);
    from = to;
    bytes = 0;
  }
}

/** Bytes of the value of an event. */
export function eventBytes(event: StoreEvent): number {
  return event.type === 'put' ? event.value.length : 0;
}

/**
 * Returns a string whose `<` order is the byte order of the key's UTF-8 form. The orders differ
 * only between surrogate pairs (U+10000 and up) and U+E000 to U+FFFF, so nearly every key is
 * returned unchanged; otherwise the two blocks of code units are swapped. Prefixes remain prefixes.
 */
export function byteOrdered(key: string): string {
  for (let i = 0; i < key.length; i++) {
    if (key.charCodeAt(i) >= 0xd800) return swapHighUnits(key);
  }
  return key;
}

function swapHighUnits(key: string): string {
  let result = '';
  for (let i = 0; i < key.length; i++) {
    const unit = key.charCodeAt(i);
    if (unit < 0xd800) result += key[i];
    else result += String.fromCharCode(unit < 0xe000 ? unit + 0x2000 : unit - 0x800);
  }
  return result;
}
