import { type BodySource, ByteCollector } from '@wheelhouse/http2';
import { BodyAborted, type BodyReceiver, BodyTooLarge } from '@wheelhouse/machinery';

/** Collects one request body, up to a limit. */
export class BodyReader implements BodyReceiver {
  readonly #source: BodySource;
  readonly #limitBytes: number;
  readonly #meter: { bodyGrew(bytes: number): void };
  readonly #bytes = new ByteCollector();
  #settled = false;
  #resolve: (body: Buffer) => void = () => {};
  #reject: (error: Error) => void = () => {};
  /** Monotonic milliseconds after which the sender counts as too slow. */
  readonly deadline: number;

  /** @param options.meter is told the bytes that are kept, as they come */
  constructor(options: {
    source: BodySource;
    limitBytes: number;
    deadline: number;
    meter: { bodyGrew(bytes: number): void };
  }) {
    this.#source = options.source;
    this.#limitBytes = options.limitBytes;
    this.deadline = options.deadline;
    this.#meter = options.meter;
  }

  get settled(): boolean {
    return this.#settled;
  }

  /** Resolves with the body; rejects with BodyTooLarge or BodyAborted. Call once. */
  read(): Promise<Buffer> {
    const whole = new Promise<Buffer>((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.#source.deliverTo(this);
    return whole;
  }

  /** Gives up: the client has gone, or was too slow. Harmless when the body is already complete. */
  abort(why: string): void {
    // An error writes down the stack: not at the end of every request that went well.
    if (!this.#settled) this.#fail(new BodyAborted(why));
  }

  piece(bytes: Buffer): void {
    if (this.#settled) return;
    if (this.#bytes.length + bytes.length > this.#limitBytes) {
      this.#fail(new BodyTooLarge(`body over ${this.#limitBytes} bytes`));
    } else {
      this.#bytes.add(bytes);
      this.#meter.bodyGrew(bytes.length);
    }
  }

  end(): void {
    if (this.#settled) return;
    this.#settled = true;
    this.#resolve(this.#bytes.take());
  }

  #fail(error: Error): void {
    if (this.#settled) return;
    this.#settled = true;
    this.#source.stop();
    this.#bytes.clear();
    this.#reject(error);
  }
}
