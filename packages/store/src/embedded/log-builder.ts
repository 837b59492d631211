import { closeSync, fsync, open, renameSync, rmSync, write } from 'node:fs';
import { promisify } from 'node:util';
import { makeDirectories } from '@wheelhouse/machinery';
import type { Revision } from '../contract.ts';
import { encodeFrame, frameSize, type NewRecord } from './frame.ts';
import { translate } from './host-errors.ts';
import { segmentPath } from './recovery.ts';
import { encodeHeader, encodeMark, markOffsets, newSeed, segmentHeaderBytes } from './segment.ts';

const fsyncAsync = promisify(fsync);
const openAsync = promisify(open);
const writeAsync = promisify(write);

const fullBytes = 4 * 2 ** 20;
const emptyBytes = 256 * 1024;

/** Makes a log from records, a segment at a time. It is a log only after `finish`. */
export class LogBuilder {
  readonly #directory: string;
  #sequence = 1;
  #previousEnd = 0;
  #image: Buffer | undefined;
  #seed = 0;
  #end = 0;

  /** @param directory is made, empty */
  constructor(directory: string) {
    this.#directory = directory;
    rmSync(directory, { recursive: true, force: true });
    makeDirectories(directory, 0o700);
  }

  /** Adds records, about a mebibyte at a time; those of one key in the order of their revisions. */
  async add(records: readonly NewRecord[]): Promise<void> {
    await this.#append(records, { revision: 0, compacted: 0 });
  }

  /** Says where the log stands, and has all of it on the disk. */
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
    throw translate(error, 'write');
  } finally {
    closeSync(descriptor);
  }
}

/** Makes the names in a directory survive a power loss. */
export async function syncDirectory(directory: string): Promise<void> {
  if (process.platform === 'win32') return;
  const descriptor = await openAsync(directory, 'r');
  try {
    await fsyncAsync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Puts a finished log in its place, durably. */
export async function placeLog(from: string, to: string, parent: string): Promise<void> {
  renameSync(from, to);
  await syncDirectory(parent);
}
