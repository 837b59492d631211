import {
  type Clock,
  type Exchange,
  type Pace,
  pacedBytesMin,
  Slices,
  timedOut,
} from '@wheelhouse/machinery';

/** The part of a call that its slices depend on. */
interface SlicedCall {
  readonly exchange: Pick<Exchange, 'aborted' | 'resumed'>;
  readonly context: { readonly clock: Clock };
}

/** The pace of work on a body of so many bytes; undefined for a small one, which takes one step. */
export function bodyPace(call: SlicedCall, bytes: number): Pace | undefined {
  return bytes < pacedBytesMin ? undefined : new RequestSlices(call).begin();
}

/** Slices of work on behalf of a request, which is given up when nobody waits for its answer. */
export class RequestSlices {
  readonly #slices: Slices;
  readonly #exchange: Pick<Exchange, 'aborted' | 'resumed'>;

  constructor(call: SlicedCall) {
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
