import {
  type Clock,
  emptyOrderedMap,
  type MaybePromise,
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
  type RangeRequest,
  type RangeResult,
  type RestoreResult,
  type Revision,
  type StoredRecord,
  type StoreEvent,
  type StoreSnapshot,
  type StoreWatch,
  snapshotPieceBytes,
  type WatchRequest,
  type WriteResult,
} from '../contract.ts';

import { type HistoryChunk, WatchHub } from '../watch-hub.ts';

/** One state of a key; no record means deleted. */
interface Version {
  readonly revision: Revision;
  readonly record: StoredRecord | undefined;
}

/** All retained states of a key, oldest first, never empty. */
interface KeyHistory {
  readonly key: string;
  readonly versions: Version[];
  /** How many checkpoints the store had given out when this history became its own. */
  readonly generation: number;
}

/** The newest state of a key. */
function latest(history: KeyHistory | undefined): StoredRecord | undefined {
  return history?.versions.at(-1)?.record;
}

/** A root of the store's persistent map, whose histories no longer change. */
class MemoryCheckpoint implements Checkpoint {
  readonly store: unknown;
  readonly keys: OrderedMap<KeyHistory>;
  readonly revision: Revision;
  /**
   * The newest revision at which the store equaled this checkpoint; only later writes can differ.
   */
  sameAt: Revision;

  constructor(options: { store: unknown; keys: OrderedMap<KeyHistory>; revision: Revision }) {
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
 * The writes that return the store to its state `before`, in order of keys. Deletions precede puts,
 * so that restored objects can take names and numbers that deleted ones release. Keys with the
 * prefix `last` form the second part.
 * @param states.changed the only keys that can differ; all keys when undefined
 */
function differences(states: {
  readonly before: OrderedMap<KeyHistory>;
  readonly now: OrderedMap<KeyHistory>;
  readonly changed: ReadonlySet<string> | undefined;
  readonly last: string;
}): { readonly first: readonly Difference[]; readonly second: readonly Difference[] } {
  const { before, now, changed, last } = states;
  const found: Difference[] = [];
  for (const key of [...(changed ?? keysOf(before, now))].sort()) {
    const record = latest(orderedMapGet(before, byteOrdered(key)));
    const current = latest(orderedMapGet(now, byteOrdered(key)));
    // Values are never copied, so a restored value is the same buffer.
    if (record?.value !== current?.value) found.push({ key, record });
  }
  const isLast = ({ key }: Difference) => key.startsWith(last);
  return {
    first: deletionsFirst(found.filter((one) => !isLast(one))),
    second: deletionsFirst(found.filter(isLast)),
  };
}

function keysOf(...maps: readonly OrderedMap<KeyHistory>[]): ReadonlySet<string> {
  return new Set(maps.flatMap((map) => Array.from(orderedMapValues(map), ({ key }) => key)));
}

function deletionsFirst(all: readonly Difference[]): readonly Difference[] {
  return [
    ...all.filter(({ record }) => record === undefined),
    ...all.filter(({ record }) => record !== undefined),
  ];
}

const historyChunkMax = 1000;

/**
 * A store in the memory of the process, for tests and for servers that need no persistence. It
 * keeps values by reference.
 */
export function createMemoryStore(_options: { readonly clock?: Clock } = {}): MemoryStore {
  return new MemoryStore();
}

export class MemoryStore implements CheckpointedStore {
  readonly sharing = 'own';
  #keys: OrderedMap<KeyHistory> = emptyOrderedMap();
  /** `#log[i]` has revision `#logFirst + i`. */
  #log: StoreEvent[] = [];
  #logFirst: Revision = 1;
  #bytes = 0;
  #closed = false;
  /**
   * Histories of earlier generations are shared with checkpoints, so they are copied before they
   * change.
   */
  #generation = 0;
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
    const history = orderedMapGet(this.#keys, byteOrdered(key));
    return history === undefined ? undefined : versionAt(history, revision)?.record;
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
    for (const history of orderedMapValues(this.#keys, { from, to: this.#keys.size })) {
      if (!history.key.startsWith(prefix)) break;
      const record = versionAt(history, revision)?.record;
      if (record === undefined) continue;
      if (records.length >= limit) return { records, revision, more: true };
      records.push(record);
    }
    return { records, revision, more: false };
  }

  async put(request: PutRequest): Promise<WriteResult> {
    this.#assertOpen();
    const { key, value, hint } = request;
    const history = orderedMapGet(this.#keys, byteOrdered(key));
    const current = latest(history);
    if ((current?.modRevision ?? 0) !== request.expect) return { ok: false, current };
    const revision = this.revision + 1;
    const createRevision = current?.createRevision ?? revision;
    const event: StoreEvent = { type: 'put', key, value, createRevision, revision, hint };
    const record = { key, value, createRevision, modRevision: revision };
    this.#apply({ history, event, version: { revision, record } });
    this.#hub.publish([event]);
    return { ok: true, revision };
  }

  async delete(request: DeleteRequest): Promise<WriteResult> {
    this.#assertOpen();
    const { key } = request;
    const history = orderedMapGet(this.#keys, byteOrdered(key));
    const current = latest(history);
    if (current === undefined || current.modRevision !== request.expect) {
      return { ok: false, current };
    }
    const revision = this.revision + 1;
    const event: StoreEvent = { type: 'delete', key, revision };
    this.#apply({ history, event, version: { revision, record: undefined } });
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
    const dropped = this.#log.splice(0, revision - this.#logFirst + 1);
    this.#logFirst = revision + 1;
    for (const key of new Set(dropped.map((event) => event.key))) this.#compactKey(key, revision);
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
    const pieces = piecesOf(records, () => this.#assertOpen());
    return { revision, records: pieces, close: () => {} };
  }

  checkpoint(): Checkpoint {
    this.#assertOpen();
    this.#generation += 1;
    return new MemoryCheckpoint({ store: this, keys: this.#keys, revision: this.revision });
  }

  restore(checkpoint: Checkpoint, { last }: { readonly last: string }): RestoreResult {
    this.#assertOpen();
    if (!(checkpoint instanceof MemoryCheckpoint) || checkpoint.store !== this) {
      throw new Error('the checkpoint is not one of this store');
    }
    const keys = { before: checkpoint.keys, now: this.#keys };
    const changed = this.#changedSince(checkpoint.sameAt);
    const { first, second } = differences({ ...keys, changed, last });
    const batches = [first, second].map((batch) => batch.map((one) => this.#return(one)));
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
  #apply(write: {
    readonly history: KeyHistory | undefined;
    readonly event: StoreEvent;
    readonly version: Version;
  }): void {
    const { event, version } = write;
    if (write.history !== undefined) this.#own(write.history).versions.push(version);
    else {
      const history = { key: event.key, versions: [version], generation: this.#generation };
      this.#keys = orderedMapSet(this.#keys, byteOrdered(event.key), history);
    }
    this.#bytes += sizeOf(event.key, version);
    this.#log.push(event);
    this.revision = event.revision;
  }

  /** The history of a key, copied if a checkpoint shares it. */
  #own(history: KeyHistory): KeyHistory {
    if (history.generation === this.#generation) return history;
    const { key, versions } = history;
    const copy = { key, versions: [...versions], generation: this.#generation };
    this.#keys = orderedMapSet(this.#keys, byteOrdered(key), copy);
    return copy;
  }

  /** Keys written after a revision; undefined when the log no longer reaches back to it. */
  #changedSince(revision: Revision): ReadonlySet<string> | undefined {
    if (revision < this.#logFirst - 1) return undefined;
    return new Set(this.#log.slice(revision - this.#logFirst + 1).map(({ key }) => key));
  }

  /** Restores a key. */
  #return({ key, record }: { key: string; record: StoredRecord | undefined }): StoreEvent {
    const history = orderedMapGet(this.#keys, byteOrdered(key));
    const revision = this.revision + 1;
    if (record === undefined) {
      const event: StoreEvent = { type: 'delete', key, revision };
      this.#apply({ history, event, version: { revision, record } });
      return event;
    }
    const { value } = record;
    const createRevision = latest(history)?.createRevision ?? revision;
    // With the hint of the original write, watchers need not decode the value again.
    const written = this.#log[record.modRevision - this.#logFirst];
    const hint = written?.type === 'put' && written.value === value ? written.hint : undefined;
    const event: StoreEvent = { type: 'put', key, value, createRevision, revision, hint };
    const returned = { key, value, createRevision, modRevision: revision };
    this.#apply({ history, event, version: { revision, record: returned } });
    return event;
  }

  #history(after: Revision): HistoryChunk {
    const start = after - this.#logFirst + 1;
    const events = this.#log.slice(start, start + historyChunkMax);
    return { events, through: after + events.length };
  }

  /** Keeps the state at `revision` and all later ones. */
  #compactKey(key: string, revision: Revision): void {
    const ordered = byteOrdered(key);
    const history = orderedMapGet(this.#keys, ordered);
    if (history === undefined) return;
    const at = history.versions.findLastIndex((one) => one.revision <= revision);
    if (at < 0) return;
    const keepFrom = history.versions[at]?.record === undefined ? at + 1 : at;
    if (keepFrom === 0) return;
    const { versions } = this.#own(history);
    for (const gone of versions.splice(0, keepFrom)) this.#bytes -= sizeOf(key, gone);
    if (versions.length === 0) this.#keys = orderedMapDelete(this.#keys, ordered);
  }
}

/** Yields records in pieces; `check` throws if the store has been closed. */
async function* piecesOf(
  records: readonly StoredRecord[],
  check: () => void,
): AsyncGenerator<readonly StoredRecord[]> {
  let from = 0;
  while (from < records.length) {
    check();
    let bytes = 0;
    let to = from;
    while (to < records.length && (to === from || bytes < snapshotPieceBytes)) {
      bytes += records[to]?.value.length ?? 0;
      to += 1;
    }
    yield records.slice(from, to);
    from = to;
  }
}

function versionAt(history: KeyHistory, revision: Revision): Version | undefined {
  const { versions } = history;
  return versions.findLast((version) => version.revision <= revision);
}

function sizeOf(key: string, version: Version): number {
  return key.length + (version.record?.value.length ?? 0);
}
