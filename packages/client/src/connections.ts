import http, { type IncomingMessage } from 'node:http';
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect as connectHttp2,
  constants,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
} from 'node:http2';
import https from 'node:https';
import type { Socket } from 'node:net';
import { type Duplex, Readable } from 'node:stream';
import type { ConnectionOptions, TLSSocket } from 'node:tls';
import {
  andThen,
  contained,
  hostInUrl,
  ipVersion,
  listen,
  whenAborted,
} from '@wheelhouse/machinery';
import { retireAgent } from './idle-connections.ts';
import { type AgentCallback, connectVerified, VerifyingAgent } from './server-certificate.ts';
import { SharedTrust } from './shared-trust.ts';

/** Time without incoming data after which a connection with active calls is probed. */
const probeDelayMs = 30_000;
/** Time without calls after which a connection is closed. */
export const idleMs = 90_000;

interface Http2Response {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Readable;
}

/** The server did not process the call, so that a retry on another connection is safe. */
export class NotProcessed extends Error {}

interface Dialing {
  readonly done: Promise<SharedSession | undefined>;
  abort(): void;
  waiters: number;
}

/**
 * The HTTP/2 connection that all calls to a server share. If the server chooses HTTP/1.1 instead,
 * the connection moves to `agent`, which serves all further calls.
 */
export class SharedConnection {
  readonly agent: https.Agent;
  readonly #origin: string;
  readonly #tls: ConnectionOptions;
  readonly #trust = new SharedTrust();
  #session: SharedSession | undefined;
  #dialing: Dialing | undefined;
  #isHttp1 = false;
  #spare: TLSSocket | undefined;

  /** Opens no connection before the first call. */
  constructor(base: URL, options: https.AgentOptions) {
    const host = base.hostname.replace(/^\[|\]$/g, '');
    this.#origin = base.origin;
    this.#tls = {
      ...(options as ConnectionOptions),
      host,
      port: base.port === '' ? 443 : Number(base.port),
      servername: options.servername ?? (ipVersion(host) === 0 ? host : ''),
      ALPNProtocols: ['h2', 'http/1.1'],
    };
    this.agent = new SpareAgent(options, () => this.#takeSpare());
  }

  /**
   * Resolves with the session for a call, or with undefined if calls go through the agent. Rejects
   * if the server is unreachable, and with an AbortError.
   */
  session(signal: AbortSignal | undefined): Promise<SharedSession | undefined> {
    const session = this.#session;
    if (session?.isOpen === true) return Promise.resolve(session);
    if (this.#isHttp1) return Promise.resolve(undefined);
    this.#dialing ??= this.#dial();
    return awaitDialing(this.#dialing, signal);
  }

  /** Closes the connections after their active calls end. */
  close(): void {
    this.#dialing?.abort();
    this.#takeSpare()?.destroy();
    this.#session?.close();
    this.#session = undefined;
    retireAgent(this.agent);
  }

  #takeSpare(): TLSSocket | undefined {
    const spare = this.#spare;
    this.#spare = undefined;
    return spare?.destroyed === true ? undefined : spare;
  }

  #dial(): Dialing {
    let socket: TLSSocket | undefined;
    let isAborted = false;
    const connect = (options: ConnectionOptions) => {
      if (isAborted) throw connectionClosed();
      socket = connectVerified(options);
      return this.#whenConnected(socket);
    };
    const done = Promise.resolve(andThen(this.#trust.optionsFor(this.#tls), connect));
    const clearDialing = () => {
      this.#dialing = undefined;
    };
    done.then(clearDialing, clearDialing);
    const abort = () => {
      isAborted = true;
      socket?.destroy();
    };
    return { done, abort, waiters: 0 };
  }

  #whenConnected(socket: TLSSocket): Promise<SharedSession | undefined> {
    return new Promise((resolve, reject) => {
      const stop = listen(
        socket,
        { where: 'client' },
        {
          secureConnect: () => {
            if (socket.destroyed) return;
            stop();
            resolve(this.#connected(socket));
          },
          error: reject,
          close: () => reject(connectionClosed()),
        },
      );
    });
  }

  #connected(socket: TLSSocket): SharedSession | undefined {
    if (socket.alpnProtocol !== 'h2') {
      this.#isHttp1 = true;
      // An error only makes the socket unusable; the agent detects that when it takes the socket.
      socket.on('error', () => {});
      this.#spare = socket;
      return undefined;
    }
    this.#session = new SharedSession(this.#origin, socket);
    return this.#session;
  }
}

/** An HTTP/2 session on one connection. */
export class SharedSession {
  readonly #session: ClientHttp2Session;
  #calls = 0;
  #isProbed = false;

  constructor(origin: string, socket: TLSSocket) {
    this.#session = connectHttp2(origin, { createConnection: () => socket });
    this.#session.setTimeout(idleMs);
    const timeout = () => this.#handleTimeout();
    // Active calls fail with the session and report the error.
    listen(this.#session, { where: 'client' }, { error: () => {}, timeout });
  }

  /** Whether the session accepts calls. */
  get isOpen(): boolean {
    return !this.#session.closed && !this.#session.destroyed;
  }

  /**
   * Sends a call. Resolves when the response headers arrive. Rejects with NotProcessed if another
   * connection may serve the call, with an AbortError, or with the network error.
   */
  send(
    headers: OutgoingHttpHeaders,
    options: {
      readonly body: Buffer | string | undefined;
      readonly signal: AbortSignal | undefined;
    },
  ): Promise<Http2Response> {
    const { body, signal } = options;
    const stream = this.#session.request(headers, {
      endStream: body === undefined,
      ...(signal === undefined ? {} : { signal }),
    });
    this.#callStarted();
    const response = new Promise<Http2Response>((resolve, reject) => {
      listen(
        stream,
        { where: 'client' },
        {
          response: (received: IncomingHttpHeaders) =>
            resolve({
              status: Number(received[':status']),
              headers: received,
              body: bodyOf(stream),
            }),
          error: (error: NodeJS.ErrnoException) => reject(callError(error, stream)),
          close: () => {
            this.#callEnded();
            reject(connectionReset());
          },
        },
      );
    });
    if (body !== undefined) stream.end(body);
    return response;
  }

  /** Closes the session after its active calls end. */
  close(): void {
    this.#session.close();
  }

  #callStarted(): void {
    this.#calls += 1;
    if (this.#calls > 1) return;
    this.#session.ref();
    this.#session.setTimeout(probeDelayMs);
  }

  #callEnded(): void {
    this.#calls -= 1;
    if (this.#calls > 0 || this.#session.destroyed) return;
    this.#session.unref();
    this.#session.setTimeout(idleMs);
  }

  /** Called after the timeout without incoming data: closes an idle connection, or probes it. */
  #handleTimeout(): void {
    if (this.#calls === 0) {
      this.close();
      return;
    }
    if (this.#isProbed) {
      this.#session.destroy(connectionReset());
      return;
    }
    this.#isProbed = true;
    this.#session.setTimeout(probeDelayMs);
    this.#session.ping(
      contained({ where: 'client', end: () => this.#session.destroy() }, () => {
        this.#isProbed = false;
      }),
    );
  }
}

const connectionReset = () => Object.assign(new Error('connection reset'), { code: 'ECONNRESET' });

/** The body of a response. Fails if the server ends it early, which Node reports as its end. */
function bodyOf(stream: ClientHttp2Stream): Readable {
  const body = Readable.from(chunksOf(stream), { objectMode: false });
  listen(body, { where: 'client' }, { close: () => stream.destroy() });
  return body;
}

async function* chunksOf(stream: ClientHttp2Stream): AsyncGenerator<Buffer> {
  const { id } = stream;
  try {
    for await (const chunk of stream as AsyncIterable<Buffer>) yield chunk;
  } catch (error) {
    const { rstCode } = stream;
    throw error instanceof Error ? callError(error, { rstCode, id }) : error;
  }
  if (stream.rstCode !== constants.NGHTTP2_NO_ERROR) throw connectionReset();
}

/** The error of a failed call, with Node's HTTP/2 errors replaced by network errors. */
function callError(
  error: NodeJS.ErrnoException,
  { rstCode, id }: Pick<ClientHttp2Stream, 'rstCode' | 'id'>,
): Error {
  if (error.name === 'AbortError') return error;
  const { code = '' } = error;
  if (rstCode === constants.NGHTTP2_REFUSED_STREAM || code === 'ERR_HTTP2_GOAWAY_SESSION') {
    return new NotProcessed('the server did not process the call', { cause: error });
  }
  const resetCode = /NGHTTP2_(\w+)$/.exec(error.message)?.[1];
  if (code === 'ERR_HTTP2_STREAM_ERROR' && resetCode !== undefined) {
    const message = `stream error: stream ID ${id}; ${resetCode}; received from peer`;
    return Object.assign(new Error(message, { cause: error }), { code });
  }
  return code.startsWith('ERR_HTTP2_') ? Object.assign(connectionReset(), { cause: error }) : error;
}

/** Waits for a connection attempt, and cancels it when the last waiter aborts. */
async function awaitDialing(
  dialing: Dialing,
  signal: AbortSignal | undefined,
): Promise<SharedSession | undefined> {
  dialing.waiters += 1;
  // A caller without a signal never aborts, so it stays counted.
  if (signal === undefined) return dialing.done;
  let release = () => {};
  const aborted = new Promise<never>((_resolve, reject) => {
    release = whenAborted(signal, { where: 'client' }, () => reject(abortError(signal)));
  });
  try {
    return await Promise.race([dialing.done, aborted]);
  } finally {
    release();
    dialing.waiters -= 1;
    if (signal.aborted && dialing.waiters === 0) dialing.abort();
  }
}

const connectionClosed = () =>
  Object.assign(new Error('the connection was closed'), { code: 'ECONNRESET' });

/** The error of a call that its caller canceled. */
export const abortError = (signal: AbortSignal) =>
  Object.assign(new Error('The operation was aborted', { cause: signal.reason }), {
    name: 'AbortError',
    code: 'ABORT_ERR',
  });

/** An agent that first uses a connection that already exists. */
class SpareAgent extends VerifyingAgent {
  readonly #spare: () => TLSSocket | undefined;

  constructor(options: https.AgentOptions, spare: () => TLSSocket | undefined) {
    super(options);
    this.#spare = spare;
  }

  override createConnection(
    options: https.RequestOptions,
    callback?: AgentCallback,
  ): Duplex | null | undefined {
    return this.#spare() ?? super.createConnection(options, callback);
  }
}

type ConnectCallback = (error: Error | null, socket?: Socket) => void;

const connectedCallback =
  (callback: AgentCallback | undefined): ConnectCallback =>
  (error, socket) =>
    callback?.(error, socket as Duplex);

/** The destination of a connection, as Node passes it to an agent. */
interface Destination {
  readonly host?: string | null | undefined;
  readonly port?: string | number | null | undefined;
}

/** Time without data after which a proxy, or a TLS handshake through it, fails; milliseconds. */
const proxyTimeoutMs = 30_000;

/** Options of a request whose tunnel, if it is not yet open, closes when the signal aborts. */
export interface Cancelable {
  readonly canceled?: AbortSignal | undefined;
}

/** Destroys a connection that is being opened when the signal aborts; returns how to stop that. */
function closeIfCanceled(
  opening: { destroy(error: Error): unknown },
  { canceled }: Cancelable,
): () => void {
  if (canceled === undefined) return () => {};
  return whenAborted(canceled, { where: 'client' }, () => opening.destroy(connectionClosed()));
}

/** Opens connections to a server without TLS, each through a tunnel of the proxy. */
export class TunnelAgent extends http.Agent {
  readonly #proxyUrl: string;

  constructor(proxyUrl: string) {
    super({ keepAlive: true });
    this.#proxyUrl = proxyUrl;
  }

  override createConnection(
    options: http.ClientRequestArgs & Cancelable,
    callback?: AgentCallback,
  ): undefined {
    const { canceled } = options;
    const tunnel = { proxyUrl: this.#proxyUrl, to: options, canceled };
    openTunnel(tunnel, connectedCallback(callback));
  }
}

/** Like TunnelAgent, with TLS to the server inside the tunnel. */
class SecureTunnelAgent extends https.Agent {
  readonly #proxyUrl: string;
  readonly #trust = new SharedTrust();

  constructor(proxyUrl: string, options: https.AgentOptions) {
    super(options);
    this.#proxyUrl = proxyUrl;
  }

  override createConnection(
    options: https.RequestOptions & Cancelable,
    callback?: AgentCallback,
  ): undefined {
    const connected = connectedCallback(callback);
    const { ca, allowPartialTrustChain, rejectUnauthorized, canceled } = options;
    const trust = { ca, allowPartialTrustChain, rejectUnauthorized };
    const tunnel = { proxyUrl: this.#proxyUrl, to: options, trust, canceled };
    openTunnel(tunnel, (error, socket) => {
      if (error !== null || socket === undefined) return connected(error, socket);
      this.#secure({ ...(options as ConnectionOptions), socket }, connected);
    });
  }

  #secure(options: ConnectionOptions & Cancelable, connected: ConnectCallback): void {
    const failed = (fault: Error): void => connected(fault);
    const connect = (complete: ConnectionOptions) => {
      const secured = connectVerified(complete);
      const release = closeIfCanceled(secured, options);
      secured.setTimeout(proxyTimeoutMs);
      const stop = listen(
        secured,
        { where: 'client' },
        {
          error(fault: Error) {
            release();
            failed(fault);
          },
          timeout: () => secured.destroy(new Error('the server does not answer')),
          secureConnect() {
            if (secured.destroyed) return;
            stop();
            release();
            secured.setTimeout(0);
            connected(null, secured);
          },
        },
      );
    };
    const complete = this.#trust.optionsFor(options);
    if (complete instanceof Promise) complete.then(connect).catch(failed);
    else connect(complete);
  }
}

/** An agent for connections to servers with TLS, through the tunnels of a proxy if there is one. */
export function secureAgent(
  options: https.AgentOptions,
  proxyUrl: string | undefined,
): VerifyingAgent | SecureTunnelAgent {
  return proxyUrl === undefined
    ? new VerifyingAgent(options)
    : new SecureTunnelAgent(proxyUrl, options);
}

interface Tunnel extends Cancelable {
  readonly proxyUrl: string;
  readonly to: Destination;
  /** Trust settings for a proxy with TLS, the same as for the server. */
  readonly trust?: Pick<
    https.RequestOptions,
    'ca' | 'allowPartialTrustChain' | 'rejectUnauthorized'
  >;
}

/** The code of the error for a proxy whose address is not an http or https URL. */
export const unsupportedProxyCode = 'UNSUPPORTED_PROXY';

/** The address of a proxy and its credential; undefined if it is not an http or https URL. */
function parseProxy(text: string) {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:') return undefined;
  try {
    const credential = [url.username, url.password].map(decodeURIComponent).join(':');
    return { url, credential };
  } catch {
    return undefined;
  }
}

/**
 * Requests a tunnel to the destination from the proxy, and passes its socket to `connected`. Errors
 * do not contain the proxy's URL, which may have a password.
 */
function openTunnel({ proxyUrl, to, trust, canceled }: Tunnel, connected: ConnectCallback): void {
  const parsed = parseProxy(proxyUrl);
  if (parsed === undefined) {
    const error = new Error('the proxy is not an http or https URL');
    connected(Object.assign(error, { code: unsupportedProxyCode }));
    return;
  }
  const { url: proxy, credential } = parsed;
  const secure = proxy.protocol === 'https:';
  const authority = `${hostInUrl(to.host ?? '')}:${to.port}`;
  const authorization = `Basic ${Buffer.from(credential).toString('base64')}`;
  const request = (secure ? https : http).request({
    method: 'CONNECT',
    hostname: proxy.hostname.replace(/^\[|\]$/g, ''),
    port: proxy.port === '' ? (secure ? 443 : 80) : Number(proxy.port),
    path: authority,
    headers: {
      host: authority,
      ...(proxy.username === '' ? {} : { 'proxy-authorization': authorization }),
    },
    agent: false,
    timeout: proxyTimeoutMs,
    ...(secure ? trust : {}),
  });
  const release = closeIfCanceled(request, { canceled });
  listen(
    request,
    { where: 'client' },
    {
      connect(response: IncomingMessage, socket: Socket) {
        release();
        if (response.statusCode === 200) return connected(null, socket);
        socket.destroy();
        connected(new Error(`the proxy answered ${response.statusCode} to CONNECT`));
      },
      timeout: () => request.destroy(new Error('the proxy does not answer')),
      error(error: Error) {
        release();
        connected(error);
      },
    },
  );
  request.end();
}
