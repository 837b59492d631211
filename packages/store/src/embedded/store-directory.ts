import {
  chmodSync,
  closeSync,
  existsSync,
  fsync,
  open,
  readFileSync,
  renameSync,
  rmSync,
  write,
} from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { makeDirectories, syncDirectory } from '@wheelhouse/machinery';
import { type Revision, StoreError } from '../contract.ts';
import { toStoreError } from './disk.ts';
import { encodeFrame, frameSize, type NewRecord } from './frame.ts';
import { segmentPath } from './recovery.ts';
import {
  encodeHeader,
  encodeMark,
  formatVersion,
  markOffsets,
  newerFormat,
  newSeed,
  segmentHeaderBytes,
} from './segment.ts';

const fsyncAsync = promisify(fsync);
const openAsync = promisify(open);
const writeAsync = promisify(write);

const fullBytes = 4 * 2 ** 20;
const emptyBytes = 256 * 1024;

/** Builds a log from records, one segment at a time. The log is valid only after `finish`. */
export class LogBuilder {
  readonly #directory: string;
  #sequence = 1;
  #previousEnd = 0;
  #image: Buffer | undefined;
  #seed = 0;
  #end = 0;

  /** @param directory created empty */
  constructor(directory: string) {
    this.#directory = directory;
    rmSync(directory, { recursive: true, force: true });
    makeDirectories(directory, { mode: 0o700 });
  }

  /** Adds about 1 MiB of records; those of one key must be in order of revision. */
  async add(records: readonly NewRecord[]): Promise<void> {
    await this.#append(records, { revision: 0, compacted: 0 });
  }

  /** Records the state of the log and syncs it to disk. */
  async finish(state: {
    readonly revision: Revision;
    readonly compacted: Revision;
  }): Promise<void> {
    await this.#append([], state);
    await this.#flush();
    await syncDirectory(this.#directory);
  }

  async #append(
    records: readonly NewRecord[],
    state: { readonly revision: Revision; readonly compacted: Revision },
  ): Promise<void> {
    const size = frameSize(records);
    if (this.#image !== undefined && this.#end + size > this.#image.length) await this.#flush();
    const image = this.#image ?? this.#begin(size);
    const frame = { seed: this.#seed, offset: this.#end, records, ...state };
    const { bytes } = encodeFrame(frame);
    bytes.copy(image, this.#end);
    this.#end += bytes.length;
  }

  #begin(frameBytes: number): Buffer {
    const isEmpty = this.#sequence === 1 && frameBytes < emptyBytes / 2;
    const size = Math.max(isEmpty ? emptyBytes : fullBytes, segmentHeaderBytes + frameBytes);
    this.#image = Buffer.alloc(size);
    this.#seed = newSeed();
    const header = {
      sequence: this.#sequence,
      size,
      previousEnd: this.#previousEnd,
      first: 1,
      seed: this.#seed,
    };
    encodeHeader(header).copy(this.#image);
    this.#end = segmentHeaderBytes;
    return this.#image;
  }

  async #flush(): Promise<void> {
    const image = this.#image as Buffer;
    encodeMark({ end: this.#end, first: 1 }, this.#seed).copy(image, markOffsets[0]);
    await writeFile(segmentPath(this.#directory, this.#sequence), image);
    this.#image = undefined;
    this.#previousEnd = this.#end;
    this.#sequence += 1;
  }
}

async function writeFile(path: string, bytes: Buffer): Promise<void> {
  const descriptor = await openAsync(path, 'w', 0o600);
  try {
    for (let at = 0; at < bytes.length; ) {
      at += (await writeAsync(descriptor, bytes, at, bytes.length - at, at)).bytesWritten;
    }
    await fsyncAsync(descriptor);
  } catch (error) {
    throw toStoreError(error, 'write');
  } finally {
    closeSync(descriptor);
  }
}

/** Moves a finished log to its final place, durably. */
async function placeLog(from: string, to: string, parent: string): Promise<void> {
  renameSync(from, to);
  await syncDirectory(parent);
}

/** LMDB's data file in format 1. Its content shows older servers that the format is newer. */
const markerName = 'data.mdb';
const markerText = `Wheelhouse store, format ${formatVersion}: the data is in log.\n`;
const markerPattern = /^Wheelhouse store, format (\d{1,9}):/;
const markerBytesMax = 4096;

/** The folder of the log in a data directory. */
export const logDirectory = (directory: string): string => join(directory, 'log');
const draftDirectory = (directory: string): string => join(directory, 'log.draft');

/** Creates the data directory with access for its owner only. */
export function prepareDirectory(directory: string): void {
  makeDirectories(directory, { mode: 0o700 });
  chmodSync(directory, 0o700);
}

/**
 * Ensures that the directory has a log: a new one, or one copied from an older server's LMDB.
 * Writes nothing if a log exists, so it succeeds on a full disk.
 *
 * @param copyTo a new folder for a copy of LMDB's data, so that the directory keeps its format and
 *   needs to have data
 * @returns the log's folder
 * @throws StoreError `unavailable` for a newer format or a directory that needs to have data,
 *   `damaged` if LMDB's file is damaged
 */
export async function ensureLog(directory: string, copyTo?: string): Promise<string> {
  const format = formatIn(directory);
  if (format !== undefined && format > formatVersion) throw newerFormat(directory, format);
  const log = logDirectory(directory);
  if (!existsSync(log)) {
    if (format !== undefined) {
      throw new StoreError({ code: 'damaged', message: `the data is damaged: ${log} is missing` });
    }
    const draft = copyTo ?? draftDirectory(directory);
    if (existsSync(join(directory, markerName))) {
      const { copyLmdb } = await import('./lmdb-migration.ts');
      await copyLmdb(directory, new LogBuilder(draft));
    } else if (copyTo === undefined) {
      await new LogBuilder(draft).finish({ revision: 0, compacted: 0 });
    } else throw new StoreError({ code: 'unavailable', message: `${directory} has no data` });
    if (copyTo !== undefined) return copyTo;
    await placeLog(draft, log, directory);
  }
  if (format === undefined && copyTo === undefined) await writeMarker(directory);
  return log;
}

/** Replaces LMDB's data file with one that makes older servers refuse the directory. */
export async function writeMarker(directory: string): Promise<void> {
  const path = join(directory, markerName);
  await writeFile(`${path}.draft`, Buffer.from(markerText));
  renameSync(`${path}.draft`, path);
  rmSync(join(directory, 'lock.mdb'), { force: true });
  await syncDirectory(directory);
}

/** The format in the marker; undefined if there is no marker. */
function formatIn(directory: string): number | undefined {
  const path = join(directory, markerName);
  if (!existsSync(path)) return undefined;
  const start = readFileSync(path).subarray(0, markerBytesMax).toString('latin1');
  const match = markerPattern.exec(start);
  return match === null ? undefined : Number(match[1]);
}
