import { networkInterfaces } from 'node:os';
import { type ServerPeers, startDefaultService } from '../controllers/default-service.ts';
import { createInside } from '../controllers/inside.ts';
import type { Dialect } from '../dialect.ts';
import { defaultServiceRanges, readServiceRanges } from '../kinds/core/service/ranges.ts';
import { parseIpAddress, specialRanges } from '../meta/ip-address.ts';
import type { Api } from './api.ts';
import type { ServerConfig } from './config.ts';

/** Keeps the server's own Service; nothing to do for a server without TLS. */
export function startOwnService(options: {
  readonly config: ServerConfig;
  readonly dialect: Dialect;
  readonly api: Api;
  /** The port that the server listens on. */
  readonly port: number;
  /** Other servers on the same store. */
  readonly peers?: ServerPeers | undefined;
}): { close(): Promise<void> } | undefined {
  const { config, dialect, api, port, peers } = options;
  const { registry, catalogue } = api;
  const ranges = readServiceRanges(config.serviceRanges ?? defaultServiceRanges);
  if (config.listen.tls === 'plaintext' || 'error' in ranges) return undefined;
  const def = (group: string, resource: string) => {
    const found = catalogue.snapshot().builtin(group, resource);
    if (found === undefined) throw new Error(`the catalogue has no ${resource}`);
    return found;
  };
  const [{ family, addressOf }] = ranges.addresses;
  const ip = reachableAddress(config, family);
  return startDefaultService({
    defs: {
      services: def('', 'services'),
      endpoints: def('', 'endpoints'),
      endpointSlices: def(dialect.group('discovery'), 'endpointslices'),
    },
    dialect,
    place: {
      clusterIp: addressOf(0),
      port,
      ...(ip === undefined ? {} : { ip }),
      ...(peers === undefined ? {} : { peers }),
    },
    caches: registry.caches,
    inside: createInside({
      registry,
      controller: 'default-service-controller',
      groups: ['system:masters'],
    }),
    clock: config.clock,
    logger: config.logger,
  });
}

/** Where others reach this server, if it is to be in its own Service's endpoints. */
export function ownAddress(config: ServerConfig): string | undefined {
  const ranges = readServiceRanges(config.serviceRanges ?? defaultServiceRanges);
  if (config.listen.tls === 'plaintext' || 'error' in ranges) return undefined;
  return reachableAddress(config, ranges.addresses[0].family);
}

/** What was advertised or is listened on, else any address of this machine but loopback's. */
function reachableAddress(config: ServerConfig, family: 'IPv4' | 'IPv6'): string | undefined {
  const said = [config.advertiseAddress, config.listen.host];
  const own = Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .filter((address) => address.family === family)
    .map(({ address }) => address);
  return [...said, ...own].find((text) => text !== undefined && isReachable(text));
}

function isReachable(text: string): boolean {
  const address = parseIpAddress(text);
  return address !== undefined && !Object.values(specialRanges).some((within) => within(address));
}
