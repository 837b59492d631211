import type { Revision, StoredRecord } from '../contract.ts';

/**
 * A backup is one stream, the same as a file and on the wire (STORE-5):
 *
 *     WHEELHOUSE-BACKUP 1 \n
 *     {"revision":…,"created":"…"} \n
 *     0x01 | key length 2 | value length 4 | createRevision 6 | modRevision 6 | key | value   …
 *     0x02 | number of records 6 | SHA-256 of all that precedes it 32
 *
 * Numbers are big-endian, keys strictly ascend in byte order, values are as the store has them
 * (sealed, where they are encrypted), and nothing follows the end. What a reader does not expect it
 * refuses: there is one way to write each backup.
 */

/** The newest format this program writes and reads. */
export const backupFormat = 1;

/** What the first line begins with; the format's number follows. */
export const backupMagic = 'WHEELHOUSE-BACKUP ';

/** With its line's end; no format's number is longer. */
export const firstLineBytesMax = backupMagic.length + 8;
export const headerBytesMax = 4096;
export const recordTag = 1;
export const endTag = 2;
export const recordHeadBytes = 19;
export const endHeadBytes = 7;
export const digestBytes = 32;
/** More than any value a store takes; what reads as more is damage. */
export const valueBytesMax = 512 * 2 ** 20;

/** Revisions are written in six bytes, as the embedded store does. */
export const revisionMax: Revision = 2 ** 48 - 1;

/** What a backup says of itself before its records. */
export interface BackupHeader {
  /** Of the state that it holds. */
  readonly revision: Revision;
  /** When it was begun, RFC 3339. */
  readonly created: string;
}

const highFactor = 2 ** 32;

export function writeCount(target: Buffer, count: number, offset: number): void {
  target.writeUInt16BE(Math.floor(count / highFactor), offset);
  target.writeUInt32BE(count >>> 0, offset + 2);
}

export function readCount(source: Buffer, offset: number): number {
  return source.readUInt16BE(offset) * highFactor + source.readUInt32BE(offset + 2);
}

export function encodeStart(header: BackupHeader): Buffer {
  const { revision, created } = header;
  return Buffer.from(
    `${backupMagic}${backupFormat}\n${JSON.stringify({ revision, created })}\n`,
    'utf8',
  );
}

/** Some records as one buffer. */
export function encodeRecords(records: readonly StoredRecord[]): Buffer {
  let size = 0;
  for (const { key, value } of records) {
    size += recordHeadBytes + Buffer.byteLength(key) + value.length;
  }
  const target = Buffer.allocUnsafe(size);
  let at = 0;
  for (const { key, value, createRevision, modRevision } of records) {
    const keyBytes = target.write(key, at + recordHeadBytes, 'utf8');
    target[at] = recordTag;
    target.writeUInt16BE(keyBytes, at + 1);
    target.writeUInt32BE(value.length, at + 3);
    writeCount(target, createRevision, at + 7);
    writeCount(target, modRevision, at + 13);
    at += recordHeadBytes + keyBytes;
    at += value.copy(target, at);
  }
  return target;
}

/** The end but for its digest, which covers these bytes too. */
export function encodeEnd(records: number): Buffer {
  const target = Buffer.alloc(endHeadBytes);
  target[0] = endTag;
  writeCount(target, records, 1);
  return target;
}
