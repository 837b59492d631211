import { type IncomingMessage, ServerResponse } from 'node:http';
import type { Server, Socket } from 'node:net';
import { Readable } from 'node:stream';
import { type ConnectionHost, PacedReading, PeerConnection } from '@wheelhouse/http2';
import {
  contained,
  type DetachedConnection,
  defer,
  ignoreErrors,
  listen,
  listenEach,
} from '@wheelhouse/machinery';
import { Http1Exchange } from './http1-exchange.ts';
import type { ServerCore } from './server-core.ts';

/** Answers one request. `over` must be called once its answer is sent or abandoned. */
type Turn = (over: () => void) => void;

/** Node's request and response objects, and the exchange unless the request was malformed. */
interface Message {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly exchange?: Http1Exchange;
}

/** Waiting requests above which the connection is paused. */
const readAheadMax = 16;
/** Maximum number of waiting requests: one chunk may contain more than `readAheadMax`. */
const waitingMax = 256;
/** Bytes kept that follow a waiting upgrade request. */
const behindBytesMax = 64 * 1024;
/**
 * Turns of the event loop in which a request is answered as usual after its client has ended its
 * side of the connection: enough for reads and for writes to memory, even in a few steps.
 */
const turnsAfterEnd = 20;

/**
 * A client's HTTP/1.1 connection, which answers one request at a time. Pipelined requests,
 * including upgrades, begin when all earlier ones have been answered, so answers never overlap and
 * a queued request costs only its headers.
 *
 * A client may end its side of the connection after its last request and still read the answers. It
 * may also have left, so the last request is answered soon or not at all (Exchange.endListener).
 */
class Http1Connection extends PeerConnection {
  /** The request being answered; undefined between requests. */
  current: Message | undefined;
  readonly #waiting: Turn[] = [];
  readonly #run: (turn: Turn, over: () => void) => void;
  #isBusy = false;
  #isPaused = false;
  /** Whether the client has ended its side. */
  #hasEnded = false;
  /** What `allowHalfOpen` was before the connection's first request. */
  readonly #allowedHalfOpen: boolean;

  constructor(options: {
    socket: Socket;
    core: ConnectionHost;
    onClosed: (connection: Http1Connection) => void;
  }) {
    super(options);
    const { socket } = options;
    const containment = { where: 'http1', end: () => socket.destroy() } as const;
    this.#run = contained(containment, (turn: Turn, over: () => void) => turn(over));
    this.#allowedHalfOpen = socket.allowHalfOpen;
    socket.allowHalfOpen = true;
    listen(socket, containment, {
      end: () => {
        this.#hasEnded = true;
        this.#leaveAfterLast();
      },
      close: () => {
        this.#waiting.length = 0;
        options.onClosed(this);
      },
    });
  }

  /** Begins the turn now, or after all earlier ones. */
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
   * Begins the last turn of the connection, after which its bytes are no longer HTTP.
   * @param head bytes that the client sent after the request; `turn` receives them and later ones
   */
  takeLast(head: Buffer, turn: (head: Buffer, over: () => void) => void): void {
    const { socket } = this;
    socket.allowHalfOpen = this.#allowedHalfOpen;
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
        // Node's server has released the connection and no longer does this.
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
    if (turn === undefined) return;
    this.#begin(turn);
    if (this.#hasEnded) this.#leaveAfterLast();
  }

  /** Ends the last request of a client that has ended its side, unless it is answered soon. */
  #leaveAfterLast(turns = turnsAfterEnd): void {
    const { exchange } = this.current ?? {};
    if (!this.#isBusy || this.#waiting.length > 0 || exchange === undefined) return;
    defer({ where: 'http1', end: () => this.socket.destroy() }, () => {
      if (this.current?.exchange !== exchange) return;
      if (turns > 1) this.#leaveAfterLast(turns - 1);
      else exchange.clientEnded();
    });
  }
}

/** An upgrade request, which Node has released together with its connection. */
interface Upgrading {
  /** The request's body. */
  readonly body: Readable;
  /** An ordinary response without an upgrade, which ends the connection. */
  readonly response: ServerResponse;
  /** Releases the connection for another protocol. */
  release(): DetachedConnection;
}

/**
 * Turns an upgrade request into an ordinary one, because the application decides about the upgrade.
 * Undefined for a chunked body, which Node no longer decodes here; upgrade requests have none.
 */
function upgrading(options: {
  readonly request: IncomingMessage;
  readonly socket: Socket;
  /** Bytes after the request's headers. */
  readonly head: Buffer;
}): Upgrading | undefined {
  const { request, head, socket } = options;
  if (request.headers['transfer-encoding'] !== undefined) return undefined;
  const bodyBytes = Number(request.headers['content-length'] ?? 0);
  // Node 26 reads the body of an upgrade request; earlier versions leave it on the connection.
  const isRead = request.readableLength > 0 || !request.complete;
  if (!request.complete) socket.resume();
  const { body, stop } = isRead
    ? { body: request, stop: () => {} }
    : bodyOf({ socket, head, bodyBytes });
  const response = new ServerResponse(request);
  response.shouldKeepAlive = false;
  response.assignSocket(socket);
  // Node's server has released the connection and no longer does this.
  const containment = { where: 'http1', end: () => socket.destroy() } as const;
  const stopDraining = listen(socket, containment, { drain: () => response.emit('drain') });
  listen(response, containment, {
    finish() {
      stop();
      response.detachSocket(socket);
      socket.resume();
      socket.destroySoon();
    },
  });
  return {
    body,
    response,
    release() {
      stop();
      stopDraining();
      response.detachSocket(socket);
      return { socket, head: bodyBytes > 0 ? Buffer.alloc(0) : head };
    },
  };
}

/** A stream of the body's bytes from the connection. */
function bodyOf(from: {
  readonly socket: Socket;
  readonly head: Buffer;
  readonly bodyBytes: number;
}): { readonly body: Readable; stop(): void } {
  const { socket } = from;
  let left = from.bodyBytes;
  const body = new Readable({
    read() {
      if (left > 0) socket.resume();
    },
  });
  const take = (bytes: Buffer) => {
    const piece = bytes.subarray(0, left);
    left -= piece.length;
    if (piece.length > 0 && !body.push(piece)) socket.pause();
    if (left > 0) return;
    stop();
    body.push(null);
  };
  const stop = left > 0 ? listen(socket, { where: 'http1' }, { data: take }) : () => {};
  take(from.head);
  return { body, stop };
}

const where = 'http1';

/**
 * Serves requests from Node's HTTP/1.1 parser, one at a time on each connection. The application
 * may take over the connection of an upgrade request (`Exchange.takeOver`) or answer it like any
 * other: most clients that ask for an upgrade (`h2c`) do not need it.
 */
export function acceptHttp1(server: Server, core: ServerCore): void {
  const http1 = new Http1Server(core);
  // Node's declarations lack the option. Without it, Node drops the answers to a client that has
  // ended its side.
  Object.assign(server, { httpAllowHalfOpen: true });
  type Run = (request: IncomingMessage, response: ServerResponse) => void;
  const end = (request: IncomingMessage) => request.socket.destroy();
  const listenForRequests = (event: string, run: Run) =>
    listenEach(server, event, { where, run, end });
  listenForRequests('request', (request, response) => http1.accept(request, response));
  listenForRequests('checkContinue', (request, response) =>
    http1.accept(request, response, { waitsForContinue: true }),
  );
  listenForRequests('checkExpectation', (request, response) =>
    http1.refuse(request, response, 417),
  );
  listenEach(server, 'clientError', {
    where,
    run: (error: ParserError, socket: Socket) => http1.refuseMalformed(error, socket),
    end: (_error, socket) => socket.destroy(),
  });
  listenEach(server, 'upgrade', {
    where,
    // With a body, Node 26 passes a stream that is not the connection.
    run: (request: IncomingMessage, _socket: unknown, head: Buffer) =>
      http1.upgrade(request, request.socket, head),
    end: (request) => request.socket.destroy(),
  });
}

type ParserError = Error & { readonly code?: string };

class Http1Server {
  readonly #core: ServerCore;
  readonly #connections = new WeakMap<Socket, Http1Connection>();

  constructor(core: ServerCore) {
    this.#core = core;
  }

  accept(
    request: IncomingMessage,
    response: ServerResponse,
    { waitsForContinue }: { readonly waitsForContinue: boolean } = ordinary,
  ): void {
    if (request.headers.host === undefined && request.httpVersion === '1.1') {
      this.refuse(request, response, 400);
      return;
    }
    ignoreErrors(request);
    ignoreErrors(response);
    const connection = this.#connectionOf(request.socket);
    const core = this.#core;
    connection.take((over) => {
      const exchange = new Http1Exchange({ request, response, waitsForContinue, connection, core });
      connection.current = { request, response, exchange };
      const close = () => {
        core.end(exchange);
        over();
      };
      listen(response, { where }, { close });
      core.begin(exchange);
    });
  }

  /** Answers with only a status, after earlier requests, and closes. */
  refuse(request: IncomingMessage, response: ServerResponse, status: number): void {
    ignoreErrors(request);
    ignoreErrors(response);
    const connection = this.#connectionOf(request.socket);
    connection.take((over) => {
      connection.current = { request, response };
      listen(response, { where }, { close: over });
      response.writeHead(status, { connection: 'close', 'content-length': 0 });
      response.end();
    });
  }

  /** Serves an upgrade request, which is the last on its connection. */
  upgrade(request: IncomingMessage, socket: Socket, behind: Buffer): void {
    ignoreErrors(socket);
    ignoreErrors(request);
    // Further bytes wait for the new protocol.
    readers.get(socket)?.();
    const connection = this.#connectionOf(socket);
    const core = this.#core;
    connection.takeLast(behind, (head) => {
      const upgrade = upgrading({ request, socket, head });
      if (upgrade === undefined) {
        this.#endWith(socket, '411 Length Required');
        return;
      }
      const { response } = upgrade;
      connection.current = { request, response };
      const about = { request, waitsForContinue: false, connection, core };
      const exchange = new Http1Exchange({ ...about, ...upgrade });
      const over = () => core.end(exchange);
      ignoreErrors(response);
      listen(response, { where }, { finish: over });
      listen(socket, { where }, { close: over });
      core.begin(exchange);
    });
  }

  /** Answers malformed or late requests and closes. */
  refuseMalformed(error: ParserError, socket: Socket): void {
    if (!socket.writable || error.code === 'ECONNRESET') {
      socket.destroy();
      return;
    }
    const status = statusOfParserError(error.code ?? '');
    const connection = this.#connections.get(socket);
    const current = connection?.current;
    // Node limits the time of every body, once.
    const isStreamed = current?.exchange?.streamsBody === true && !current.request.complete;
    if (error.code === requestTimeout && isStreamed) return;
    if (connection === undefined || current === undefined) this.#endWith(socket, status);
    else if (current.request.complete) {
      // The answer in progress belongs to an earlier request.
      socket.removeAllListeners('data');
      readAsStream(socket);
      connection.take(() => this.#endWith(socket, status));
    } else if (current.response.headersSent) socket.destroy();
    else this.#endWith(socket, status);
  }

  /** Sends the last answer. A client that keeps its side open loses the connection soon. */
  #endWith(socket: Socket, status: string): void {
    const { clock, limits } = this.#core;
    socket.end(`HTTP/1.1 ${status}\r\n${emptyAndLast}`);
    const limit = clock.after(limits.discardTimeoutMs, () => socket.destroy());
    listen(socket, { where }, { close: () => limit.stop() });
  }

  #connectionOf(socket: Socket): Http1Connection {
    let connection = this.#connections.get(socket);
    if (connection === undefined) {
      const onClosed = (closed: Http1Connection) => this.#core.disconnected(closed);
      connection = new Http1Connection({ socket, core: this.#core, onClosed });
      this.#connections.set(socket, connection);
      this.#core.connected(connection);
    }
    return connection;
  }
}

const ordinary = { waitsForContinue: false };

const emptyAndLast = 'Connection: close\r\nContent-Length: 0\r\n\r\n';

/** Functions that stop reading connections as streams. */
const readers = new WeakMap<Socket, () => void>();

/**
 * Makes Node read a connection through its stream. Node's parser otherwise bypasses the stream and
 * stops during an earlier answer, but bytes that TLS had already read reached it all the same and
 * were rejected as malformed (the rest of a body right after a large answer). With a data listener
 * the bytes wait in the stream.
 */
export function readAsStream(socket: Socket): void {
  const pace = new PacedReading({ socket, where });
  // Node's listener has parsed the same bytes before.
  const data = (bytes: Buffer) => pace.parsed(bytes.length);
  const stopListening = listen(socket, { where, end: () => socket.destroy() }, { data });
  readers.set(socket, () => {
    pace.stop();
    stopListening();
  });
}

/** Node's code for a request whose headers or body do not arrive in time. */
const requestTimeout = 'ERR_HTTP_REQUEST_TIMEOUT';

function statusOfParserError(code: string): string {
  if (code === 'HPE_HEADER_OVERFLOW') return '431 Request Header Fields Too Large';
  if (code === requestTimeout) return '408 Request Timeout';
  return '400 Bad Request';
}
