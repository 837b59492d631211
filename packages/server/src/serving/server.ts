import type { Server as SecureServer } from 'node:https';
import type { AddressInfo, Server, Socket } from 'node:net';
import {
  type Clock,
  contained,
  type Exchange,
  hostInUrl,
  type Logger,
  listen as listenOn,
  type MemoryBudget,
  type OnExchange,
  type WholeResponse,
} from '@wheelhouse/machinery';
import { acceptHttp1, readAsStream } from './http1-server.ts';
import { acceptHttp2 } from './http2-server.ts';
import { defaultHttpLimits, type HttpLimits, limitConnections } from './limits.ts';
import {
  forgetCertificateErrors,
  noCertificate,
  plainServer,
  type ServingTls,
  secureServer,
} from './node-servers.ts';
import { type LoopOccupancy, ServerCore } from './server-core.ts';

interface ListenOptions {
  readonly host: string;
  /** 0 takes any free port. */
  readonly port: number;
  /** Unencrypted HTTP/1.1 must be requested explicitly. */
  readonly tls: ServingTls | 'plaintext';
  /** `off`: only HTTP/1.1. */
  readonly http2?: 'on' | 'off';
}

/** A listening server, whose connections are HTTP/1.1 or HTTP/2. */
export interface HttpServer {
  readonly address: { readonly host: string; readonly port: number };
  /** Number of requests whose answer is not complete. */
  readonly inFlight: number;
  /**
   * Uses these certificates for new handshakes; open connections keep theirs. Throws and changes
   * nothing if one does not match its key. Certificates by name can be replaced only if there were
   * some at the start.
   */
  replaceCertificate(tls: ServingTls): void;
  /**
   * Continues to accept connections, but answers new requests with `refusal`, as the last answer on
   * their connection; requests without a refusal are served. Resolves when all earlier requests
   * except streams have been answered, or after `timeoutMs`.
   */
  turnAway(options: {
    refusal: (exchange: Exchange) => WholeResponse | undefined;
    timeoutMs: number;
  }): Promise<void>;
  /**
   * Stops accepting connections, asks clients to disconnect (GOAWAY, `connection: close`), calls
   * `endStreams` so that the application ends long-running answers, waits for requests in flight,
   * and closes. Connections that remain after `timeoutMs` are destroyed.
   * @returns whether everything finished in time
   */
  drain(options: { timeoutMs: number; endStreams?: () => void }): Promise<{ complete: boolean }>;
  /** Stops immediately and destroys all connections. */
  close(): Promise<void>;
}

interface HttpServerOptions {
  readonly listen: ListenOptions;
  readonly onExchange: OnExchange;
  /** Probability with which an HTTP/2 request ends its connection with GOAWAY; 0 when absent. */
  readonly goAwayChance?: number;
  /** Called when a TLS handshake fails. */
  readonly onHandshakeFailed?: () => void;
  /** Called when a connection is closed to keep `connectionsMax`. */
  readonly onConnectionClosed?: () => void;
  readonly limits?: Partial<HttpLimits>;
  /** Budget for memory that clients cause (TRUST-4); unlimited when absent. */
  readonly memory?: MemoryBudget;
  /** Paths that are served even without memory left. */
  readonly isAlwaysServed?: (url: string) => boolean;
  readonly logger: Logger;
  readonly clock: Clock;
  /** Attributes time of the event loop to exchanges. */
  readonly occupancy?: LoopOccupancy;
}

/**
 * Serves HTTP/2 and HTTP/1.1 over TLS, or unencrypted HTTP/1.1. Client certificates are requested
 * but not verified, which is the task of `gates/authn/`. Rejects with Node's error if the port is in use.
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
  acceptHttp1(server, core);
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
  // A connection that cannot be accepted (too many open files) does not affect others.
  const refused = (error: Error) => logger.error('cannot accept a connection', { error });
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
 * Returns a function that destroys all connections, including those that have sent no request and
 * are unknown to the core: they would delay a stop until their timeout.
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

/** Polls instead of counting, so that requests pay nothing for it. */
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

/** Milliseconds for clients to read their last answer and close, once nothing is in flight. */
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

function ignore(): void {}

/** Faults of a new connection do not stop the server. */
const accepting = { where: 'http1', end: ignore } as const;

/** Names the address of a port that is in use. */
function unlistenable(error: unknown, { host, port }: ListenOptions): unknown {
  if (!(error instanceof Error && 'code' in error && error.code === 'EADDRINUSE')) return error;
  const text = `cannot listen on ${hostInUrl(host)}:${port}: another program uses the port (EADDRINUSE)`;
  return new Error(text, { cause: error });
}

function listening(server: Server, listen: ListenOptions): Promise<HttpServer['address']> {
  return new Promise((resolve, reject) => {
    const fail = (error: unknown) => reject(unlistenable(error, listen));
    const stop = listenOn(server, accepting, { error: fail });
    const started = contained({ where: 'http1', end: reject }, () => {
      stop();
      const address = server.address() as AddressInfo;
      resolve({ host: address.address, port: address.port });
    });
    server.listen({ host: listen.host, port: listen.port }, started);
  });
}
