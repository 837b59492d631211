import http from 'node:http';
import net from 'node:net';
import { listenLocally } from './local-server.ts';

/** An HTTP proxy on the loopback interface whose tunnels all lead to this machine. */
export interface TunnelProxy {
  /** `host:port` */
  readonly address: string;
  /** The received requests: their authority and their credential. */
  readonly requests: readonly (readonly [authority: string, authorization: string | undefined])[];
  stop(): Promise<void>;
}

/** Starts a proxy, whose answers all have `status` if it is set. */
export async function startTunnelProxy(
  options: { readonly server?: http.Server; readonly status?: number } = {},
): Promise<TunnelProxy> {
  const { server = http.createServer(), status } = options;
  const requests: (readonly [string, string | undefined])[] = [];
  const tunnels = new Set<net.Socket>();
  server.on('connect', (request: http.IncomingMessage, from: net.Socket) => {
    const authority = request.url ?? '';
    requests.push([authority, request.headers['proxy-authorization']]);
    tunnels.add(from);
    from.on('error', () => {});
    if (status !== undefined) {
      from.end(`HTTP/1.1 ${status} No\r\n\r\n`);
      return;
    }
    const to = net.connect(Number(new URL(`http://${authority}`).port), '127.0.0.1', () => {
      from.write('HTTP/1.1 200 Connection established\r\n\r\n');
      to.pipe(from).pipe(to);
    });
    to.on('error', () => from.destroy());
    from.on('close', () => {
      tunnels.delete(from);
      to.destroy();
    });
  });
  const port = await listenLocally(server);
  return {
    address: `127.0.0.1:${port}`,
    requests,
    async stop() {
      for (const tunnel of tunnels) tunnel.destroy();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
