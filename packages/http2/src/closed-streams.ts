/** How a stream came to its end, so far as it matters for frames that come after it. */
export const ending = {
  /** Not known any more, or never opened. */
  unknown: 0,
  /** Both sides had finished. */
  finished: 1,
  /** The client reset it. */
  resetByClient: 2,
  /** We did; what the client sent before it heard of that is no fault. */
  resetByUs: 3,
} as const;

const remembered = 128;

/** The streams of a connection that ended last. */
export class ClosedStreams {
  readonly #ids = new Int32Array(remembered);
  readonly #endings = new Uint8Array(remembered);
  #next = 0;

  add(id: number, how: number): void {
    this.#ids[this.#next] = id;
    this.#endings[this.#next] = how;
    this.#next = (this.#next + 1) % remembered;
  }

  /** One of `ending`. */
  endingOf(id: number): number {
    const index = this.#ids.lastIndexOf(id);
    return index === -1 ? ending.unknown : (this.#endings[index] as number);
  }
}
