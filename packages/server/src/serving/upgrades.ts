import { type IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Readable } from 'node:stream';
import { listen, type TakenConnection } from '@wheelhouse/machinery';

/** A request that node has given away together with its connection. */
export interface Upgrading {
  /** The request's body, which node no longer reads. */
  readonly body: Readable;
  /** Answers as if the client had not asked for another protocol; the connection ends with it. */
  readonly response: ServerResponse;
  /** Gives up on answering, for who goes on in another protocol. */
  release(): TakenConnection;
}

/**
 * Makes an ordinary request again of one that asks for another protocol, since whether it gets that
 * is not the transport's to say. Undefined when its body comes in chunks: node has stopped reading
 * HTTP here, and who asks for another protocol sends no such body.
 */
export function upgrading(options: {
  readonly request: IncomingMessage;
  readonly socket: Socket;
  /** What has come behind the request's headers. */
  readonly head: Buffer;
}): Upgrading | undefined {
  const { request, head, socket } = options;
  if (request.headers['transfer-encoding'] !== undefined) return undefined;
  const bodyBytes = Number(request.headers['content-length'] ?? 0);
  const { body, stop } = bodyOf({ socket, head, bodyBytes });
  const response = new ServerResponse(request);
  response.shouldKeepAlive = false;
  response.assignSocket(socket);
  // Node's server, which does these things otherwise, has let go of the connection.
  const containment = { where: 'http1', end: () => socket.destroy() } as const;
  const stopDraining = listen(socket, containment, { drain: () => response.emit('drain') });
  listen(response, containment, {
    finish() {
      stop();
      response.detachSocket(socket);
      socket.resume();
      socket.destroySoon();
    },
  });
  return {
    body,
    response,
    release() {
      stop();
      stopDraining();
      response.detachSocket(socket);
      return { socket, head: bodyBytes > 0 ? Buffer.alloc(0) : head };
    },
  };
}

/** The bytes of a body, taken from the connection as they are wanted. */
function bodyOf(from: {
  readonly socket: Socket;
  readonly head: Buffer;
  readonly bodyBytes: number;
}): { readonly body: Readable; stop(): void } {
  const { socket } = from;
  let left = from.bodyBytes;
  const body = new Readable({
    read() {
      if (left > 0) socket.resume();
    },
  });
  const take = (bytes: Buffer) => {
    const piece = bytes.subarray(0, left);
    left -= piece.length;
    if (piece.length > 0 && !body.push(piece)) socket.pause();
    if (left > 0) return;
    stop();
    body.push(null);
  };
  const stop = left > 0 ? listen(socket, { where: 'http1' }, { data: take }) : () => {};
  take(from.head);
  return { body, stop };
}
