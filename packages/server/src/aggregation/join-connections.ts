import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { contained, listen, type TakenConnection } from '@wheelhouse/machinery';

/** The other side of a connection that goes on in another protocol. */
export interface UpgradedConnection {
  /** The answer that says so. */
  readonly answer: IncomingMessage;
  readonly socket: Duplex;
  /** What has come behind it already. */
  readonly head: Buffer;
}

/** Two connections that are one. */
export interface JoinedConnections {
  close(): void;
  /** Calls back once, when both have ended. */
  whenClosed(callback: () => void): void;
}

/**
 * Passes on the answer by which another server changes the protocol, and then all bytes both ways.
 * When one side has no more to say, the other gets what is on its way, and both are closed.
 */
export function joinConnections(
  client: TakenConnection,
  server: UpgradedConnection,
): JoinedConnections {
  const near = client.socket;
  const far = server.socket;
  let open = 2;
  let whenClosed = () => {};
  const end = () => {
    near.destroy();
    far.destroy();
  };
  const containment = { where: 'aggregation', end } as const;
  near.write(headOf(server.answer));
  if (server.head.length > 0) near.write(server.head);
  if (client.head.length > 0) far.write(client.head);
  for (const [one, other] of [
    [near, far],
    [far, near],
  ] as const) {
    listen(one, containment, {
      error: () => one.destroy(),
      end: () => destroySoon(other),
      close() {
        destroySoon(other);
        open -= 1;
        if (open === 0) whenClosed();
      },
    });
    one.pipe(other);
  }
  return {
    close: end,
    whenClosed(callback) {
      whenClosed = callback;
    },
  };
}

function destroySoon(socket: Duplex): void {
  if (socket.destroyed) return;
  socket.end(contained({ where: 'aggregation' }, () => socket.destroy()));
}

/** The answer's head as it came. */
function headOf({ rawHeaders, statusMessage }: IncomingMessage): Buffer {
  const lines = [`HTTP/1.1 101 ${statusMessage || 'Switching Protocols'}`];
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    lines.push(`${rawHeaders[index]}: ${rawHeaders[index + 1]}`);
  }
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
}
