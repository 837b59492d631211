/** Size of a slab in bytes. */
const slabBytes = 64 * 1024;

/**
 * Allocates small buffers from shared slabs at a fraction of the usual cost. A slab lives as long
 * as any of its buffers, so they should have similar lifetimes.
 */
export class Slab {
  #memory = Buffer.alloc(0);
  #used = 0;

  /** Returns an uninitialized buffer of `size` bytes. */
  take(size: number): Buffer {
    this.#makeRoom(size);
    const start = this.#used;
    this.#used += size;
    return this.#memory.subarray(start, this.#used);
  }

  /** Returns the UTF-8 form of a text of at most a quarter of a slab. */
  write(text: string): Buffer {
    // A UTF-16 code unit takes at most three bytes.
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

/** Whether a buffer is part of a slab. */
export function isInSlab(buffer: Buffer): boolean {
  return buffer.buffer.byteLength === slabBytes;
}
