import type { Agent, IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import type { Duplex } from 'node:stream';
import { type Clock, listen, whenAborted } from '@wheelhouse/machinery';
import WebSocket, { createWebSocketStream } from 'ws';

/** A connection that carries messages, each as one chunk of its stream. */
export interface MessageConnection {
  /** The protocol that the server chose. */
  readonly protocol: string;
  /** Reads and writes whole messages as Buffers. Ending it closes the connection. */
  readonly messages: Duplex;
}

const handshakeTimeoutMs = 30_000;
/** Period of pings, which keep proxies from closing an idle connection. */
const pingMs = 5_000;
/** Time without a response to pings after which the connection counts as lost, as for kubectl. */
const silenceMsMax = 61_000;
/** Maximum size in bytes of the body of a refusal. */
const refusalBytesMax = 64 * 1024;

/** The server refused the upgrade to a WebSocket. */
export class WebSocketRefused extends Error {
  override readonly name = 'WebSocketRefused';
  readonly status: number;
  readonly body: Buffer;

  constructor(status: number, body: Buffer) {
    super(`the server answered with status ${status}`);
    this.status = status;
    this.body = body;
  }
}

/**
 * Opens a WebSocket, and ends it if the other side no longer responds. Rejects with
 * WebSocketRefused if the server refuses, with the network error if it is unreachable or chooses no
 * protocol, and with the signal's reason.
 */
export function openWebSocket(options: {
  readonly url: URL;
  readonly protocols: readonly string[];
  readonly agent: Agent;
  readonly headers: OutgoingHttpHeaders;
  readonly signal: AbortSignal | undefined;
  readonly clock: Clock;
}): Promise<MessageConnection> {
  const { url, protocols, agent, headers, signal, clock } = options;
  const socket = new WebSocket(url, [...protocols], {
    agent,
    headers,
    handshakeTimeout: handshakeTimeoutMs,
    perMessageDeflate: false,
  });
  const messages = createWebSocketStream(socket, { readableObjectMode: true });
  const containment = { where: 'client', end: () => socket.terminate() } as const;
  return new Promise((resolve, reject) => {
    const release =
      signal === undefined
        ? () => {}
        : whenAborted(signal, containment, () => {
            messages.destroy();
            reject(signal.reason);
          });
    listen(messages, containment, { error: reject, close: release });
    listen(socket, containment, {
      open() {
        keepAlive(socket, clock);
        resolve({ protocol: socket.protocol, messages });
      },
      'unexpected-response': async (_request: unknown, response: IncomingMessage) => {
        try {
          reject(new WebSocketRefused(response.statusCode ?? 0, await readRefusal(response)));
        } catch (error) {
          reject(error);
        } finally {
          messages.destroy();
        }
      },
    });
  });
}

/** Sends pings until the connection ends, and ends it if they get no response. */
function keepAlive(socket: WebSocket, clock: Clock): void {
  let heardMs = clock.monotonic();
  const timer = clock.every(pingMs, () => {
    // A response may wait behind messages that nobody is reading.
    if (socket.isPaused) heardMs = clock.monotonic();
    if (clock.monotonic() - heardMs > silenceMsMax) socket.terminate();
    else if (socket.readyState === WebSocket.OPEN) socket.ping();
  });
  listen(
    socket,
    { where: 'client', end: () => socket.terminate() },
    {
      pong() {
        heardMs = clock.monotonic();
      },
      close: () => timer.stop(),
    },
  );
}

async function readRefusal(response: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > refusalBytesMax) break;
  }
  return Buffer.concat(chunks);
}
