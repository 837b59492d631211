import type { Http2Stream } from './stream.ts';

const bucketsMin = 8;

/**
 * The open streams of a connection by their ids. A Map would be the plain choice, but one that holds
 * a stream for the time of one exchange shrinks and grows its table with each of them, which costs
 * more than the rest of the bookkeeping. Buckets are chained through the streams themselves.
 */
export class StreamTable {
  #buckets: (Http2Stream | undefined)[] = new Array<undefined>(bucketsMin).fill(undefined);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(id: number): Http2Stream | undefined {
    let stream = this.#buckets[this.#bucketOf(id)];
    while (stream !== undefined && stream.id !== id) stream = stream.nextInTable;
    return stream;
  }

  /** Adds a stream whose id is not there yet. */
  add(stream: Http2Stream): void {
    if (this.#size >= 2 * this.#buckets.length) this.#grow();
    this.#put(stream);
    this.#size += 1;
  }

  /** Harmless when the stream is not there. */
  delete(stream: Http2Stream): void {
    const bucket = this.#bucketOf(stream.id);
    let before: Http2Stream | undefined;
    let at = this.#buckets[bucket];
    while (at !== undefined && at !== stream) {
      before = at;
      at = at.nextInTable;
    }
    if (at === undefined) return;
    if (before === undefined) this.#buckets[bucket] = stream.nextInTable;
    else before.nextInTable = stream.nextInTable;
    stream.nextInTable = undefined;
    this.#size -= 1;
  }

  /** All streams, in no order; a list of its own. */
  all(): Http2Stream[] {
    const streams: Http2Stream[] = [];
    for (const first of this.#buckets) {
      for (let at = first; at !== undefined; at = at.nextInTable) streams.push(at);
    }
    return streams;
  }

  #put(stream: Http2Stream): void {
    const bucket = this.#bucketOf(stream.id);
    stream.nextInTable = this.#buckets[bucket];
    this.#buckets[bucket] = stream;
  }

  #grow(): void {
    const streams = this.all();
    this.#buckets = new Array<undefined>(4 * this.#buckets.length).fill(undefined);
    for (const stream of streams) this.#put(stream);
  }

  /** A client's ids are odd and count up, so neighbours fall into different buckets. */
  #bucketOf(id: number): number {
    return (id >>> 1) & (this.#buckets.length - 1);
  }
}

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
    return this.#endings[index] ?? ending.unknown;
  }
}
