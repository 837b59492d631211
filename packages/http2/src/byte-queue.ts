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
