import { parseAhead, parseWrittenJson } from '@wheelhouse/codec';
import {
  type ApiObject,
  type Clock,
  errorText,
  type Logger,
  nextTurn,
  orderedMapGet,
  orderedMapSteps,
  pacedBytesMin,
  pendingPromise,
  runAtPace,
  Slices,
  type Timer,
} from '@wheelhouse/machinery';
import {
  type Revision,
  type Store,
  StoreError,
  type StoreEvent,
  shownKey,
} from '@wheelhouse/store';
import type { EntryChange } from './contract.ts';
import { type Entry, EntryHint, type EntryIndex, makeEntry } from './entry.ts';
import type { Snapshot } from './window.ts';

/** How to read the entries of one resource from the store. */
export interface LoaderOptions {
  readonly store: Store;
  /** Storage prefix of the resource, ending in `/`. */
  readonly prefix: string;
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly logger: Logger;
  readonly indexOf: (object: ApiObject) => EntryIndex;
  /** Called for values that cannot be read. */
  readonly onUnreadable?: (found: UnreadableRecord) => void;
}

/** A stored value that cannot be decrypted, or is not an object (STORE-3). */
export interface UnreadableRecord {
  /** The entry's key, below the resource's prefix. */
  readonly key: string;
  /** The store's key, as messages show it. */
  readonly storeKey: string;
  /** The error, in kube-apiserver's wording. */
  readonly problem: string;
}

const pageRecords = 1000;

/** A snapshot that was read from the store. */
interface LoadedSnapshot {
  readonly snapshot: Snapshot;
  readonly revision: Revision;
  /** Bytes of JSON of the entries that were decoded for it. */
  readonly bytes: number;
}

/**
 * Loads all entries at one revision, by default the newest, in slices (TRUST-2). Entries that are
 * unchanged in `reusable` are reused instead of decoded. Rejects with the store's `compacted` or
 * `future-revision`.
 */
export async function loadSnapshot(
  options: LoaderOptions,
  { at, reusable }: { readonly at?: Revision; readonly reusable?: Snapshot | undefined } = {},
): Promise<LoadedSnapshot> {
  const { store, prefix } = options;
  const pairs: [string, Entry][] = [];
  const slices = new Slices(options.clock);
  let isSorted = true;
  let bytes = 0;
  let revision = at;
  let after: string | undefined;
  for (;;) {
    const page = await store.range({
      prefix,
      limit: pageRecords,
      ...(after === undefined ? {} : { after }),
      ...(revision === undefined ? {} : { revision }),
    });
    revision = page.revision;
    for (const record of page.records) {
      const { modRevision, ...rest } = record;
      const same = reusable && orderedMapGet(reusable, record.key.slice(prefix.length));
      const stored = { ...rest, revision: modRevision };
      const isSame = same?.revision === modRevision;
      if (slices.over) await slices.pause();
      if (!isSame && isLarge(record)) await runAtPace(parseLarge(record.value), slices);
      const entry = isSame ? same : decodeEntry(options, stored);
      if (entry === undefined) continue;
      if (!isSame) bytes += entry.json.length;
      isSorted &&= entry.key > (pairs.at(-1)?.[0] ?? '');
      pairs.push([entry.key, entry]);
    }
    after = page.records.at(-1)?.key;
    if (!page.more || after === undefined) break;
    await nextTurn();
  }
  // The store sorts by bytes and the map by UTF-16, which differ above the basic plane.
  if (!isSorted) pairs.sort(([a], [b]) => (a < b ? -1 : 1));
  return { snapshot: await runAtPace(orderedMapSteps(pairs), slices), revision, bytes };
}

/**
 * Creates the entry of a stored value. Returns undefined for an unreadable value, which is logged
 * and reported, so that one damaged record does not affect others.
 */
function decodeEntry(
  options: LoaderOptions,
  record: Omit<Extract<StoreEvent, { readonly type: 'put' }>, 'type'>,
  key = keyBelow(options, record.key),
): Entry | undefined {
  const { value, createRevision, revision, hint } = record;
  const problem = problemOf(record);
  if (problem !== undefined)
    return reportUnreadable(options, {
      key,
      storeKey: shownKey(options.store, record.key),
      problem,
    });
  try {
    if (hint instanceof EntryHint) {
      return hint.entryOf({ key, stored: value, revision, createRevision });
    }
    const index = options.indexOf(parsedValue(value) as ApiObject);
    return makeEntry({ key, stored: value, revision, createRevision, index });
  } catch (error) {
    const why = errorText(error);
    return reportUnreadable(options, {
      key,
      storeKey: shownKey(options.store, record.key),
      problem: undecodable(revision, why),
    });
  }
}

const isLarge = ({ value }: { readonly value: Buffer }) => value.length >= pacedBytesMin;

function parsedValue(value: Buffer): unknown {
  return isLarge({ value }) ? parseWrittenJson(value) : JSON.parse(value.toString('utf8'));
}

/** Does most of the work of `changeOf` in steps if the event's value is large (TRUST-2). */
export function* decodeAhead(event: StoreEvent): Generator<void, void> {
  if (event.type === 'put' && isLarge(event)) yield* parseLarge(event.value);
}

/** Parses a large value in steps for `decodeEntry`, which reports a value that is no JSON. */
function* parseLarge(value: Buffer): Generator<void, void> {
  try {
    yield* parseAhead(value);
  } catch (error) {
    if (!(error instanceof Error)) throw error;
  }
}

const undecodable = (revision: Revision, why: string) =>
  `object not decodable revision=${revision}: ${why}`;

/** Why a record is unreadable, in kube-apiserver's wording; undefined if it is readable. */
export function problemOf(record: {
  readonly revision: Revision;
  readonly unreadable?: string;
  readonly failure?: 'decoding';
}): string | undefined {
  const { revision, unreadable, failure } = record;
  if (unreadable === undefined) return undefined;
  return failure === 'decoding'
    ? undecodable(revision, unreadable)
    : `data from the storage is not transformable revision=0: ${unreadable}`;
}

/** The key below the prefix, copied: a slice would retain the whole string and compare slowly. */
function keyBelow({ prefix }: LoaderOptions, storeKey: string): string {
  const first = prefix.length + 1;
  return [storeKey.slice(prefix.length, first), storeKey.slice(first)].join('');
}

function reportUnreadable(options: LoaderOptions, unreadable: UnreadableRecord): undefined {
  const { storeKey, problem } = unreadable;
  options.logger.error('cannot read a stored object', { key: storeKey, error: problem });
  options.onUnreadable?.(unreadable);
}

/**
 * Converts a store event to a change; undefined if nothing visible changes. An object that becomes
 * unreadable still exists, so its last state is kept.
 * @param on.entryAt the entry of a key before the event
 * @param on.at time of arrival, in monotonic milliseconds
 */
export function changeOf(
  options: LoaderOptions,
  event: StoreEvent,
  on: { readonly entryAt: (key: string) => Entry | undefined; readonly at: number },
): (EntryChange & { readonly key: string; readonly at: number }) | undefined {
  const { entryAt, at } = on;
  const key = keyBelow(options, event.key);
  const previous = entryAt(key);
  const current = event.type === 'put' ? decodeEntry(options, event, key) : undefined;
  if (current === undefined && (previous === undefined || event.type === 'put')) return undefined;
  return { key, at, previous, current, revision: event.revision };
}

/**
 * Reads all events of the resource after one revision, up to and including another. Rejects with
 * `compacted` if they exceed the limits.
 */
export async function readEvents(
  options: LoaderOptions,
  range: {
    readonly after: Revision;
    readonly upTo: Revision;
    readonly eventsMax: number;
    /** Maximum number of bytes of their values. */
    readonly bytesMax: number;
  },
): Promise<readonly StoreEvent[]> {
  const { store, prefix } = options;
  const { after, upTo, eventsMax, bytesMax } = range;
  const found: StoreEvent[] = [];
  let bytes = 0;
  let exceeded: StoreError | undefined;
  const { promise: failed, reject: fail } = pendingPromise<never>();
  failed.catch(() => {});
  const watch = await store.watch({
    prefix,
    after,
    onEvents(events) {
      for (const event of events) {
        if (event.revision > upTo) break;
        if (event.type === 'put') bytes += event.value.length;
        if (found.length === eventsMax || bytes > bytesMax) exceeded = tooManyEvents(upTo);
        if (exceeded !== undefined) return fail(exceeded);
        found.push(event);
      }
    },
    onEnd: fail,
  });
  try {
    await Promise.race([watch.reached(upTo), failed]);
  } finally {
    watch.close();
  }
  // All events may have been delivered before the race began.
  if (exceeded !== undefined) throw exceeded;
  return found;
}

function tooManyEvents(revision: Revision): StoreError {
  return new StoreError({ code: 'compacted', message: 'too much history to read back', revision });
}

const snapshotsMax = 2;
/** Maximum number of bytes of JSON that snapshots have of their own, unless there is only one. */
const snapshotBytesMax = 64 * 1024 * 1024;
/** Milliseconds that a snapshot is kept after its last use. */
const retentionMs = 30_000;
/** Milliseconds that a load waits for those before it; most requests have then timed out. */
const patienceMs = 30_000;

interface HistoricSnapshot {
  readonly loading: Promise<Snapshot>;
  /** See `LoadedSnapshot`. */
  bytes: number;
  /** Monotonic milliseconds until which it may be kept; undefined while it is loaded. */
  endMs: number | undefined;
  expiry: Timer | undefined;
}

/**
 * Snapshots of revisions that only the store still has, for exact lists. Each requires a full load,
 * so they are loaded one at a time, and the latest ones are kept for further chunks of a list.
 */
export class HistoricSnapshots {
  readonly #load: (revision: Revision) => Promise<Pick<LoadedSnapshot, 'snapshot' | 'bytes'>>;
  readonly #clock: Clock;
  readonly #historyMs: number;
  readonly #kept = new Map<Revision, HistoricSnapshot>();
  #last: Promise<void> = Promise.resolve();

  /** @param options.historyMs snapshots are not kept longer than the store's history (LIST-6) */
  constructor(options: {
    clock: Clock;
    historyMs: number;
    load: (revision: Revision) => Promise<Pick<LoadedSnapshot, 'snapshot' | 'bytes'>>;
  }) {
    this.#clock = options.clock;
    this.#historyMs = options.historyMs;
    this.#load = options.load;
  }

  /**
   * The snapshot of a revision. Rejects with the store's error if the revision is gone, and with
   * `timed-out` if too many loads precede this one.
   */
  at(revision: Revision): Promise<Snapshot> {
    const kept = this.#kept.get(revision);
    if (kept !== undefined) {
      this.#extend(revision, kept);
      return kept.loading;
    }
    const dueMs = this.#clock.monotonic() + patienceMs;
    const loaded = this.#last.then(() => {
      if (this.#clock.monotonic() > dueMs) throw tooManyLoads();
      return this.#load(revision);
    });
    // Nothing here may hold a snapshot that is no longer kept.
    const added: HistoricSnapshot = {
      loading: loaded.then(({ snapshot }) => snapshot),
      bytes: 0,
      endMs: undefined,
      expiry: undefined,
    };
    this.#last = loaded.then(
      ({ bytes }) => this.#retain(revision, added, bytes),
      () => this.#drop(revision, added),
    );
    this.#kept.set(revision, added);
    this.#trim();
    return added.loading;
  }

  #retain(revision: Revision, added: HistoricSnapshot, bytes: number): void {
    if (this.#kept.get(revision) !== added) return;
    added.bytes = bytes;
    added.endMs = this.#clock.monotonic() + this.#historyMs;
    this.#extend(revision, added);
    this.#trim();
  }

  /** Keeps a loaded snapshot for a while after each use, for clients that read chunks slowly. */
  #extend(revision: Revision, used: HistoricSnapshot): void {
    if (used.endMs === undefined) return;
    used.expiry?.stop();
    const delayMs = Math.min(retentionMs, used.endMs - this.#clock.monotonic());
    used.expiry = this.#clock.after(delayMs, () => this.#drop(revision, used));
  }

  #drop(revision: Revision, dropped: HistoricSnapshot): void {
    if (this.#kept.get(revision) !== dropped) return;
    this.#kept.delete(revision);
    dropped.expiry?.stop();
  }

  /** Drops the oldest snapshots beyond the limits. */
  #trim(): void {
    let bytes = 0;
    for (const kept of this.#kept.values()) bytes += kept.bytes;
    for (const [revision, oldest] of this.#kept) {
      const { size } = this.#kept;
      if (size <= 1 || (size <= snapshotsMax && bytes <= snapshotBytesMax)) return;
      bytes -= oldest.bytes;
      this.#drop(revision, oldest);
    }
  }
}

function tooManyLoads(): StoreError {
  const message = 'too many lists of past revisions precede this one';
  return new StoreError({ code: 'timed-out', message });
}
