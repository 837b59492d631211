import type { Agent, IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import type { Duplex } from 'node:stream';
import { listen, whenAborted } from '@wheelhouse/machinery';
import WebSocket, { createWebSocketStream } from 'ws';

/** A connection that carries messages, each as one chunk of its stream. */
export interface MessageConnection {
  /** The protocol that the server chose. */
  readonly protocol: string;
  /** Reads and writes whole messages as Buffers; ending it closes the connection. */
  readonly messages: Duplex;
}

const handshakeTimeoutMs = 30_000;
/** Maximum size of the body of a refusal. */
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
 * Opens a WebSocket. Rejects with WebSocketRefused, or with the network error if the server is
 * unreachable or chooses no protocol.
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
    const forget =
      signal === undefined
        ? () => {}
        : whenAborted(signal, containment, () => {
            messages.destroy();
            reject(signal.reason);
          });
    listen(messages, containment, { error: reject, close: forget });
    listen(socket, containment, {
      open: () => resolve({ protocol: socket.protocol, messages }),
      'unexpected-response': async (_request: unknown, answer: IncomingMessage) => {
        try {
          reject(new WebSocketRefused(answer.statusCode ?? 0, await refusalBody(answer)));
        } catch (error) {
          reject(error);
        } finally {
          messages.destroy();
        }
      },
    });
  });
}

async function refusalBody(answer: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of answer) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > refusalBytesMax) break;
  }
  return Buffer.concat(chunks);
}
