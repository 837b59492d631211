import { randomBytes } from 'node:crypto';
import { closeSync, constants, fdatasync, fstatSync, openSync, readSync, write } from 'node:fs';
import { promisify } from 'node:util';
import { crc32 } from 'node:zlib';
import { itemAt } from '@wheelhouse/machinery';
import { formatVersion } from './formats.ts';
import { damaged } from './record.ts';

/**
 * One file of the log. It has its full size, really allocated, before it is used, so that appending
 * to it needs no space (TRUST-8).
 *
 *     header, 4096 bytes   magic 8 | checksum 4 | format 2 | sequence 6 | size 6 | previous end 6 |
 *                          first sequence 6 | seed 4; at 1024 and 2048 a mark
 *     frames               see frame.ts
 *
 * `previous end` is where the log leaves the file before this one; what follows there was never
 * acknowledged. `first sequence` is the oldest file of the log. A mark repeats it and says up to
 * where this file is known to be durable: `checksum 4 | end 6 | first sequence 6`. Marks are written
 * now and then, in turn, and tell damage of what was acknowledged from a write that a crash cut off.
 */
export const segmentHeaderBytes = 4096;

const magic = Buffer.from('WHEELLOG');
export const markOffsets = [1024, 2048] as const;
const markBytes = 16;
const fieldsOffset = 12;
const fieldsBytes = 34;

/** Each write is on the disk when it is done, where the host can do that in one call. */
const syncFlag = process.platform === 'linux' ? constants.O_DSYNC : 0;
const writeAsync = promisify(write);
const fdatasyncAsync = promisify(fdatasync);

export interface SegmentHeader {
  readonly sequence: number;
  /** Bytes of the file. */
  readonly size: number;
  readonly previousEnd: number;
  readonly first: number;
  /** Begins every checksum in the file, so that frames of a file's earlier life never match. */
  readonly seed: number;
}

export interface Mark {
  readonly end: number;
  readonly first: number;
}

export function newSeed(): number {
  return randomBytes(4).readUInt32BE(0);
}

export class Segment {
  path: string;
  readonly descriptor: number;
  readonly header: SegmentHeader;
  /** Where the next frame goes; everything before it is durable. */
  end = segmentHeaderBytes;
  /** Bytes of records that are still needed. */
  liveBytes = 0;
  /** Failed writes since the last one that succeeded. */
  failures = 0;
  #marks = 0;

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

  /** Makes a frame durable at the end. When it rejects, the segment ends where it did. */
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

  /** Writes down how far the log goes and which file it begins with. */
  async mark(first: number): Promise<void> {
    const mark = encodeMark({ end: this.end, first }, this.header.seed);
    const offset = itemAt(markOffsets, this.#marks % markOffsets.length);
    this.#marks += 1;
    await writeDurably(this.descriptor, mark, offset);
  }

  /** Throws the host's error, or StoreError `damaged` when the file ends too early. */
  read(offset: number, size: number): Buffer {
    const target = Buffer.allocUnsafe(size);
    let filled = 0;
    while (filled < size) {
      const count = readSync(this.descriptor, target, filled, size - filled, offset + filled);
      if (count === 0) throw damaged(`${this.path} has been cut short`);
      filled += count;
    }
    return target;
  }

  close(): void {
    closeSync(this.descriptor);
  }
}

export function openSegmentFile(path: string, flags = 0): number {
  return openSync(path, constants.O_RDWR | syncFlag | flags, 0o600);
}

/** Writes all of it, however little the host takes at once, and has it on the disk. */
export async function writeDurably(
  descriptor: number,
  bytes: Buffer,
  position: number,
): Promise<void> {
  let written = 0;
  while (written < bytes.length) {
    const left = bytes.length - written;
    const { bytesWritten } = await writeAsync(descriptor, bytes, written, left, position + written);
    if (bytesWritten === 0) throw new Error('the host wrote nothing');
    written += bytesWritten;
  }
  if (syncFlag === 0) await fdatasyncAsync(descriptor);
}

export function encodeHeader(header: SegmentHeader): Buffer {
  // The marks of the file's earlier life go with it.
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
  if (size < header.size) throw damaged(`${path} has ${size} bytes of ${header.size}`);
  return header;
}

/** The furthest sound mark among the bytes of a segment, if there is any. */
export function markOf(bytes: Buffer, seed: number): Mark | undefined {
  let best: Mark | undefined;
  for (const offset of markOffsets) {
    const mark = bytes.subarray(offset, offset + markBytes);
    if (crc32(mark.subarray(4), seed) !== mark.readUInt32BE(0)) continue;
    const end = mark.readUIntBE(4, 6);
    const first = mark.readUIntBE(10, 6);
    best = {
      end: Math.max(end, best?.end ?? 0),
      first: Math.max(first, best?.first ?? 0),
    };
  }
  return best;
}
