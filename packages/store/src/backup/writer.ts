import { createHash } from 'node:crypto';
import type { StoreSnapshot } from '../contract.ts';
import { encodeEnd, encodeRecords, encodeStart } from './format.ts';

/**
 * The bytes of a backup of a snapshot, in pieces of about 1 MiB; closes the snapshot at the end,
 * however that comes about. Fails as the snapshot does.
 */
export async function* writeBackup(
  snapshot: StoreSnapshot,
  options: {
    /** Wall time, milliseconds since the epoch. */
    readonly nowMs: number;
  },
): AsyncGenerator<Buffer, void, undefined> {
  const digest = createHash('sha256');
  const noted = (bytes: Buffer): Buffer => {
    digest.update(bytes);
    return bytes;
  };
  try {
    const created = new Date(options.nowMs).toISOString();
    yield noted(encodeStart({ revision: snapshot.revision, created }));
    let count = 0;
    for await (const records of snapshot.records) {
      count += records.length;
      yield noted(encodeRecords(records));
    }
    const end = noted(encodeEnd(count));
    yield Buffer.concat([end, digest.digest()]);
  } finally {
    snapshot.close();
  }
}
