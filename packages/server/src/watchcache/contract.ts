import type { BodyPiece, MaybePromise } from '@wheelhouse/machinery';
import type { Revision } from '@wheelhouse/store';
import type { Entry, EntryFilter } from './entry.ts';

export interface ListRequest {
  /** Empty: all namespaces (or a cluster-scoped kind). */
  readonly namespace: string;
  /**
   * Set when the selectors allow one name only; `filter` still decides. Finds it without a scan.
   */
  readonly name?: string | undefined;
  /** Query parameters, already known to be syntactically sound; `undefined` when unset or empty. */
  readonly resourceVersion: string | undefined;
  readonly resourceVersionMatch: 'Exact' | 'NotOlderThan' | undefined;
  readonly limit: number | undefined;
  readonly continueToken: string | undefined;
  /** Absent when no selector narrows the list. */
  readonly filter: EntryFilter | undefined;
  /** Lists what can be read instead of failing where a stored object cannot. */
  readonly unreadable?: 'left-out';
}

export interface ListResult {
  readonly revision: Revision;
  readonly continueToken: string | undefined;
  readonly remainingItemCount: number | undefined;
  readonly count: number;
  /** How many entries were looked at; absent: those that are shown. */
  readonly examined?: number;
  entries(): Iterable<Entry>;
  /**
   * The items' JSON in pieces of some 16 KiB that together read `{…},{…},{…}`, not copied before
   * they are written.
   *
   * @param typeBytes length of the text of an item's type, `"apiVersion":"v1","kind":"Pod",`, which
   *   stands behind its first brace and is left out; 0 leaves nothing out
   */
  jsonPieces(typeBytes: number): Iterable<BodyPiece>;
}

export type WatchEventType = 'ADDED' | 'MODIFIED' | 'DELETED';

/**
 * Frames events of one encoding. Two watchers with the same `key` share frames: each event is
 * framed once per key, however many watchers there are.
 */
export interface EventEncoder {
  readonly key: string;
  frame(type: WatchEventType, entry: Entry): Buffer;
  /**
   * Makes what `frame` returns in steps, for large entries (TRUST-2). Absent where frames are
   * copies of what an entry has.
   */
  readonly frameSteps?:
    | ((type: WatchEventType, entry: Entry) => Generator<void, Buffer>)
    | undefined;
  bookmark(revision: Revision, options: { readonly initialEventsEnd: boolean }): Buffer;
  /** A frame of so many bytes goes to so many watchers. */
  sent?(bytes: number, watchers: number): void;
}

/** Where a watcher's frames go. The cache calls it; `endpoints/` implements it over a socket. */
export interface WatchSink {
  /** Takes frames; returns false when the reader is behind and `onDrain` must be awaited. */
  write(frames: Buffer): boolean;
  /** Registers the one callback to run when the reader has caught up. */
  onDrain(callback: () => void): void;
  /** The cache ends the watch. `error` is an ERROR frame's Status (410 and the like). */
  end(reason: WatchEnd): void;
}

export type WatchEnd =
  | { readonly type: 'timeout' }
  | { readonly type: 'slow' }
  | { readonly type: 'shutdown' }
  | { readonly type: 'error'; readonly error: Error };

export interface WatchSpec {
  readonly namespace: string;
  /** Set when the watch is of one name (WATCH-8): it costs nothing on other objects' changes. */
  readonly name?: string | undefined;
  /** `undefined`: unset. */
  readonly resourceVersion: string | undefined;
  readonly filter: EntryFilter | undefined;
  readonly allowBookmarks: boolean;
  readonly sendInitialEvents: boolean | undefined;
  readonly timeoutMs: number;
  readonly encoder: EventEncoder;
  readonly sink: WatchSink;
}

export interface WatchHandle {
  close(): void;
}

/**
 * All objects of one resource, held in memory in order of their keys, following the store.
 * Reads wait until the cache is as new as asked for; errors are `StatusError`s with upstream's
 * wording (LIST-4 to LIST-8, WATCH-3).
 */
export interface ResourceCache {
  /** Resolves when the first load from the store is complete. */
  ready(): Promise<void>;
  /** The cached object, no wait: for callers that need no freshness. */
  peek(key: string): Entry | undefined;
  /** How many objects are cached, no wait; undefined while they are being loaded. */
  count(): number | undefined;
  /** By the get table: unset = most recent, `0` = any, otherwise not older than. */
  get(key: string, resourceVersion: string | undefined): MaybePromise<Entry | undefined>;
  list(request: ListRequest): MaybePromise<ListResult>;
  /** Starts a watch; rejects with a StatusError if it cannot start. */
  watch(spec: WatchSpec): Promise<WatchHandle>;
  /**
   * Calls `listener` after each change, in order; for controllers and indexes inside the process.
   */
  subscribe(listener: (change: EntryChange) => void): { close(): void };
  /**
   * Forgets, step by step, changes that are older than the history kept: writes do so otherwise.
   */
  trimSteps(): Generator<void, void>;
  close(): void;
}

export interface EntryChange {
  readonly previous: Entry | undefined;
  /** Absent when the object was removed. */
  readonly current: Entry | undefined;
  readonly revision: Revision;
}
