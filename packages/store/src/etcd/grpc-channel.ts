import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  type IncomingHttpHeaders,
} from 'node:http2';
import { connect as connectSocket } from 'node:net';
import type { ConnectionOptions } from 'node:tls';
import { type Clock, ignoreErrors, listen, type Timer } from '@wheelhouse/machinery';
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

/** Reassembles messages from pieces of any size. */
export class MessageReader {
  #pieces: Buffer[] = [];
  #available = 0;
  /** Bytes that must be available before parsing continues. */
  #needed = headBytes;

  /** Returns the messages that a piece completes. Throws for a compressed message. */
  push(piece: Buffer): Buffer[] {
    this.#pieces.push(piece);
    this.#available += piece.length;
    if (this.#available < this.#needed) return [];
    const messages: Buffer[] = [];
    let rest = this.#pieces.length === 1 ? piece : Buffer.concat(this.#pieces);
    this.#needed = headBytes;
    while (rest.length >= headBytes) {
      if (rest[0] !== 0) throw new Error('compressed messages are not supported');
      const size = headBytes + rest.readUInt32BE(1);
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

const keepaliveMs = 30_000;
const keepaliveTimeoutMs = 10_000;
const connectTimeoutMs = 10_000;
/** Period after a failed connection in which calls fail immediately, milliseconds; doubles. */
const pauseMs = { first: 100, longest: 1000 };
/** Flow-control windows for each call and for the connection. */
const windowBytes = { call: 4 * 2 ** 20, connection: 16 * 2 ** 20 };
/** Disables Node's own limit on the session's memory: a page of objects may be large. */
const sessionMegabytesMax = 2 ** 20;

/** The server of a channel and how to connect to it. */
export interface ChannelOptions {
  /**
   * URL of the server, such as `https://10.0.0.1:2379`; for a Unix socket, `http://` and the
   * authority to send.
   */
  readonly origin: string;
  /** Path of a Unix socket to connect to instead of the origin. */
  readonly socketPath?: string | undefined;
  /** Headers of every call. */
  readonly metadata?: Readonly<Record<string, string>> | undefined;
  /** Options of an https connection. */
  readonly tls?: ConnectionOptions | undefined;
  /**
   * Called for each connection; returns the client's certificate. An error that it throws fails the
   * connection.
   */
  readonly identity?: (() => ClientIdentity) | undefined;
  readonly clock: Clock;
}

/** A client's certificate and its key as PEM. */
export interface ClientIdentity {
  readonly certificate: string | Buffer;
  readonly key: string | Buffer;
}

/** Handlers of one call. `onEnd` is called last and once, unless the call was canceled. */
export interface CallHandlers {
  readonly onMessage: (bytes: Buffer) => void;
  /** Without an error if the server ended the call with status 0. */
  readonly onEnd: (error: CallError | undefined) => void;
}

/** A call in progress. */
export interface Call {
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
  readonly #calls = new Set<ChannelCall>();
  #session: ClientHttp2Session | undefined;
  #connecting: Promise<ClientHttp2Session> | undefined;
  /**
   * Monotonic milliseconds before which no connection is attempted, and the pause after the next
   * failure.
   */
  #notBefore = 0;
  #pauseMs = pauseMs.first;
  #closed = false;

  constructor(options: ChannelOptions) {
    this.#options = options;
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
    const call = new ChannelCall(handlers, () => this.#calls.delete(call));
    this.#calls.add(call);
    const session = this.#session;
    const sent = { ...request, path, metadata: this.#options.metadata };
    if (session !== undefined && isUsable(session)) call.begin(session, sent);
    else {
      this.#connected().then(
        (connection) => call.begin(connection, sent),
        (error: unknown) => call.end(notConnected(error)),
      );
    }
    return call;
  }

  /** Drops the connection: all calls fail, and the next one reconnects. */
  reset(): void {
    this.#session?.destroy();
    this.#session = undefined;
  }

  /** Closes the channel; no handler is called afterwards. */
  close(): void {
    this.#closed = true;
    for (const call of [...this.#calls]) call.cancel();
    this.reset();
  }

  #connected(): Promise<ClientHttp2Session> {
    if (this.#connecting !== undefined) return this.#connecting;
    const { clock } = this.#options;
    if (this.#closed) return Promise.reject(new Error('the client is closed'));
    if (clock.monotonic() < this.#notBefore) {
      return Promise.reject(new Error('the last connection attempt failed'));
    }
    const connecting = this.#connect().then(
      (session) => {
        this.#connecting = undefined;
        this.#pauseMs = pauseMs.first;
        this.#adopt(session);
        return session;
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
  #connect(): Promise<ClientHttp2Session> {
    const { origin, socketPath, tls, identity, clock } = this.#options;
    return new Promise((resolve, reject) => {
      const certificate = identity?.();
      const session = connect(origin, {
        ...tls,
        ...(socketPath === undefined ? {} : { createConnection: () => connectSocket(socketPath) }),
        ...(certificate === undefined
          ? {}
          : { cert: certificate.certificate, key: certificate.key }),
        settings: { enablePush: false, initialWindowSize: windowBytes.call },
        maxSessionMemory: sessionMegabytesMax,
      });
      let problem = 'the connection was closed';
      const timer = clock.after(connectTimeoutMs, () => {
        problem = 'the server does not respond';
        session.destroy();
      });
      let isOpen = false;
      listen(
        session,
        { where: 'store' },
        {
          error(error: Error) {
            problem = error.message;
          },
          close() {
            timer.stop();
            reject(new Error(problem));
          },
          remoteSettings() {
            if (isOpen) return;
            isOpen = true;
            timer.stop();
            session.setLocalWindowSize(windowBytes.connection);
            resolve(session);
          },
        },
      );
    });
  }

  #adopt(session: ClientHttp2Session): void {
    if (this.#closed) {
      session.destroy();
      return;
    }
    this.#session = session;
    const { clock } = this.#options;
    let lastPingTimeout: Timer | undefined;
    const keepalive = clock.every(keepaliveMs, () => {
      if (this.#calls.size === 0 || !isUsable(session)) return;
      lastPingTimeout?.stop();
      const pingTimeout = clock.after(keepaliveTimeoutMs, () => session.destroy());
      lastPingTimeout = pingTimeout;
      session.ping(() => pingTimeout.stop());
    });
    const close = () => {
      keepalive.stop();
      lastPingTimeout?.stop();
      if (this.#session === session) this.#session = undefined;
    };
    listen(session, { where: 'store' }, { close });
  }
}

function isUsable(session: ClientHttp2Session): boolean {
  return !session.closed && !session.destroyed;
}

const fixedHead = {
  ':method': 'POST',
  'content-type': 'application/grpc',
  te: 'trailers',
} as const;

class ChannelCall implements Call {
  readonly #handlers: CallHandlers;
  readonly #onEnded: () => void;
  readonly #messages = new MessageReader();
  #stream: ClientHttp2Stream | undefined;
  #isEnded = false;
  #status: { readonly code: number; readonly details: string } | undefined;

  constructor(handlers: CallHandlers, onEnded: () => void) {
    this.#handlers = handlers;
    this.#onEnded = onEnded;
  }

  begin(
    session: ClientHttp2Session,
    request: {
      readonly path: string;
      readonly metadata: ChannelOptions['metadata'];
      readonly message: Buffer;
      readonly more: 'none' | 'open';
    },
  ): void {
    if (this.#isEnded) return;
    let stream: ClientHttp2Stream;
    try {
      stream = session.request({ ...fixedHead, ...request.metadata, ':path': request.path });
    } catch (error) {
      this.end(notConnected(error));
      return;
    }
    this.#stream = stream;
    listen(
      stream,
      { where: 'store' },
      {
        response: (headers: IncomingHttpHeaders) => this.#receiveHeaders(headers),
        trailers: (headers: IncomingHttpHeaders) => this.#receiveHeaders(headers),
        data: (chunk: Buffer) => this.#receive(chunk),
        end: () => this.#finish(),
        close: () => this.#finish(stream.rstCode),
      },
    );
    // The `close` event reports the failure.
    ignoreErrors(stream);
    const frame = messageFrame(request.message);
    if (request.more === 'none') stream.end(frame);
    else stream.write(frame);
  }

  cancel(): void {
    if (this.#isEnded) return;
    this.#markEnded();
    this.#stream?.close(constants.NGHTTP2_CANCEL);
  }

  end(error: CallError | undefined): void {
    if (this.#isEnded) return;
    this.#markEnded();
    // A stream that both sides have ended closes on its own.
    const hasClosed = this.#stream?.writableEnded === true && this.#stream.readableEnded;
    if (!hasClosed) this.#stream?.close(constants.NGHTTP2_CANCEL);
    this.#handlers.onEnd(error);
  }

  #markEnded(): void {
    this.#isEnded = true;
    this.#onEnded();
  }

  #receiveHeaders(headers: IncomingHttpHeaders): void {
    const code = headers['grpc-status'];
    const http = headers[':status'];
    if (code !== undefined) {
      this.#status = { code: Number(code), details: detailsIn(headers['grpc-message']) };
    } else if (http !== undefined && Number(http) !== 200) {
      const details = `the server returned HTTP status ${http}`;
      this.#status = { code: statusCode.unavailable, details };
    }
  }

  #receive(chunk: Buffer): void {
    if (this.#isEnded) return;
    try {
      for (const message of this.#messages.push(chunk)) {
        if (!this.#isEnded) this.#handlers.onMessage(message);
      }
    } catch (error) {
      this.end(new CallError({ code: statusCode.internal, details: String(error) }));
    }
  }

  /** @param rstCode why the stream was closed, if it was */
  #finish(rstCode?: number): void {
    if (this.#isEnded) return;
    const status = this.#status;
    if (status !== undefined) {
      this.end(status.code === statusCode.ok ? undefined : new CallError(status));
    } else if (rstCode === constants.NGHTTP2_REFUSED_STREAM) {
      this.end(notConnected('the server refused the call without processing it'));
    } else if (rstCode !== undefined) {
      const details = 'the connection was lost';
      this.end(new CallError({ code: statusCode.unavailable, details }));
    }
  }
}

/** Decodes the percent-encoded message of a status. */
function detailsIn(message: string | string[] | undefined): string {
  const text = Array.isArray(message) ? message.join() : (message ?? '');
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
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
