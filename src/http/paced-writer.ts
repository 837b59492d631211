import type { BodySink } from './body-seams.ts';

/** Bytes handed to a socket at once: a few TLS records, small enough to notice a slow reader. */
const batchBytes = 256 * 1024;
/** Pieces below this are gathered: a system call entry per 200-byte piece costs more than its copy. */
const smallPieceBytes = 8 * 1024;
const gatherBytes = 64 * 1024;

/**
 * Writes pieces with back-pressure: large ones as they are, runs of small ones joined to blocks of up
 * to 64 KiB, never more than one batch ahead of the reader. Ends the target after the last piece.
 */
export class PacedWriter {
  readonly #target: BodySink;
  readonly #pieces: Iterator<Buffer>;
  readonly #onProgress: () => void;
  readonly #onFailure: (error: unknown) => void;
  /** The part of a large piece that is still to be written. */
  #rest: Buffer | undefined;

  /** @param options.onFailure is told when a piece cannot be made; the answer must be cut off */
  constructor(options: {
    target: BodySink;
    pieces: Iterable<Buffer>;
    onProgress: () => void;
    onFailure: (error: unknown) => void;
  }) {
    this.#target = options.target;
    this.#pieces = options.pieces[Symbol.iterator]();
    this.#onProgress = options.onProgress;
    this.#onFailure = options.onFailure;
    this.#target.onDrain(() => this.run());
  }

  /** Writes until the reader is behind or the pieces are used up. */
  run(): void {
    this.#onProgress();
    try {
      this.#write();
    } catch (error) {
      this.#onFailure(error);
    }
  }

  #write(): void {
    while (!this.#target.closed) {
      const { blocks, finished } = this.#nextBatch();
      const more = this.#target.writeAll(blocks);
      if (finished) this.#target.end();
      if (!more) return;
    }
  }

  #nextBatch(): { blocks: Buffer[]; finished: boolean } {
    const blocks: Buffer[] = [];
    let small: Buffer[] = [];
    let smallBytes = 0;
    let room = batchBytes;
    const flush = (): void => {
      if (small.length === 1) blocks.push(small[0] as Buffer);
      else if (small.length > 1) blocks.push(Buffer.concat(small, smallBytes));
      small = [];
      smallBytes = 0;
    };
    while (room > 0) {
      const piece = this.#nextPiece(room);
      if (piece === undefined) {
        flush();
        return { blocks, finished: true };
      }
      room -= piece.length;
      if (piece.length >= smallPieceBytes) {
        flush();
        blocks.push(piece);
        continue;
      }
      if (smallBytes + piece.length > gatherBytes) flush();
      small.push(piece);
      smallBytes += piece.length;
    }
    flush();
    return { blocks, finished: false };
  }

  /** The next piece, at most `room` bytes of it when it is large. */
  #nextPiece(room: number): Buffer | undefined {
    const piece = this.#rest ?? this.#take();
    this.#rest = undefined;
    if (piece === undefined || piece.length <= room || piece.length < smallPieceBytes) return piece;
    this.#rest = piece.subarray(room);
    return piece.subarray(0, room);
  }

  #take(): Buffer | undefined {
    for (;;) {
      const next = this.#pieces.next();
      if (next.done === true) return undefined;
      if (next.value.length > 0) return next.value;
    }
  }
}

/** Above this a body is paced; below it goes out in one write. */
export const pacedAboveBytes = batchBytes;
