import http, { type IncomingMessage } from 'node:http';
import https from 'node:https';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import tls from 'node:tls';
import { listen } from '@wheelhouse/machinery';

type Connected = (error: Error | null, socket?: Socket) => void;

/** Callback of an agent's connection attempt: an error, or the connection. */
type AgentCallback = (error: Error | null, stream: Duplex) => void;

const connectedCallback =
  (callback: AgentCallback | undefined): Connected =>
  (error, socket) =>
    callback?.(error, socket as Duplex);

/** Destination of a connection, as Node passes it to an agent. */
interface Destination {
  readonly host?: string | null | undefined;
  readonly port?: string | number | null | undefined;
}

/** Longest wait for a proxy's answer. */
const proxyWaitMs = 30_000;

/** Connections to a server without TLS, each through a tunnel of the proxy's. */
export class TunnelAgent extends http.Agent {
  readonly #proxyUrl: string;

  constructor(proxyUrl: string) {
    super({ keepAlive: true });
    this.#proxyUrl = proxyUrl;
  }

  override createConnection(options: http.ClientRequestArgs, callback?: AgentCallback): undefined {
    openTunnel({ proxyUrl: this.#proxyUrl, to: options }, connectedCallback(callback));
  }
}

/** As TunnelAgent, with TLS between this client and the server inside the tunnel. */
export class SecureTunnelAgent extends https.Agent {
  readonly #proxyUrl: string;

  constructor(proxyUrl: string, options: https.AgentOptions) {
    super(options);
    this.#proxyUrl = proxyUrl;
  }

  override createConnection(options: https.RequestOptions, callback?: AgentCallback): undefined {
    const connected = connectedCallback(callback);
    const { ca, allowPartialTrustChain, rejectUnauthorized } = options;
    const trust = { ca, allowPartialTrustChain, rejectUnauthorized };
    openTunnel({ proxyUrl: this.#proxyUrl, to: options, trust }, (error, socket) => {
      if (error !== null || socket === undefined) return connected(error, socket);
      const secured = tls.connect({ ...(options as tls.ConnectionOptions), socket });
      const failed = (fault: Error): void => connected(fault);
      const stop = listen(
        secured,
        { where: 'client' },
        {
          error: failed,
          secureConnect() {
            stop();
            connected(null, secured);
          },
        },
      );
    });
  }
}

interface Tunnel {
  readonly proxyUrl: string;
  readonly to: Destination;
  /** How a proxy with TLS is trusted: as the server is. */
  readonly trust?: Pick<
    https.RequestOptions,
    'ca' | 'allowPartialTrustChain' | 'rejectUnauthorized'
  >;
}

/** Asks the proxy for a connection to the destination, and hands it on. */
function openTunnel({ proxyUrl, to, trust }: Tunnel, connected: Connected): void {
  const proxy = new URL(proxyUrl);
  const secure = proxy.protocol === 'https:';
  const authority = `${to.host?.includes(':') ? `[${to.host}]` : to.host}:${to.port}`;
  const credential = `${decodeURIComponent(proxy.username)}:${decodeURIComponent(proxy.password)}`;
  const authorization = `Basic ${Buffer.from(credential).toString('base64')}`;
  const request = (secure ? https : http).request({
    method: 'CONNECT',
    hostname: proxy.hostname.replace(/^\[|\]$/g, ''),
    port: proxy.port === '' ? (secure ? 443 : 80) : Number(proxy.port),
    path: authority,
    headers: {
      host: authority,
      ...(proxy.username === '' ? {} : { 'proxy-authorization': authorization }),
    },
    agent: false,
    timeout: proxyWaitMs,
    ...(secure ? trust : {}),
  });
  listen(
    request,
    { where: 'client' },
    {
      connect(response: IncomingMessage, socket: Socket) {
        if (response.statusCode === 200) return connected(null, socket);
        socket.destroy();
        connected(new Error(`the proxy answered ${response.statusCode} to CONNECT`));
      },
      timeout: () => request.destroy(new Error('the proxy does not answer')),
      error: (error: Error) => connected(error),
    },
  );
  request.end();
}
