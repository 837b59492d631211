import type {
  LoopOccupancy,
  MemoryBudget,
  MetricRegistry,
  OnExchange,
} from '@wheelhouse/machinery';
import { type HttpServer, startHttpServer } from '../../serving/server.ts';
import type { ServerConfig } from '../config.ts';
import { openConsole } from '../console.ts';
import { connectionsWithin } from '../limits/memory.ts';
import { closedConnectionCounter, handshakeCounter } from './connection-metrics.ts';
import type { OpenServingTls } from './serving-tls.ts';
import { isAlwaysServed, withFilters } from './traffic.ts';

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
