import type { Readable, Writable } from 'node:stream';
import { type BodySink, type BodySource, queueBytesMin } from '@wheelhouse/http2';
import {
  type BodyPiece,
  type BodyReceiver,
  listen,
  type MemoryAccount,
  pieceBytes,
} from '@wheelhouse/machinery';

/** The body of a request that node reads for us (HTTP/1.1). */
export class NodeBodySource implements BodySource {
  readonly #readable: Readable;
  #receiver: BodyReceiver | undefined;
  #unlisten: (() => void) | undefined;

  constructor(readable: Readable) {
    this.#readable = readable;
  }

  deliverTo(receiver: BodyReceiver): void {
    this.#receiver = receiver;
    this.#unlisten = listen(
      this.#readable,
      { where: 'http1' },
      { data: this.#onData, end: this.#onEnd },
    );
    // A body read by nobody may have ended by itself, and says so once only.
    if (this.#readable.readableEnded) this.#onEnd();
  }

  stop(): void {
    this.#receiver = undefined;
    this.#unlisten?.();
    this.#readable.pause();
  }

  pause(): void {
    this.#readable.pause();
  }

  resume(): void {
    this.#readable.resume();
  }

  /** Reads on, so that the connection's next request can be seen. */
  drop(): void {
    this.stop();
    this.#readable.resume();
  }

  readonly #onData = (bytes: Buffer): void => this.#receiver?.piece(bytes);

  readonly #onEnd = (): void => {
    const receiver = this.#receiver;
    this.stop();
    receiver?.end();
  };
}

/** The body of an answer that node writes for us (HTTP/1.1). */
export class NodeBodySink implements BodySink {
  readonly copies = false;
  readonly #writable: Writable;
  readonly #memory: Pick<MemoryAccount, 'charge'>;
  /** Undefined until the reader has been behind. */
  #charged: number | undefined;
  #drained: (() => void) | undefined;

  constructor(writable: Writable, memory: Pick<MemoryAccount, 'charge'>) {
    this.#writable = writable;
    this.#memory = memory;
  }

  get closed(): boolean {
    return this.#writable.destroyed || this.#writable.writableEnded;
  }

  get bufferedBytes(): number {
    return this.#writable.writableLength;
  }

  write(chunk: Buffer): boolean {
    return this.closed || this.#writable.write(chunk) || this.#behind();
  }

  writeAll(chunks: readonly BodyPiece[]): boolean {
    if (this.closed) return true;
    const writable = this.#writable;
    writable.cork();
    let more = true;
    for (const chunk of chunks) more = writable.write(pieceBytes(chunk));
    writable.uncork();
    return more || this.#behind();
  }

  end(last?: Buffer): void {
    if (this.closed) return;
    if (last === undefined) this.#writable.end();
    else this.#writable.end(last);
    if (this.#writable.writableLength > queueBytesMin) this.#behind();
  }

  onDrain(callback: () => void): void {
    if (this.#drained === undefined) {
      listen(this.#writable, { where: 'http1' }, { drain: () => this.#drained?.() });
    }
    this.#drained = callback;
  }

  /** Charges what waits for the reader, until it has been written or given up. */
  #behind(): false {
    if (this.#charged === undefined) {
      this.#charged = 0;
      const settle = this.#settle;
      listen(this.#writable, { where: 'http1' }, { drain: settle, close: settle });
    }
    this.#settle();
    return false;
  }

  readonly #settle = (): void => {
    const waiting = this.#writable.destroyed ? 0 : this.#writable.writableLength;
    this.#memory.charge('answers', waiting - (this.#charged ?? 0));
    this.#charged = waiting;
  };
}
