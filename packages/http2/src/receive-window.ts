/**
 * A window that we grant: what the client may send yet, and what has been used up but not given
 * back, since windows are given back in portions of half of them.
 */
export class ReceiveWindow {
  readonly #portion: number;
  #left: number;
  #used = 0;

  constructor(bytes: number) {
    this.#left = bytes;
    this.#portion = bytes / 2;
  }

  /** @returns false when the client had no right to send so much */
  take(bytes: number): boolean {
    this.#left -= bytes;
    return this.#left >= 0;
  }

  /** @returns by how much to update the window; 0 for not now */
  giveBack(bytes: number): number {
    this.#used += bytes;
    const by = this.#used;
    if (by < this.#portion) return 0;
    this.#used = 0;
    this.#left += by;
    return by;
  }
}
