import type { Clock } from '../../base/clock.ts';
import { type Logger, silentLogger } from '../../base/log.ts';
import type { MaybePromise } from '../../base/maybe-promise.ts';
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
import { checkReadable, closedStore } from '../revisions.ts';
import { type HistoryChunk, WatchHub } from '../watch-hub.ts';
import { CommitBatch } from './commit-batch.ts';
import { type HeldState, keyBytesMax, prepareDirectory, RecordDatabase } from './database.ts';
import { type DirectoryLock, lockDirectory } from './directory-lock.ts';
import { damaged, type Head, type LogRecord, type StoreState } from './record.ts';

const batchWritesMax = 2048;
const batchBytesMax = 16 * 2 ** 20;
const scanChunkMax = 1000;
const sweepChunkMax = 500;

export interface EmbeddedStoreOptions {
  /** Created if absent; holds nothing but the store's files. */
  readonly directory: string;
  readonly clock: Clock;
  readonly logger?: Logger;
}

/**
 * Opens the durable store of one data directory (STORE-1). Throws StoreError `locked` when another
 * process has it, `damaged` when the file is, `unavailable` when it is of a newer format.
 */
export async function openEmbeddedStore(options: EmbeddedStoreOptions): Promise<Store> {
  prepareDirectory(options.directory);
  const lock = lockDirectory({ directory: options.directory, nowMs: options.clock.now() });
  try {
    const database = new RecordDatabase({ directory: options.directory });
    const state = database.load();
    return new EmbeddedStore({ database, state, lock, logger: options.logger ?? silentLogger });
  } catch (error) {
    lock.release();
    throw error;
  }
}

/** A task of the one writer: either adds its changes to the batch at hand, or is refused by it. */
interface Task {
  readonly bytes: number;
  /** Judges the write against durable state and the batch so far; throws StoreError `damaged`. */
  prepare(batch: CommitBatch): void;
  /** The batch is durable and its events have been handed to the watches. */
  done(): void;
  failed(error: unknown): void;
}

/**
 * Writes queue up while a commit is under way; then the whole queue becomes one LMDB transaction
 * and one sync. Because batches never overlap, a write is judged only against durable state plus
 * the writes before it in its own batch, and a failed commit leaves nothing to take back.
 *
 * Reads are always at a revision, for "newest" the durable one whose events have been handed on,
 * and follow the key's chain back to it: what LMDB may show earlier than that is never seen.
 */
class EmbeddedStore implements Store {
  readonly #database: RecordDatabase;
  readonly #lock: DirectoryLock;
  readonly #logger: Logger;
  readonly #hub: WatchHub;
  #state: StoreState;
  #queue: Task[] = [];
  #writing = false;
  #closing: Promise<void> | undefined;
  /** Closes each snapshot that is open. */
  readonly #snapshots = new Set<() => void>();
  #idle: (() => void)[] = [];
  #lastFailure: unknown;
  #sweeping: Promise<void> | undefined;

  constructor(options: {
    database: RecordDatabase;
    state: StoreState;
    lock: DirectoryLock;
    logger: Logger;
  }) {
    this.#database = options.database;
    this.#lock = options.lock;
    this.#logger = options.logger;
    this.#state = options.state;
    const state = () => this.#state;
    this.#hub = new WatchHub({
      logger: options.logger,
      source: {
        get revision() {
          return state().revision;
        },
        get compactRevision() {
          return state().compacted;
        },
        history: (after) => this.#history(after),
      },
    });
    if (this.#state.swept < this.#state.compacted) this.#sweepInBackground();
  }

  currentRevision(): Revision {
    this.#assertOpen();
    return this.#state.revision;
  }

  compactRevision(): Revision {
    this.#assertOpen();
    return this.#state.compacted;
  }

  get(key: string, at?: Revision): MaybePromise<StoredRecord | undefined> {
    this.#assertOpen();
    const revision = at ?? this.#state.revision;
    if (at !== undefined) this.#checkReadable(at);
    const head = this.#database.head(encodeKey(key));
    return head === undefined ? undefined : this.#stateAt({ key, head, revision });
  }

  async range(request: RangeRequest): Promise<RangeResult> {
    this.#assertOpen();
    const revision = request.revision ?? this.#state.revision;
    this.#checkReadable(revision);
    const limit = request.limit ?? Number.POSITIVE_INFINITY;
    const records: StoredRecord[] = [];
    let { start, end } = boundsOf(request);
    for (;;) {
      const wanted = Math.min(scanChunkMax, limit - records.length + 1);
      const found = this.#database.heads({ start, end, limit: wanted });
      for (const { key, head } of found) {
        const record = this.#stateAt({ key: key.toString(), head, revision });
        if (record === undefined) continue;
        if (records.length >= limit) return { records, revision, more: true };
        records.push(record);
      }
      const last = found.at(-1);
      if (last === undefined || found.length < wanted) return { records, revision, more: false };
      start = justAfter(last.key);
      await nextTurn();
      this.#assertOpen();
      this.#checkReadable(revision);
    }
  }

  put(request: PutRequest): Promise<WriteResult> {
    const { key, value, expect, hint } = request;
    return this.#write({ key, bytes: value.length + 200 }, (write) => {
      const { batch, keyBytes, head } = write;
      if ((head.deleted ? 0 : head.modRevision) !== expect) return undefined;
      const createRevision = head.deleted ? batch.nextRevision : head.createRevision;
      const previous = head.modRevision;
      return batch.put({ key, keyBytes, value, createRevision, previous, hint });
    });
  }

  delete(request: DeleteRequest): Promise<WriteResult> {
    const { key, expect } = request;
    return this.#write({ key, bytes: 200 }, ({ batch, keyBytes, head }) => {
      if (head.deleted || head.modRevision !== expect) return undefined;
      return batch.delete({ key, keyBytes, previous: head.modRevision });
    });
  }

  async watch(request: WatchRequest): Promise<StoreWatch> {
    this.#assertOpen();
    return this.#hub.watch(request);
  }

  async compact(revision: Revision): Promise<void> {
    this.#assertOpen();
    if (revision <= this.#state.compacted) return;
    this.#checkReadable(revision);
    await this.#task((batch) => {
      batch.compacted = Math.max(batch.compacted, revision);
    });
    await this.#sweep();
  }

  async ping(): Promise<void> {
    this.#assertOpen();
    this.#database.checkInPlace();
    if (this.#lastFailure !== undefined) await this.#task((batch) => batch.touch());
    else this.#database.state();
  }

  async sizeBytes(): Promise<number> {
    this.#assertOpen();
    return this.#database.sizeBytes();
  }

  async snapshot(): Promise<StoreSnapshot> {
    this.#assertOpen();
    const held = this.#database.hold();
    let isOpen = true;
    const close = () => {
      if (isOpen) held.release();
      isOpen = false;
      this.#snapshots.delete(close);
    };
    this.#snapshots.add(close);
    const check = () => {
      if (!isOpen) throw closedStore();
    };
    try {
      return { revision: held.state().revision, records: recordsOf(held, check), close };
    } catch (error) {
      close();
      throw error;
    }
  }

  close(): Promise<void> {
    this.#closing ??= this.#shutDown();
    return this.#closing;
  }

  async #shutDown(): Promise<void> {
    await this.#drained();
    for (const close of [...this.#snapshots]) close();
    this.#hub.end(closedStore());
    try {
      await this.#database.close();
    } finally {
      this.#lock.release();
    }
  }

  /** Resolves once no write is queued or under way. */
  #drained(): Promise<void> | undefined {
    if (!this.#writing && this.#queue.length === 0) return undefined;
    return new Promise((resolve) => this.#idle.push(resolve));
  }

  #assertOpen(): void {
    if (this.#closing !== undefined) throw closedStore();
  }

  #checkReadable(at: Revision): void {
    checkReadable(at, { compacted: this.#state.compacted, newest: this.#state.revision });
  }

  /** A key as it stood at `revision`, by following its chain back from the head. */
  #stateAt(from: {
    readonly key: string;
    readonly head: Head;
    readonly revision: Revision;
  }): StoredRecord | undefined {
    const { key, head, revision } = from;
    let at = head.modRevision;
    let creation = false;
    while (at > 0) {
      const record = this.#database.record(at);
      if (record === undefined) {
        // What preceded a creation was a deletion, which compaction removes.
        if (creation && at <= this.#state.compacted) return undefined;
        throw damaged(`the record of revision ${at} is gone`);
      }
      if (record.key !== key) throw damaged(`the record of revision ${at} is of another key`);
      if (at <= revision) return record.kind === 'put' ? storedRecord(record) : undefined;
      creation = record.createRevision === at;
      at = record.previous;
    }
    return undefined;
  }

  #history(after: Revision): HistoryChunk {
    const through = this.#state.revision;
    const found = this.#database.records({ after, through, limit: scanChunkMax });
    const last = found.at(-1);
    const complete = found.length < scanChunkMax || last === undefined;
    return { events: found.map(eventOf), through: complete ? through : last.revision };
  }

  async #write(
    target: { readonly key: string; readonly bytes: number },
    attempt: (write: {
      readonly batch: CommitBatch;
      readonly keyBytes: Buffer;
      readonly head: Head;
    }) => Revision | undefined,
  ): Promise<WriteResult> {
    this.#assertOpen();
    const { key, bytes } = target;
    const keyBytes = encodeKey(key);
    return new Promise((resolve, reject) => {
      let result: WriteResult;
      this.#enqueue({
        bytes,
        prepare: (batch) => {
          const mine = batch.record(key);
          const head = mine?.head ?? this.#database.head(keyBytes) ?? neverWritten;
          const revision = attempt({ batch, keyBytes, head });
          if (revision !== undefined) result = { ok: true, revision };
          else if (mine !== undefined) result = { ok: false, current: mine.record };
          else {
            const current = this.#stateAt({ key, head, revision: this.#state.revision });
            result = { ok: false, current };
          }
        },
        done: () => resolve(result),
        failed: reject,
      });
    });
  }

  /** A task without an answer, in line with the writes. */
  #task(prepare: (batch: CommitBatch) => void): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#enqueue({ bytes: 0, prepare, done: resolve, failed: reject });
    });
  }

  #enqueue(task: Task): void {
    this.#queue.push(task);
    if (this.#writing) return;
    this.#writing = true;
    setImmediate(() => void this.#writeQueue());
  }

  async #writeQueue(): Promise<void> {
    while (this.#queue.length > 0) {
      await this.#writeBatch(this.#takeTasks());
      // Who has just been answered may write again; let those writes into the next batch.
      if (this.#queue.length < batchWritesMax) await nextTurn();
    }
    this.#writing = false;
    for (const resolve of this.#idle.splice(0)) resolve();
  }

  #takeTasks(): Task[] {
    let bytes = 0;
    let count = 0;
    while (count < this.#queue.length && count < batchWritesMax && bytes < batchBytesMax) {
      bytes += (this.#queue[count] as Task).bytes;
      count += 1;
    }
    return this.#queue.splice(0, count);
  }

  async #writeBatch(tasks: readonly Task[]): Promise<void> {
    const batch = new CommitBatch(this.#state);
    const prepared: Task[] = [];
    for (const task of tasks) {
      try {
        task.prepare(batch);
        prepared.push(task);
      } catch (error) {
        task.failed(error);
      }
    }
    try {
      if (batch.dirty) await this.#database.commit(batch.changes, batch.state());
    } catch (error) {
      this.#lastFailure = error;
      this.#logger.error('A commit of the store failed', { error: String(error) });
      for (const task of prepared) task.failed(error);
      return;
    }
    if (batch.dirty) {
      this.#lastFailure = undefined;
      this.#state = batch.state();
      if (batch.events.length > 0) this.#hub.publish(batch.events);
    }
    for (const task of prepared) task.done();
  }

  #sweepInBackground(): void {
    this.#sweep().catch((error: unknown) => {
      if (this.#closing !== undefined) return;
      this.#logger.warn('Sweeping compacted history failed', { error: String(error) });
    });
  }

  /** Removes superseded records up to the compaction revision, a bounded piece per batch. */
  #sweep(): Promise<void> {
    this.#sweeping ??= this.#sweepAll().finally(() => {
      this.#sweeping = undefined;
    });
    return this.#sweeping;
  }

  async #sweepAll(): Promise<void> {
    while (this.#state.swept < this.#state.compacted && this.#closing === undefined) {
      await this.#task((batch) => this.#sweepPiece(batch));
      await nextTurn();
    }
  }

  #sweepPiece(batch: CommitBatch): void {
    const { swept: after, compacted: through } = this.#state;
    const records = this.#database.records({ after, through, limit: sweepChunkMax });
    for (const { revision, kind, key, previous } of records) {
      if (previous > 0) batch.forget(previous);
      if (kind !== 'delete') continue;
      batch.forget(revision);
      const keyBytes = encodeKey(key);
      const head = batch.record(key)?.head ?? this.#database.head(keyBytes);
      if (head?.modRevision === revision) batch.forgetKey(keyBytes);
    }
    const last = records.at(-1);
    batch.swept = records.length < sweepChunkMax || last === undefined ? through : last.revision;
  }
}

async function* recordsOf(
  held: HeldState,
  check: () => void,
): AsyncGenerator<readonly StoredRecord[]> {
  let start: Buffer | undefined;
  for (;;) {
    check();
    const { records, last } = held.records(start);
    if (last === undefined) return;
    if (records.length > 0) yield records.map(storedRecord);
    start = justAfter(last);
    await nextTurn();
  }
}

const neverWritten: Head = { modRevision: 0, createRevision: 0, deleted: true };

function encodeKey(key: string): Buffer {
  const bytes = Buffer.from(key);
  if (bytes.length === 0 || bytes.length > keyBytesMax) {
    throw new RangeError(
      `a store key has 1 to ${keyBytesMax} bytes of UTF-8, this one has ${bytes.length}`,
    );
  }
  return bytes;
}

function boundsOf(request: RangeRequest): { start: Buffer | undefined; end: Buffer | undefined } {
  const prefix = Buffer.from(request.prefix);
  const after = request.after === undefined ? undefined : justAfter(Buffer.from(request.after));
  if (prefix.length === 0) return { start: after, end: undefined };
  const end = Buffer.from(prefix);
  // Bytes of UTF-8 are never 0xff, so the last one can always grow.
  end[end.length - 1] = (end[end.length - 1] as number) + 1;
  const start = after !== undefined && Buffer.compare(after, prefix) > 0 ? after : prefix;
  return Buffer.compare(start, end) < 0 ? { start, end } : { start: end, end };
}

function justAfter(key: Buffer): Buffer {
  return Buffer.concat([key, Buffer.alloc(1)]);
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function storedRecord(record: LogRecord): StoredRecord {
  const { key, value, createRevision, revision } = record;
  return { key, value, createRevision, modRevision: revision };
}

function eventOf(record: LogRecord): StoreEvent {
  const { kind, key, value, createRevision, revision } = record;
  if (kind === 'delete') return { type: 'delete', key, revision };
  return { type: 'put', key, value, createRevision, revision };
}
