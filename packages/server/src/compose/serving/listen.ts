import {
  type Clock,
  type Exchange,
  errorText,
  type LoopOccupancy,
  type MemoryBudget,
  type MetricRegistry,
  type OnExchange,
  type ResponseHeaders,
  type Timer,
} from '@wheelhouse/machinery';
import { Pattern } from '@wheelhouse/schema';
import { auditIdOf } from '../../request/request-state.ts';
import { type HttpServer, startHttpServer } from '../../serving/server.ts';
import type { ServerConfig } from '../config.ts';
import { openConsole } from '../console.ts';
import { FlagError } from '../flags/flags.ts';
import { connectionsWithin } from '../limits/memory.ts';
import type { OpenServingTls } from './serving-tls.ts';

/** Listens: the console's requests are its own, all others `answer`'s. */
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
  const webConsole = openConsole(config);
  const onExchange = withFilters(config, (exchange) =>
    webConsole?.takes(exchange.url) === true ? webConsole.answer(exchange) : on.answer(exchange),
  );
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

/** Where clients on this machine reach the server, without a slash at the end. */
export function urlOf(config: ServerConfig, server: HttpServer): string {
  const scheme = config.listen.tls === 'plaintext' ? 'http' : 'https';
  const { host, port } = server.address;
  const reachable = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host;
  return `${scheme}://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`;
}

/**
 * Puts before `answer` what flags want of every request. Where they want nothing `answer` itself is
 * given back, so that nothing is paid for what is off. Throws FlagError for bad patterns.
 */
function withFilters(config: ServerConfig, answer: OnExchange): OnExchange {
  const { strictTransport, allowedOrigins } = config.traffic ?? {};
  let filtered = answer;
  if (allowedOrigins !== undefined) {
    const answered = createCrossOrigin(allowedOrigins);
    filtered = (exchange) => (answered(exchange) ? undefined : answer(exchange));
  }
  if (strictTransport === undefined || config.listen.tls === 'plaintext') return filtered;
  const headers = { 'strict-transport-security': strictTransport };
  return (exchange) => {
    exchange.addHeaders?.(headers);
    return filtered(exchange);
  };
}

/** Paths that are answered to the end of a stop, and when memory is short. */
const servedToTheEnd = ['/readyz', '/livez', '/healthz', '/metrics'];
const body = Buffer.from('The apiserver is shutting down, please try again later.\n');

/** Whether a path is answered whatever state the server is in. */
function isAlwaysServed(url: string): boolean {
  return servedToTheEnd.some((path) => url.startsWith(path));
}

/** The answer to what comes while the server stops; undefined for what is served all the same. */
export function refusalWhileStopping(exchange: Exchange) {
  if (isAlwaysServed(exchange.url)) return undefined;
  const headers = {
    'audit-id': auditIdOf(exchange),
    'content-type': 'text/plain; charset=utf-8',
    'retry-after': '5',
    'x-content-type-options': 'nosniff',
  };
  return { status: 429, headers, body };
}

const shared: ResponseHeaders = {
  'access-control-allow-methods': 'POST, GET, OPTIONS, PUT, DELETE, PATCH',
  'access-control-allow-headers':
    'Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, X-Requested-With, If-Modified-Since',
  'access-control-expose-headers': 'Date',
  'access-control-allow-credentials': 'true',
};

const noBytes = Buffer.alloc(0);

/**
 * Lets pages of other origins use the API: requests that come from one that a pattern allows are
 * answered with what a browser wants to read, and its question beforehand (OPTIONS) is answered here,
 * before anybody is asked who it is. Gives a filter, which tells whether it has answered. Throws
 * FlagError for patterns that are none, or might match more hosts than they name.
 */
function createCrossOrigin(patterns: readonly string[]): (exchange: Exchange) => boolean {
  const isAllowed = originTest(patterns);
  return (exchange) => {
    const origin = exchange.header('origin');
    if (origin === undefined || origin === '' || !isAllowed(origin)) return false;
    const headers = { 'access-control-allow-origin': origin, ...shared };
    if (exchange.method !== 'OPTIONS') {
      exchange.addHeaders?.(headers);
      return false;
    }
    const always = { 'audit-id': auditIdOf(exchange), 'cache-control': 'no-cache, private' };
    exchange.send({ status: 204, headers: { ...always, ...headers }, body: noBytes });
    return true;
  };
}

/** Tells which origins the patterns allow. Throws FlagError as `createCrossOrigin` does. */
export function originTest(patterns: readonly string[]): (origin: string) => boolean {
  const tests = patterns.map(readPattern);
  return (origin) => tests.some((test) => test(origin));
}

function readPattern(pattern: string): (origin: string) => boolean {
  if (pattern === '') throw new FlagError('empty value in --cors-allowed-origins');
  const wrong = (what: string) =>
    new FlagError(`--cors-allowed-origins has an invalid regular expression: ${what}`);
  let compiled: Pattern;
  try {
    compiled = new Pattern(pattern);
  } catch (error) {
    throw wrong(errorText(error));
  }
  if (/\^|\/\//.test(pattern) && /[$:]/.test(pattern)) return (origin) => compiled.test(origin);
  throw wrong('regular expression does not pin to start/end of host in the origin header');
}

/** Callbacks that run once, when the server begins to end its streams. */
interface ShutdownSignal {
  subscribe(callback: () => void): { close(): void };
  fire(): void;
}

/** Streams that are ended in a second at least, however long they may take: upstream's figure. */
const perSecondMin = 200;
const stepMs = 25;

/**
 * The signal. With a grace period (`--shutdown-watch-termination-grace-period`) the callbacks run
 * spread over it, so that those who watch do not all come to another server at once.
 */
export function createShutdownSignal(options: {
  readonly clock: Clock;
  readonly graceMs?: number | undefined;
}): ShutdownSignal {
  const { clock, graceMs = 0 } = options;
  const callbacks = new Set<() => void>();
  const run = (atMost: number): void => {
    for (const callback of [...callbacks].slice(0, atMost)) {
      callbacks.delete(callback);
      callback();
    }
  };
  return {
    subscribe(callback) {
      callbacks.add(callback);
      return { close: () => callbacks.delete(callback) };
    },
    fire() {
      if (graceMs <= 0) return run(callbacks.size);
      const perSecond = Math.max((callbacks.size * 1000) / graceMs, perSecondMin);
      const atOnce = Math.ceil((perSecond * stepMs) / 1000);
      const until = clock.monotonic() + graceMs;
      run(atOnce);
      const timer: Timer = clock.every(stepMs, () => {
        run(clock.monotonic() >= until ? callbacks.size : atOnce);
        if (callbacks.size === 0) timer.stop();
      });
    },
  };
}

/** What counts handshakes that fail. */
function handshakeCounter(registry: MetricRegistry): () => void {
  const counter = registry
    .counter({
      name: 'apiserver_tls_handshake_errors_total',
      help: 'Connections on which client and server could not agree how to speak TLS.',
      stability: 'ALPHA',
      labels: [],
    })
    .of();
  return () => counter.add(1);
}

/** What counts connections that are closed to keep the limit on open ones (TRUST-4). */
function closedConnectionCounter(registry: MetricRegistry): () => void {
  const counter = registry
    .counter({
      name: 'wheelhouse_connections_closed_total',
      help: 'Connections that were closed to keep the limit on open connections.',
      stability: 'ALPHA',
      labels: [],
    })
    .of();
  return () => counter.add(1);
}
