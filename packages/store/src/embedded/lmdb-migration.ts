import { closeSync, existsSync, fstatSync, openSync, readSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { errorText } from '@wheelhouse/machinery';
import { type Database, open } from 'lmdb';
import { pieceBytes, type Revision, StoreError } from '../contract.ts';
import { damaged, decodeLogKey, decodeLogRecord, decodeState, type NewRecord } from './frame.ts';
import { newerFormat } from './segment.ts';

type Table = Database<Buffer, Buffer>;

const lmdbFormat = 1;
const encoding = { encoding: 'binary', keyEncoding: 'binary' } as const;

/** The log under construction that receives the records. */
interface NewLog {
  add(records: readonly NewRecord[]): Promise<void>;
  finish(state: { readonly revision: Revision; readonly compacted: Revision }): Promise<void>;
}

/**
 * Copies the log that servers up to format 1 kept in LMDB, including history. LMDB's file is not
 * changed. Throws StoreError `damaged`, or `unavailable` for another format.
 */
export async function copyLmdb(directory: string, builder: NewLog): Promise<void> {
  verifyDataFile(join(directory, 'data.mdb'));
  const lockFile = join(directory, 'lock.mdb');
  const hadLock = existsSync(lockFile);
  const root = open<Buffer, Buffer>({
    path: directory,
    noSubdir: false,
    pageSize: 4096,
    maxDbs: 8,
    readOnly: true,
    ...encoding,
  });
  try {
    const table = (name: string): Table | undefined => root.openDB({ name, ...encoding });
    await copyTables({ directory, meta: table('meta'), log: table('log'), builder });
  } catch (error) {
    throw error instanceof StoreError ? error : damaged(errorText(error), error);
  } finally {
    await root.close();
    if (!hadLock) rmSync(lockFile, { force: true });
  }
}

async function copyTables(options: {
  readonly directory: string;
  readonly meta: Table | undefined;
  readonly log: Table | undefined;
  readonly builder: NewLog;
}): Promise<void> {
  const { directory, meta, log, builder } = options;
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
      throw damaged(`its log has records after revision ${state.revision}`);
    const record = decodeLogRecord(value, revision);
    // LMDB's memory is valid only until the next step.
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

/**
 * LMDB maps the file into memory and trusts its pages, so a truncated or overwritten file would
 * crash the process. This check walks the page tree first: every page reachable from the newest
 * meta page lies inside the file, has the right number, and has valid bounds.
 *
 * Layout (LMDB data version 2, 64 bit, little endian): a page begins with number 8, transaction 8,
 * pad 2, flags 2, lower 2, upper 2, then 2-byte node offsets counted from the end of that header. A
 * node is lo 2, hi 2, flags 2, key size 2, key, data; in a branch lo, hi and flags make up the
 * child's page number. A table is 48 bytes, its root page at offset 40.
 */
const headerSize = 24;
const tableSize = 48;
const magic = 0xbeefc0de;
const flagBranch = 1;
const flagLeaf = 2;
const flagOverflow = 4;
const nodeBig = 1;
const nodeTable = 2;
/** All bits set: an empty tree. */
const noPage = 0xffff_ffff * 2 ** 32 + 0xffff_ffff;
const depthMax = 40;
/** In files above this size only branch pages and the positions of leaf pages are checked. */
const leavesCheckedBytesMax = 256 * 2 ** 20;

interface Walk {
  readonly file: Buffer | undefined;
  readonly descriptor: number;
  readonly pageSize: number;
  readonly size: number;
}

/** Throws StoreError `damaged` unless the file is absent, empty, or a valid LMDB file. */
function verifyDataFile(path: string): void {
  if (!existsSync(path)) return;
  const descriptor = openSync(path, 'r');
  try {
    const size = fstatSync(descriptor).size;
    if (size === 0) return;
    verify(descriptor, size);
  } finally {
    closeSync(descriptor);
  }
}

function verify(descriptor: number, size: number): void {
  const start = Buffer.alloc(Math.min(size, 2 * 65_536));
  readSync(descriptor, start, 0, start.length, 0);
  if (start.length < 8192 || start.readUInt32LE(headerSize) !== magic) {
    throw damaged('it does not begin with a valid meta page');
  }
  const pageSize = start.readUInt32LE(headerSize + 24);
  if (pageSize !== 4096) throw damaged(`its page size is ${pageSize}`);
  if (start.readUInt32LE(pageSize + headerSize) !== magic) {
    throw damaged('its second meta page is not valid');
  }
  const first = start.readBigUInt64LE(metaTransaction);
  const second = start.readBigUInt64LE(pageSize + metaTransaction);
  const meta = start.subarray(first > second ? 0 : pageSize);
  let file: Buffer | undefined;
  if (size <= leavesCheckedBytesMax) {
    file = Buffer.allocUnsafe(size);
    readSync(descriptor, file, 0, size, 0);
  }
  const walk: Walk = { file, descriptor, pageSize, size };
  verifyTree(walk, pageNumber(meta, headerSize + 24 + 40), 0);
  verifyTree(walk, pageNumber(meta, headerSize + 24 + tableSize + 40), 0);
}

/** Valid numbers are far below 2^53; a rounded one exceeds any file's bounds anyway. */
function pageNumber(source: Buffer, offset: number): number {
  return source.readUInt32LE(offset) + source.readUInt32LE(offset + 4) * 2 ** 32;
}

const metaTransaction = headerSize + 24 + 2 * tableSize + 8;

function readPage(walk: Walk, number: number): Buffer {
  const offset = number * walk.pageSize;
  if (offset + walk.pageSize > walk.size)
    throw damaged(`page ${number} is beyond the end of the file`);
  let page: Buffer;
  if (walk.file !== undefined) page = walk.file.subarray(offset, offset + walk.pageSize);
  else {
    page = Buffer.allocUnsafe(walk.pageSize);
    readSync(walk.descriptor, page, 0, walk.pageSize, offset);
  }
  if (pageNumber(page, 0) !== number)
    throw damaged(`page ${number} has the number of another page`);
  return page;
}

function verifyTree(walk: Walk, number: number, depth: number): void {
  if (number === noPage) return;
  if (depth > depthMax) throw damaged(`page ${number} is nested too deeply`);
  const page = readPage(walk, number);
  const kind = page.readUInt16LE(18) & 0x7f;
  if (kind !== flagBranch && kind !== flagLeaf)
    throw damaged(`page ${number} has the unexpected kind ${kind}`);
  const lower = page.readUInt16LE(20);
  const upper = page.readUInt16LE(22);
  if (lower > upper || upper + headerSize > walk.pageSize) {
    throw damaged(`page ${number} has impossible bounds`);
  }
  for (let at = 0; at < lower; at += 2) {
    const offset = page.readUInt16LE(headerSize + at) + headerSize;
    if (offset < lower || offset + 8 > walk.pageSize) {
      throw damaged(`page ${number} has a node outside its bounds`);
    }
    if (kind === flagLeaf) verifyLeafNode(walk, page, offset);
    else verifyBranchNode(walk, { page, offset, depth });
  }
}

function verifyBranchNode(
  walk: Walk,
  node: { readonly page: Buffer; readonly offset: number; readonly depth: number },
): void {
  const { page, offset, depth } = node;
  const child = page.readUInt32LE(offset) + page.readUInt16LE(offset + 4) * 2 ** 32;
  if (walk.file === undefined && depth > 0) {
    if ((child + 1) * walk.pageSize > walk.size)
      throw damaged(`page ${child} is beyond the end of the file`);
    if (depth > 1) return;
  }
  verifyTree(walk, child, depth + 1);
}

function verifyLeafNode(walk: Walk, page: Buffer, offset: number): void {
  const size = page.readUInt32LE(offset);
  const flags = page.readUInt16LE(offset + 4);
  const data = offset + 8 + page.readUInt16LE(offset + 6);
  const inline = (flags & nodeBig) !== 0 ? 24 : size;
  if (data + inline > walk.pageSize) throw damaged('a node extends beyond its page');
  if ((flags & nodeBig) !== 0) {
    const first = pageNumber(page, data);
    const overflow = readPage(walk, first);
    if ((overflow.readUInt16LE(18) & flagOverflow) === 0) {
      throw damaged(`page ${first} is not an overflow page`);
    }
    const end = first * walk.pageSize + headerSize + size;
    if (end > walk.size) throw damaged(`page ${first} extends beyond the end of the file`);
  } else if ((flags & nodeTable) !== 0) {
    verifyTree(walk, pageNumber(page, data + 40), 1);
  }
}
