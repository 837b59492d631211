/** Pieces of at least this size are retained; smaller ones are copied into blocks. */
const keptBytesMin = 2048;
const blockBytes = 16 * 1024;

/**
 * Collects the pieces of a body. Copies small pieces, because each might retain a large buffer and
 * because a client may send a million of them.
 */
export class ByteCollector {
  #pieces: Buffer[] = [];
  #block: Buffer | undefined;
  #used = 0;
  #length = 0;

  get length(): number {
    return this.#length;
  }

  add(piece: Buffer): void {
    this.#length += piece.length;
    if (piece.length >= keptBytesMin) {
      this.#closeBlock();
      this.#pieces.push(piece);
      return;
    }
    const block = this.#block;
    if (block !== undefined && block.length - this.#used >= piece.length) {
      this.#used += piece.copy(block, this.#used);
      return;
    }
    this.#closeBlock();
    // The first piece is often the whole body.
    const isFirst = this.#pieces.length === 0;
    this.#block = Buffer.allocUnsafe(isFirst ? piece.length : blockBytes);
    this.#used = piece.copy(this.#block);
  }

  /** Returns all bytes in one buffer and empties the collector. */
  take(): Buffer {
    this.#closeBlock();
    const [first] = this.#pieces;
    const isSingle = first !== undefined && this.#pieces.length === 1;
    const whole = isSingle ? first : Buffer.concat(this.#pieces, this.#length);
    this.clear();
    return whole;
  }

  clear(): void {
    this.#pieces = [];
    this.#block = undefined;
    this.#used = 0;
    this.#length = 0;
  }

  #closeBlock(): void {
    if (this.#block === undefined) return;
    this.#pieces.push(this.#block.subarray(0, this.#used));
    this.#block = undefined;
    this.#used = 0;
  }
}

/** A growing buffer of bytes that are appended individually and taken all at once. */
export class ByteQueue {
  bytes: Buffer = none;
  length = 0;

  /** Makes room for `more` bytes after `length`. The caller writes them and advances `length`. */
  reserve(more: number): void {
    const needed = this.length + more;
    if (needed <= this.bytes.length) return;
    const grown = Buffer.allocUnsafeSlow(Math.max(firstBytes, 2 * this.bytes.length, needed));
    this.bytes.copy(grown, 0, 0, this.length);
    this.bytes = grown;
  }

  /** Moves all bytes to `target` at `at`; returns the position after them. */
  moveTo(target: Buffer, at: number): number {
    const { bytes, length } = this;
    if (length > loopBytesMax) bytes.copy(target, at, 0, length);
    else for (let index = 0; index < length; index += 1) target[at + index] = bytes[index] ?? 0;
    this.length = 0;
    if (bytes.length > keptBytesMax) this.bytes = none;
    return at + length;
  }
}

const none = Buffer.alloc(0);
const firstBytes = 256;
const keptBytesMax = 4096;
/** Up to this size a loop is faster than a native copy. */
const loopBytesMax = 256;
