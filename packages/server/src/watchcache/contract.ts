import type { BodyPiece, MaybePromise } from '@wheelhouse/machinery';
import type { Revision } from '@wheelhouse/store';
import type { Entry, EntryFilter } from './entry.ts';

/** A list; LIST-5 defines how its parameters combine. */
export interface ListRequest {
  /** Empty: all namespaces, or a cluster-scoped kind. */
  readonly namespace: string;
  /** Set if the selectors allow only one name, which avoids a scan; `filter` still applies. */
  readonly name?: string | undefined;
  /** Query parameters with valid syntax; absent if unset or empty. */
  readonly resourceVersion?: string | undefined;
  readonly resourceVersionMatch?: 'Exact' | 'NotOlderThan' | undefined;
  readonly limit?: number | undefined;
  readonly continueToken?: string | undefined;
  /** Absent without selectors. */
  readonly filter?: EntryFilter | undefined;
  /** Omits unreadable objects instead of failing. */
  readonly unreadable?: 'omitted';
}

/** The entries of a list, all at one revision. */
export interface ListResult {
  readonly revision: Revision;
  readonly continueToken: string | undefined;
  readonly remainingItemCount: number | undefined;
  readonly count: number;
  /** Number of examined entries, if it differs from `count`. */
  readonly examined?: number;
  entries(): Iterable<Entry>;
  /**
   * The JSON of the items, `{…},{…},{…}`, in pieces of about 16 KiB that are copied only when they
   * are written.
   *
   * @param typeBytes length of the text of an item's type, `"apiVersion":"v1","kind":"Pod",`, which
   *   follows its first brace and is omitted; 0 omits nothing
   */
  jsonPieces(typeBytes: number): Iterable<BodyPiece>;
}

/**
 * What happened to an object from the view of a watcher, whose selectors it may have entered or
 * left (WATCH-6).
 */
export type WatchEventType = 'ADDED' | 'MODIFIED' | 'DELETED';

/**
 * Frames events in one encoding. Watchers with the same `key` share frames: each event is framed
 * once per key, for any number of watchers.
 */
export interface EventEncoder {
  readonly key: string;
  frame(type: WatchEventType, entry: Entry): Buffer;
  /** Frames a large entry in steps (TRUST-2). Absent if frames only copy an entry's bytes. */
  readonly frameSteps?:
    | ((type: WatchEventType, entry: Entry) => Generator<void, Buffer>)
    | undefined;
  bookmark(revision: Revision, options: { readonly initialEventsEnd: boolean }): Buffer;
  /** Called for each frame with its size and the number of watchers that receive it. */
  countSent?(bytes: number, watchers: number): void;
}

/** The destination of a watcher's frames; `endpoints/` implements it over a socket. */
export interface WatchSink {
  /** Accepts frames; false if the reader is behind, and the caller must wait for `onDrain`. */
  write(frames: Buffer): boolean;
  /** Sets the callback that runs when the reader has caught up. */
  onDrain(callback: () => void): void;
  /** Ends the watch; an `error` reason is sent as an ERROR frame (410, for example). */
  end(reason: WatchEnd): void;
}

/** Why a watch ends. */
export type WatchEnd =
  | { readonly type: 'timeout' }
  | { readonly type: 'slow' }
  | { readonly type: 'shutdown' }
  | { readonly type: 'error'; readonly error: Error };

/** The parameters of a watch, and where its events go. */
export interface WatchSpec {
  readonly namespace: string;
  /** Set for a watch of one name (WATCH-8), which costs nothing when other objects change. */
  readonly name?: string | undefined;
  /** Undefined when unset. */
  readonly resourceVersion: string | undefined;
  readonly filter: EntryFilter | undefined;
  readonly allowBookmarks: boolean;
  readonly sendInitialEvents: boolean | undefined;
  readonly timeoutMs: number;
  readonly encoder: EventEncoder;
  readonly sink: WatchSink;
}

/** An open watch. */
export interface WatchHandle {
  /** Ends the watch without notifying its sink. */
  close(): void;
}

/**
 * All objects of one resource in memory, in key order, following the store. Reads wait until the
 * cache is as new as requested; errors are StatusErrors (LIST-4 to LIST-8, WATCH-3).
 */
export interface ResourceCache {
  /** Resolves when the first load from the store is complete. */
  ready(): Promise<void>;
  /** Returns the cached object without waiting, for callers that accept stale data. */
  peek(key: string): Entry | undefined;
  /** Number of cached objects, without waiting; undefined during the first load. */
  count(): number | undefined;
  /**
   * Reads one object (LIST-4): the most recent state without a resourceVersion, any state for `0`,
   * and otherwise one not older than the version.
   */
  get(key: string, resourceVersion: string | undefined): MaybePromise<Entry | undefined>;
  list(request: ListRequest): MaybePromise<ListResult>;
  /** Starts a watch. Rejects with a StatusError if it cannot start. */
  watch(spec: WatchSpec): Promise<WatchHandle>;
  /** Calls `listener` after each change, in order; for controllers and indexes in this process. */
  subscribe(listener: (change: EntryChange) => void): { close(): void };
  /** Drops changes older than the history in steps; without it, only writes drop them. */
  trimSteps(): Generator<void, void>;
  close(): void;
}

/** A change of one object. */
export interface EntryChange {
  readonly previous: Entry | undefined;
  /** Undefined if the object was removed. */
  readonly current: Entry | undefined;
  readonly revision: Revision;
}
