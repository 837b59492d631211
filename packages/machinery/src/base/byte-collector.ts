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
    const length = this.#length;
    const pieces = this.takePieces();
    const [first] = pieces;
    const isSingle = first !== undefined && pieces.length === 1;
    return isSingle ? first : Buffer.concat(pieces, length);
  }

  /** Returns all bytes in order, without joining them, and empties the collector. */
  takePieces(): readonly Buffer[] {
    this.#closeBlock();
    const pieces = this.#pieces;
    this.clear();
    return pieces;
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
