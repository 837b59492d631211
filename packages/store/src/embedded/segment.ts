import { randomBytes } from 'node:crypto';
import {
  closeSync,
  constants,
  fdatasync,
  fstatSync,
  fsync,
  open,
  openSync,
  read,
  readdirSync,
  readSync,
  rename,
  rm,
  rmSync,
  statfs,
  write,
} from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { crc32 } from 'node:zlib';
import { type Clock, itemAt, type Logger, type Timer } from '@wheelhouse/machinery';
import { StoreError } from '../contract.ts';
import { toStoreError } from './disk.ts';
import { damaged } from './frame.ts';

/** The newest format of a data directory that this program supports. */
export const formatVersion = 2;

/** Returns the error for a data directory of a newer format. */
export function newerFormat(directory: string, format: number): StoreError {
  return new StoreError({
    code: 'unavailable',
    message:
      `data directory ${directory} has format ${format},` +
      ` but this version supports formats up to ${formatVersion}: use a newer version`,
  });
}

/**
 * One file of the log. Its full size is allocated before it is used, so that appending needs no
 * more space (TRUST-8).
 *
 *     header, 4096 bytes   magic 8 | checksum 4 | format 2 | sequence 6 | size 6 | previous end 6 |
 *                          first sequence 6 | seed 4; at 1024 and 2048 a mark
 *     frames               see frame.ts
 *
 * `previous end` is where the log leaves the previous file; anything after it was never
 * acknowledged. `first sequence` is the oldest file of the log. A mark repeats it and states up to
 * which offset this file is durable: `checksum 4 | end 6 | first sequence 6`. Marks are written
 * periodically in alternation. They distinguish damage to acknowledged writes from a write that a
 * crash cut off.
 */
export const segmentHeaderBytes = 4096;

const magic = Buffer.from('WHEELLOG');
/** Where the marks are in the header. */
export const markOffsets = [1024, 2048] as const;
const markBytes = 16;
const fieldsOffset = 12;
const fieldsBytes = 34;

/** Open flag that makes each write durable when it returns; 0 where the system has none. */
const syncFlag = process.platform === 'linux' ? constants.O_DSYNC : 0;
const readAsync = promisify(read);
const writeAsync = promisify(write);
const fdatasyncAsync = promisify(fdatasync);

interface SegmentHeader {
  readonly sequence: number;
  /** Size of the file in bytes. */
  readonly size: number;
  readonly previousEnd: number;
  readonly first: number;
  /** Seed of all checksums in the file, so that frames of its previous use never match. */
  readonly seed: number;
}

/** The durable end of a segment and the oldest segment of the log. */
interface Mark {
  readonly end: number;
  readonly first: number;
}

/** A random seed for the checksums of a file. */
export function newSeed(): number {
  return randomBytes(4).readUInt32BE(0);
}

/** An open file of the log and its marks. */
export class Segment {
  path: string;
  readonly descriptor: number;
  readonly header: SegmentHeader;
  /** Offset of the next frame; everything before it is durable. */
  end = segmentHeaderBytes;
  /** Bytes of live records. */
  liveBytes = 0;
  /** Failed writes since the last one that succeeded. */
  failures = 0;
  /** Index of the next mark; the other one is the newest valid mark. */
  #nextMark = 0;

  constructor(options: { path: string; descriptor: number; header: SegmentHeader }) {
    this.path = options.path;
    this.descriptor = options.descriptor;
    this.header = options.header;
  }

  get sequence(): number {
    return this.header.sequence;
  }

  get size(): number {
    return this.header.size;
  }

  hasRoomFor(bytes: number): boolean {
    return this.end + bytes <= this.size;
  }

  /** Appends a frame durably. If it rejects, the end of the segment is unchanged. */
  async append(frame: Buffer): Promise<void> {
    try {
      await writeDurably(this.descriptor, frame, this.end);
    } catch (error) {
      this.failures += 1;
      throw error;
    }
    this.failures = 0;
    this.end += frame.length;
  }

  /** Records the end of the log and its first file. */
  async mark(first: number): Promise<void> {
    const mark = encodeMark({ end: this.end, first }, this.header.seed);
    await writeDurably(this.descriptor, mark, itemAt(markOffsets, this.#nextMark));
    this.#nextMark = (this.#nextMark + 1) % markOffsets.length;
  }

  /** Returns the newest valid mark in the file's first bytes, which the next mark will not replace. */
  recoverMark(bytes: Buffer): Mark | undefined {
    let newest: Mark | undefined;
    for (const [at, offset] of markOffsets.entries()) {
      const mark = markAt(bytes, offset, this.header.seed);
      if (mark === undefined || (newest !== undefined && isOlder(mark, newest))) continue;
      newest = mark;
      this.#nextMark = (at + 1) % markOffsets.length;
    }
    return newest;
  }

  /** Throws the system's error, or StoreError `damaged` if the file is too short. */
  read(offset: number, size: number): Buffer {
    const target = Buffer.allocUnsafe(size);
    let filled = 0;
    while (filled < size) {
      const count = readSync(this.descriptor, target, filled, size - filled, offset + filled);
      if (count === 0) throw damaged(`${this.path} has been truncated`);
      filled += count;
    }
    return target;
  }

  /**
   * The bytes of all frames at their offsets, read while other work continues (TRUST-2). Rejects
   * with StoreError `damaged` or `disk-failed`.
   */
  async readFrames(): Promise<Buffer> {
    const { end, descriptor } = this;
    const target = Buffer.allocUnsafe(end);
    try {
      for (let filled = segmentHeaderBytes; filled < end; ) {
        const { bytesRead } = await readAsync(descriptor, target, filled, end - filled, filled);
        if (bytesRead === 0) throw damaged(`${this.path} has been truncated`);
        filled += bytesRead;
      }
    } catch (error) {
      throw toStoreError(error, 'read');
    }
    return target;
  }

  close(): void {
    closeSync(this.descriptor);
  }
}

/** Opens a file; where the system can, each write is durable when it returns. */
export function openSegmentFile(path: string): number {
  return openSync(path, constants.O_RDWR | syncFlag, 0o600);
}

/** Writes all bytes, despite short writes, and syncs them. */
export async function writeDurably(
  descriptor: number,
  bytes: Buffer,
  position: number,
): Promise<void> {
  let written = 0;
  while (written < bytes.length) {
    const left = bytes.length - written;
    const { bytesWritten } = await writeAsync(descriptor, bytes, written, left, position + written);
    if (bytesWritten === 0) throw new Error('a write to the disk wrote no bytes');
    written += bytesWritten;
  }
  if (syncFlag === 0) await fdatasyncAsync(descriptor);
}

/** The bytes of a header without marks. */
export function encodeHeader(header: SegmentHeader): Buffer {
  // This also erases marks of the file's previous use.
  const target = Buffer.alloc(segmentHeaderBytes);
  magic.copy(target);
  target.writeUInt16BE(formatVersion, fieldsOffset);
  target.writeUIntBE(header.sequence, fieldsOffset + 2, 6);
  target.writeUIntBE(header.size, fieldsOffset + 8, 6);
  target.writeUIntBE(header.previousEnd, fieldsOffset + 14, 6);
  target.writeUIntBE(header.first, fieldsOffset + 20, 6);
  target.writeUInt32BE(header.seed, fieldsOffset + 26);
  const fields = target.subarray(fieldsOffset, fieldsOffset + fieldsBytes);
  target.writeUInt32BE(crc32(fields), magic.length);
  return target;
}

/** Encodes a mark, which its checksum makes invalid in a file with another seed. */
export function encodeMark({ end, first }: Mark, seed: number): Buffer {
  const target = Buffer.alloc(markBytes);
  target.writeUIntBE(end, 4, 6);
  target.writeUIntBE(first, 10, 6);
  target.writeUInt32BE(crc32(target.subarray(4), seed), 0);
  return target;
}

/** Throws StoreError `damaged`. */
export function readHeader(path: string, descriptor: number): SegmentHeader {
  const source = Buffer.alloc(fieldsOffset + fieldsBytes);
  const count = readSync(descriptor, source, 0, source.length, 0);
  const fields = source.subarray(fieldsOffset);
  const isSound =
    count === source.length &&
    source.subarray(0, magic.length).equals(magic) &&
    crc32(fields) === source.readUInt32BE(magic.length);
  if (!isSound) throw damaged(`${path} does not begin with a valid header`);
  const header = {
    sequence: source.readUIntBE(fieldsOffset + 2, 6),
    size: source.readUIntBE(fieldsOffset + 8, 6),
    previousEnd: source.readUIntBE(fieldsOffset + 14, 6),
    first: source.readUIntBE(fieldsOffset + 20, 6),
    seed: source.readUInt32BE(fieldsOffset + 26),
  };
  const { size } = fstatSync(descriptor);
  if (size < header.size) throw damaged(`${path} has ${size} bytes instead of ${header.size}`);
  return header;
}

/** The mark at an offset, if it is valid. */
function markAt(bytes: Buffer, offset: number, seed: number): Mark | undefined {
  const mark = bytes.subarray(offset, offset + markBytes);
  if (crc32(mark.subarray(4), seed) !== mark.readUInt32BE(0)) return undefined;
  return { end: mark.readUIntBE(4, 6), first: mark.readUIntBE(10, 6) };
}

/** Whether a mark was written before another one, or states the same. */
function isOlder(mark: Mark, other: Mark): boolean {
  return mark.end <= other.end && mark.first <= other.first;
}

const fsyncAsync = promisify(fsync);
const openAsync = promisify(open);
const renameAsync = promisify(rename);
const rmAsync = promisify(rm);
const statfsAsync = promisify(statfs);

const spareName = /^spare\.(\d{1,15})$/;
const draftName = /^spare\.\d{1,15}\.draft$/;
/** One spare for removals and one for the cleaner, which needs space to reclaim space. */
const spareCount = 2;
const spareBytesMin = 2 ** 20;
const spareBytesMax = 4 * 2 ** 20;
const smallDiskBytesMin = 64 * 1024;
const pieceBytes = 256 * 1024;
const firstDelayMs = 1000;
const retryDelayMs = 5000;

/** A file with allocated blocks that can become a segment. */
export interface Spare {
  path: string;
  readonly descriptor: number;
  readonly size: number;
}

/**
 * The reserve (TRUST-8): files whose blocks are allocated by writing them, so that the log can
 * continue for a while on a full disk. Refilled in the background, from one second after the start.
 */
export class SparePool {
  readonly #directory: string;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #usedBytes: () => number;
  readonly #segmentBytes: number | undefined;
  readonly #spares: Spare[] = [];
  #number = 0;
  #timer: Timer | undefined;
  #filling: Promise<void> | undefined;
  #failure: StoreError | undefined;
  #isClosed = false;

  /** Adopts the spares of an earlier process. Throws the system's error if that fails. */
  constructor(options: {
    readonly directory: string;
    readonly clock: Clock;
    readonly logger: Logger;
    /** Bytes of the log, from which the size of spares is derived. */
    readonly usedBytes: () => number;
    /** Size of each spare; if undefined, derived from the bytes in use and the disk. */
    readonly segmentBytes: number | undefined;
  }) {
    this.#directory = options.directory;
    this.#clock = options.clock;
    this.#logger = options.logger;
    this.#usedBytes = options.usedBytes;
    this.#segmentBytes = options.segmentBytes;
    try {
      this.#adopt();
    } catch (error) {
      this.#closeSpares();
      throw error;
    }
    this.#schedule(firstDelayMs);
  }

  /** Why the last attempt to fill the reserve failed. */
  get failure(): StoreError | undefined {
    return this.#spares.length < spareCount ? this.#failure : undefined;
  }

  get reservedBytes(): number {
    return this.#spares.reduce((sum, { size }) => sum + size, 0);
  }

  /**
   * Takes a file of at least `bytes`. While the reserve cannot be refilled, the last spare is for
   * cleaning only. Rejects with StoreError `no-space` or `disk-failed`.
   */
  async take(bytes: number, purpose: 'cleaning' | 'other'): Promise<Spare> {
    const isReserved =
      purpose === 'other' && this.failure !== undefined && this.#spares.length < spareCount;
    const spareIndex = isReserved ? -1 : this.#spares.findIndex(({ size }) => size >= bytes);
    this.#schedule(0);
    if (spareIndex >= 0) return itemAt(this.#spares.splice(spareIndex, 1), 0);
    if (isReserved) throw this.failure;
    return this.#create(Math.max(bytes, await this.#spareBytes()));
  }

  /** Returns a spare that could not become a segment; it is used after all others. */
  putBack(spare: Spare): void {
    this.#spares.push(spare);
  }

  /** Makes a segment's file a spare, or removes it if there are enough. */
  async recycle(file: Spare): Promise<void> {
    const isNeeded = file.size <= spareBytesMax && this.#spares.length < spareCount;
    if (!isNeeded || this.#isClosed) {
      closeSync(file.descriptor);
      await rmAsync(file.path, { force: true });
      return;
    }
    const path = this.#nextPath();
    try {
      await renameAsync(file.path, path);
    } catch (error) {
      closeSync(file.descriptor);
      throw error;
    }
    this.#spares.push({ ...file, path });
  }

  /** Fills the reserve from the free space. Never rejects. */
  async refill(): Promise<void> {
    if (this.#filling !== undefined) {
      await this.#filling;
      // That attempt started earlier and may have failed before space became free.
      if (this.failure === undefined) return;
    }
    this.#filling ??= this.#fill().finally(() => {
      this.#filling = undefined;
    });
    return this.#filling;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#timer?.stop();
    await this.#filling;
    this.#closeSpares();
  }

  #closeSpares(): void {
    for (const { descriptor } of this.#spares.splice(0)) closeSync(descriptor);
  }

  /** Opens the spares in the directory. Throws the system's error if one cannot be opened. */
  #adopt(): void {
    for (const name of readdirSync(this.#directory)) {
      const path = join(this.#directory, name);
      const match = spareName.exec(name);
      if (draftName.test(name)) rmSync(path, { force: true });
      if (match === null) continue;
      const descriptor = openSegmentFile(path);
      this.#spares.push({ path, descriptor, size: fstatSync(descriptor).size });
      this.#number = Math.max(this.#number, Number(match[1]));
    }
  }

  #schedule(delayMs: number): void {
    if (this.#isClosed) return;
    this.#timer?.stop();
    this.#timer = this.#clock.after(delayMs, () => this.refill());
  }

  async #fill(): Promise<void> {
    try {
      while (!this.#isClosed && this.#spares.length < spareCount) {
        this.#spares.push(await this.#create(await this.#spareBytes()));
      }
      this.#failure = undefined;
    } catch (error) {
      const failure = toStoreError(error, 'write');
      if (this.#failure === undefined && !this.#isClosed) {
        this.#logger.warn('cannot fill the reserve of the store', { error: failure.message });
      }
      this.#failure = failure;
      this.#schedule(retryDelayMs);
    }
  }

  /** An eighth of the bytes in use, limited on small disks. */
  async #spareBytes(): Promise<number> {
    if (this.#segmentBytes !== undefined) return this.#segmentBytes;
    const { blocks, bsize } = await statfsAsync(this.#directory);
    const disk = Math.max(smallDiskBytesMin, (blocks * bsize) / 16);
    const bytes = Math.min(Math.max(this.#usedBytes() / 8, spareBytesMin), spareBytesMax, disk);
    return 2 ** Math.floor(Math.log2(bytes));
  }

  #nextPath(): string {
    this.#number += 1;
    return join(this.#directory, `spare.${this.#number}`);
  }

  async #create(size: number): Promise<Spare> {
    const path = this.#nextPath();
    const draft = `${path}.draft`;
    try {
      await writeZeros(draft, size);
      await renameAsync(draft, path);
      return { path, descriptor: openSegmentFile(path), size };
    } catch (error) {
      for (const left of [draft, path]) await rmAsync(left, { force: true }).catch(() => {});
      throw toStoreError(error, 'write');
    }
  }
}

async function writeZeros(path: string, size: number): Promise<void> {
  const descriptor = await openAsync(path, 'w', 0o600);
  try {
    const zeros = Buffer.alloc(Math.min(size, pieceBytes));
    for (let at = 0; at < size; ) {
      const { bytesWritten } = await writeAsync(
        descriptor,
        zeros,
        0,
        Math.min(zeros.length, size - at),
        at,
      );
      at += bytesWritten;
    }
    await fsyncAsync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
