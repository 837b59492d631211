import { crc32 } from 'node:zlib';
import { type Revision, StoreError } from '../contract.ts';

/**
 * One write as the log keeps it (frame.ts); LMDB had it under its revision as an 8-byte big-endian key:
 *
 *     checksum 4 | kind 1 | createRevision 6 | previous 6 | key length 2 | key | value
 *
 * `previous` is the revision of the key's write before this one (0: none ever), so that the states
 * of a key form a chain from its head into the past. The checksum covers all that follows it and,
 * as its seed, the revision, so that a record in a wrong place shows too.
 */
export interface LogRecord {
  readonly revision: Revision;
  readonly kind: 'put' | 'delete';
  readonly key: string;
  readonly value: Buffer;
  readonly createRevision: Revision;
  readonly previous: Revision;
}

/** Where a store of format 1 stands: `checksum 4 | revision 6 | compacted 6 | swept 6`. */
export interface StoreState {
  readonly revision: Revision;
  /** Oldest readable revision. */
  readonly compacted: Revision;
  /** Superseded records have been removed from the log up to here; lags behind `compacted`. */
  readonly swept: Revision;
}

const recordHeader = 19;
const stateSize = 22;

const highFactor = 2 ** 32;

function writeRevision(target: Buffer, revision: Revision, offset: number): void {
  target.writeUInt16BE(Math.floor(revision / highFactor), offset);
  target.writeUInt32BE(revision >>> 0, offset + 2);
}

function readRevision(source: Buffer, offset: number): Revision {
  return source.readUInt16BE(offset) * highFactor + source.readUInt32BE(offset + 2);
}

export function decodeLogKey(key: Uint8Array): Revision {
  return readRevision(Buffer.from(key.buffer, key.byteOffset, key.byteLength), 2);
}

export function logRecordSize(keyBytes: Uint8Array, value: Uint8Array): number {
  return recordHeader + keyBytes.length + value.length;
}

/** Fills `target`, which must be exactly `logRecordSize` long. */
export function encodeLogRecord(
  target: Buffer,
  record: Omit<LogRecord, 'key'> & { readonly keyBytes: Uint8Array },
): Buffer {
  target[4] = record.kind === 'put' ? 1 : 2;
  writeRevision(target, record.createRevision, 5);
  writeRevision(target, record.previous, 11);
  target.writeUInt16BE(record.keyBytes.length, 17);
  target.set(record.keyBytes, recordHeader);
  target.set(record.value, recordHeader + record.keyBytes.length);
  target.writeUInt32BE(crc32(target.subarray(4), record.revision >>> 0), 0);
  return target;
}

/** The key of a record that is known to be sound, at an offset of `source`. */
export function keyOfRecord(source: Buffer, offset: number): string {
  const start = offset + recordHeader;
  return source.toString('utf8', start, start + source.readUInt16BE(offset + 17));
}

export const createRevisionOfRecord = (source: Buffer, offset: number): Revision =>
  readRevision(source, offset + 5);

export const isDeletion = (source: Buffer, offset: number): boolean => source[offset + 4] !== 1;

/** The value shares the memory of `source`. */
export function decodeLogRecord(source: Buffer, revision: Revision): LogRecord {
  if (
    source.length < recordHeader ||
    crc32(source.subarray(4), revision >>> 0) !== source.readUInt32BE(0)
  ) {
    throw damaged(`the record of revision ${revision} does not match its checksum`);
  }
  const keyEnd = recordHeader + source.readUInt16BE(17);
  return {
    revision,
    kind: source[4] === 1 ? 'put' : 'delete',
    key: source.toString('utf8', recordHeader, keyEnd),
    value: source.subarray(keyEnd),
    createRevision: readRevision(source, 5),
    previous: readRevision(source, 11),
  };
}

export function decodeState(source: Buffer): StoreState {
  if (source.length !== stateSize || crc32(source.subarray(4)) !== source.readUInt32BE(0)) {
    throw damaged('the state record does not match its checksum');
  }
  return {
    revision: readRevision(source, 4),
    compacted: readRevision(source, 10),
    swept: readRevision(source, 16),
  };
}

export function damaged(message: string, cause?: unknown): StoreError {
  return new StoreError({
    code: 'damaged',
    message: `the data file is damaged: ${message}`,
    cause,
  });
}
