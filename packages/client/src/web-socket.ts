import type { Agent, IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import type { Duplex } from 'node:stream';
import { listen, whenAborted } from '@wheelhouse/machinery';
import WebSocket, { createWebSocketStream } from 'ws';

/** A connection that carries messages, each as one chunk of its stream. */
export interface MessageConnection {
  /** The protocol that the server chose. */
  readonly protocol: string;
  /** Reads and writes whole messages as Buffers. Ending it closes the connection. */
  readonly messages: Duplex;
}

const handshakeTimeoutMs = 30_000;
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
 * Opens a WebSocket. Rejects with WebSocketRefused if the server refuses, with the network error if
 * it is unreachable or chooses no protocol, and with the signal's reason.
 */
export function openWebSocket(options: {
  readonly url: URL;
  readonly protocols: readonly string[];
  readonly agent: Agent;
  readonly headers: OutgoingHttpHeaders;
  readonly signal: AbortSignal | undefined;
}): Promise<MessageConnection> {
  const { url, protocols, agent, headers, signal } = options;
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
      open: () => resolve({ protocol: socket.protocol, messages }),
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
