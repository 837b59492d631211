import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { type FileHandle, link, open, readdir, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { errorText, syncDirectory, systemErrorCode } from '@wheelhouse/machinery';
import { type Revision, type StoredRecord, StoreError } from '../contract.ts';
import {
  type BackupHeader,
  backupFormat,
  backupMagic,
  countBytes,
  digestBytes,
  endHeadBytes,
  endTag,
  firstLineBytesMax,
  headerBytesMax,
  recordHeadBytes,
  recordTag,
  revisionMax,
  valueBytesMax,
} from './writer.ts';

/** The error of an unusable backup. Its message is one line that continues the name of the file. */
export class BackupError extends Error {
  override readonly name = 'BackupError';
}

/** The content of a verified backup. */
export interface BackupSummary extends BackupHeader {
  readonly records: number;
  /** The SHA-256 digest at the end of the backup. */
  readonly digest: Buffer;
}

const lineEnd = 0x0a;

/**
 * Reads a backup from pieces of any size and buffers at most one incomplete record. Records must
 * not be trusted before `finish` returns. Every method throws BackupError.
 */
class BackupReader {
  readonly #digest = createHash('sha256');
  #pieces: Buffer[] = [];
  #available = 0;
  /** Bytes that must be available before parsing continues. */
  #needed = 1;
  #part: 'format' | 'header' | 'records' | 'end' = 'format';
  #header: BackupHeader | undefined;
  #records = 0;
  #lastKey: Buffer = Buffer.alloc(0);
  #end: Buffer | undefined;
  #read = 0;

  /** Set once the first records have been returned. */
  get header(): BackupHeader | undefined {
    return this.#header;
  }

  /** Takes the next bytes and returns the records that they complete. */
  push(piece: Buffer): StoredRecord[] {
    const records: StoredRecord[] = [];
    this.#pieces.push(piece);
    this.#available += piece.length;
    while (this.#available >= this.#needed && this.#available > 0) {
      const rest = this.#concatenated();
      const used = this.#take(rest, records);
      if (used === 0) break;
      this.#needed = 1;
      this.#read += used;
      this.#available -= used;
      this.#pieces = this.#available === 0 ? [] : [rest.subarray(used)];
    }
    return records;
  }

  /** Must be called after the last bytes. */
  finish(): BackupSummary {
    if (this.#end === undefined || this.#header === undefined) {
      if (this.#part === 'format' && !this.#startsAsBackup()) throw notABackup();
      throw new BackupError(`is incomplete: it ends after ${this.#read + this.#available} bytes`);
    }
    return { ...this.#header, records: this.#records, digest: this.#end };
  }

  #startsAsBackup(): boolean {
    const start = this.#concatenated().toString('latin1', 0, firstLineBytesMax);
    if (start.length <= backupMagic.length) return start !== '' && backupMagic.startsWith(start);
    return start.startsWith(backupMagic) && /^[1-9][0-9]*$/.test(start.slice(backupMagic.length));
  }

  #concatenated(): Buffer {
    const [only] = this.#pieces;
    if (only !== undefined && this.#pieces.length === 1) return only;
    const whole = Buffer.concat(this.#pieces);
    this.#pieces = [whole];
    return whole;
  }

  /** Returns the number of bytes consumed; 0 if more are needed. */
  #take(rest: Buffer, records: StoredRecord[]): number {
    if (this.#part === 'format') return this.#takeFormat(rest);
    if (this.#part === 'header') return this.#takeHeader(rest);
    if (this.#part === 'end') throw damaged('data follows its end');
    if (rest[0] === recordTag) return this.#takeRecord(rest, records);
    if (rest[0] === endTag) return this.#takeEnd(rest);
    throw damaged(`no record begins at byte ${this.#read}`);
  }

  #takeFormat(rest: Buffer): number {
    const end = rest.subarray(0, firstLineBytesMax).indexOf(lineEnd);
    if (end < 0) {
      if (rest.length >= firstLineBytesMax) throw notABackup();
      return this.#wait(rest.length + 1);
    }
    const line = rest.toString('latin1', 0, end);
    const format = line.slice(backupMagic.length);
    if (!line.startsWith(backupMagic) || !/^[1-9][0-9]*$/.test(format)) throw notABackup();
    if (Number(format) > backupFormat) {
      throw new BackupError(
        `has backup format ${format}, but this version supports formats up to ${backupFormat}:` +
          ' use a newer version',
      );
    }
    this.#part = 'header';
    return this.#used(rest, end + 1);
  }

  #takeHeader(rest: Buffer): number {
    const end = rest.subarray(0, headerBytesMax).indexOf(lineEnd);
    if (end < 0) {
      if (rest.length >= headerBytesMax) throw damaged('its header is too long');
      return this.#wait(rest.length + 1);
    }
    this.#header = headerOf(rest.toString('utf8', 0, end));
    this.#part = 'records';
    return this.#used(rest, end + 1);
  }

  #takeRecord(rest: Buffer, records: StoredRecord[]): number {
    if (rest.length < recordHeadBytes) return this.#wait(recordHeadBytes);
    const keyEnd = recordHeadBytes + rest.readUInt16BE(1);
    const valueBytes = rest.readUInt32BE(3);
    if (valueBytes > valueBytesMax) throw damaged(`the record at byte ${this.#read} is too long`);
    const size = keyEnd + valueBytes;
    if (rest.length < size) return this.#wait(size);
    const keyBytes = rest.subarray(recordHeadBytes, keyEnd);
    if (Buffer.compare(keyBytes, this.#lastKey) <= 0) throw damaged('its keys are out of order');
    this.#lastKey = Buffer.from(keyBytes);
    const createRevision = rest.readUIntBE(7, countBytes);
    const modRevision = rest.readUIntBE(13, countBytes);
    const newest = this.#header?.revision ?? 0;
    if (createRevision < 1 || createRevision > modRevision || modRevision > newest) {
      throw damaged(`the record at byte ${this.#read} has impossible revisions`);
    }
    const value = rest.subarray(keyEnd, size);
    records.push({ key: keyBytes.toString('utf8'), value, createRevision, modRevision });
    this.#records += 1;
    return this.#used(rest, size);
  }

  #takeEnd(rest: Buffer): number {
    if (rest.length < endHeadBytes + digestBytes) return this.#wait(endHeadBytes + digestBytes);
    const used = this.#used(rest, endHeadBytes);
    const digest = rest.subarray(used, used + digestBytes);
    if (!digest.equals(this.#digest.digest())) throw damaged('its checksum does not match');
    if (rest.readUIntBE(1, countBytes) !== this.#records) throw damaged('records are missing');
    this.#end = Buffer.from(digest);
    this.#part = 'end';
    return used + digestBytes;
  }

  #wait(bytes: number): 0 {
    this.#needed = bytes;
    return 0;
  }

  #used(rest: Buffer, bytes: number): number {
    this.#digest.update(rest.subarray(0, bytes));
    return bytes;
  }
}

/** Reads a whole backup from pieces and verifies that it is complete; awaits `onRecords`. */
export async function readBackup(
  pieces: AsyncIterable<Buffer>,
  onRecords: (records: readonly StoredRecord[], header: BackupHeader) => Promise<void> | undefined,
): Promise<BackupSummary> {
  const reader = new BackupReader();
  for await (const piece of pieces) {
    const records = reader.push(piece);
    if (records.length > 0) await onRecords(records, reader.header as BackupHeader);
  }
  return reader.finish();
}

function headerOf(line: string): BackupHeader {
  let value: { readonly revision?: unknown; readonly created?: unknown } | null;
  try {
    value = JSON.parse(line);
  } catch {
    throw damaged('its header cannot be read');
  }
  const { revision, created } = value ?? {};
  const isRevision = typeof revision === 'number' && Number.isSafeInteger(revision);
  if (!isRevision || revision < 0 || revision > revisionMax) {
    throw damaged('its header has no revision');
  }
  if (typeof created !== 'string' || Number.isNaN(Date.parse(created))) {
    throw damaged('its header has no time');
  }
  return { revision, created };
}

function damaged(what: string): BackupError {
  return new BackupError(`is damaged: ${what}`);
}

function notABackup(): BackupError {
  return new BackupError('is not a backup of Wheelhouse');
}

const readBytes = 2 ** 20;

/** Reads a file in pieces. Rejects with the system's error. */
export async function* fileBytes(path: string): AsyncGenerator<Buffer, void, undefined> {
  const file = await open(path, 'r');
  try {
    for (;;) {
      const { bytesRead, buffer } = await file.read({ buffer: Buffer.allocUnsafe(readBytes) });
      if (bytesRead === 0) return;
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    await file.close();
  }
}

/**
 * Writes a backup to a file with mode 0600. The file appears complete, verified, and synced, or not
 * at all. An existing file is kept unless `replace` is set. Rejects with a one-line error, or with
 * the error of `pieces`.
 */
export async function writeBackupFile(options: {
  readonly path: string;
  readonly pieces: AsyncIterable<Buffer>;
  readonly replace: 'never' | 'allowed';
}): Promise<BackupSummary> {
  const { path, replace, pieces } = options;
  const folder = dirname(path);
  await removeLeftovers(path);
  if (replace === 'never' && existsSync(path)) throw alreadyExists(path);
  const draft = join(folder, `${basename(path)}.${process.pid}.partial`);
  const file = await namingPath(path, () => open(draft, 'wx', 0o600));
  try {
    const summary = await readBackup(writeThrough(file, { path, pieces }), () => undefined);
    await namingPath(path, () => file.sync());
    if (replace === 'never') await putInPlace(draft, path);
    else await namingPath(path, () => rename(draft, path));
    await syncDirectory(folder);
    return summary;
  } catch (error) {
    throw error instanceof BackupError ? new Error(`the backup ${error.message}`) : error;
  } finally {
    await file.close();
    await rm(draft, { force: true });
  }
}

/** Yields each piece after it has been written. */
async function* writeThrough(
  file: FileHandle,
  { path, pieces }: { readonly path: string; readonly pieces: AsyncIterable<Buffer> },
): AsyncGenerator<Buffer, void, undefined> {
  for await (const piece of pieces) {
    for (let at = 0; at < piece.length; ) {
      at += (await namingPath(path, () => file.write(piece, at))).bytesWritten;
    }
    yield piece;
  }
}

/** Runs a file operation and adds the path to its error. */
async function namingPath<T>(path: string, run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    throw new Error(`cannot write ${path}: ${errorText(error)}`, { cause: error });
  }
}

/** Renames the draft to its final name unless that exists: a hard link never replaces a file. */
async function putInPlace(draft: string, path: string): Promise<void> {
  try {
    await link(draft, path);
  } catch {
    if (existsSync(path)) throw alreadyExists(path);
    // On a file system without hard links, the check above must suffice.
    await namingPath(path, () => rename(draft, path));
  }
}

/** Removes drafts of this path that killed processes left behind. */
async function removeLeftovers(path: string): Promise<void> {
  const folder = dirname(path);
  const start = `${basename(path)}.`;
  for (const name of await namingPath(path, () => readdir(folder))) {
    const pid = name.startsWith(start)
      ? /^(\d{1,10})(?:\.older)?\.partial$/.exec(name.slice(start.length))
      : null;
    if (pid === null || isAlive(Number(pid[1]))) continue;
    await rm(join(folder, name), { recursive: true, force: true });
  }
}

function isAlive(pid: number): boolean {
  if (pid === process.pid) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return systemErrorCode(error) !== 'ESRCH';
  }
}

function alreadyExists(path: string): Error {
  return new Error(`${path} already exists; use --force to replace it`);
}

/** More writes than clock skew between the backup and the restore can hide. */
const clockSkewWrites = 1_000_000_000;
/** No server sustains 100,000 writes per second. */
const writesPerMsMax = 100;

/**
 * Returns the first revision of a restored store (STORE-5). It exceeds every revision that the
 * server may have issued since the backup, however often the same backup is restored, so a revision
 * that a client kept is Expired and never identifies a different state. (etcd's restore does the
 * same with `--bump-revision` and `--mark-compacted`.) Throws StoreError `refused` if revisions run
 * out.
 */
export function restoredRevision(backup: {
  readonly revision: Revision;
  /** Wall times, milliseconds since the epoch. */
  readonly createdMs: number;
  readonly nowMs: number;
}): Revision {
  const { revision, createdMs, nowMs } = backup;
  const ageMs = Math.max(0, Math.ceil(nowMs - createdMs));
  const restored = revision + clockSkewWrites + ageMs * writesPerMsMax;
  if (restored <= revisionMax / 2) return restored;
  const message = `no revision is left after revision ${revision} of a backup from ${ageMs} ms ago`;
  throw new StoreError({ code: 'refused', message });
}
