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
import { byteOrdered } from '../byte-order.ts';
import type {
  DeleteRequest,
  PutRequest,
  RangeRequest,
  RangeResult,
  Revision,
  Store,
  StoredRecord,
  StoreEvent,
  StoreSnapshot,
  StoreWatch,
  WatchRequest,
  WriteResult,
} from '../contract.ts';
import { checkReadable, closedStore, snapshotPieceBytes } from '../revisions.ts';
import { type HistoryChunk, WatchHub } from '../watch-hub.ts';

const historyChunkMax = 1000;

/** One state of a key; no record means deleted. */
interface Version {
  readonly revision: Revision;
  readonly record: StoredRecord | undefined;
}

/** All retained states of a key, oldest first, never empty. */
interface KeyHistory {
  readonly key: string;
  versions: Version[];
}

/**
 * A store that lives and dies with the process: for tests and for servers that need no tomorrow.
 * Values are kept by reference.
 */
export function createMemoryStore(_options: { readonly clock?: Clock } = {}): Store {
  return new MemoryStore();
}

class MemoryStore implements Store {
  #keys: OrderedMap<KeyHistory> = emptyOrderedMap();
  /** `#log[i]` has revision `#logFirst + i`. */
  #log: StoreEvent[] = [];
  #logFirst: Revision = 1;
  #bytes = 0;
  #closed = false;
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
    const current = history?.versions.at(-1)?.record;
    if ((current?.modRevision ?? 0) !== request.expect) return { ok: false, current };
    const revision = this.revision + 1;
    const createRevision = current?.createRevision ?? revision;
    const event: StoreEvent = { type: 'put', key, value, createRevision, revision, hint };
    const record = { key, value, createRevision, modRevision: revision };
    this.#apply({ history, event, version: { revision, record } });
    return { ok: true, revision };
  }

  async delete(request: DeleteRequest): Promise<WriteResult> {
    this.#assertOpen();
    const { key } = request;
    const history = orderedMapGet(this.#keys, byteOrdered(key));
    const current = history?.versions.at(-1)?.record;
    if (current === undefined || current.modRevision !== request.expect) {
      return { ok: false, current };
    }
    const revision = this.revision + 1;
    const event: StoreEvent = { type: 'delete', key, revision };
    this.#apply({ history, event, version: { revision, record: undefined } });
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

  #apply(write: {
    readonly history: KeyHistory | undefined;
    readonly event: StoreEvent;
    readonly version: Version;
  }): void {
    const { event, version } = write;
    if (write.history !== undefined) write.history.versions.push(version);
    else {
      const history = { key: event.key, versions: [version] };
      this.#keys = orderedMapSet(this.#keys, byteOrdered(event.key), history);
    }
    this.#bytes += sizeOf(event.key, version);
    this.#log.push(event);
    this.revision = event.revision;
    this.#hub.publish([event]);
  }

  #history(after: Revision): HistoryChunk {
    const start = after - this.#logFirst + 1;
    const events = this.#log.slice(start, start + historyChunkMax);
    return { events, through: after + events.length };
  }

  /** Keeps the state at `revision` and what came later. */
  #compactKey(key: string, revision: Revision): void {
    const ordered = byteOrdered(key);
    const history = orderedMapGet(this.#keys, ordered);
    if (history === undefined) return;
    const at = history.versions.findLastIndex((one) => one.revision <= revision);
    if (at < 0) return;
    const keepFrom = history.versions[at]?.record === undefined ? at + 1 : at;
    for (const gone of history.versions.splice(0, keepFrom)) this.#bytes -= sizeOf(key, gone);
    if (history.versions.length === 0) this.#keys = orderedMapDelete(this.#keys, ordered);
  }
}

/** A few at a time; `check` throws when the store has been closed. */
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
      bytes += (records[to] as StoredRecord).value.length;
      to += 1;
    }
    yield records.slice(from, to);
    from = to;
  }
}

function versionAt(history: KeyHistory, revision: Revision): Version | undefined {
  const { versions } = history;
  for (let i = versions.length - 1; i >= 0; i--) {
    const version = versions[i] as Version;
    if (version.revision <= revision) return version;
  }
  return undefined;
}

function sizeOf(key: string, version: Version): number {
  return key.length + (version.record?.value.length ?? 0);
}
