/** Bytes of each piece of memory that small buffers share. */
const slabBytes = 64 * 1024;

/**
 * Memory for many small buffers at a fraction of what asking for each costs. A slab is kept as long
 * as any buffer in it, so they should live about equally long.
 */
export class Slab {
  #memory = Buffer.alloc(0);
  #used = 0;

  /** An uninitialised buffer of `size` bytes. */
  take(size: number): Buffer {
    this.#makeRoom(size);
    const start = this.#used;
    this.#used += size;
    return this.#memory.subarray(start, this.#used);
  }

  /** The UTF-8 of a text, which is a quarter of a slab at most. */
  write(text: string): Buffer {
    // No character takes more than three bytes.
    this.#makeRoom(text.length * 3);
    const start = this.#used;
    this.#used += this.#memory.write(text, start);
    return this.#memory.subarray(start, this.#used);
  }

  #makeRoom(size: number): void {
    if (this.#used + size <= this.#memory.length) return;
    this.#memory = Buffer.allocUnsafeSlow(slabBytes);
    this.#used = 0;
  }
}

/** Whether a buffer shares its memory with others of a slab. */
export function isInSlab(buffer: Buffer): boolean {
  return buffer.buffer.byteLength === slabBytes;
}
