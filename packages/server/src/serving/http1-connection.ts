import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { type ConnectionHost, PeerConnection } from '@wheelhouse/http2';
import { contained, listen } from '@wheelhouse/machinery';

/** Begins to answer one request. `over` must be called once its answer is sent or given up. */
export type Turn = (over: () => void) => void;

/** A request and the answer that node has made for it. */
export interface Message {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/** Requests that wait on a connection before no more of it is read. */
const readAheadMax = 16;
/** Requests that may wait at all: one chunk that has been read may hold more than `readAheadMax`. */
const waitingMax = 256;
/** Bytes kept of what follows a request for another protocol that waits. */
const behindBytesMax = 64 * 1024;

/**
 * A client's HTTP/1.1 connection, which answers one request at a time. Pipelined requests, those
 * that ask for another protocol included, begin when all before them have been answered. An answer
 * therefore never meets a connection that is in use, and a queued request costs its headers alone.
 */
export class Http1Connection extends PeerConnection {
  /** What is being answered; undefined between requests. */
  current: Message | undefined;
  readonly #waiting: Turn[] = [];
  readonly #run: (turn: Turn, over: () => void) => void;
  #isBusy = false;
  #isPaused = false;

  constructor(options: {
    socket: Socket;
    core: ConnectionHost;
    onClosed: (connection: Http1Connection) => void;
  }) {
    super(options);
    const { socket } = options;
    const containment = { where: 'http1', end: () => socket.destroy() } as const;
    this.#run = contained(containment, (turn: Turn, over: () => void) => turn(over));
    listen(socket, containment, {
      close: () => {
        this.#waiting.length = 0;
        options.onClosed(this);
      },
    });
  }

  get isBusy(): boolean {
    return this.#isBusy;
  }

  /** Begins the turn now, or when all that came before it are over. */
  take(turn: Turn): void {
    if (!this.#isBusy) {
      this.#begin(turn);
      return;
    }
    const waiting = this.#waiting.push(turn);
    if (waiting > waitingMax) this.socket.destroy();
    else if (waiting > readAheadMax) this.#pause();
  }

  /**
   * Begins the last turn of the connection, whose bytes are HTTP no longer.
   * @param head what the client has sent behind the request; `turn` gets it with what has followed
   */
  takeLast(head: Buffer, turn: (head: Buffer, over: () => void) => void): void {
    const { socket } = this;
    if (!this.#isBusy) {
      socket.pause();
      this.#begin((over) => turn(head, over));
      return;
    }
    const behind = [head];
    let bytes = head.length;
    const stop = listen(
      socket,
      { where: 'http1' },
      {
        data: (chunk: Buffer) => {
          behind.push(chunk);
          bytes += chunk.length;
          if (bytes > behindBytesMax) socket.pause();
        },
        // Node's server, which does this otherwise, has let go of the connection.
        drain: () => this.current?.response.emit('drain'),
      },
    );
    socket.resume();
    this.take((over) => {
      stop();
      socket.pause();
      turn(Buffer.concat(behind), over);
    });
  }

  #pause(): void {
    this.#isPaused = true;
    this.socket.pause();
  }

  #begin(turn: Turn): void {
    this.#isBusy = true;
    let isOver = false;
    this.#run(turn, () => {
      if (isOver) return;
      isOver = true;
      this.#next();
    });
  }

  #next(): void {
    this.#isBusy = false;
    this.current = undefined;
    if (!this.socket.writable) return;
    if (this.#isPaused && this.#waiting.length <= readAheadMax) {
      this.#isPaused = false;
      this.socket.resume();
    }
    const turn = this.#waiting.shift();
    if (turn !== undefined) this.#begin(turn);
  }
}
