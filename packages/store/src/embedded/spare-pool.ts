import {
  closeSync,
  fstatSync,
  fsync,
  open,
  readdirSync,
  rename,
  rm,
  rmSync,
  statfs,
  write,
} from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type Clock, itemAt, type Logger, type Timer } from '@wheelhouse/machinery';
import type { StoreError } from '../contract.ts';
import { translate } from './host-errors.ts';
import { openSegmentFile } from './segment.ts';

const fsyncAsync = promisify(fsync);
const openAsync = promisify(open);
const renameAsync = promisify(rename);
const rmAsync = promisify(rm);
const statfsAsync = promisify(statfs);
const writeAsync = promisify(write);

const spareName = /^spare\.(\d{1,15})$/;
const draftName = /^spare\.\d{1,15}\.draft$/;
/** One for removals to go on in, one for cleaning to make space with. */
const sparesWanted = 2;
const spareBytesMin = 2 ** 20;
const spareBytesMax = 4 * 2 ** 20;
const smallDiskBytesMin = 64 * 1024;
const pieceBytes = 256 * 1024;
const firstDelayMs = 1000;
const retryDelayMs = 5000;

/** A file with allocated blocks, to become a segment. */
export interface Spare {
  path: string;
  readonly descriptor: number;
  readonly size: number;
}

/**
 * The reserve (TRUST-8): files whose blocks are allocated by really writing them, so that the log
 * goes on for a while when the disk is full. Refilled in the background, a second after the start.
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

  constructor(options: {
    readonly directory: string;
    readonly clock: Clock;
    readonly logger: Logger;
    /** What the log takes up, by which the size of spares goes. */
    readonly usedBytes: () => number;
    /** Of each spare; goes by what is in use, and by the disk, when undefined. */
    readonly segmentBytes: number | undefined;
  }) {
    this.#directory = options.directory;
    this.#clock = options.clock;
    this.#logger = options.logger;
    this.#usedBytes = options.usedBytes;
    this.#segmentBytes = options.segmentBytes;
    this.#adopt();
    this.#schedule(firstDelayMs);
  }

  /** Why the reserve could not be filled when it was last tried. */
  get failure(): StoreError | undefined {
    return this.#spares.length < sparesWanted ? this.#failure : undefined;
  }

  get reservedBytes(): number {
    return this.#spares.reduce((sum, { size }) => sum + size, 0);
  }

  /**
   * A file of at least `bytes`. The last spare is for cleaning alone while the reserve cannot be
   * refilled. Rejects with StoreError `no-space` or `disk-failed`.
   */
  async take(bytes: number, purpose: 'cleaning' | 'other'): Promise<Spare> {
    const isKept =
      purpose === 'other' && this.failure !== undefined && this.#spares.length < sparesWanted;
    const found = isKept ? -1 : this.#spares.findIndex(({ size }) => size >= bytes);
    this.#schedule(0);
    if (found >= 0) return itemAt(this.#spares.splice(found, 1), 0);
    if (isKept) throw this.failure;
    return this.#create(Math.max(bytes, await this.#spareBytes()));
  }

  /** Gives back a spare that could not be made a segment; others are tried before it. */
  putBack(spare: Spare): void {
    this.#spares.push(spare);
  }

  /** Makes a segment's file a spare, or removes it when there are enough. */
  async recycle(file: Spare): Promise<void> {
    const isWanted = file.size <= spareBytesMax && this.#spares.length < sparesWanted;
    if (!isWanted || this.#isClosed) {
      closeSync(file.descriptor);
      await rmAsync(file.path, { force: true });
      return;
    }
    const path = this.#nextPath();
    await renameAsync(file.path, path);
    this.#spares.push({ ...file, path });
  }

  /** Fills the reserve with the space that is free now, if it is not full. Never rejects. */
  async refill(): Promise<void> {
    if (this.#filling !== undefined) {
      await this.#filling;
      // That attempt began earlier, and may have failed for want of space that is free by now.
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
    for (const { descriptor } of this.#spares.splice(0)) closeSync(descriptor);
  }

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
      while (!this.#isClosed && this.#spares.length < sparesWanted) {
        this.#spares.push(await this.#create(await this.#spareBytes()));
      }
      this.#failure = undefined;
    } catch (error) {
      const failure = translate(error, 'write');
      if (this.#failure === undefined && !this.#isClosed) {
        this.#logger.warn('The reserve of the store cannot be filled', { error: failure.message });
      }
      this.#failure = failure;
      this.#schedule(retryDelayMs);
    }
  }

  /** An eighth of what is in use, and never much of a small disk. */
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
      await rmAsync(draft, { force: true }).catch(() => {});
      throw translate(error, 'write');
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
