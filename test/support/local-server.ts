import type { X509Certificate } from 'node:crypto';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { connect } from 'node:tls';

/** Listens on a free port of the loopback interface; resolves with the port. */
export async function listenLocally(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}

/** Resolves with a port of the loopback interface that is free now. */
export async function freePort(): Promise<number> {
  const probe = createServer();
  const port = await listenLocally(probe);
  await new Promise((resolve) => probe.close(resolve));
  return port;
}

/** The connections that a server accepted in these events, which would delay its stop. */
export function trackConnections(
  server: Server,
  events: readonly ('connection' | 'secureConnection')[],
) {
  const sockets = new Set<Socket>();
  for (const event of events) {
    server.on(event, (socket: Socket) => {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => sockets.delete(socket));
    });
  }
  return {
    /** The number of open connections. */
    get count(): number {
      return sockets.size;
    },
    /** Breaks all connections, and stops the server. */
    async stop(): Promise<void> {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Resolves with the certificate that a server over TLS presents on a port of loopback. */
export function servedCertificate(port: number): Promise<X509Certificate> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false }, () => {
      const certificate = socket.getPeerX509Certificate();
      socket.destroy();
      if (certificate === undefined) reject(new Error('no certificate is served'));
      else resolve(certificate);
    });
    socket.on('error', reject);
  });
}
