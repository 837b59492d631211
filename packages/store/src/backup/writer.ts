import { createHash } from 'node:crypto';
import type { Revision, StoredRecord, StoreSnapshot } from '../contract.ts';

/**
 * A backup is a stream of bytes, the same in a file and on the wire (STORE-5):
 *
 *     WHEELHOUSE-BACKUP 1 \n
 *     {"revision":…,"created":"…"} \n
 *     0x01 | key length 2 | value length 4 | createRevision 6 | modRevision 6 | key | value   …
 *     0x02 | number of records 6 | SHA-256 of all that precedes it 32
 *
 * Numbers are big-endian, keys strictly ascend in byte order, values are the stored (possibly
 * encrypted) bytes, and nothing follows the end. The encoding is canonical, so a reader rejects
 * everything else.
 */

/** The newest format this program writes and reads. */
export const backupFormat = 1;

/** The start of the first line, which the number of the format follows. */
export const backupMagic = 'WHEELHOUSE-BACKUP ';

/** Maximum length of the first line, including its line end. */
export const firstLineBytesMax = backupMagic.length + 8;
/** Maximum length of the header with its line end; a reader rejects a longer one as damage. */
export const headerBytesMax = 4096;
/** The first byte of a record. */
export const recordTag = 1;
/** The first byte of the end. */
export const endTag = 2;
/** Size of a record before its key: the tag, two lengths, and two revisions. */
export const recordHeadBytes = 19;
/** Size of the end before its digest: the tag and the number of records. */
export const endHeadBytes = 7;
/** Size of the SHA-256 at the end. */
export const digestBytes = 32;
/** Larger than any value that a store accepts; a larger length means damage. */
export const valueBytesMax = 512 * 2 ** 20;

/** The largest revision that fits `countBytes`, as in the embedded store. */
export const revisionMax: Revision = 2 ** 48 - 1;

/** The header of a backup. */
export interface BackupHeader {
  /** The revision of the state in the backup. */
  readonly revision: Revision;
  /** When the backup was started, RFC 3339. */
  readonly created: string;
}

/** Bytes of a revision or a number of records. */
export const countBytes = 6;

function encodeStart(header: BackupHeader): Buffer {
  const { revision, created } = header;
  return Buffer.from(
    `${backupMagic}${backupFormat}\n${JSON.stringify({ revision, created })}\n`,
    'utf8',
  );
}

/** Encodes records into one buffer. */
function encodeRecords(records: readonly StoredRecord[]): Buffer {
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
    target.writeUIntBE(createRevision, at + 7, countBytes);
    target.writeUIntBE(modRevision, at + 13, countBytes);
    at += recordHeadBytes + keyBytes;
    at += value.copy(target, at);
  }
  return target;
}

/** The end without its digest, which covers these bytes too. */
function encodeEnd(records: number): Buffer {
  const target = Buffer.alloc(endHeadBytes);
  target[0] = endTag;
  target.writeUIntBE(records, 1, countBytes);
  return target;
}

/**
 * Yields the bytes of a snapshot's backup in pieces of about 1 MiB and always closes the snapshot.
 * Fails with the snapshot's errors.
 */
export async function* writeBackup(
  snapshot: StoreSnapshot,
  options: {
    /** Wall time, milliseconds since the epoch. */
    readonly nowMs: number;
  },
): AsyncGenerator<Buffer, void, undefined> {
  const digest = createHash('sha256');
  const hashed = (bytes: Buffer): Buffer => {
    digest.update(bytes);
    return bytes;
  };
  try {
    const created = new Date(options.nowMs).toISOString();
    yield hashed(encodeStart({ revision: snapshot.revision, created }));
    let count = 0;
    for await (const records of snapshot.records) {
      count += records.length;
      yield hashed(encodeRecords(records));
    }
    const end = hashed(encodeEnd(count));
    yield Buffer.concat([end, digest.digest()]);
  } finally {
    snapshot.close();
  }
}
