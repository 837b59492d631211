import { createServer } from 'node:http';
import { createServer as createSecureServer, type Server as SecureServer } from 'node:https';
import type { AddressInfo, Server, Socket } from 'node:net';
import { createSecureContext, type TLSSocket } from 'node:tls';
import { Http2Connection, type Http2Stream } from '@wheelhouse/http2';
import {
  type Clock,
  contained,
  containedEach,
  type Exchange,
  ignoreErrors,
  type Logger,
  type LoopOccupancy,
  listenEach,
  listen as listenOn,
  type MemoryBudget,
  type OnExchange,
  random,
  type WholeResponse,
} from '@wheelhouse/machinery';
import { limitConnections } from './connection-limit.ts';
import { acceptHttp1, readAsStream } from './http1-server.ts';
import { Http2Exchange } from './http2-exchange.ts';
import { defaultHttpLimits, type HttpLimits } from './limits.ts';
import { ServerCore } from './server-core.ts';
import { type CertificatePair, createNameChoice, type NameAnswer } from './server-names.ts';
import { forgetCertificateErrors } from './tls-errors.ts';

/** The serving certificate, and how TLS is spoken. */
export interface ServingTls extends CertificatePair {
  /** OpenSSL's list of suites; the modern ones when absent. */
  readonly ciphers?: string;
  /** TLS 1.2 when absent. */
  readonly minVersion?: SecureVersion;
  /** Certificates for clients that ask for these names, in lower case; `*` for a first label. */
  readonly named?: ReadonlyMap<string, CertificatePair>;
  /** PEM bundles whose subjects a client is told, so that it picks the certificate that counts. */
  readonly clientAuthorities?: readonly string[];
}

export type SecureVersion = 'TLSv1' | 'TLSv1.1' | 'TLSv1.2' | 'TLSv1.3';

export interface ListenOptions {
  readonly host: string;
  /** 0 takes any free port. */
  readonly port: number;
  /** Plain HTTP/1.1 must be asked for by name. */
  readonly tls: ServingTls | 'plaintext';
  /** `off`: clients may speak HTTP/1.1 alone. */
  readonly http2?: 'on' | 'off';
}

export interface HttpServer {
  readonly address: { readonly host: string; readonly port: number };
  /** Requests whose answer is not complete. */
  readonly inFlight: number;
  /**
   * From now on requests that ask for another protocol may be given it (`Exchange.takeOver`). Until
   * then such a wish is left aside, as most who utter it (`h2c`) do well without.
   */
  takeUpgrades(): void;
  /**
   * New handshakes use these certificates; open connections keep theirs. Throws, and changes nothing,
   * when one does not fit its key. Certificates by name can be exchanged, but not be the first.
   */
  replaceCertificate(tls: ServingTls): void;
  /**
   * Goes on accepting, but gives what `refusal` answers to what comes from now on, as the last answer
   * on its connection; what it has none for is served. Resolves when all that was in flight is
   * answered but for streams, or after `timeoutMs`.
   */
  turnAway(options: {
    refusal: (exchange: Exchange) => WholeResponse | undefined;
    timeoutMs: number;
  }): Promise<void>;
  /**
   * Stops accepting, tells clients to go (GOAWAY, `connection: close`), calls `endStreams` so that
   * the application ends its long-running answers, waits for what is in flight, then closes. What is
   * still there after `timeoutMs` is cut off.
   * @returns whether everything finished in time
   */
  drain(options: { timeoutMs: number; endStreams?: () => void }): Promise<{ complete: boolean }>;
  /** Stops at once and cuts everything off. */
  close(): Promise<void>;
}

export interface HttpServerOptions {
  readonly listen: ListenOptions;
  readonly onExchange: OnExchange;
  /** Which part of HTTP/2's requests makes its connection the last of it; none when absent. */
  readonly goAwayChance?: number;
  /** A client and the server could not agree on how to speak. */
  readonly onHandshakeFailed?: () => void;
  /** A connection was closed to keep `connectionsMax`. */
  readonly onConnectionClosed?: () => void;
  readonly limits?: Partial<HttpLimits>;
  /** What clients may make the server hold (TRUST-4); anything when absent. */
  readonly memory?: MemoryBudget;
  /** Paths that are served however little memory is left. */
  readonly isAlwaysServed?: (url: string) => boolean;
  readonly logger: Logger;
  readonly clock: Clock;
  /** Is told for which exchange the thread works. */
  readonly occupancy?: LoopOccupancy;
}

/**
 * Serves HTTP/2 and HTTP/1.1 over TLS, or HTTP/1.1 in plain. Client certificates are asked for but
 * not verified: that belongs to `authn/`. Rejects with the host's error when the port is taken.
 */
export async function startHttpServer(options: HttpServerOptions): Promise<HttpServer> {
  const { listen, clock, logger, onExchange, memory, isAlwaysServed, occupancy } = options;
  const limits = { ...defaultHttpLimits, ...options.limits };
  const core = new ServerCore({
    clock,
    limits,
    logger,
    onExchange,
    memory,
    isAlwaysServed,
    occupancy,
  });
  const { server, replaceCertificate } =
    listen.tls === 'plaintext'
      ? { server: plainServer(limits), replaceCertificate: noCertificate }
      : secureServer(listen.tls, listen, limits);
  const http1 = acceptHttp1(server, core);
  if (listen.tls === 'plaintext') listenOn(server, accepting, { connection: readAsStream });
  else {
    forgetCertificateErrors(server as SecureServer);
    acceptHttp2(server as SecureServer, core, options);
  }
  const address = await listening(server, listen);
  limitConnections({
    server,
    connectionsMax: limits.connectionsMax,
    peers: () => core.connections,
    onClosed: options.onConnectionClosed ?? ignore,
  });
  // A connection that cannot be accepted, for want of files for example, concerns no other.
  const refused = (error: Error) => logger.error('a connection was not accepted', { error });
  listenOn(server, accepting, { error: refused });
  const sweep = clock.every(limits.sweepPeriodMs, () => core.sweep());
  const cutOff = followSockets(server, core);

  const close = (): Promise<void> => {
    sweep.stop();
    return new Promise((resolve) => {
      server.close(() => resolve());
      cutOff();
    });
  };
  return {
    address,
    get inFlight() {
      return core.inFlight;
    },
    takeUpgrades: http1.takeUpgrades,
    replaceCertificate,
    turnAway({ refusal, timeoutMs }) {
      core.turnAway(refusal);
      return settling({ core, clock, timeoutMs });
    },
    async drain({ timeoutMs, endStreams }) {
      const stopped = new Promise<void>((resolve) => server.close(() => resolve()));
      const quiet = core.drain();
      if (endStreams !== undefined) contained({ where: 'watch' }, endStreams)();
      const complete = await within({ clock, timeoutMs, task: quiet });
      sweep.stop();
      if (complete) await within({ clock, timeoutMs: partingMs, task: stopped });
      cutOff();
      await stopped;
      return { complete };
    },
    close,
  };
}

/**
 * Gives what cuts all connections off, those too that the core has not heard of since they have not
 * asked anything: one that never gets so far would hold up a stop until it is too slow.
 */
function followSockets(server: Server, core: ServerCore): () => void {
  const sockets = new Set<Socket>();
  listenOn(server, accepting, {
    connection(socket: Socket) {
      sockets.add(socket);
      listenOn(socket, { where: 'http1' }, { close: () => sockets.delete(socket) });
    },
  });
  return () => {
    core.destroyConnections();
    for (const socket of sockets) socket.destroy();
  };
}

const settleStepMs = 20;

/** Looks now and then rather than counts, so that requests pay nothing for it. */
function settling(of: { core: ServerCore; clock: Clock; timeoutMs: number }): Promise<void> {
  const { core, clock } = of;
  const until = clock.monotonic() + of.timeoutMs;
  return new Promise((resolve) => {
    const timer = clock.every(settleStepMs, () => {
      if (!core.settled && clock.monotonic() < until) return;
      timer.stop();
      resolve();
    });
  });
}

/** How long clients get to read their last answer and close, once nothing is in flight. */
const partingMs = 250;

async function within(options: {
  clock: Clock;
  timeoutMs: number;
  task: Promise<void>;
}): Promise<boolean> {
  let stop = (): void => {};
  const timeout = new Promise<boolean>((resolve) => {
    const timer = options.clock.after(options.timeoutMs, () => resolve(false));
    stop = () => timer.stop();
  });
  const complete = await Promise.race([options.task.then(() => true), timeout]);
  stop();
  return complete;
}

function http1Timeouts(limits: HttpLimits): {
  headersTimeout: number;
  requestTimeout: number;
  keepAliveTimeout: number;
  connectionsCheckingInterval: number;
} {
  return {
    headersTimeout: limits.headersTimeoutMs,
    requestTimeout: limits.headersTimeoutMs + limits.bodyTimeoutMs,
    keepAliveTimeout: limits.idleTimeoutMs,
    connectionsCheckingInterval: limits.sweepPeriodMs,
  };
}

/**
 * Answers go out at once; a client that vanished without a word, its watches still open, is found
 * out by the host after upstream's three minutes of silence.
 */
const socketOptions = { noDelay: true, keepAlive: true, keepAliveInitialDelay: 180_000 } as const;

function plainServer(limits: HttpLimits): Server {
  const maxHeaderSize = limits.headerBytesMax;
  // A request without Host is refused in its turn (`http1-server.ts`), not at once.
  const requireHostHeader = false;
  return createServer({
    ...socketOptions,
    ...http1Timeouts(limits),
    maxHeaderSize,
    requireHostHeader,
  });
}

function noCertificate(): void {
  throw new Error('a plain server has no certificate');
}

function secureServer(
  tls: ServingTls,
  { http2 }: Pick<ListenOptions, 'http2'>,
  limits: HttpLimits,
): { server: SecureServer; replaceCertificate(tls: ServingTls): void } {
  let choose = nameChoice(tls);
  const end = (error: unknown, _name: string, answer: NameAnswer) => answer(error as Error);
  const byName = (name: string, answer: NameAnswer) => choose(name, answer);
  const server = createSecureServer({
    ...secureContext(tls),
    ...(tls.named === undefined
      ? {}
      : { SNICallback: containedEach({ where: 'tls', end }, byName) }),
    ...socketOptions,
    ...http1Timeouts(limits),
    ALPNProtocols: http2 === 'off' ? ['http/1.1'] : ['h2', 'http/1.1'],
    requestCert: true,
    rejectUnauthorized: false,
    handshakeTimeout: limits.tlsHandshakeTimeoutMs,
    maxHeaderSize: limits.headerBytesMax,
    requireHostHeader: false,
  });
  return {
    server,
    replaceCertificate(changed) {
      const choice = nameChoice(changed);
      server.setSecureContext(secureContext(changed));
      choose = choice;
    },
  };
}

function nameChoice(tls: ServingTls): (name: string, answer: NameAnswer) => void {
  const contextOf = (pair: CertificatePair) =>
    createSecureContext(secureContext({ ...tls, ...pair }));
  return createNameChoice({ named: tls.named ?? new Map(), usual: tls, contextOf });
}

/**
 * Without authorities of its own a context gets those of the public web, which takes longer to read
 * than all the rest of a start. Those it has are named to clients; what they say is not relied on.
 */
function secureContext(tls: ServingTls): {
  ca: string[];
  cert: string | Buffer;
  key: string | Buffer;
  minVersion: SecureVersion;
  ciphers: string;
} {
  const { minVersion = 'TLSv1.2' } = tls;
  const isOld = minVersion === 'TLSv1' || minVersion === 'TLSv1.1';
  const ciphers = tls.ciphers ?? (isOld ? `${modernCiphers}:${oldCiphers}` : modernCiphers);
  return {
    ca: [...(tls.clientAuthorities ?? [])],
    cert: tls.certificate,
    key: tls.key,
    minVersion,
    // The library speaks the old versions at its lowest level alone.
    ciphers: isOld ? `${ciphers}:@SECLEVEL=0` : ciphers,
  };
}

/** Forward secrecy and authenticated encryption only, as upstream's default list. */
const modernCiphers = [
  'TLS_AES_128_GCM_SHA256',
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-CHACHA20-POLY1305',
  'ECDHE-RSA-CHACHA20-POLY1305',
].join(':');

/** What versions before 1.2 have of forward secrecy. */
const oldCiphers = [
  'ECDHE-ECDSA-AES128-SHA',
  'ECDHE-RSA-AES128-SHA',
  'ECDHE-ECDSA-AES256-SHA',
  'ECDHE-RSA-AES256-SHA',
].join(':');

/**
 * Takes the connections whose client has chosen HTTP/2 away from node's HTTP/1.1 server, before that
 * sees them.
 */
function acceptHttp2(
  server: SecureServer,
  core: ServerCore,
  options: Pick<HttpServerOptions, 'onHandshakeFailed' | 'goAwayChance'>,
): void {
  const { onHandshakeFailed = ignore, goAwayChance = 0 } = options;
  const listeners = server.listeners('secureConnection') as ((socket: TLSSocket) => void)[];
  server.removeAllListeners('secureConnection');
  // A handshake that fails is no malformed request to be answered; its socket is destroyed as it is.
  server.removeAllListeners('tlsClientError');
  listenOn(server, { where: 'tls', end: ignore }, { tlsClientError: onHandshakeFailed });
  const begin = (stream: Http2Stream, connection: Http2Connection): void => {
    core.begin(new Http2Exchange({ stream, connection, core, onClosed }));
  };
  const beginAndMayLeave: typeof begin = (stream, connection) => {
    begin(stream, connection);
    if (random() < goAwayChance) connection.retire();
  };
  const onRequest = goAwayChance > 0 ? beginAndMayLeave : begin;
  const onClosed = (exchange: Http2Exchange): void => core.end(exchange);
  const accept = (socket: TLSSocket): void => {
    if (socket.alpnProtocol !== 'h2') {
      for (const listener of listeners) listener.call(server, socket);
      readAsStream(socket);
      return;
    }
    ignoreErrors(socket);
    const connection = new Http2Connection({ socket, core, onRequest });
    core.connected(connection);
    listenOn(socket, { where: 'http2' }, { close: () => core.disconnected(connection) });
    if (core.draining) connection.retire();
  };
  const end = (socket: TLSSocket) => socket.destroy();
  listenEach(server, 'secureConnection', { where: 'tls', run: accept, end });
}

function ignore(): void {}

/** A fault at a new connection does not stop the server that accepts them. */
const accepting = { where: 'http1', end: ignore } as const;

function listening(server: Server, listen: ListenOptions): Promise<HttpServer['address']> {
  return new Promise((resolve, reject) => {
    const stop = listenOn(server, accepting, { error: reject });
    const started = contained({ where: 'http1', end: reject }, () => {
      stop();
      const address = server.address() as AddressInfo;
      resolve({ host: address.address, port: address.port });
    });
    server.listen({ host: listen.host, port: listen.port }, started);
  });
}
