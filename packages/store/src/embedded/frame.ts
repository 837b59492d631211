import { crc32 } from 'node:zlib';
import { type Revision, StoreError } from '../contract.ts';

/**
 * One write as the log stores it. LMDB stored it under its revision as an 8-byte big-endian key:
 *
 *     checksum 4 | kind 1 | createRevision 6 | previous 6 | key length 2 | key | value
 *
 * `previous` is the revision of the key's previous write (0 if there is none), so the states of a
 * key form a chain from the newest to the oldest. The checksum covers everything after it and uses
 * the revision as its seed, which also detects a misplaced record.
 */
export interface LogRecord {
  readonly revision: Revision;
  readonly kind: 'put' | 'delete';
  readonly key: string;
  readonly value: Buffer;
  readonly createRevision: Revision;
  readonly previous: Revision;
}

/**
 * The state of a store of format 1: `checksum 4 | revision 6 | compacted 6 | swept 6`. The last
 * member, the revision up to which superseded records were removed, is not read.
 */
interface StoreState {
  readonly revision: Revision;
  /** Oldest readable revision. */
  readonly compacted: Revision;
}

const recordHeader = 19;
const stateSize = 22;

const revisionBytes = 6;

/** Decodes the key of a record in LMDB. */
export function decodeLogKey(key: Uint8Array): Revision {
  return Buffer.from(key.buffer, key.byteOffset, key.byteLength).readUIntBE(2, revisionBytes);
}

function logRecordSize(keyBytes: Uint8Array, value: Uint8Array): number {
  return recordHeader + keyBytes.length + value.length;
}

/** Encodes a record into `target`, which must be exactly `logRecordSize` long. */
function encodeLogRecord(
  target: Buffer,
  record: Omit<LogRecord, 'key'> & { readonly keyBytes: Uint8Array },
): Buffer {
  target[4] = record.kind === 'put' ? 1 : 2;
  target.writeUIntBE(record.createRevision, 5, revisionBytes);
  target.writeUIntBE(record.previous, 11, revisionBytes);
  target.writeUInt16BE(record.keyBytes.length, 17);
  target.set(record.keyBytes, recordHeader);
  target.set(record.value, recordHeader + record.keyBytes.length);
  target.writeUInt32BE(crc32(target.subarray(4), record.revision >>> 0), 0);
  return target;
}

/** The key of a valid record at an offset of `source`. */
export function keyOfRecord(source: Buffer, offset: number): string {
  const start = offset + recordHeader;
  return source.toString('utf8', start, start + source.readUInt16BE(offset + 17));
}

/** The createRevision of a valid record at an offset of `source`. */
export const createRevisionOfRecord = (source: Buffer, offset: number): Revision =>
  source.readUIntBE(offset + 5, revisionBytes);

/** Whether a valid record at an offset of `source` is a deletion. */
export const isDeletion = (source: Buffer, offset: number): boolean => source[offset + 4] !== 1;

/** Decodes a record, whose value shares the memory of `source`. Throws StoreError `damaged`. */
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
    createRevision: source.readUIntBE(5, revisionBytes),
    previous: source.readUIntBE(11, revisionBytes),
  };
}

/** Decodes the state of a store of format 1. Throws StoreError `damaged`. */
export function decodeState(source: Buffer): StoreState {
  if (source.length !== stateSize || crc32(source.subarray(4)) !== source.readUInt32BE(0)) {
    throw damaged('the state record does not match its checksum');
  }
  return {
    revision: source.readUIntBE(4, revisionBytes),
    compacted: source.readUIntBE(10, revisionBytes),
  };
}

/** Returns the error for damaged data. */
export function damaged(message: string, cause?: unknown): StoreError {
  return new StoreError({
    code: 'damaged',
    message: `the data file is damaged: ${message}`,
    cause,
  });
}

/**
 * One atomic write to the log:
 *
 *     checksum 4 | length 4 | zero 1 | records 3 | revision 6 | compacted 6 | records
 *
 * and each record: `length 4 | revision 6 | bytes`. The checksum covers everything after it; its
 * seed is the segment's plus the frame's offset. A record that repeats an earlier one is a copy,
 * made so that the segment of the original can be freed.
 */
export interface Frame {
  /** State of the store after the frame. */
  readonly revision: Revision;
  readonly compacted: Revision;
  readonly offset: number;
  readonly end: number;
  readonly records: readonly FramedRecord[];
}

/** The position of a record in its segment. */
export interface FramedRecord {
  readonly revision: Revision;
  readonly offset: number;
  readonly size: number;
}

/** A record to be appended. */
export interface NewRecord {
  readonly revision: Revision;
  readonly kind: 'put' | 'delete';
  readonly key: string;
  readonly keyBytes: Buffer;
  readonly value: Buffer;
  readonly createRevision: Revision;
  /** The revision of the previous write to the key; 0 if there is none. */
  readonly previous: Revision;
}

/** The bytes of a record that is already in the log. */
export interface CopiedRecord {
  readonly revision: Revision;
  readonly bytes: Buffer;
}

const frameHeader = 24;
/** Bytes that a frame adds to each record. */
export const recordOverhead = 10;

type AnyRecord = NewRecord | CopiedRecord;

const sizeOf = (record: AnyRecord): number =>
  'bytes' in record ? record.bytes.length : logRecordSize(record.keyBytes, record.value);

/** The size of a frame with these records, bytes. */
export function frameSize(records: readonly AnyRecord[]): number {
  let size = frameHeader;
  for (const record of records) size += recordOverhead + sizeOf(record);
  return size;
}

/** Encodes a frame and returns the positions of its records in the segment, in order. */
export function encodeFrame(frame: {
  readonly revision: Revision;
  readonly compacted: Revision;
  readonly seed: number;
  /** Offset in the segment. */
  readonly offset: number;
  readonly records: readonly AnyRecord[];
}): { readonly bytes: Buffer; readonly places: readonly FramedRecord[] } {
  const { records, offset } = frame;
  const bytes = Buffer.allocUnsafe(frameSize(records));
  bytes.writeUInt32BE(bytes.length, 4);
  bytes[8] = 0;
  bytes.writeUIntBE(records.length, 9, 3);
  bytes.writeUIntBE(frame.revision, 12, 6);
  bytes.writeUIntBE(frame.compacted, 18, 6);
  const places: FramedRecord[] = [];
  let at = frameHeader;
  for (const record of records) {
    const size = sizeOf(record);
    bytes.writeUInt32BE(size, at);
    bytes.writeUIntBE(record.revision, at + 4, 6);
    at += recordOverhead;
    const target = bytes.subarray(at, at + size);
    if ('bytes' in record) record.bytes.copy(target);
    else encodeLogRecord(target, record);
    places.push({ revision: record.revision, offset: offset + at, size });
    at += size;
  }
  bytes.writeUInt32BE(checksum(bytes, { seed: frame.seed, offset }), 0);
  return { bytes, places };
}

function checksum(frame: Buffer, at: { readonly seed: number; readonly offset: number }): number {
  return crc32(frame.subarray(4), (at.seed + at.offset) >>> 0);
}

/** Decodes the frame at an offset of a segment; undefined if there is no complete frame. */
export function decodeFrame(segment: Buffer, offset: number, seed: number): Frame | undefined {
  if (offset + frameHeader > segment.length) return undefined;
  const length = segment.readUInt32BE(offset + 4);
  if (length < frameHeader || offset + length > segment.length) return undefined;
  const bytes = segment.subarray(offset, offset + length);
  if (checksum(bytes, { seed, offset }) !== bytes.readUInt32BE(0)) return undefined;
  const records: FramedRecord[] = [];
  let at = frameHeader;
  for (let count = bytes.readUIntBE(9, 3); count > 0; count--) {
    const size = bytes.readUInt32BE(at);
    const revision = bytes.readUIntBE(at + 4, 6);
    at += recordOverhead;
    records.push({ revision, offset: offset + at, size });
    at += size;
  }
  return {
    revision: bytes.readUIntBE(12, 6),
    compacted: bytes.readUIntBE(18, 6),
    offset,
    end: offset + length,
    records,
  };
}
