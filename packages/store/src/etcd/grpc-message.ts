/** A message is preceded by a byte, 0 unless it is compressed, and its length in four. */
const headBytes = 5;

/** A message as it is sent. */
export function messageFrame(message: Buffer): Buffer {
  const frame = Buffer.allocUnsafe(headBytes + message.length);
  frame[0] = 0;
  frame.writeUInt32BE(message.length, 1);
  message.copy(frame, headBytes);
  return frame;
}

/** Puts messages together that come in pieces, however they are cut. */
export class MessageReader {
  #pieces: Buffer[] = [];
  #available = 0;
  /** What must be there before it is worth looking again. */
  #needed = headBytes;

  /** The messages that have become whole. Throws for one that is compressed. */
  push(piece: Buffer): Buffer[] {
    this.#pieces.push(piece);
    this.#available += piece.length;
    if (this.#available < this.#needed) return [];
    const found: Buffer[] = [];
    let rest = this.#pieces.length === 1 ? piece : Buffer.concat(this.#pieces);
    this.#needed = headBytes;
    while (rest.length >= headBytes) {
      if (rest[0] !== 0) throw new Error('a compressed message');
      const size = headBytes + rest.readUInt32BE(1);
      if (rest.length < size) {
        this.#needed = size;
        break;
      }
      found.push(rest.subarray(headBytes, size));
      rest = rest.subarray(size);
    }
    this.#pieces = rest.length === 0 ? [] : [rest];
    this.#available = rest.length;
    return found;
  }
}
