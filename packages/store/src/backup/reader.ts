import { createHash } from 'node:crypto';
import type { StoredRecord } from '../contract.ts';
import {
  type BackupHeader,
  backupFormat,
  backupMagic,
  digestBytes,
  endHeadBytes,
  endTag,
  firstLineBytesMax,
  headerBytesMax,
  readCount,
  recordHeadBytes,
  recordTag,
  revisionMax,
  valueBytesMax,
} from './format.ts';

/** A backup that cannot be used; the message continues the name of its file, in one line. */
export class BackupError extends Error {
  override readonly name = 'BackupError';
}

export interface BackupSummary extends BackupHeader {
  readonly records: number;
  /** SHA-256, as the backup ends with it. */
  readonly digest: Buffer;
}

const lineEnd = 0x0a;

/**
 * Reads a backup piece by piece, however it is cut, and holds no more of it than the record that
 * has not come whole yet. Records are to be trusted only when `finish` has returned. Every method
 * throws BackupError.
 */
export class BackupReader {
  readonly #digest = createHash('sha256');
  #pieces: Buffer[] = [];
  #available = 0;
  /** What must have come before it is worth looking again. */
  #needed = 1;
  #part: 'format' | 'header' | 'records' | 'end' = 'format';
  #header: BackupHeader | undefined;
  #records = 0;
  #lastKey: Buffer = Buffer.alloc(0);
  #end: Buffer | undefined;
  #read = 0;

  /** Known once the first records are given. */
  get header(): BackupHeader | undefined {
    return this.#header;
  }

  /** Takes the next bytes; gives the records that have become whole. */
  push(piece: Buffer): StoredRecord[] {
    const found: StoredRecord[] = [];
    this.#pieces.push(piece);
    this.#available += piece.length;
    while (this.#available >= this.#needed && this.#available > 0) {
      const rest = this.#gathered();
      const used = this.#take(rest, found);
      if (used === 0) break;
      this.#needed = 1;
      this.#read += used;
      this.#available -= used;
      this.#pieces = this.#available === 0 ? [] : [rest.subarray(used)];
    }
    return found;
  }

  /** To be called after the last bytes. */
  finish(): BackupSummary {
    if (this.#end === undefined || this.#header === undefined) {
      const isForeign = this.#part === 'format' && !this.#beginsRight();
      if (isForeign) throw foreign();
      throw new BackupError(`is not complete: it ends after ${this.#read + this.#available} bytes`);
    }
    return { ...this.#header, records: this.#records, digest: this.#end };
  }

  #beginsRight(): boolean {
    const start = this.#gathered().toString('latin1', 0, firstLineBytesMax);
    if (start.length <= backupMagic.length) return start !== '' && backupMagic.startsWith(start);
    return start.startsWith(backupMagic) && /^[1-9][0-9]*$/.test(start.slice(backupMagic.length));
  }

  #gathered(): Buffer {
    const [only] = this.#pieces;
    if (only !== undefined && this.#pieces.length === 1) return only;
    const whole = Buffer.concat(this.#pieces);
    this.#pieces = [whole];
    return whole;
  }

  /** Bytes used up; 0 when more are needed. */
  #take(rest: Buffer, found: StoredRecord[]): number {
    if (this.#part === 'format') return this.#takeFormat(rest);
    if (this.#part === 'header') return this.#takeHeader(rest);
    if (this.#part === 'end') throw damaged('something follows its end');
    if (rest[0] === recordTag) return this.#takeRecord(rest, found);
    if (rest[0] === endTag) return this.#takeEnd(rest);
    throw damaged(`no record begins at byte ${this.#read}`);
  }

  #takeFormat(rest: Buffer): number {
    const end = rest.subarray(0, firstLineBytesMax).indexOf(lineEnd);
    if (end < 0) {
      if (rest.length >= firstLineBytesMax) throw foreign();
      return this.#wait(rest.length + 1);
    }
    const line = rest.toString('latin1', 0, end);
    const format = line.slice(backupMagic.length);
    if (!line.startsWith(backupMagic) || !/^[1-9][0-9]*$/.test(format)) throw foreign();
    if (Number(format) > backupFormat) {
      throw new BackupError(
        `has backup format ${format}, this program knows formats up to ${backupFormat}:` +
          ' use a newer one',
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

  #takeRecord(rest: Buffer, found: StoredRecord[]): number {
    if (rest.length < recordHeadBytes) return this.#wait(recordHeadBytes);
    const keyEnd = recordHeadBytes + rest.readUInt16BE(1);
    const valueBytes = rest.readUInt32BE(3);
    if (valueBytes > valueBytesMax) throw damaged(`no record is as long as that at ${this.#read}`);
    const size = keyEnd + valueBytes;
    if (rest.length < size) return this.#wait(size);
    const keyBytes = rest.subarray(recordHeadBytes, keyEnd);
    if (Buffer.compare(keyBytes, this.#lastKey) <= 0) throw damaged('its keys are out of order');
    this.#lastKey = Buffer.from(keyBytes);
    const createRevision = readCount(rest, 7);
    const modRevision = readCount(rest, 13);
    const newest = this.#header?.revision ?? 0;
    if (createRevision < 1 || createRevision > modRevision || modRevision > newest) {
      throw damaged(`the record at byte ${this.#read} has impossible revisions`);
    }
    const value = rest.subarray(keyEnd, size);
    found.push({ key: keyBytes.toString('utf8'), value, createRevision, modRevision });
    this.#records += 1;
    return this.#used(rest, size);
  }

  #takeEnd(rest: Buffer): number {
    if (rest.length < endHeadBytes + digestBytes) return this.#wait(endHeadBytes + digestBytes);
    const used = this.#used(rest, endHeadBytes);
    const said = rest.subarray(used, used + digestBytes);
    if (!said.equals(this.#digest.digest())) throw damaged('its checksum does not match');
    if (readCount(rest, 1) !== this.#records) throw damaged('records are missing');
    this.#end = Buffer.from(said);
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

/** All of a backup that comes in pieces, and that it is whole; `onRecords` may take its time. */
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

function foreign(): BackupError {
  return new BackupError('is not a backup of Wheelhouse');
}
