import { chmodSync, closeSync, fsyncSync, openSync, statfsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type Database, open, type RootDatabase } from 'lmdb';
import { makeDirectories } from '../../base/make-directories.ts';
import { type Revision, StoreError } from '../contract.ts';
import { snapshotPieceBytes } from '../revisions.ts';
import {
  damaged,
  decodeHead,
  decodeLogKey,
  decodeLogRecord,
  decodeState,
  encodeLogKey,
  encodeState,
  type Head,
  type LogRecord,
  type StoreState,
} from './record.ts';
import { verifyDataFile } from './verify-data-file.ts';

/** One change inside a commit; no value removes the key. */
export interface Change {
  readonly table: 'log' | 'heads';
  readonly key: Buffer;
  readonly value: Buffer | undefined;
}

/** The newest layout this program writes; a data directory with a higher one is refused. */
export const formatVersion = 1;

/** LMDB's limit for keys with 4 KiB pages, bytes of UTF-8. */
export const keyBytesMax = 1978;

/** Address space reserved for the file; LMDB grows it when it must. */
const mapSizeBytes = 64 * 2 ** 30;
const dataName = 'data.mdb';
const stateKey = Buffer.from('state');
const formatKey = Buffer.from('format');

/** Most keys that one step over a held state looks at. */
const heldHeadsMax = 500;

/** A committed state that stays as it is. */
export interface HeldState {
  state(): StoreState;
  /** The newest records of the next keys from `start` on, and the last key looked at, if any. */
  records(start: Buffer | undefined): {
    readonly records: readonly LogRecord[];
    readonly last: Buffer | undefined;
  };
  release(): void;
}

type Table = Database<Buffer, Buffer>;

/**
 * The LMDB environment of one data directory and its three tables: `log` (revision to record),
 * `heads` (key to its newest revision) and `meta`. Knows bytes and transactions, no rules.
 * `commit` is durable when it resolves: with `overlappingSync` off LMDB syncs the data pages, then
 * writes the meta page through a synchronous descriptor, and only then reports the commit.
 */
export class RecordDatabase {
  readonly #directory: string;
  /** Device and inode of the data file that is open. */
  readonly #file: string;
  readonly #root: RootDatabase<Buffer, Buffer>;
  readonly #log: Table;
  readonly #heads: Table;
  readonly #meta: Table;

  constructor(options: { directory: string }) {
    this.#directory = options.directory;
    const path = join(options.directory, dataName);
    verifyDataFile(path);
    const root = guarded(() => openEnvironment(options.directory));
    try {
      const tables = openTables(root, options.directory);
      this.#log = tables.log;
      this.#heads = tables.heads;
      this.#meta = tables.meta;
    } catch (error) {
      void root.close();
      throw translate(error);
    }
    this.#root = root;
    this.#file = identityOfFile(path) ?? '';
    chmodSync(path, 0o600);
    chmodSync(join(options.directory, 'lock.mdb'), 0o600);
    syncDirectory(options.directory);
  }

  /**
   * Throws StoreError `unavailable` when the directory no longer holds the file that is open: the
   * host goes on serving a removed file, but what is written there is gone at the end.
   */
  checkInPlace(): void {
    const path = join(this.#directory, dataName);
    if (identityOfFile(path) === this.#file) return;
    throw new StoreError({
      code: 'unavailable',
      message: `${path} is not the file that was opened: it has been removed or replaced`,
    });
  }

  /** The state on disk. Refuses damage. */
  load(): StoreState {
    const format = this.#read(this.#meta, formatKey)?.toString('latin1');
    const state = this.#read(this.#meta, stateKey);
    if (Number(format) !== formatVersion || state === undefined) {
      throw damaged('it has no valid state');
    }
    const loaded = decodeState(state);
    const last = this.lastLogRevision();
    if (last > loaded.revision) throw damaged(`its log goes on after revision ${loaded.revision}`);
    return loaded;
  }

  /** All changes and the state, in one durable transaction, or none of them. */
  async commit(changes: readonly Change[], state: StoreState): Promise<void> {
    const encoded = encodeState(state);
    await this.#transact(() => {
      for (const { table, key, value } of changes) {
        const target = table === 'log' ? this.#log : this.#heads;
        if (value === undefined) target.remove(key);
        else target.put(key, value);
      }
      this.#meta.put(stateKey, encoded);
    });
  }

  async #transact(write: () => void): Promise<void> {
    try {
      await this.#root.batch(write);
    } catch (error) {
      const cause = await commitCause(error);
      throw this.#isShortWrite(cause) ? noSpace(cause) : translate(cause);
    }
  }

  /** LMDB reports a write that the full disk took a part of as an input/output error. */
  #isShortWrite(cause: unknown): boolean {
    if ((cause as { code?: unknown }).code !== inputOutputError) return false;
    const { bavail, bsize } = statfsSync(this.#directory);
    return bavail * bsize < shortWriteFreeBytesMax;
  }

  state(): StoreState {
    const state = this.#read(this.#meta, stateKey);
    if (state === undefined) throw damaged('its state record is gone');
    return decodeState(state);
  }

  head(keyBytes: Buffer): Head | undefined {
    const found = this.#read(this.#heads, keyBytes);
    return found === undefined ? undefined : decodeHead(found);
  }

  record(revision: Revision): LogRecord | undefined {
    const found = this.#read(this.#log, encodeLogKey(scratchKey, revision));
    return found === undefined ? undefined : decodeLogRecord(found, revision);
  }

  /** Heads in byte order of keys from `start` on, up to and without `end`. */
  heads(options: { start: Buffer | undefined; end: Buffer | undefined; limit: number }): {
    readonly key: Buffer;
    readonly head: Head;
  }[] {
    const { start, end, limit } = options;
    return guarded(() => {
      const found = [];
      const range = { limit, ...(start && { start }), ...(end && { end }) };
      for (const { key, value } of this.#heads.getRange(range)) {
        found.push({ key: Buffer.from(key), head: decodeHead(value) });
      }
      return found;
    });
  }

  /** Log records after a revision, up to and including `through`, in order. */
  records(options: { after: Revision; through: Revision; limit: number }): LogRecord[] {
    return guarded(() => {
      const found: LogRecord[] = [];
      const start = encodeLogKey(Buffer.alloc(8), options.after + 1);
      const end = encodeLogKey(Buffer.alloc(8), options.through + 1);
      for (const { key, value } of this.#log.getRange({ start, end, limit: options.limit })) {
        found.push(decodeLogRecord(value, decodeLogKey(key)));
      }
      return found;
    });
  }

  lastLogRevision(): Revision {
    return guarded(() => lastRevisionOf(this.#log));
  }

  countRecords(): number {
    return (this.#log.getStats() as { entryCount: number }).entryCount;
  }

  sizeBytes(): number {
    return statSync(join(this.#directory, dataName)).size;
  }

  /**
   * Holds the newest committed state: the file keeps what it needs, and may grow, until `release`.
   * To be released before the database is closed; LMDB would read what is no longer mapped.
   */
  hold(): HeldState {
    const transaction = guarded(() => this.#root.useReadTransaction());
    const options = { transaction };
    return {
      release: () => transaction.done(),
      state: () => {
        const state = guarded(() => this.#meta.get(stateKey, options));
        if (state === undefined) throw damaged('its state record is gone');
        return decodeState(state);
      },
      records: (start) => {
        const range = { ...options, limit: heldHeadsMax, ...(start && { start }) };
        return guarded(() => {
          const records: LogRecord[] = [];
          let bytes = 0;
          let last: Buffer | undefined;
          for (const { key, value } of this.#heads.getRange(range)) {
            last = Buffer.from(key);
            const { modRevision, deleted } = decodeHead(value);
            if (deleted) continue;
            const found = this.#log.get(encodeLogKey(scratchKey, modRevision), options);
            if (found === undefined) throw damaged(`the record of revision ${modRevision} is gone`);
            records.push(decodeLogRecord(found, modRevision));
            bytes += found.length;
            if (bytes >= snapshotPieceBytes) break;
          }
          return { records, last };
        });
      },
    };
  }

  async close(): Promise<void> {
    await this.#root.close();
  }

  /** The bytes are LMDB's own and hold until the next read only. */
  #read(table: Table, key: Buffer): Buffer | undefined {
    return guarded(() => table.getBinaryFast(key));
  }
}

const shape = { encoding: 'binary', keyEncoding: 'binary' } as const;

function openEnvironment(directory: string): RootDatabase<Buffer, Buffer> {
  return open({
    path: directory,
    noSubdir: false,
    overlappingSync: false,
    // Each commit is one explicit batch; the automatic ones leave rejections unhandled.
    eventTurnBatching: false,
    pageSize: 4096,
    maxDbs: 4,
    mapSize: mapSizeBytes,
    ...shape,
  });
}

/** One transaction: each would be synced to the disk on its own. What is thrown undoes it. */
function openTables(root: RootDatabase<Buffer, Buffer>, directory: string) {
  return root.transactionSync(() => {
    const meta = root.openDB({ name: 'meta', ...shape });
    refuseNewerFormat(directory, meta.get(formatKey));
    const log = root.openDB({ name: 'log', ...shape });
    const heads = root.openDB({ name: 'heads', ...shape });
    setUpWhenNew({ log, meta });
    return { log, heads, meta };
  });
}

/** Before anything is changed: what a newer program has made is for a newer program. */
function refuseNewerFormat(directory: string, format: Buffer | undefined): void {
  const found = Number(format?.toString('latin1'));
  if (!(found > formatVersion)) return;
  throw new StoreError({
    code: 'unavailable',
    message:
      `data directory ${directory} has format ${found},` +
      ` this program knows formats up to ${formatVersion}: use a newer one`,
  });
}

/** Gives a file without format and state both, inside the transaction that makes its tables. */
function setUpWhenNew({ log, meta }: { readonly log: Table; readonly meta: Table }): void {
  if (meta.doesExist(formatKey) || meta.doesExist(stateKey)) return;
  if (lastRevisionOf(log) > 0) throw damaged('it has a log but no state');
  meta.putSync(formatKey, Buffer.from(String(formatVersion)));
  meta.putSync(stateKey, encodeState({ revision: 0, compacted: 0, swept: 0 }));
}

function lastRevisionOf(log: Table): Revision {
  for (const key of log.getKeys({ reverse: true, limit: 1 })) return decodeLogKey(key);
  return 0;
}

const scratchKey = Buffer.alloc(8);

/** Creates the data directory, readable by its owner only. */
export function prepareDirectory(directory: string): void {
  makeDirectories(directory, 0o700);
  chmodSync(directory, 0o700);
}

function syncFile(path: string): void {
  const descriptor = openSync(path, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Makes the names in the directory survive a power loss. */
export function syncDirectory(directory: string): void {
  if (process.platform !== 'win32') syncFile(directory);
}

function guarded<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw translate(error);
  }
}

async function commitCause(error: unknown): Promise<unknown> {
  const reported = (error as { commitError?: Promise<never> }).commitError;
  if (reported === undefined) return error;
  try {
    return await reported;
  } catch (cause) {
    return cause;
  }
}

const noSpaceCodes: readonly unknown[] = [-30792, 28, 122, 'ENOSPC', 'EDQUOT', 'MDB_MAP_FULL'];
/** Not found page, corrupted, version mismatch, invalid file. */
const damageCodes: readonly unknown[] = [-30797, -30796, -30794, -30793];

const inputOutputError = 5;
/** An input/output error with less than this left on the disk means that it is full. */
const shortWriteFreeBytesMax = 32 * 2 ** 20;

function noSpace(cause: unknown): StoreError {
  const message = `no space left for the store: ${(cause as Error).message}`;
  return new StoreError({ code: 'no-space', message, cause });
}

/** LMDB's and the host's errors as the store's own. */
function translate(error: unknown): StoreError {
  if (error instanceof StoreError) return error;
  const { code, message } = error as { code?: unknown; message?: string };
  const text = String(message);
  if (noSpaceCodes.includes(code) || /No space left|MDB_MAP_FULL|Disk quota/.test(text)) {
    return noSpace(error);
  }
  if (damageCodes.includes(code)) return damaged(text, error);
  return new StoreError({
    code: 'unavailable',
    message: `the store failed: ${text}`,
    cause: error,
  });
}

function identityOfFile(path: string): string | undefined {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false });
  return found === undefined ? undefined : `${found.dev}:${found.ino}`;
}
