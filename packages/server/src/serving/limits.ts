import type { Server, Socket } from 'node:net';
import type { PeerConnection } from '@wheelhouse/http2';
import { listen, listenEach } from '@wheelhouse/machinery';

/** Limits on the cost of one client. Times are in milliseconds, sizes in bytes. */
export interface HttpLimits {
  /** Request line and headers together, HTTP/1.1 and HTTP/2. */
  readonly headerBytesMax: number;
  /** Path and query; a longer one is answered 414. */
  readonly urlBytesMax: number;
  /** From the first byte of a request to the end of its headers (HTTP/1.1). */
  readonly headersTimeoutMs: number;
  readonly tlsHandshakeTimeoutMs: number;
  /** From requesting a body to its last byte. */
  readonly bodyTimeoutMs: number;
  /** How long an answer may make no progress before it is aborted. Streams are not limited. */
  readonly writeTimeoutMs: number;
  /** How long a connection without a request in flight is kept. */
  readonly idleTimeoutMs: number;
  /** How often the time limits are checked, which determines their precision. */
  readonly sweepPeriodMs: number;
  /**
   * Concurrent HTTP/2 streams of one connection, well above what clients use for all their watches
   * and requests; further streams are refused with a retriable error.
   */
  readonly streamsPerConnectionMax: number;
  /** Open connections; above the limit a new one replaces an idle one. */
  readonly connectionsMax: number;
  /** After a 413, how much of the body is still read so that the client sees the answer. */
  readonly discardBytesMax: number;
  readonly discardTimeoutMs: number;
}

/** The defaults; timeouts for headers and idle connections are kube-apiserver's. */
export const defaultHttpLimits: HttpLimits = {
  headerBytesMax: 128 * 1024,
  urlBytesMax: 64 * 1024,
  headersTimeoutMs: 32_000,
  tlsHandshakeTimeoutMs: 10_000,
  bodyTimeoutMs: 60_000,
  writeTimeoutMs: 60_000,
  idleTimeoutMs: 90_000,
  sweepPeriodMs: 5_000,
  streamsPerConnectionMax: 1000,
  connectionsMax: Number.POSITIVE_INFINITY,
  discardBytesMax: 64 * 1024 * 1024,
  discardTimeoutMs: 2_000,
};

/** Connections accepted above the limit while others close to make room. */
const closingMax = 16;

interface Options {
  readonly server: Server;
  readonly connectionsMax: number;
  /** The connections whose client has sent something. */
  readonly peers: () => Iterable<PeerConnection>;
  /** Called for each connection that is closed to keep the limit. */
  readonly onClosed: () => void;
}

/**
 * Limits a server to `connectionsMax` open connections, so that the store can still open files
 * (TRUST-4). A new connection replaces the oldest idle one of the owner with the most connections;
 * if none is idle, the oldest of an owner with more than half of all; otherwise it is closed
 * itself. A connection is idle while it has no request in flight.
 */
export function limitConnections(options: Options): void {
  const { server, connectionsMax } = options;
  if (!Number.isFinite(connectionsMax)) return;
  server.maxConnections = connectionsMax + closingMax;
  /** In order of arrival. */
  const sockets = new Set<Socket>();
  const admit = (socket: Socket): void => {
    sockets.add(socket);
    listen(socket, { where: 'http1' }, { close: () => sockets.delete(socket) });
    if (sockets.size <= connectionsMax) return;
    const newcomer = { socket, peer: undefined };
    const victim = victimAmong(sockets, { newest: socket, peers: options.peers() }) ?? newcomer;
    sockets.delete(victim.socket);
    if (victim.peer === undefined) victim.socket.destroy();
    else victim.peer.cutOff();
    options.onClosed();
  };
  const end = (socket: Socket) => void socket.destroy();
  listenEach(server, 'connection', { where: 'http1', run: admit, end });
}

interface Candidate {
  readonly socket: Socket;
  readonly peer: PeerConnection | undefined;
}

interface Holding {
  count: number;
  readonly oldest: Candidate;
  idle: Candidate | undefined;
}

function victimAmong(
  sockets: ReadonlySet<Socket>,
  { newest, peers }: { readonly newest: Socket; readonly peers: Iterable<PeerConnection> },
): Candidate | undefined {
  const byPeer = new Map(Array.from(peers, (peer) => [endOf(peer.socket), peer]));
  const holdings = new Map<string, Holding>();
  for (const socket of sockets) {
    const candidate = { socket, peer: byPeer.get(endOf(socket)) };
    const { peer } = candidate;
    const owner = peer?.memory.owner ?? `address ${socket.remoteAddress}`;
    let holding = holdings.get(owner);
    if (holding === undefined) {
      holding = { count: 0, oldest: candidate, idle: undefined };
      holdings.set(owner, holding);
    }
    holding.count += 1;
    const isIdle = (peer === undefined || peer.active === 0) && socket !== newest;
    if (isIdle) holding.idle ??= candidate;
  }
  const largest = [...holdings.values()].sort((left, right) => right.count - left.count);
  const idle = largest.find((holding) => holding.idle !== undefined)?.idle;
  const [first] = largest;
  const hasMost = first !== undefined && first.count > sockets.size / 2;
  return idle ?? (hasMost ? first.oldest : undefined);
}

/** The client's endpoint, which a TLS socket shares with its underlying socket. */
function endOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
