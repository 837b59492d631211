import type { Readable } from 'node:stream';
import { BodyAborted, BodyTooLarge } from '../base/exchange.ts';

/** Collects one request body, up to a limit. */
export class BodyReader {
  readonly #source: Readable;
  readonly #limitBytes: number;
  readonly #chunks: Buffer[] = [];
  #length = 0;
  #settled = false;
  #resolve: (body: Buffer) => void = () => {};
  #reject: (error: Error) => void = () => {};
  /** Monotonic milliseconds after which the sender counts as too slow. */
  readonly deadline: number;

  constructor(options: { source: Readable; limitBytes: number; deadline: number }) {
    this.#source = options.source;
    this.#limitBytes = options.limitBytes;
    this.deadline = options.deadline;
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
    this.#source.on('data', this.#onData);
    this.#source.on('end', this.#onEnd);
    // An empty HTTP/2 body ends by itself, unread, and says so once only: maybe before anyone listens.
    if (this.#source.readableEnded) this.#onEnd();
    return whole;
  }

  /** Gives up: the client has gone, or was too slow. Harmless when the body is already complete. */
  abort(why: string): void {
    this.#settle(() => this.#reject(new BodyAborted(why)));
  }

  #onData = (chunk: Buffer): void => {
    this.#length += chunk.length;
    if (this.#length > this.#limitBytes) {
      this.#settle(() => this.#reject(new BodyTooLarge(`body over ${this.#limitBytes} bytes`)));
      return;
    }
    this.#chunks.push(chunk);
  };

  #onEnd = (): void => {
    this.#settle(() => {
      const [first] = this.#chunks;
      const whole = this.#chunks.length === 1 ? first : undefined;
      this.#resolve(whole ?? Buffer.concat(this.#chunks, this.#length));
    });
  };

  #settle(outcome: () => void): void {
    if (this.#settled) return;
    this.#settled = true;
    this.#source.off('data', this.#onData);
    this.#source.off('end', this.#onEnd);
    this.#source.pause();
    outcome();
    this.#chunks.length = 0;
  }
}
