import { connect as connectSocket, type Socket } from 'node:net';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import { type AnswerReceiver, ClientConnection, errorCode, requestHead } from '@wheelhouse/http2';
import { type Clock, ipVersion, type Timer } from '@wheelhouse/machinery';
import { CallError, notConnected, statusCode, wasNotSent } from './errors.ts';
import type { Method } from './protocol.ts';

/** A message is preceded by a byte, 0 unless it is compressed, and its length in four bytes. */
const headBytes = 5;

/** Frames a message for sending. */
export function messageFrame(message: Buffer): Buffer {
  const frame = Buffer.allocUnsafe(headBytes + message.length);
  frame[0] = 0;
  frame.writeUInt32BE(message.length, 1);
  message.copy(frame, headBytes);
  return frame;
}

/**
 * Maximum size of a message from servers other than etcd, bytes. Messages are decoded in one step
 * (TRUST-2), and those of plugins have a few kilobytes.
 */
const usualMessageBytesMax = 262_144;

/** Reassembles messages from pieces of any size. */
export class MessageReader {
  readonly #bytesMax: number;
  #pieces: Buffer[] = [];
  #available = 0;
  /** Bytes that must be available before parsing continues. */
  #needed = headBytes;

  /** @param bytesMax maximum size of a message */
  constructor(bytesMax = usualMessageBytesMax) {
    this.#bytesMax = bytesMax;
  }

  /**
   * Returns the messages that a piece completes. Throws for one that is compressed, and
   * CallError for one that is too large, before it has arrived (TRUST-4).
   */
  push(piece: Buffer): Buffer[] {
    this.#pieces.push(piece);
    this.#available += piece.length;
    if (this.#available < this.#needed) return [];
    const messages: Buffer[] = [];
    let rest = this.#pieces.length === 1 ? piece : Buffer.concat(this.#pieces);
    this.#needed = headBytes;
    while (rest.length >= headBytes) {
      if (rest[0] !== 0) throw new Error('compressed messages are not supported');
      const bytes = rest.readUInt32BE(1);
      if (bytes > this.#bytesMax) throw tooLarge(bytes, this.#bytesMax);
      const size = headBytes + bytes;
      if (rest.length < size) {
        this.#needed = size;
        break;
      }
      messages.push(rest.subarray(headBytes, size));
      rest = rest.subarray(size);
    }
    this.#pieces = rest.length === 0 ? [] : [rest];
    this.#available = rest.length;
    return messages;
  }
}

function tooLarge(bytes: number, max: number): CallError {
  const details = `grpc: received message larger than max (${bytes} vs. ${max})`;
  return new CallError({ code: statusCode.resourceExhausted, details });
}

const keepaliveMs = 30_000;
const keepaliveTimeoutMs = 10_000;
const connectTimeoutMs = 10_000;
/** Period after a failed connection in which calls fail immediately, milliseconds; doubles. */
const pauseMs = { first: 100, longest: 1000 };
/** Flow-control windows for each call and for the connection. */
const windows = { stream: 4 * 2 ** 20, connection: 16 * 2 ** 20 };

/** The server of a channel and how to connect to it. */
interface ChannelOptions {
  /**
   * URL of the server, such as `https://10.0.0.1:2379`; for a Unix socket, the scheme and the
   * authority to send.
   */
  readonly origin: string;
  /** Path of a Unix socket to connect to instead of the origin. */
  readonly socketPath?: string | undefined;
  /** Headers of every call. */
  readonly metadata?: Readonly<Record<string, string>> | undefined;
  /** Options of an https connection. */
  readonly tls?: ConnectionOptions | undefined;
  /** Opens an https connection; Node's function by default. */
  readonly connectTls?: ConnectTls | undefined;
  /**
   * Called for each connection; returns the client's certificate. An error that it throws fails the
   * connection.
   */
  readonly identity?: (() => ClientIdentity) | undefined;
  /** Maximum size of a message from the server, bytes; 256 KiB by default. */
  readonly messageBytesMax?: number;
  readonly clock: Clock;
}

/** Opens a TLS connection, which is destroyed if its server is not trusted. */
export type ConnectTls = (options: ConnectionOptions) => TLSSocket;

/** A client's certificate and its key as PEM. */
export interface ClientIdentity {
  readonly certificate: string | Buffer;
  readonly key: string | Buffer;
}

/** Handlers of one call. `onEnd` is called last and once, unless the call was canceled. */
interface CallHandlers {
  readonly onMessage: (bytes: Buffer) => void;
  /** Without an error if the server ended the call with status 0. */
  readonly onEnd: (error: CallError | undefined) => void;
}

/** A call in progress. */
interface Call {
  /** Cancels the call, after which its handlers are not called. Idempotent. */
  cancel(): void;
}

/**
 * gRPC calls to one server over one HTTP/2 connection, which is opened on first use and again when
 * it is lost. A call fails with a CallError, which says `unsent` if no server can have received it.
 * Implements the part of gRPC that etcd, KMS plugins, and token signers need. The usual library's
 * compression, retries, and load balancing would cost as much as HTTP/2 itself.
 */
export class GrpcChannel {
  readonly #options: ChannelOptions;
  readonly #target: Target;
  readonly #calls = new Set<ChannelCall>();
  /** The encoded headers of the calls to each method. */
  readonly #heads = new Map<string, Buffer>();
  #connection: ClientConnection | undefined;
  #connecting: Promise<ClientConnection> | undefined;
  /**
   * Monotonic milliseconds before which no connection is attempted, and the pause after the next
   * failure.
   */
  #notBefore = 0;
  #pauseMs = pauseMs.first;
  #closed = false;

  constructor(options: ChannelOptions) {
    this.#options = options;
    this.#target = targetOf(options.origin);
  }

  /**
   * Sends one message to a method such as `/etcdserverpb.KV/Range`. `more: 'open'` keeps the
   * client's side open, as client-streaming methods require.
   */
  call(
    path: string,
    request: { readonly message: Buffer; readonly more: 'none' | 'open' },
    handlers: CallHandlers,
  ): Call {
    const { messageBytesMax } = this.#options;
    const call: ChannelCall = new ChannelCall({
      handlers,
      messageBytesMax,
      onEnded: () => this.#calls.delete(call),
    });
    this.#calls.add(call);
    const sent = {
      head: this.#headOf(path),
      body: messageFrame(request.message),
      ends: request.more === 'none',
    };
    const connection = this.#connection;
    if (connection?.isUsable === true) call.begin(connection, sent);
    else {
      this.#connected().then(
        (opened) => call.begin(opened, sent),
        (error: unknown) => call.fail(notConnected(error)),
      );
    }
    return call;
  }

  /** Drops the connection: all calls fail, and the next one reconnects. */
  reset(): void {
    this.#connection?.destroy();
    this.#connection = undefined;
  }

  /** Closes the channel; no handler is called afterwards. */
  close(): void {
    this.#closed = true;
    for (const call of [...this.#calls]) call.cancel();
    this.reset();
  }

  #headOf(path: string): Buffer {
    let head = this.#heads.get(path);
    if (head === undefined) {
      const { scheme, authority } = this.#target;
      head = requestHead({
        ':method': 'POST',
        ':scheme': scheme,
        ':path': path,
        ':authority': authority,
        'content-type': 'application/grpc',
        te: 'trailers',
        ...this.#options.metadata,
      });
      this.#heads.set(path, head);
    }
    return head;
  }

  #connected(): Promise<ClientConnection> {
    if (this.#connecting !== undefined) return this.#connecting;
    const { clock } = this.#options;
    if (this.#closed) return Promise.reject(new Error('the client is closed'));
    if (clock.monotonic() < this.#notBefore) {
      return Promise.reject(new Error('the last connection attempt failed'));
    }
    const connecting = this.#connect().then(
      (connection) => {
        this.#connecting = undefined;
        this.#pauseMs = pauseMs.first;
        this.#adopt(connection);
        return connection;
      },
      (error: unknown) => {
        this.#connecting = undefined;
        this.#notBefore = clock.monotonic() + this.#pauseMs;
        this.#pauseMs = Math.min(this.#pauseMs * 2, pauseMs.longest);
        throw error;
      },
    );
    this.#connecting = connecting;
    return connecting;
  }

  /**
   * Resolves when the server has sent its SETTINGS: accepting a connection does not prove that it
   * is alive.
   */
  #connect(): Promise<ClientConnection> {
    const { clock } = this.#options;
    return new Promise((resolve, reject) => {
      const socket = this.#openSocket();
      let problem: string | undefined;
      let stopKeepalive = () => {};
      const timer = clock.after(connectTimeoutMs, () => {
        problem = 'the server does not respond';
        connection.destroy();
      });
      const connection = new ClientConnection({
        socket,
        windows,
        host: {
          ready: () => {
            timer.stop();
            stopKeepalive = this.#keepAlive(connection);
            resolve(connection);
          },
          closed: (reason) => {
            timer.stop();
            stopKeepalive();
            if (this.#connection === connection) this.#connection = undefined;
            reject(new Error(problem ?? reason.message));
          },
        },
      });
    });
  }

  #openSocket(): Socket {
    const { socketPath, tls, connectTls = connect, identity } = this.#options;
    const { host, port, scheme } = this.#target;
    const place = socketPath === undefined ? { host, port } : { path: socketPath };
    if (scheme === 'http') return connectSocket({ ...place, noDelay: true });
    const own = identity?.();
    const socket = connectTls({
      ...place,
      ALPNProtocols: ['h2'],
      // SNI cannot carry an address.
      servername: ipVersion(host) === 0 ? host : '',
      ...tls,
      ...(own === undefined ? {} : { cert: own.certificate, key: own.key }),
    });
    return socket.setNoDelay(true);
  }

  #adopt(connection: ClientConnection): void {
    if (this.#closed) connection.destroy();
    else this.#connection = connection;
  }

  /** Destroys a connection with calls whose server does not answer pings; returns how to stop. */
  #keepAlive(connection: ClientConnection): () => void {
    const { clock } = this.#options;
    let lastPingTimeout: Timer | undefined;
    const keepalive = clock.every(keepaliveMs, () => {
      if (this.#calls.size === 0 || connection.closed) return;
      lastPingTimeout?.stop();
      const pingTimeout = clock.after(keepaliveTimeoutMs, () => connection.destroy());
      lastPingTimeout = pingTimeout;
      connection.ping(() => pingTimeout.stop());
    });
    return () => {
      keepalive.stop();
      lastPingTimeout?.stop();
    };
  }
}

/** The parts of a channel's origin. */
interface Target {
  readonly scheme: 'http' | 'https';
  readonly host: string;
  readonly port: number;
  readonly authority: string;
}

function targetOf(origin: string): Target {
  const { protocol, hostname, port, host: authority } = new URL(origin);
  const scheme = protocol === 'https:' ? 'https' : 'http';
  const number = port === '' ? (scheme === 'https' ? 443 : 80) : Number(port);
  const host = hostname.replace(/^\[|\]$/g, '');
  return { scheme, host, port: number, authority };
}

class ChannelCall implements Call, AnswerReceiver {
  readonly #handlers: CallHandlers;
  readonly #onEnded: () => void;
  readonly #messages: MessageReader;
  #cancelSent: (() => void) | undefined;
  #isEnded = false;
  #status: { readonly code: number; readonly details: string } | undefined;

  constructor(options: {
    readonly handlers: CallHandlers;
    readonly messageBytesMax: number | undefined;
    readonly onEnded: () => void;
  }) {
    this.#handlers = options.handlers;
    this.#onEnded = options.onEnded;
    this.#messages = new MessageReader(options.messageBytesMax);
  }

  begin(
    connection: ClientConnection,
    request: { readonly head: Buffer; readonly body: Buffer; readonly ends: boolean },
  ): void {
    if (this.#isEnded) return;
    if (!connection.isUsable) {
      this.fail(notConnected('the connection was closed'));
      return;
    }
    const stream = connection.request(request, this);
    this.#cancelSent = () => connection.cancel(stream);
  }

  cancel(): void {
    if (this.#isEnded) return;
    this.#markEnded();
    this.#cancelSent?.();
  }

  /** Ends the call, and its stream if that is open. */
  fail(error: CallError): void {
    if (this.#isEnded) return;
    this.#markEnded();
    this.#cancelSent?.();
    this.#handlers.onEnd(error);
  }

  fields(fields: ReadonlyMap<string, string>): void {
    const code = fields.get('grpc-status');
    const http = fields.get(':status');
    if (code !== undefined) {
      this.#status = { code: Number(code), details: detailsIn(fields.get('grpc-message')) };
    } else if (http !== undefined && http !== '200') {
      const details = `the server returned HTTP status ${http}`;
      this.#status = { code: statusCode.unavailable, details };
    }
  }

  piece(bytes: Buffer): void {
    if (this.#isEnded) return;
    try {
      for (const message of this.#messages.push(bytes)) {
        if (!this.#isEnded) this.#handlers.onMessage(message);
      }
    } catch (error) {
      const isStatus = error instanceof CallError;
      this.fail(
        isStatus ? error : new CallError({ code: statusCode.internal, details: String(error) }),
      );
    }
  }

  end(): void {
    if (this.#isEnded) return;
    const status = this.#status ?? lostConnection;
    this.#markEnded();
    this.#handlers.onEnd(status.code === statusCode.ok ? undefined : new CallError(status));
  }

  cut(code: number): void {
    if (this.#isEnded) return;
    if (this.#status !== undefined) this.end();
    else if (code === errorCode.refusedStream) {
      this.fail(notConnected('the server refused the call without processing it'));
    } else this.fail(new CallError(lostConnection));
  }

  #markEnded(): void {
    this.#isEnded = true;
    this.#onEnded();
  }
}

const lostConnection = { code: statusCode.unavailable, details: 'the connection was lost' };

/** Decodes the percent-encoded message of a status. */
function detailsIn(message = ''): string {
  try {
    return decodeURIComponent(message);
  } catch {
    return message;
  }
}

/** Pause before retrying a call that could not be sent, milliseconds. */
const retryMs = 100;

/**
 * Calls a unary method. Retries a call that no server has received until the timeout.
 * @throws CallError if the server rejects the call or does not respond within `timeoutMs`
 */
export function callUnary<Request, Response>(
  channel: GrpcChannel,
  call: {
    readonly method: Method<Request, Response>;
    readonly request: Partial<Request>;
    readonly timeoutMs: number;
    readonly clock: Clock;
  },
): Promise<Response> {
  const { method, clock, timeoutMs } = call;
  const request = { message: method.request.encode(call.request), more: 'none' as const };
  return new Promise((resolve, reject) => {
    let running: Call | undefined;
    let lastFailure: CallError | undefined;
    let isEnded = false;
    const fail = (error: unknown) => {
      isEnded = true;
      limit.stop();
      reject(error);
    };
    const limit = clock.after(timeoutMs, () => {
      running?.cancel();
      const code = statusCode.deadlineExceeded;
      fail(lastFailure ?? new CallError({ code, details: 'context deadline exceeded' }));
    });
    const settle = (response: Buffer | undefined) => {
      try {
        if (response === undefined) throw new Error('an empty response');
        resolve(method.response.decode(response));
        limit.stop();
      } catch (error) {
        fail(new CallError({ code: statusCode.internal, details: String(error) }));
      }
    };
    const send = () => {
      if (isEnded) return;
      let response: Buffer | undefined;
      running = channel.call(method.path, request, {
        onMessage: (bytes) => {
          response = bytes;
        },
        onEnd(error) {
          if (error === undefined) settle(response);
          else if (!wasNotSent(error)) fail(error);
          else {
            lastFailure = error;
            clock.after(retryMs, send);
          }
        },
      });
    };
    send();
  });
}
