const inFlightMax = 2;

/**
 * Lets reads that come close together share an answer. Each gets one that was asked for after it
 * came, which is what makes it as new as the store.
 */
export class SharedReads<T> {
  readonly #ask: () => Promise<T>;
  readonly #waiting: (() => void)[] = [];
  #inFlight = 0;
  #next: Promise<T> | undefined;

  constructor(ask: () => Promise<T>) {
    this.#ask = ask;
  }

  read(): Promise<T> {
    this.#next ??= this.#begin();
    return this.#next;
  }

  async #begin(): Promise<T> {
    // Those who come in this turn of the event loop join.
    await undefined;
    if (this.#inFlight >= inFlightMax) {
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
    this.#next = undefined;
    this.#inFlight += 1;
    try {
      return await this.#ask();
    } finally {
      this.#inFlight -= 1;
      this.#waiting.shift()?.();
    }
  }
}
