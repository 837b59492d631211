import type { Agent, IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

/** How long before its server's timeout a connection is closed, milliseconds. */
const closingMarginMs = 1_000;

/** Closes an agent's idle connections now, and the others when their requests end. */
export function retireAgent(agent: Agent): void {
  agent.maxFreeSockets = 0;
  for (const sockets of Object.values(agent.freeSockets)) {
    for (const socket of sockets ?? []) socket.destroy();
  }
}

/**
 * Makes an agent close idle connections after a time, or shortly before the timeout that a server
 * announces: a request on a connection that the server is closing fails.
 * @param idleMs the time in milliseconds
 * @returns notes the timeout in the `Keep-Alive` header of a response; to be called for each
 */
export function expireIdle(agent: Agent, idleMs: number): (response: IncomingMessage) => void {
  const limitMs = new WeakMap<Duplex, number>();
  const keepSocketAlive = agent.keepSocketAlive.bind(agent);
  agent.keepSocketAlive = (socket: Duplex) => {
    const keptMs = Math.min(idleMs, limitMs.get(socket) ?? idleMs);
    // The declared return type is void, but the method returns whether the socket is kept.
    const isKept: unknown = keepSocketAlive(socket);
    if (keptMs <= 0 || isKept === false) return false;
    (socket as Socket).setTimeout(keptMs);
    return true;
  };
  return ({ socket, headers }) => {
    const seconds = /^timeout=(\d{1,6})/.exec(String(headers['keep-alive'] ?? ''))?.[1];
    if (seconds !== undefined) limitMs.set(socket, Number(seconds) * 1000 - closingMarginMs);
  };
}
