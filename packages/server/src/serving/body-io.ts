import type { BodySink, BodySource } from '@wheelhouse/http2';
import {
  BodyAborted,
  type BodyPiece,
  type BodyReceiver,
  BodyTooLarge,
  ByteCollector,
  type Clock,
  isRun,
  pieceBytes,
  Slices,
} from '@wheelhouse/machinery';

/** Collects one request body, up to a limit. */
export class BodyReader implements BodyReceiver {
  readonly #source: BodySource;
  readonly #limitBytes: number;
  readonly #meter: { bodyGrew(bytes: number): void };
  readonly #bytes = new ByteCollector();
  #settled = false;
  #resolve: (body: Buffer) => void = () => {};
  #reject: (error: Error) => void = () => {};
  /** Monotonic milliseconds after which the client counts as too slow. */
  readonly deadline: number;

  /** @param options.meter receives the bytes that are kept, as they arrive */
  constructor(options: {
    source: BodySource;
    limitBytes: number;
    deadline: number;
    meter: { bodyGrew(bytes: number): void };
  }) {
    this.#source = options.source;
    this.#limitBytes = options.limitBytes;
    this.deadline = options.deadline;
    this.#meter = options.meter;
  }

  get settled(): boolean {
    return this.#settled;
  }

  /** Resolves with the body; rejects with BodyTooLarge or BodyAborted. Call once. */
  read(): Promise<Buffer> {
    const whole = new Promise<Buffer>((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.#source.deliverTo(this);
    return whole;
  }

  /** Aborts because the client has left or was too slow. No effect if the body is complete. */
  abort(why: string): void {
    // Creating an error captures the stack, which every successful request would pay for.
    if (!this.#settled) this.#fail(new BodyAborted(why));
  }

  piece(bytes: Buffer): void {
    if (this.#settled) return;
    if (this.#bytes.length + bytes.length > this.#limitBytes) {
      this.#fail(new BodyTooLarge(`body over ${this.#limitBytes} bytes`));
    } else {
      this.#bytes.add(bytes);
      this.#meter.bodyGrew(bytes.length);
    }
  }

  end(): void {
    if (this.#settled) return;
    this.#settled = true;
    this.#resolve(this.#bytes.take());
  }

  #fail(error: Error): void {
    if (this.#settled) return;
    this.#settled = true;
    this.#source.stop();
    this.#bytes.clear();
    this.#reject(error);
  }
}

/** Bytes written to a socket at once: several TLS records, small enough to notice a slow reader. */
const batchBytes = 256 * 1024;
/** Pieces below this size are joined: a write per 200-byte piece costs more than copying it. */
const smallPieceBytes = 8 * 1024;
const gatherBytes = 64 * 1024;

/** Bytes between clock readings; producing them may cost far more than writing them. */
const uncheckedBytes = 16 * 1024;

/**
 * Writes pieces with back-pressure, at most about one batch ahead of the reader: large pieces as
 * they are, small ones joined to blocks of up to 64 KiB if that helps. Ends the target after the
 * last piece. Pieces are produced as they are taken, in slices (TRUST-2); if the reader leaves, the
 * source is closed with `return()` (TRUST-3).
 */
export class PacedWriter {
  readonly #target: BodySink;
  readonly #pieces: Iterator<BodyPiece>;
  readonly #slices: Slices;
  readonly #onProgress: () => void;
  readonly #onFailure: (error: unknown) => void;
  readonly #onWritten: (bytes: number) => void;
  #bytes = 0;
  #state: 'ready' | 'paused' | 'over' = 'ready';
  /** A piece, or the rest of a large buffer, that has been taken but not written. */
  #rest: BodyPiece | undefined;

  /**
   * @param options.onFailure called if a piece cannot be produced; the answer must be aborted
   * @param options.onWritten called with the total bytes after the last piece has been written
   */
  constructor(options: {
    target: BodySink;
    pieces: Iterable<BodyPiece>;
    clock: Pick<Clock, 'monotonic'>;
    onProgress: () => void;
    onFailure: (error: unknown) => void;
    onWritten?: (bytes: number) => void;
  }) {
    this.#target = options.target;
    this.#pieces = options.pieces[Symbol.iterator]();
    this.#slices = new Slices(options.clock);
    this.#onProgress = options.onProgress;
    this.#onFailure = options.onFailure;
    this.#onWritten = options.onWritten ?? (() => {});
    this.#target.onDrain(() => this.run());
  }

  /** Whether the last piece has been written, or no more will be. */
  get over(): boolean {
    return this.#state === 'over';
  }

  /** Writes until the reader is behind, the slice ends, or no pieces are left. */
  run(): void {
    if (this.#state !== 'ready') return;
    this.#onProgress();
    try {
      this.#write();
    } catch (error) {
      this.stop();
      this.#onFailure(error);
    }
  }

  /** Takes no more pieces, because the reader has left. */
  stop(): void {
    if (this.#state === 'over') return;
    this.#state = 'over';
    this.#rest = undefined;
    this.#pieces.return?.();
  }

  #write(): void {
    while (!this.#target.closed) {
      if (this.#slices.over) {
        this.#pause();
        return;
      }
      const { blocks, finished } = this.#nextBatch();
      const more = this.#target.writeAll(blocks);
      if (finished) {
        this.#state = 'over';
        this.#target.end();
        this.#onWritten(this.#bytes);
        return;
      }
      if (!more) return;
    }
    this.stop();
  }

  #pause(): void {
    this.#state = 'paused';
    this.#slices.afterPause(() => {
      if (this.#state !== 'paused') return;
      this.#state = 'ready';
      this.run();
    });
  }

  #nextBatch(): { blocks: BodyPiece[]; finished: boolean } {
    const joiner = this.#target.copies ? undefined : new Joiner();
    const blocks: BodyPiece[] = joiner?.blocks ?? [];
    let room = batchBytes;
    while (room > 0) {
      if (batchBytes - room > uncheckedBytes && this.#slices.over) break;
      const piece = this.#nextPiece(room);
      if (piece === undefined) {
        joiner?.flush();
        return { blocks, finished: true };
      }
      // The slice has ended before the next piece was ready.
      if (piece.length === 0) break;
      if (piece.length > room && room < batchBytes) {
        this.#rest = piece;
        break;
      }
      room -= piece.length;
      if (joiner === undefined) blocks.push(piece);
      else joiner.add(pieceBytes(piece));
    }
    joiner?.flush();
    return { blocks, finished: false };
  }

  /** The next piece; at most `room` bytes of a large buffer. */
  #nextPiece(room: number): BodyPiece | undefined {
    const piece = this.#rest ?? this.#take();
    this.#rest = undefined;
    if (piece === undefined || piece.length <= room || piece.length < smallPieceBytes) return piece;
    if (isRun(piece)) return piece;
    this.#rest = piece.subarray(room);
    return piece.subarray(0, room);
  }

  /** The next piece; empty if the slice ends before it is ready. */
  #take(): BodyPiece | undefined {
    for (;;) {
      const next = this.#pieces.next();
      if (next.done === true) return undefined;
      this.#bytes += next.value.length;
      if (next.value.length > 0 || this.#slices.over) return next.value;
    }
  }
}

/** Joins small pieces, for a sink that writes every piece separately. */
class Joiner {
  readonly blocks: Buffer[] = [];
  #small: Buffer[] = [];
  #smallBytes = 0;

  add(piece: Buffer): void {
    const isSmall = piece.length < smallPieceBytes;
    if (!isSmall || this.#smallBytes + piece.length > gatherBytes) this.flush();
    if (!isSmall) {
      this.blocks.push(piece);
      return;
    }
    this.#small.push(piece);
    this.#smallBytes += piece.length;
  }

  flush(): void {
    const [first] = this.#small;
    if (first === undefined) return;
    const isOne = this.#small.length === 1;
    this.blocks.push(isOne ? first : Buffer.concat(this.#small, this.#smallBytes));
    this.#small = [];
    this.#smallBytes = 0;
  }
}

/** Bytes above which a body is written by a PacedWriter instead of in one write. */
export const pacedAboveBytes = batchBytes;
