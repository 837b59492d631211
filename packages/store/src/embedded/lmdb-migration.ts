import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { errorText } from '@wheelhouse/machinery';
import { type Database, open } from 'lmdb';
import { StoreError } from '../contract.ts';
import { newerFormat } from './formats.ts';
import type { NewRecord } from './frame.ts';
import type { LogBuilder } from './log-builder.ts';
import { damaged, decodeLogKey, decodeLogRecord, decodeState } from './record.ts';
import { verifyDataFile } from './verify-data-file.ts';

type Table = Database<Buffer, Buffer>;

const lmdbFormat = 1;
const pieceBytes = 2 ** 20;
const shape = { encoding: 'binary', keyEncoding: 'binary' } as const;

/**
 * Copies the log that servers up to format 1 kept in LMDB, history and all, and leaves LMDB's file as
 * it is. Throws StoreError `damaged`, or `unavailable` when the format is another one.
 */
export async function copyLmdb(directory: string, builder: LogBuilder): Promise<void> {
  verifyDataFile(join(directory, 'data.mdb'));
  const lockFile = join(directory, 'lock.mdb');
  const hadLock = existsSync(lockFile);
  const root = open<Buffer, Buffer>({
    path: directory,
    noSubdir: false,
    pageSize: 4096,
    maxDbs: 8,
    readOnly: true,
    ...shape,
  });
  try {
    const table = (name: string): Table | undefined => root.openDB({ name, ...shape });
    await copyTables({ directory, meta: table('meta'), log: table('log'), builder });
  } catch (error) {
    throw error instanceof StoreError ? error : damaged(errorText(error), error);
  } finally {
    await root.close();
    if (!hadLock) rmSync(lockFile, { force: true });
  }
}

async function copyTables(of: {
  readonly directory: string;
  readonly meta: Table | undefined;
  readonly log: Table | undefined;
  readonly builder: LogBuilder;
}): Promise<void> {
  const { directory, meta, log, builder } = of;
  const format = Number(meta?.getBinary(Buffer.from('format'))?.toString('latin1'));
  if (format > lmdbFormat) throw newerFormat(directory, format);
  const encoded = meta?.getBinary(Buffer.from('state'));
  if (format !== lmdbFormat || encoded === undefined || log === undefined) {
    throw damaged('it has no valid state');
  }
  const state = decodeState(encoded);
  let records: NewRecord[] = [];
  let bytes = 0;
  for (const { key, value } of log.getRange({})) {
    const revision = decodeLogKey(key);
    if (revision > state.revision)
      throw damaged(`its log goes on after revision ${state.revision}`);
    const record = decodeLogRecord(value, revision);
    // LMDB's memory is good for this step alone.
    const copied = Buffer.from(record.value);
    records.push({ ...record, value: copied, keyBytes: Buffer.from(record.key) });
    bytes += value.length;
    if (bytes < pieceBytes) continue;
    await builder.add(records);
    records = [];
    bytes = 0;
  }
  if (records.length > 0) await builder.add(records);
  await builder.finish({ revision: state.revision, compacted: state.compacted });
}
