import {
  type ClientHttp2Session,
  connect as connectHttp2,
  constants,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
} from 'node:http2';
import https from 'node:https';
import { isIP } from 'node:net';
import type { Duplex, Readable } from 'node:stream';
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from 'node:tls';
import { contained, listen, whenAborted } from '@wheelhouse/machinery';

/** A connection with calls under way on which nothing arrives for this long is probed. */
const quietMs = 30_000;
/** A connection without calls is closed after this time. */
const idleMs = 90_000;

export interface Http2Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Readable;
}

/** The call did not reach the server's program: another connection may serve it. */
export class NotProcessed extends Error {}

interface Dialing {
  readonly done: Promise<SharedSession | undefined>;
  readonly socket: TLSSocket;
  waiters: number;
}

/**
 * The connection to a server over TLS that all calls share while the server speaks HTTP/2. Of a
 * server that does not, the connection that showed it goes to `agent`, which serves all calls from
 * then on.
 */
export class SharedConnection {
  readonly agent: https.Agent;
  readonly #origin: string;
  readonly #tls: ConnectionOptions;
  #session: SharedSession | undefined;
  #dialing: Dialing | undefined;
  #isHttp1 = false;
  #spare: TLSSocket | undefined;

  /** Opens nothing before the first call. */
  constructor(base: URL, options: https.AgentOptions) {
    const host = base.hostname.replace(/^\[|\]$/g, '');
    this.#origin = base.origin;
    this.#tls = {
      ...(options as ConnectionOptions),
      host,
      port: base.port === '' ? 443 : Number(base.port),
      servername: options.servername ?? (isIP(host) === 0 ? host : ''),
      ALPNProtocols: ['h2', 'http/1.1'],
    };
    this.agent = new SpareAgent(options, () => this.#takeSpare());
  }

  /**
   * The session for a call; undefined where calls go through the agent. Rejects when the server
   * cannot be reached, or with the signal's reason.
   */
  session(signal: AbortSignal | undefined): Promise<SharedSession | undefined> {
    const session = this.#session;
    if (session?.isOpen === true) {
      return Promise.resolve(session);
    }
    if (this.#isHttp1) return Promise.resolve(undefined);
    this.#dialing ??= this.#dial();
    return awaited(this.#dialing, signal);
  }

  /** Lets calls under way end, and closes the connections behind them. */
  close(): void {
    this.#dialing?.socket.destroy();
    this.#takeSpare()?.destroy();
    this.#session?.close();
    this.#session = undefined;
    this.agent.destroy();
  }

  #takeSpare(): TLSSocket | undefined {
    const spare = this.#spare;
    this.#spare = undefined;
    return spare?.destroyed === true ? undefined : spare;
  }

  #dial(): Dialing {
    const socket = connectTls(this.#tls);
    const done = new Promise<SharedSession | undefined>((resolve, reject) => {
      const over = () => {
        this.#dialing = undefined;
      };
      const stop = listen(
        socket,
        { where: 'client' },
        {
          secureConnect: () => {
            over();
            stop();
            resolve(this.#connected(socket));
          },
          error: (error: Error) => {
            over();
            reject(error);
          },
          close: () => {
            over();
            reject(Object.assign(new Error('the connection was closed'), { code: 'ECONNRESET' }));
          },
        },
      );
    });
    done.catch(() => {});
    return { done, socket, waiters: 0 };
  }

  #connected(socket: TLSSocket): SharedSession | undefined {
    if (socket.alpnProtocol !== 'h2') {
      this.#isHttp1 = true;
      // Until the agent takes it, an error only makes it useless.
      socket.on('error', () => {});
      this.#spare = socket;
      return undefined;
    }
    this.#session = new SharedSession(this.#origin, socket);
    return this.#session;
  }
}

/** HTTP/2 on one connection. */
export class SharedSession {
  readonly #session: ClientHttp2Session;
  #calls = 0;
  #isProbed = false;

  constructor(origin: string, socket: TLSSocket) {
    this.#session = connectHttp2(origin, { createConnection: () => socket });
    this.#session.setTimeout(idleMs);
    const timeout = () => this.#quiet();
    // The calls on it fail with it, and are told why.
    listen(this.#session, { where: 'client' }, { error: () => {}, timeout });
  }

  /** Whether it takes further calls. */
  get isOpen(): boolean {
    return !this.#session.closed && !this.#session.destroyed;
  }

  /**
   * Sends a call; the answer is there with its head. Rejects with NotProcessed where another
   * connection may serve the call, with an AbortError, or with the network's error.
   */
  send(
    headers: OutgoingHttpHeaders,
    options: {
      readonly body: Buffer | string | undefined;
      readonly signal: AbortSignal | undefined;
    },
  ): Promise<Http2Answer> {
    const { body, signal } = options;
    const stream = this.#session.request(headers, {
      endStream: body === undefined,
      ...(signal === undefined ? {} : { signal }),
    });
    this.#began();
    const answer = new Promise<Http2Answer>((resolve, reject) => {
      listen(
        stream,
        { where: 'client' },
        {
          response: (received: IncomingHttpHeaders) =>
            resolve({
              status: Number(received[':status']),
              headers: received,
              body: stream as Readable,
            }),
          error: (error: NodeJS.ErrnoException) => reject(callError(error, stream.rstCode)),
          close: () => {
            this.#ended();
            reject(reset());
          },
        },
      );
    });
    if (body !== undefined) stream.end(body);
    return answer;
  }

  /** Lets calls under way end. */
  close(): void {
    this.#session.close();
  }

  #began(): void {
    this.#calls += 1;
    if (this.#calls > 1) return;
    this.#session.ref();
    this.#session.setTimeout(quietMs);
  }

  #ended(): void {
    this.#calls -= 1;
    if (this.#calls > 0 || this.#session.destroyed) return;
    this.#session.unref();
    this.#session.setTimeout(idleMs);
  }

  /** Nothing has arrived for a while. */
  #quiet(): void {
    if (this.#calls === 0) {
      this.close();
      return;
    }
    if (this.#isProbed) {
      this.#session.destroy(reset());
      return;
    }
    this.#isProbed = true;
    this.#session.setTimeout(quietMs);
    this.#session.ping(
      contained({ where: 'client', end: () => this.#session.destroy() }, () => {
        this.#isProbed = false;
      }),
    );
  }
}

const reset = () => Object.assign(new Error('connection reset'), { code: 'ECONNRESET' });

/** Why a call failed: Node's own words for the end of a connection say less than the network's. */
function callError(error: NodeJS.ErrnoException, rstCode: number | undefined): Error {
  if (error.name === 'AbortError') return error;
  const { code = '' } = error;
  if (rstCode === constants.NGHTTP2_REFUSED_STREAM || code === 'ERR_HTTP2_GOAWAY_SESSION') {
    return new NotProcessed('the server did not process the call', { cause: error });
  }
  return code.startsWith('ERR_HTTP2_') ? Object.assign(reset(), { cause: error }) : error;
}

/** Waits for a connection; when nobody waits any more, it is given up. */
async function awaited(
  dialing: Dialing,
  signal: AbortSignal | undefined,
): Promise<SharedSession | undefined> {
  dialing.waiters += 1;
  // It stays counted: somebody without a signal waits to the end.
  if (signal === undefined) return dialing.done;
  let release = () => {};
  const left = new Promise<never>((_resolve, reject) => {
    release = whenAborted(signal, { where: 'client' }, () => reject(abortError(signal)));
  });
  try {
    return await Promise.race([dialing.done, left]);
  } finally {
    release();
    dialing.waiters -= 1;
    if (signal.aborted && dialing.waiters === 0) dialing.socket.destroy();
  }
}

const abortError = (signal: AbortSignal) =>
  Object.assign(new Error('The operation was aborted', { cause: signal.reason }), {
    name: 'AbortError',
    code: 'ABORT_ERR',
  });

/** Begins with the connection that is there already. */
class SpareAgent extends https.Agent {
  readonly #spare: () => TLSSocket | undefined;

  constructor(options: https.AgentOptions, spare: () => TLSSocket | undefined) {
    super(options);
    this.#spare = spare;
  }

  override createConnection(
    options: https.RequestOptions,
    callback?: (error: Error | null, stream: Duplex) => void,
  ): Duplex | null | undefined {
    return this.#spare() ?? super.createConnection(options, callback);
  }
}
