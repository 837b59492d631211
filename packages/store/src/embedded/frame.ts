import { crc32 } from 'node:zlib';
import type { Revision } from '../contract.ts';
import { encodeLogRecord, logRecordSize } from './record.ts';

/**
 * What one write to the log puts there, whole or not at all:
 *
 *     checksum 4 | length 4 | zero 1 | records 3 | revision 6 | compacted 6 | records
 *
 * and each record: `length 4 | revision 6 | bytes (record.ts)`. The checksum covers all that follows
 * it; its seed is the segment's, moved by the frame's offset. A record that is there already is a
 * copy, made so that the segment of the first one can go.
 */
export interface Frame {
  /** Where the store stands after it. */
  readonly revision: Revision;
  readonly compacted: Revision;
  readonly offset: number;
  readonly end: number;
  readonly records: readonly FramedRecord[];
}

/** Where a record is in its segment, and what of it the index needs. */
export interface FramedRecord {
  readonly revision: Revision;
  readonly offset: number;
  readonly size: number;
}

/** A record that is not in the log yet. */
export interface NewRecord {
  readonly revision: Revision;
  readonly kind: 'put' | 'delete';
  readonly key: string;
  readonly keyBytes: Buffer;
  readonly value: Buffer;
  readonly createRevision: Revision;
  /** The revision of the key's write before this one; 0 without one. */
  readonly previous: Revision;
}

/** Bytes of a record as the log has them already. */
export interface CopiedRecord {
  readonly revision: Revision;
  readonly bytes: Buffer;
}

const frameHeader = 24;
/** What a frame adds to each record's own bytes. */
export const recordOverhead = 10;

type AnyRecord = NewRecord | CopiedRecord;

const sizeOf = (record: AnyRecord): number =>
  'bytes' in record ? record.bytes.length : logRecordSize(record.keyBytes, record.value);

export function frameSize(records: readonly AnyRecord[]): number {
  let size = frameHeader;
  for (const record of records) size += recordOverhead + sizeOf(record);
  return size;
}

/** The frame's bytes, and where its records are in the segment, in order. */
export function encodeFrame(frame: {
  readonly revision: Revision;
  readonly compacted: Revision;
  readonly seed: number;
  /** In the segment. */
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

/** The frame at an offset of a segment's bytes; undefined when none, or only a part of one, is there. */
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
