import { isIP } from 'node:net';
import { networkInterfaces } from 'node:os';
import { defaultServiceRanges, readServiceRanges } from '@wheelhouse/kinds';
import { parseIpAddress, specialRanges } from '@wheelhouse/machinery';
import type { ServerConfig } from '../config.ts';

/** The address that the server reports to clients (API-11, AUTHN-6). */
export interface ReportedAddress {
  /** `host:port` as URLs spell it. */
  text(): string;
  /** The port; for port 0 it resolves once the server listens. */
  readonly port: Promise<number>;
  /** Sets the actual port. */
  listensOn(port: number): void;
}

/** The advertised or listening address, or one of the machine's addresses for a wildcard. */
export function createReportedAddress(config: ServerConfig): ReportedAddress {
  const { host, port } = config.listen;
  const isAny = host === '0.0.0.0' || host === '::';
  const family = host === '::' ? 'IPv6' : 'IPv4';
  const said = config.advertiseAddress ?? (isAny ? reachableAddress(config, family) : host) ?? host;
  const shown = said.includes(':') ? `[${said}]` : said;
  let listened = port;
  let resolvePort = (_port: number) => {};
  const listening = new Promise<number>((resolve) => {
    resolvePort = resolve;
  });
  if (port !== 0) resolvePort(port);
  const { externalHost } = config;
  const reportedHost = externalHost === undefined ? shown : hostOf(externalHost);
  return {
    text: () => (reportedHost === undefined ? String(externalHost) : `${reportedHost}:${listened}`),
    port: listening,
    listensOn(actual) {
      listened = actual;
      resolvePort(actual);
    },
  };
}

/** The host as it precedes a port; undefined when `text` already has a port. */
function hostOf(text: string): string | undefined {
  if (isIP(text) === 6) return `[${text}]`;
  return /:\d*$/.test(text) ? undefined : text;
}

/**
 * The address of this server in its own Service's endpoints; undefined if it does not belong there.
 */
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
