import {
  type Clock,
  defer,
  type Logger,
  type MaybePromise,
  nextTurn,
  silentLogger,
} from '@wheelhouse/machinery';
import {
  checkReadable,
  closedStore,
  type DeleteRequest,
  type PutRequest,
  pieceBytes,
  type RangeRequest,
  type RangeResult,
  type Revision,
  type Store,
  type StoredRecord,
  StoreError,
  type StoreEvent,
  type StoreSnapshot,
  type StoreWatch,
  type WatchRequest,
  type WriteResult,
} from '../contract.ts';
import { type HistoryChunk, WatchHub } from '../watch-hub.ts';
import { CommitBatch, type Head } from './commit-batch.ts';
import { type DirectoryLock, lockDirectory } from './directory-lock.ts';
import { type SpaceAlarm, SpaceGuard } from './disk.ts';
import type { LogRecord } from './frame.ts';
import type { KeyChain, Place } from './log-index.ts';
import { RecordLog } from './record-log.ts';
import { ensureLog, prepareDirectory } from './store-directory.ts';

const batchWritesMax = 2048;
const batchBytesMax = 2 ** 20;
const scanChunkMax = 1000;
/** Maximum time that closing waits for the disk, milliseconds. */
const closeTimeoutMs = 30_000;
/** Time after which a waiting write is refused, milliseconds; the default of `--request-timeout`. */
const writeWaitMaxMs = 60_000;
/** Maximum number of keys that one step of a snapshot visits. */
const snapshotChainsMax = 500;
/** Maximum length of a key, bytes of UTF-8; the limit of older data directories. */
export const keyBytesMax = 1978;

interface EmbeddedStoreOptions {
  /** Created if absent; holds only the store's files. */
  readonly directory: string;
  readonly clock: Clock;
  readonly logger?: Logger;
  /** Quota in bytes for objects and their history; 0 or absent for none. */
  readonly quotaBytes?: number;
  /**
   * A new folder for a copy of the data if its format is older. The directory then keeps that
   * format, and must have data.
   */
  readonly copyOlderTo?: string;
}

/** Why the store cannot grow or cannot be written at all. */
export type StoreAlarm = SpaceAlarm | 'disk-failed';

/** A store that reports whether it can be written (TRUST-8). */
interface EmbeddedStore extends Store {
  /**
   * Tries a write if the last one failed. Rejects with a StoreError that says why the store cannot
   * grow.
   */
  checkWritable(): Promise<void>;
  /** The alarms as of the last write or check. */
  readonly alarms: readonly StoreAlarm[];
}

/**
 * Opens the durable store of a data directory (STORE-1) and first upgrades an older format. Throws
 * StoreError `locked` if another process holds the directory, `damaged` if its files are damaged,
 * and `unavailable` if its format is newer or there is no data to copy.
 */
export async function openEmbeddedStore(options: EmbeddedStoreOptions): Promise<EmbeddedStore> {
  const { directory, clock, logger = silentLogger, quotaBytes = 0 } = options;
  prepareDirectory(directory);
  const lock = lockDirectory({ directory, nowMs: clock.now() });
  try {
    const records = await ensureLog(directory, options.copyOlderTo);
    const log = new RecordLog({ directory: records, clock, logger });
    const guard = new SpaceGuard({
      directory,
      clock,
      quotaBytes,
      usedBytes: () => log.liveBytes,
      reserve: log.spares,
    });
    return new LogStore({ log, guard, lock, clock, logger });
  } catch (error) {
    lock.release();
    throw error;
  }
}

/** A task of the single writer, which adds its changes to the current batch or is refused. */
interface Task {
  readonly bytes: number;
  /** When it was queued, monotonic milliseconds. */
  readonly sinceMs: number;
  /** `growth` is refused if the store is out of space. */
  readonly purpose: 'growth' | 'removal';
  /** Checks the write against durable state and the current batch. Throws StoreError `damaged`. */
  prepare(batch: CommitBatch): void;
  /** Called when the batch is durable and its events have been delivered. */
  done(): void;
  failed(error: unknown): void;
}

/**
 * Writes queue while a commit is in progress; then the whole queue becomes one frame of the log and
 * one sync. Batches never overlap, so a write is checked against durable state and the earlier
 * writes of its own batch, and a failed commit leaves nothing to undo.
 *
 * Reads always happen at a revision: the newest one is durable, and its events have been delivered.
 */
class LogStore implements EmbeddedStore {
  readonly sharing = 'own';
  readonly #log: RecordLog;
  readonly #guard: SpaceGuard;
  readonly #lock: DirectoryLock;
  readonly #logger: Logger;
  readonly #hub: WatchHub;
  readonly #clock: Clock;
  #queue: Task[] = [];
  /** The tasks of the batch in progress. */
  #batch: readonly Task[] = [];
  #writing = false;
  #closing: Promise<void> | undefined;
  /** Close functions of open snapshots. */
  readonly #snapshots = new Set<() => void>();
  #idle: (() => void)[] = [];
  #failure: StoreError | undefined;

  constructor(options: {
    log: RecordLog;
    guard: SpaceGuard;
    lock: DirectoryLock;
    clock: Clock;
    logger: Logger;
  }) {
    const { log } = options;
    this.#log = log;
    this.#clock = options.clock;
    this.#guard = options.guard;
    this.#lock = options.lock;
    this.#logger = options.logger;
    this.#hub = new WatchHub({
      logger: options.logger,
      source: {
        get revision() {
          return log.state.revision;
        },
        get compactRevision() {
          return log.state.compacted;
        },
        history: (after, prefix) => this.#history(after, prefix),
      },
    });
  }

  get alarms(): readonly StoreAlarm[] {
    return this.#failure === undefined
      ? this.#guard.alarms
      : [...this.#guard.alarms, 'disk-failed'];
  }

  async checkWritable(): Promise<void> {
    this.#assertOpen();
    if (this.#failure !== undefined) await this.#task((batch) => batch.touch());
    const refusal = await this.#guard.refusal(0);
    if (refusal !== undefined) throw refusal;
  }

  currentRevision(): Revision {
    this.#assertOpen();
    return this.#log.state.revision;
  }

  compactRevision(): Revision {
    this.#assertOpen();
    return this.#log.state.compacted;
  }

  get(key: string, at?: Revision): MaybePromise<StoredRecord | undefined> {
    this.#assertOpen();
    if (at !== undefined) this.#checkReadable(at);
    const chain = this.#log.index.chain(checkedKey(key));
    return chain && this.#recordAt(chain, at ?? this.#log.state.revision);
  }

  async range(request: RangeRequest): Promise<RangeResult> {
    this.#assertOpen();
    const { prefix } = request;
    const revision = request.revision ?? this.#log.state.revision;
    this.#checkReadable(revision);
    const limit = request.limit ?? Number.POSITIVE_INFINITY;
    const isPage = request.limit !== undefined;
    const records: StoredRecord[] = [];
    let after = request.after;
    for (;;) {
      let visited = 0;
      let bytes = 0;
      let more = false;
      for (const chain of this.#log.index.chains({ prefix, after })) {
        more = visited === scanChunkMax || bytes >= pieceBytes;
        if (more) break;
        visited += 1;
        after = chain.key;
        const place = placeAt(chain, revision);
        if (place === undefined) continue;
        if (records.length >= limit) return { records, revision, more: true };
        records.push(storedRecord(this.#log.read(place)));
        bytes += place.size;
      }
      if (!more || (isPage && bytes >= pieceBytes)) return { records, revision, more };
      await nextTurn();
      this.#assertOpen();
      this.#checkReadable(revision);
    }
  }

  put(request: PutRequest): Promise<WriteResult> {
    const { key, value, expect, hint, purpose = 'growth' } = request;
    return this.#write({ key, bytes: value.length + 200, purpose }, (write) => {
      const { batch, keyBytes, head } = write;
      if ((head.deleted ? 0 : head.modRevision) !== expect) return undefined;
      const createRevision = head.deleted ? batch.nextRevision : head.createRevision;
      const previous = head.modRevision;
      return batch.put({ key, keyBytes, value, createRevision, previous, hint });
    });
  }

  delete(request: DeleteRequest): Promise<WriteResult> {
    const { key, expect } = request;
    return this.#write({ key, bytes: 200, purpose: 'removal' }, ({ batch, keyBytes, head }) => {
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
    if (revision <= this.#log.state.compacted) return;
    this.#checkReadable(revision);
    await this.#task((batch) => {
      batch.compacted = Math.max(batch.compacted, revision);
    });
    await this.#log.clean(this.#guard.alarms.length > 0 ? 'urgent' : 'normal');
  }

  async ping(): Promise<void> {
    this.#assertOpen();
    this.#log.checkInPlace();
  }

  async sizeBytes(): Promise<number> {
    this.#assertOpen();
    return this.#log.fileBytes;
  }

  async snapshot(): Promise<StoreSnapshot> {
    this.#assertOpen();
    const release = this.#log.retain();
    let isOpen = true;
    const close = () => {
      if (isOpen) release();
      isOpen = false;
      this.#snapshots.delete(close);
    };
    this.#snapshots.add(close);
    const check = () => {
      if (!isOpen) throw closedStore();
    };
    const { revision } = this.#log.state;
    return { revision, records: recordsOf(this.#log, { revision, check }), close };
  }

  close(): Promise<void> {
    this.#closing ??= this.#shutDown();
    return this.#closing;
  }

  /**
   * Closes the store. Rejects with `disk-failed` if the disk does not respond in time: the files
   * stay open, and the directory locked, until it does or the process ends.
   */
  #shutDown(): Promise<void> {
    return new Promise((resolve, reject) => {
      const limit = this.#clock.after(closeTimeoutMs, () => {
        this.#hub.end(closedStore());
        reject(noResponse('disk-failed'));
      });
      this.#closeFiles()
        .finally(() => limit.stop())
        .then(resolve, reject);
    });
  }

  async #closeFiles(): Promise<void> {
    await this.#drained();
    for (const close of [...this.#snapshots]) close();
    this.#hub.end(closedStore());
    try {
      await this.#log.close();
    } finally {
      this.#lock.release();
    }
  }

  /** Resolves when no write is queued or in progress. */
  #drained(): Promise<void> | undefined {
    if (!this.#writing && this.#queue.length === 0) return undefined;
    return new Promise((resolve) => this.#idle.push(resolve));
  }

  #assertOpen(): void {
    if (this.#closing !== undefined) throw closedStore();
  }

  #checkReadable(at: Revision): void {
    checkReadable(at, { compacted: this.#log.state.compacted, newest: this.#log.state.revision });
  }

  #recordAt(chain: KeyChain, revision: Revision): StoredRecord | undefined {
    const place = placeAt(chain, revision);
    return place && storedRecord(this.#log.read(place));
  }

  #history(after: Revision, prefix: string): HistoryChunk {
    const { index, state } = this.#log;
    const writes = index.writesAfter(after, scanChunkMax);
    const events: StoreEvent[] = [];
    let bytes = 0;
    for (const place of writes) {
      if (!place.chain.key.startsWith(prefix)) continue;
      events.push(this.#eventOf(place));
      bytes += place.size;
      if (bytes >= pieceBytes) return { events, through: place.revision };
    }
    const last = writes.length < scanChunkMax ? undefined : writes.at(-1);
    return { events, through: last?.revision ?? state.revision };
  }

  #eventOf(place: Place): StoreEvent {
    const { revision, createRevision, chain } = place;
    if (place.deleted) return { type: 'delete', key: chain.key, revision };
    const { value } = this.#log.read(place);
    return { type: 'put', key: chain.key, value, createRevision, revision };
  }

  async #write(
    target: Pick<Task, 'bytes' | 'purpose'> & { readonly key: string },
    attempt: (write: {
      readonly batch: CommitBatch;
      readonly keyBytes: Buffer;
      readonly head: Head;
    }) => Revision | undefined,
  ): Promise<WriteResult> {
    this.#assertOpen();
    const { key, bytes, purpose } = target;
    const keyBytes = Buffer.from(checkedKey(key));
    return new Promise((resolve, reject) => {
      let result: WriteResult;
      this.#enqueue({
        bytes,
        sinceMs: this.#clock.monotonic(),
        purpose,
        prepare: (batch) => {
          const pending = batch.record(key);
          const chain = this.#log.index.chain(key);
          const head = pending?.head ?? headOf(chain);
          const revision = attempt({ batch, keyBytes, head });
          if (revision !== undefined) result = { ok: true, revision };
          else if (pending !== undefined) result = { ok: false, current: pending.record };
          else {
            const { revision: newest } = this.#log.state;
            result = { ok: false, current: chain && this.#recordAt(chain, newest) };
          }
        },
        done: () => resolve(result),
        failed: reject,
      });
    });
  }

  /** Runs a task without a result in order with the writes. */
  #task(prepare: (batch: CommitBatch) => void): Promise<void> {
    return new Promise((resolve, reject) => {
      const sinceMs = this.#clock.monotonic();
      const purpose = 'removal';
      this.#enqueue({ bytes: 0, sinceMs, purpose, prepare, done: resolve, failed: reject });
    });
  }

  #enqueue(task: Task): void {
    if (this.#writing) this.#refuseWaiting(task.sinceMs - writeWaitMaxMs);
    this.#queue.push(task);
    if (this.#writing) return;
    this.#writing = true;
    const end = (error: unknown) => {
      for (const { failed } of [...this.#batch, ...this.#queue.splice(0)]) failed(error);
      this.#endWriting();
    };
    defer({ where: 'store', end }, () => this.#writeQueue());
  }

  /** Refuses writes that have waited long, so that a disk that hangs cannot fill memory. */
  #refuseWaiting(beforeMs: number): void {
    const isInTime = ({ sinceMs }: Task) => sinceMs >= beforeMs;
    const [first] = this.#queue;
    if (first === undefined || isInTime(first)) return;
    const count = this.#queue.findIndex(isInTime);
    const late = this.#queue.splice(0, count < 0 ? this.#queue.length : count);
    for (const { failed } of late) failed(noResponse('unavailable'));
  }

  async #writeQueue(): Promise<void> {
    while (this.#queue.length > 0) {
      this.#batch = this.#takeTasks();
      await this.#writeBatch(this.#batch);
      // Writers whose writes have just completed may write again and join the next batch.
      if (this.#queue.length < batchWritesMax) await nextTurn();
    }
    this.#endWriting();
  }

  #endWriting(): void {
    this.#batch = [];
    this.#writing = false;
    for (const resolve of this.#idle.splice(0)) resolve();
  }

  #takeTasks(): Task[] {
    let bytes = 0;
    let count = 0;
    while (count < this.#queue.length && count < batchWritesMax && bytes < batchBytesMax) {
      bytes += this.#queue[count]?.bytes ?? 0;
      count += 1;
    }
    return this.#queue.splice(0, count);
  }

  async #writeBatch(tasks: readonly Task[]): Promise<void> {
    const admitted = await this.#admit(tasks);
    const batch = new CommitBatch(this.#log.state);
    const prepared: Task[] = [];
    for (const task of admitted) {
      try {
        task.prepare(batch);
        prepared.push(task);
      } catch (error) {
        task.failed(error);
      }
    }
    try {
      if (batch.dirty) await this.#log.commit(batch.records, batch.state());
    } catch (error) {
      if (this.#failure === undefined) {
        this.#logger.error('a store commit failed', { error: String(error) });
      }
      this.#failure = error as StoreError;
      for (const task of prepared) task.failed(error);
      return;
    }
    try {
      if (!batch.dirty) return;
      if (this.#failure !== undefined) this.#logger.info('the store accepts writes again');
      this.#failure = undefined;
      if (batch.events.length > 0) this.#hub.publish(batch.events);
    } finally {
      // The writes are durable even if the delivery of their events fails.
      for (const task of prepared) task.done();
    }
  }

  /** Returns the tasks that fit into the free space and fails the others. */
  async #admit(tasks: readonly Task[]): Promise<readonly Task[]> {
    let bytes = 0;
    for (const task of tasks) if (task.purpose === 'growth') bytes += task.bytes;
    if (bytes === 0) return tasks;
    const checked = this.#guard.refusal(bytes);
    const refusal = checked instanceof Promise ? await checked : checked;
    if (refusal === undefined) return tasks;
    return tasks.filter((task) => {
      if (task.purpose === 'growth') task.failed(refusal);
      return task.purpose !== 'growth';
    });
  }
}

async function* recordsOf(
  log: RecordLog,
  state: { readonly revision: Revision; readonly check: () => void },
): AsyncGenerator<readonly StoredRecord[]> {
  const { revision, check } = state;
  let records: StoredRecord[] = [];
  let visited = 0;
  let bytes = 0;
  for (const chain of log.index.chains({ prefix: '' })) {
    const place = placeAt(chain, revision);
    visited += 1;
    if (place !== undefined) {
      check();
      const record = storedRecord(log.read(place));
      records.push(record);
      bytes += record.value.length;
    }
    if (visited < snapshotChainsMax && bytes < pieceBytes) continue;
    if (records.length > 0) yield records;
    records = [];
    visited = 0;
    bytes = 0;
    await nextTurn();
  }
  check();
  if (records.length > 0) yield records;
}

/** Returns the write that set a key's state at a revision; undefined if the key is absent. */
function placeAt(chain: KeyChain, revision: Revision): Place | undefined {
  let place: Place | undefined = chain.head;
  while (place !== undefined && place.revision > revision) place = place.older;
  return place?.deleted ? undefined : place;
}

function noResponse(code: 'disk-failed' | 'unavailable'): StoreError {
  return new StoreError({ code, message: 'the disk of the store does not respond' });
}

const neverWritten: Head = { modRevision: 0, createRevision: 0, deleted: true };

function headOf(chain: KeyChain | undefined): Head {
  if (chain === undefined) return neverWritten;
  const { revision, createRevision, deleted } = chain.head;
  return { modRevision: revision, createRevision, deleted };
}

function checkedKey(key: string): string {
  const bytes = Buffer.byteLength(key);
  if (bytes > 0 && bytes <= keyBytesMax) return key;
  throw new RangeError(`a store key must have 1 to ${keyBytesMax} bytes of UTF-8, not ${bytes}`);
}

function storedRecord(record: LogRecord): StoredRecord {
  const { key, value, createRevision, revision } = record;
  return { key, value, createRevision, modRevision: revision };
}
