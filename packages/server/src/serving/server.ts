import type { Server as SecureServer } from 'node:https';
import type { AddressInfo, Server, Socket } from 'node:net';
import {
  type Clock,
  contained,
  type Exchange,
  type Logger,
  type LoopOccupancy,
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
import { ServerCore } from './server-core.ts';

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
   * New handshakes use these certificates; open connections keep theirs. Throws, and changes
   * nothing, when one does not fit its key. Certificates by name can be exchanged, but not be the
   * first.
   */
  replaceCertificate(tls: ServingTls): void;
  /**
   * Goes on accepting, but gives what `refusal` answers to what comes from now on, as the last
   * answer on its connection; what it has none for is served. Resolves when all that was in flight
   * is answered but for streams, or after `timeoutMs`.
   */
  turnAway(options: {
    refusal: (exchange: Exchange) => WholeResponse | undefined;
    timeoutMs: number;
  }): Promise<void>;
  /**
   * Stops accepting, tells clients to go (GOAWAY, `connection: close`), calls `endStreams` so that
   * the application ends its long-running answers, waits for what is in flight, then closes. What
   * is still there after `timeoutMs` is cut off.
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
