import {
  emptyOrderedMap,
  itemAt,
  MapOwner,
  type MaybePromise,
  nextTurn,
  type OrderedMap,
  orderedMapDelete,
  orderedMapGet,
  orderedMapRank,
  orderedMapSet,
  orderedMapValues,
  silentLogger,
} from '@wheelhouse/machinery';
import {
  byteOrdered,
  type Checkpoint,
  type CheckpointedStore,
  checkReadable,
  closedStore,
  type DeleteRequest,
  type PutRequest,
  piecesOf,
  type RangeRequest,
  type RangeResult,
  type RestoreResult,
  type Revision,
  type StoredRecord,
  type StoreEvent,
  type StoreSnapshot,
  type StoreWatch,
  type WatchRequest,
  type WriteResult,
} from '../contract.ts';
import { type HistoryChunk, WatchHub } from '../watch-hub.ts';

/**
 * One state of a key, linked to the retained earlier ones; without a record, the key is deleted.
 */
interface Version {
  readonly key: string;
  readonly revision: Revision;
  readonly record: StoredRecord | undefined;
  /** Removed by compaction, because checkpoints read only the newest state. */
  earlier: Version | undefined;
  /** The creation that follows a deletion. */
  later: Version | undefined;
}

/** A root of the store's persistent map. */
class MemoryCheckpoint implements Checkpoint {
  readonly store: unknown;
  readonly keys: OrderedMap<Version>;
  readonly revision: Revision;
  /**
   * The newest revision at which the store equaled this checkpoint; only later writes can differ.
   */
  sameAt: Revision;

  constructor(options: { store: unknown; keys: OrderedMap<Version>; revision: Revision }) {
    this.store = options.store;
    this.keys = options.keys;
    this.revision = options.revision;
    this.sameAt = options.revision;
  }
}

/** A key that differs and the record to restore; undefined if the key must be deleted. */
interface Difference {
  readonly key: string;
  readonly record: StoredRecord | undefined;
}

/**
 * Returns the writes that return the store to its state `before`, in order of keys. Deletions
 * precede puts, so that restored objects can take names and numbers that deleted ones release. Keys
 * with the prefix `last` form the second part.
 * @param states.changed the only keys that can differ; all keys when undefined
 */
function differences(states: {
  readonly before: OrderedMap<Version>;
  readonly now: OrderedMap<Version>;
  readonly changed: ReadonlySet<string> | undefined;
  readonly last: string;
}): { readonly first: readonly Difference[]; readonly second: readonly Difference[] } {
  const { before, now, changed, last } = states;
  const found: Difference[] = [];
  for (const key of [...(changed ?? keysOf(before, now))].sort()) {
    const ordered = byteOrdered(key);
    const record = orderedMapGet(before, ordered)?.record;
    const current = orderedMapGet(now, ordered)?.record;
    // Values are never copied, so a restored value is the same buffer.
    if (record?.value !== current?.value) found.push({ key, record });
  }
  const isLast = ({ key }: Difference) => key.startsWith(last);
  return {
    first: deletionsFirst(found.filter((difference) => !isLast(difference))),
    second: deletionsFirst(found.filter(isLast)),
  };
}

function keysOf(...maps: readonly OrderedMap<Version>[]): ReadonlySet<string> {
  return new Set(maps.flatMap((map) => Array.from(orderedMapValues(map), ({ key }) => key)));
}

function deletionsFirst(all: readonly Difference[]): readonly Difference[] {
  return [
    ...all.filter(({ record }) => record === undefined),
    ...all.filter(({ record }) => record !== undefined),
  ];
}

const historyChunkMax = 1000;
/** Number of writes that compaction visits in one turn of the event loop (TRUST-2). */
const writesPerTurn = 2000;

/**
 * Creates a store in the memory of the process, for tests and for servers without persistence. It
 * keeps values by reference.
 */
export function createMemoryStore(): MemoryStore {
  return new MemoryStore();
}

/** A store in memory with checkpoints. */
export class MemoryStore implements CheckpointedStore {
  readonly sharing = 'own';
  #keys: OrderedMap<Version> = emptyOrderedMap();
  /** `#log[i]` has revision `#logFirst + i`. */
  #log: StoreEvent[] = [];
  /** `#written[i]` is the state that `#log[i]` created. */
  #written: Version[] = [];
  #logFirst: Revision = 1;
  #bytes = 0;
  #closed = false;
  /** Replaced at each checkpoint, so that later changes copy the nodes that it shares. */
  #owner = new MapOwner();
  revision: Revision = 0;
  compactedTo: Revision = 0;
  readonly #hub: WatchHub;

  constructor() {
    const store = this;
    this.#hub = new WatchHub({
      logger: silentLogger,
      source: {
        get revision() {
          return store.revision;
        },
        get compactRevision() {
          return store.compactedTo;
        },
        history: (after) => this.#history(after),
      },
    });
  }

  currentRevision(): Revision {
    this.#assertOpen();
    return this.revision;
  }

  compactRevision(): Revision {
    this.#assertOpen();
    return this.compactedTo;
  }

  get(key: string, at?: Revision): MaybePromise<StoredRecord | undefined> {
    this.#assertOpen();
    const revision = this.#readable(at);
    return versionAt(orderedMapGet(this.#keys, byteOrdered(key)), revision)?.record;
  }

  async range(request: RangeRequest): Promise<RangeResult> {
    this.#assertOpen();
    const revision = this.#readable(request.revision);
    const limit = request.limit ?? Number.POSITIVE_INFINITY;
    const records: StoredRecord[] = [];
    const prefix = request.prefix;
    const after = request.after === undefined ? undefined : byteOrdered(request.after);
    const first = byteOrdered(prefix);
    const start = after !== undefined && after >= first ? after : first;
    let from = orderedMapRank(this.#keys, start);
    if (after === start && orderedMapGet(this.#keys, start) !== undefined) from += 1;
    for (const newest of orderedMapValues(this.#keys, { from, to: this.#keys.size })) {
      if (!newest.key.startsWith(prefix)) break;
      const record = versionAt(newest, revision)?.record;
      if (record === undefined) continue;
      if (records.length >= limit) return { records, revision, more: true };
      records.push(record);
    }
    return { records, revision, more: false };
  }

  async put(request: PutRequest): Promise<WriteResult> {
    this.#assertOpen();
    const { key, value, hint } = request;
    const earlier = orderedMapGet(this.#keys, byteOrdered(key));
    const current = earlier?.record;
    if ((current?.modRevision ?? 0) !== request.expect) return { ok: false, current };
    const revision = this.revision + 1;
    const createRevision = current?.createRevision ?? revision;
    const event: StoreEvent = { type: 'put', key, value, createRevision, revision, hint };
    const record = { key, value, createRevision, modRevision: revision };
    this.#apply(event, { key, revision, record, earlier, later: undefined });
    this.#hub.publish([event]);
    return { ok: true, revision };
  }

  async delete(request: DeleteRequest): Promise<WriteResult> {
    this.#assertOpen();
    const { key } = request;
    const earlier = orderedMapGet(this.#keys, byteOrdered(key));
    const current = earlier?.record;
    if (current === undefined || current.modRevision !== request.expect) {
      return { ok: false, current };
    }
    const revision = this.revision + 1;
    const event: StoreEvent = { type: 'delete', key, revision };
    this.#apply(event, { key, revision, record: undefined, earlier, later: undefined });
    this.#hub.publish([event]);
    return { ok: true, revision };
  }

  async watch(request: WatchRequest): Promise<StoreWatch> {
    this.#assertOpen();
    return this.#hub.watch(request);
  }

  async compact(revision: Revision): Promise<void> {
    this.#assertOpen();
    if (revision <= this.compactedTo) return;
    checkReadable(revision, { compacted: this.compactedTo, newest: this.revision });
    this.compactedTo = revision;
    const count = revision - this.#logFirst + 1;
    const written = this.#written;
    this.#log = this.#log.slice(count);
    this.#written = written.slice(count);
    this.#logFirst = revision + 1;
    for (let at = 0; at < count; at++) {
      if (at % writesPerTurn === writesPerTurn - 1) await nextTurn();
      if (this.#closed) return;
      this.#compactVersion(itemAt(written, at), revision);
    }
  }

  async ping(): Promise<void> {
    this.#assertOpen();
  }

  async sizeBytes(): Promise<number> {
    this.#assertOpen();
    return this.#bytes;
  }

  async snapshot(): Promise<StoreSnapshot> {
    const { records, revision } = await this.range({ prefix: '' });
    const pieces = checkedPieces(records, () => this.#assertOpen());
    return { revision, records: pieces, close: () => {} };
  }

  checkpoint(): Checkpoint {
    this.#assertOpen();
    this.#owner = new MapOwner();
    return new MemoryCheckpoint({ store: this, keys: this.#keys, revision: this.revision });
  }

  restore(checkpoint: Checkpoint, { last }: { readonly last: string }): RestoreResult {
    this.#assertOpen();
    if (!(checkpoint instanceof MemoryCheckpoint) || checkpoint.store !== this) {
      throw new Error('the checkpoint belongs to another store');
    }
    const keys = { before: checkpoint.keys, now: this.#keys };
    const changed = this.#changedSince(checkpoint.sameAt);
    const { first, second } = differences({ ...keys, changed, last });
    const batches = [first, second].map((batch) =>
      batch.map((difference) => this.#restoreKey(difference)),
    );
    for (const batch of batches) if (batch.length > 0) this.#hub.publish(batch);
    checkpoint.sameAt = this.revision;
    return { revision: this.revision, changes: first.length + second.length };
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#hub.end(closedStore());
  }

  #assertOpen(): void {
    if (this.#closed) throw closedStore();
  }

  #readable(at: Revision | undefined): Revision {
    if (at === undefined) return this.revision;
    checkReadable(at, { compacted: this.compactedTo, newest: this.revision });
    return at;
  }

  /** Applies a write. The caller publishes it in the same turn. */
  #apply(event: StoreEvent, version: Version): void {
    const { earlier } = version;
    if (earlier !== undefined && earlier.record === undefined) earlier.later = version;
    this.#keys = orderedMapSet(this.#keys, byteOrdered(event.key), version, this.#owner);
    this.#bytes += sizeOf(version);
    this.#log.push(event);
    this.#written.push(version);
    this.revision = event.revision;
  }

  /** Keys written after a revision; undefined when the log no longer reaches back to it. */
  #changedSince(revision: Revision): ReadonlySet<string> | undefined {
    if (revision < this.#logFirst - 1) return undefined;
    return new Set(this.#log.slice(revision - this.#logFirst + 1).map(({ key }) => key));
  }

  /** Restores the state of a key and returns the event. */
  #restoreKey({ key, record }: { key: string; record: StoredRecord | undefined }): StoreEvent {
    const earlier = orderedMapGet(this.#keys, byteOrdered(key));
    const revision = this.revision + 1;
    if (record === undefined) {
      const event: StoreEvent = { type: 'delete', key, revision };
      this.#apply(event, { key, revision, record, earlier, later: undefined });
      return event;
    }
    const { value } = record;
    const createRevision = earlier?.record?.createRevision ?? revision;
    // The hint of the original write saves watchers from decoding the value again.
    const written = this.#log[record.modRevision - this.#logFirst];
    const hint = written?.type === 'put' && written.value === value ? written.hint : undefined;
    const event: StoreEvent = { type: 'put', key, value, createRevision, revision, hint };
    const returned = { key, value, createRevision, modRevision: revision };
    this.#apply(event, { key, revision, record: returned, earlier, later: undefined });
    return event;
  }

  #history(after: Revision): HistoryChunk {
    const start = after - this.#logFirst + 1;
    const events = this.#log.slice(start, start + historyChunkMax);
    return { events, through: after + events.length };
  }

  /** Drops the states before a compacted state, and the state itself if it is a deletion. */
  #compactVersion(version: Version, compacted: Revision): void {
    let { earlier } = version;
    version.earlier = undefined;
    while (earlier !== undefined) {
      this.#bytes -= sizeOf(earlier);
      const next = earlier.earlier;
      // Another compaction, which has yet to visit this state, must not count the next one again.
      earlier.earlier = undefined;
      earlier = next;
    }
    const { key, record, later } = version;
    if (record !== undefined) return;
    if (later === undefined) {
      this.#keys = orderedMapDelete(this.#keys, byteOrdered(key), this.#owner);
    } else {
      // A compacted creation drops the deletion when it is visited, if it has not been yet.
      if (later.revision <= compacted || later.earlier !== version) return;
      later.earlier = undefined;
    }
    this.#bytes -= sizeOf(version);
  }
}

/** Yields records in pieces; `check` throws if the store has been closed. */
async function* checkedPieces(
  records: readonly StoredRecord[],
  check: () => void,
): AsyncGenerator<readonly StoredRecord[]> {
  for (const piece of piecesOf(records)) {
    check();
    yield piece;
  }
}

/** The state at a revision; undefined before the first retained one. */
function versionAt(newest: Version | undefined, revision: Revision): Version | undefined {
  let version = newest;
  while (version !== undefined && version.revision > revision) version = version.earlier;
  return version;
}

function sizeOf({ key, record }: Version): number {
  return key.length + (record?.value.length ?? 0);
}
