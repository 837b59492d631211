import { networkInterfaces } from 'node:os';
import { defaultServiceRanges, readServiceRanges } from '@wheelhouse/kinds';
import {
  type Clock,
  type Exchange,
  eventCounter,
  hostInUrl,
  ipVersion,
  type MemoryBudget,
  type MetricRegistry,
  type OnExchange,
  parseIpAddress,
  pendingPromise,
  type ResponseHeaders,
  specialRanges,
  type Timer,
} from '@wheelhouse/machinery';
import { auditIdOf } from '../../request/request-state.ts';
import { connectionsWithin } from '../../serving/memory.ts';
import { type HttpServer, startHttpServer } from '../../serving/server.ts';
import type { LoopOccupancy } from '../../serving/server-core.ts';
import type { ServerConfig } from '../config.ts';
import { withConsole } from '../console.ts';
import type { OpenServingTls } from './serving-tls.ts';

/** Listens for requests: the console answers its own, `answer` all others. */
export async function listen(
  config: ServerConfig,
  serving: OpenServingTls,
  on: {
    readonly answer: OnExchange;
    readonly registry: MetricRegistry;
    readonly memory: MemoryBudget;
    readonly occupancy: LoopOccupancy;
  },
): Promise<HttpServer> {
  const { limits, logger } = config;
  const clock = config.embedding?.connectionClock ?? config.clock;
  const { streamsPerConnectionMax, connectionsMax = connectionsWithin() } = limits;
  const { host, port, secure } = config.listen;
  const { goAwayChance } = config.traffic ?? {};
  const onExchange = withFilters(config, withConsole(config, on.answer));
  const server = await startHttpServer({
    listen: {
      host,
      port,
      tls: serving.tls,
      ...(secure === undefined ? {} : { http2: secure.http2 }),
    },
    onExchange,
    onHandshakeFailed: handshakeCounter(on.registry),
    logger,
    clock,
    memory: on.memory,
    isAlwaysServed,
    occupancy: on.occupancy,
    ...(goAwayChance === undefined ? {} : { goAwayChance }),
    onConnectionClosed: closedConnectionCounter(on.registry),
    limits: {
      connectionsMax,
      ...(streamsPerConnectionMax === undefined ? {} : { streamsPerConnectionMax }),
    },
  });
  serving.follow(server);
  return server;
}

/** The server's URL for clients on this machine, without a trailing slash. */
export function urlOf(config: ServerConfig, server: HttpServer): string {
  const scheme = config.listen.tls === 'plaintext' ? 'http' : 'https';
  const { host, port } = server.address;
  const reachable = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host;
  return `${scheme}://${hostInUrl(reachable)}:${port}`;
}

/**
 * Wraps `answer` in the filters that flags configure; returns `answer` itself if there are none, so
 * that disabled filters cost nothing.
 */
function withFilters(config: ServerConfig, answer: OnExchange): OnExchange {
  const { strictTransport, allowsOrigin } = config.traffic ?? {};
  let filtered = answer;
  if (allowsOrigin !== undefined) {
    const answersPreflight = createCrossOrigin(allowsOrigin);
    filtered = (exchange) => (answersPreflight(exchange) ? undefined : answer(exchange));
  }
  if (strictTransport === undefined || config.listen.tls === 'plaintext') return filtered;
  const headers = { 'strict-transport-security': strictTransport };
  return (exchange) => {
    exchange.addHeaders?.(headers);
    return filtered(exchange);
  };
}

/** Paths that are answered until the end of a shutdown, and when memory is short. */
const servedToTheEnd = ['/readyz', '/livez', '/healthz', '/metrics'];
const shutdownBody = Buffer.from('The apiserver is shutting down, please try again later.\n');

/** Whether a path is answered in any state of the server. */
function isAlwaysServed(url: string): boolean {
  return servedToTheEnd.some((path) => url.startsWith(path));
}

/** The answer to new requests during shutdown; undefined for paths that are always served. */
export function refusalWhileStopping(exchange: Exchange) {
  if (isAlwaysServed(exchange.url)) return undefined;
  const headers = {
    'audit-id': auditIdOf(exchange),
    'content-type': 'text/plain; charset=utf-8',
    'retry-after': '5',
    'x-content-type-options': 'nosniff',
  };
  return { status: 429, headers, body: shutdownBody };
}

const crossOriginHeaders: ResponseHeaders = {
  'access-control-allow-methods': 'POST, GET, OPTIONS, PUT, DELETE, PATCH',
  'access-control-allow-headers':
    'Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, X-Requested-With, If-Modified-Since',
  'access-control-expose-headers': 'Date',
  'access-control-allow-credentials': 'true',
};

const noBytes = Buffer.alloc(0);

/**
 * Implements CORS: requests from an allowed origin get the response headers that browsers require,
 * and preflight requests (OPTIONS) are answered here, ahead of authentication. Returns a filter
 * that reports whether it answered.
 */
function createCrossOrigin(
  isAllowed: (origin: string) => boolean,
): (exchange: Exchange) => boolean {
  return (exchange) => {
    const origin = exchange.header('origin');
    if (origin === undefined || origin === '' || !isAllowed(origin)) return false;
    const headers = { 'access-control-allow-origin': origin, ...crossOriginHeaders };
    if (exchange.method !== 'OPTIONS') {
      exchange.addHeaders?.(headers);
      return false;
    }
    const always = { 'audit-id': auditIdOf(exchange), 'cache-control': 'no-cache, private' };
    exchange.send({ status: 204, headers: { ...always, ...headers }, body: noBytes });
    return true;
  };
}

/** Callbacks that run once, when the server begins to end its streams. */
interface ShutdownSignal {
  /** A callback that is added after the signal runs soon, but not before this returns. */
  subscribe(callback: () => void): { close(): void };
  fire(): void;
}

/**
 * Minimum number of streams ended per second for any grace period; kube-apiserver's figure.
 */
const perSecondMin = 200;
const stepMs = 25;

/**
 * Creates the signal. With a grace period (`--shutdown-watch-termination-grace-period`) the
 * callbacks are spread over it, so that watchers do not all reconnect to another server at once.
 */
export function createShutdownSignal({
  clock,
  graceMs = 0,
}: {
  readonly clock: Clock;
  readonly graceMs: number | undefined;
}): ShutdownSignal {
  const callbacks = new Set<() => void>();
  let isFired = false;
  const run = (atMost: number): void => {
    for (const callback of [...callbacks].slice(0, atMost)) {
      callbacks.delete(callback);
      callback();
    }
  };
  return {
    subscribe(callback) {
      callbacks.add(callback);
      const late = isFired
        ? clock.after(0, () => {
            if (callbacks.delete(callback)) callback();
          })
        : undefined;
      return {
        close() {
          callbacks.delete(callback);
          late?.stop();
        },
      };
    },
    fire() {
      isFired = true;
      if (graceMs <= 0) return run(callbacks.size);
      const perSecond = Math.max((callbacks.size * 1000) / graceMs, perSecondMin);
      const perStep = Math.ceil((perSecond * stepMs) / 1000);
      const endMs = clock.monotonic() + graceMs;
      run(perStep);
      const timer: Timer = clock.every(stepMs, () => {
        run(clock.monotonic() >= endMs ? callbacks.size : perStep);
        if (callbacks.size === 0) timer.stop();
      });
    },
  };
}

/** Counts failed handshakes. */
function handshakeCounter(registry: MetricRegistry): () => void {
  return eventCounter(registry, {
    name: 'apiserver_tls_handshake_errors_total',
    help: 'Number of failed TLS handshakes.',
    stability: 'ALPHA',
  });
}

/** Counts connections closed to stay within the limit on open connections (TRUST-4). */
function closedConnectionCounter(registry: MetricRegistry): () => void {
  return eventCounter(registry, {
    name: 'wheelhouse_connections_closed_total',
    help: 'Number of connections closed to stay within the limit on open connections.',
    stability: 'ALPHA',
  });
}

/** The address that the server reports to clients (API-11, AUTHN-6). */
export interface ReportedAddress {
  /** `host:port` as URLs spell it. */
  text(): string;
  /** The port; for port 0 it resolves once the server listens. */
  readonly port: Promise<number>;
  /** Sets the actual port. */
  listensOn(port: number): void;
}

/** Creates the reported address: the advertised or listening one, or a local one for a wildcard. */
export function createReportedAddress(config: ServerConfig): ReportedAddress {
  const { host, port } = config.listen;
  const isAny = host === '0.0.0.0' || host === '::';
  const family = host === '::' ? 'IPv6' : 'IPv4';
  const advertised =
    config.advertiseAddress ?? (isAny ? reachableAddress(config, family) : host) ?? host;
  let actualPort = port;
  const { promise: listening, resolve: resolvePort } = pendingPromise<number>();
  if (port !== 0) resolvePort(port);
  const { externalHost } = config;
  const reportedHost = externalHost === undefined ? hostInUrl(advertised) : hostOf(externalHost);
  return {
    text: () =>
      reportedHost === undefined ? String(externalHost) : `${reportedHost}:${actualPort}`,
    port: listening,
    listensOn(listenPort) {
      actualPort = listenPort;
      resolvePort(listenPort);
    },
  };
}

/** The host as it precedes a port; undefined when `text` already has a port. */
function hostOf(text: string): string | undefined {
  if (ipVersion(text) === 6) return `[${text}]`;
  return /:\d*$/.test(text) ? undefined : text;
}

/** The address of this server in its own Service's endpoints; undefined if it has none there. */
export function ownAddress(config: ServerConfig): string | undefined {
  const ranges = readServiceRanges(config.serviceRanges ?? defaultServiceRanges);
  if (config.listen.tls === 'plaintext' || 'error' in ranges) return undefined;
  return reachableAddress(config, ranges.addresses[0].family);
}

/** The advertised or listening address, otherwise any address of this machine except loopback. */
export function reachableAddress(
  config: ServerConfig,
  family: 'IPv4' | 'IPv6',
): string | undefined {
  const configured = [config.advertiseAddress, config.listen.host];
  const own = Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .filter((address) => address.family === family)
    .map(({ address }) => address);
  return [...configured, ...own].find((text) => text !== undefined && isReachable(text));
}

function isReachable(text: string): boolean {
  const address = parseIpAddress(text);
  return address !== undefined && !Object.values(specialRanges).some((within) => within(address));
}
