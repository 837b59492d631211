/** Pieces from here on are kept as they are; smaller ones are copied together. */
const keptBytesMin = 2048;
const blockBytes = 16 * 1024;

/**
 * Collects the pieces of a body. A small piece is copied, since it may be a few bytes of a large
 * buffer that it would keep alive, and since a million of them must not be a million objects.
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
      this.#seal();
      this.#pieces.push(piece);
      return;
    }
    const block = this.#block;
    if (block !== undefined && block.length - this.#used >= piece.length) {
      this.#used += piece.copy(block, this.#used);
      return;
    }
    this.#seal();
    // The first piece is often the whole body.
    const isFirst = this.#pieces.length === 0;
    this.#block = Buffer.allocUnsafe(isFirst ? piece.length : blockBytes);
    this.#used = piece.copy(this.#block);
  }

  /** All bytes in one buffer; the collector is empty afterwards. */
  take(): Buffer {
    this.#seal();
    const [first] = this.#pieces;
    const isOne = first !== undefined && this.#pieces.length === 1;
    const whole = isOne ? first : Buffer.concat(this.#pieces, this.#length);
    this.clear();
    return whole;
  }

  clear(): void {
    this.#pieces = [];
    this.#block = undefined;
    this.#used = 0;
    this.#length = 0;
  }

  #seal(): void {
    if (this.#block === undefined) return;
    this.#pieces.push(this.#block.subarray(0, this.#used));
    this.#block = undefined;
    this.#used = 0;
  }
}

/** Bytes written one after another into a buffer that grows, and taken all at once. */
export class ByteQueue {
  bytes: Buffer = none;
  length = 0;

  /** Makes room for `more` bytes after `length`; the caller writes them and moves `length`. */
  reserve(more: number): void {
    const wanted = this.length + more;
    if (wanted <= this.bytes.length) return;
    const grown = Buffer.allocUnsafeSlow(Math.max(firstBytes, 2 * this.bytes.length, wanted));
    this.bytes.copy(grown, 0, 0, this.length);
    this.bytes = grown;
  }

  /** Moves all bytes to `target` at `at`; returns where they end. */
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
/** Up to here a loop costs less than a call of the host. */
const loopBytesMax = 256;
