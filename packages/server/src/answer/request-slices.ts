import { type Clock, type Exchange, Slices, timedOut } from '@wheelhouse/machinery';

/** Slices of work on behalf of a request, which is given up when nobody waits for its answer. */
export class RequestSlices {
  readonly #slices: Slices;
  readonly #exchange: Pick<Exchange, 'aborted' | 'resumed'>;

  constructor(call: {
    readonly exchange: Pick<Exchange, 'aborted' | 'resumed'>;
    readonly context: { readonly clock: Clock };
  }) {
    const { exchange, context } = call;
    this.#slices = new Slices(context.clock);
    this.#exchange = exchange;
  }

  /** As `Slices.begin`. */
  begin(): this {
    this.#slices.begin();
    return this;
  }

  get over(): boolean {
    return this.#slices.over;
  }

  /** As `Slices.pause`. Rejects with the 504 that nobody sees when nobody waits any more. */
  async pause(): Promise<void> {
    await this.#slices.pause();
    this.#exchange.resumed?.();
    if (this.#exchange.aborted) throw timedOut('request');
  }
}
