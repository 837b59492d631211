import type { Socket } from 'node:net';
import { defer } from '@wheelhouse/machinery';

/**
 * Bytes of a connection that are parsed in one turn of the event loop, apart from the last record
 * of TLS. A client may divide them into chunks or frames of one byte (TRUST-2); Node's parser takes
 * about 4 µs for such a chunk, and ours 2 µs for such a frame, which is also larger.
 */
const bytesPerTurn = { http1: 8 * 1024, http2: 32 * 1024 };

/** Pauses a connection between turns of the event loop while its client sends much. */
export class PacedReading {
  readonly #socket: Socket;
  readonly #where: 'http1' | 'http2';
  #bytes = 0;
  #isStopped = false;

  /** @param options.where names the protocol in reports of faults */
  constructor(options: { readonly socket: Socket; readonly where: 'http1' | 'http2' }) {
    this.#socket = options.socket;
    this.#where = options.where;
  }

  /** Call for bytes that have been parsed. Has no effect while the connection is paused. */
  parsed(bytes: number): void {
    const socket = this.#socket;
    this.#bytes += bytes;
    if (this.#bytes < bytesPerTurn[this.#where] || this.#isStopped || socket.isPaused()) return;
    this.#bytes = 0;
    socket.pause();
    defer({ where: this.#where, end: () => socket.destroy() }, () => {
      if (!this.#isStopped) socket.resume();
    });
  }

  /** Leaves the connection as it is from now on. */
  stop(): void {
    this.#isStopped = true;
  }
}
