import http, { type IncomingMessage } from 'node:http';
import https from 'node:https';
import type { ClientConfig } from './client-config.ts';

export interface HttpRequest {
  readonly method: string;
  /** Path and query, below the server's prefix. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Buffer | string | undefined;
  /** Ends the request with an AbortError. */
  readonly signal?: AbortSignal | undefined;
  /** Longest wait for the whole answer; 0 or absent: none. A `stream` has none. */
  readonly timeoutMs?: number | undefined;
}

export interface HttpAnswer {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: Buffer;
}

export interface HttpStream {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: IncomingMessage;
}

/** HTTP/1.1 with kept-alive connections to one server. */
export interface HttpClient {
  request(request: HttpRequest): Promise<HttpAnswer>;
  /** Gives the answer's head as soon as it is there; the caller reads or destroys the body. */
  stream(request: HttpRequest): Promise<HttpStream>;
  /** Closes idle connections; running requests go on. */
  close(): void;
}

/** The server could not be asked at all; `cause` is the network's error. */
export class ConnectionError extends Error {
  readonly code: string;
  readonly host: string;

  constructor(host: string, cause: NodeJS.ErrnoException) {
    super(cause.message, { cause });
    this.name = 'ConnectionError';
    this.code = cause.code ?? '';
    this.host = host;
  }
}

/** Makes a client; opens no connection before the first request. Throws on a malformed URL. */
export function createHttpClient(config: ClientConfig): HttpClient {
  const base = new URL(config.server);
  const secure = base.protocol === 'https:';
  const agent = secure
    ? new https.Agent({ keepAlive: true, ...tlsOptions(config) })
    : new http.Agent({ keepAlive: true });
  const prefix = base.pathname === '/' ? '' : base.pathname.replace(/\/$/, '');

  const send = (request: HttpRequest): Promise<IncomingMessage> =>
    new Promise((resolve, reject) => {
      const outgoing = (secure ? https : http).request(
        {
          agent,
          protocol: base.protocol,
          hostname: base.hostname.replace(/^\[|\]$/g, ''),
          port: base.port === '' ? (secure ? 443 : 80) : Number(base.port),
          method: request.method,
          path: prefix + request.path,
          headers: headersOf(config, request),
          ...(request.signal === undefined ? {} : { signal: request.signal }),
        },
        resolve,
      );
      outgoing.on('error', (error: NodeJS.ErrnoException) =>
        reject(error.name === 'AbortError' ? error : new ConnectionError(base.host, error)),
      );
      if (request.body !== undefined) outgoing.write(request.body);
      outgoing.end();
    });

  return {
    async request(request) {
      return withTimeout(request, async (signal) => {
        const incoming = await send({ ...request, signal });
        const chunks: Buffer[] = [];
        for await (const chunk of incoming) chunks.push(chunk as Buffer);
        const body = Buffer.concat(chunks);
        return { status: incoming.statusCode ?? 0, headers: incoming.headers, body };
      });
    },
    async stream(request) {
      const incoming = await send(request);
      return { status: incoming.statusCode ?? 0, headers: incoming.headers, body: incoming };
    },
    close: () => agent.destroy(),
  };
}

function tlsOptions(config: ClientConfig): https.AgentOptions {
  return {
    ...(config.caPem === undefined ? {} : { ca: config.caPem }),
    ...(config.certificatePem === undefined ? {} : { cert: config.certificatePem }),
    ...(config.keyPem === undefined ? {} : { key: config.keyPem }),
    ...(config.tlsServerName === undefined ? {} : { servername: config.tlsServerName }),
    ...(config.insecureSkipTlsVerify === true ? { rejectUnauthorized: false } : {}),
  };
}

function headersOf(config: ClientConfig, request: HttpRequest): http.OutgoingHttpHeaders {
  const headers: http.OutgoingHttpHeaders = { accept: 'application/json', ...request.headers };
  if (config.userAgent !== undefined) headers['user-agent'] = config.userAgent;
  const token = config.token?.();
  if (token !== undefined && token !== '') {
    headers['authorization'] = `Bearer ${token}`;
  } else if (config.basicAuth !== undefined) {
    const { username, password } = config.basicAuth;
    headers['authorization'] = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
  }
  if (config.impersonate !== undefined) {
    headers['impersonate-user'] = config.impersonate.user;
    if (config.impersonate.groups.length > 0) {
      headers['impersonate-group'] = [...config.impersonate.groups];
    }
  }
  if (request.body !== undefined) headers['content-length'] = Buffer.byteLength(request.body);
  return headers;
}

async function withTimeout<T>(
  request: HttpRequest,
  run: (signal: AbortSignal | undefined) => Promise<T>,
): Promise<T> {
  const { timeoutMs, signal } = request;
  if (timeoutMs === undefined || timeoutMs === 0) return run(signal);
  const timeout = AbortSignal.timeout(Math.ceil(timeoutMs));
  return run(signal === undefined ? timeout : AbortSignal.any([signal, timeout]));
}
