import http, { type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import https from 'node:https';
import type { Readable } from 'node:stream';
import { listen } from '@wheelhouse/machinery';
import { createConnections, type Route } from './connections.ts';
import type { Credential } from './credentials/credential.ts';
import type { ClientConfig } from './kubeconfig/client-config.ts';
import { hasAuthorization, requestHeaders } from './request-headers.ts';
import { NotProcessed, type SharedSession } from './shared-connection.ts';

export interface HttpRequest {
  readonly method: string;
  /** Path and query, below the server's prefix. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  readonly body?: Buffer | string | undefined;
  /** Ends the request with an AbortError. */
  readonly signal?: AbortSignal | undefined;
  /** Longest wait for the whole answer; 0 or absent: none. A `stream` has none. */
  readonly timeoutMs?: number | undefined;
}

export interface HttpAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

export interface HttpStream {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Readable;
}

/** Kept-alive connections to one server: HTTP/1.1, or one of HTTP/2 where that is negotiated. */
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

/**
 * Makes a client; opens no connection before the first request. Throws on a malformed URL. A request
 * rejects with ConnectionError when the server cannot be asked, and with CredentialError when there
 * is no credential to ask with.
 */
export function createHttpClient(config: ClientConfig): HttpClient {
  const base = new URL(config.server);
  const secure = base.protocol === 'https:';
  const connections = createConnections(config, secure);

  const open = async (request: HttpRequest): Promise<HttpStream> => {
    const source = hasAuthorization(request.headers) ? undefined : config.credentials;
    const credential = await source?.current();
    const sendAs = (shown: Credential | undefined) =>
      send(request, { config, base, route: connections.routeFor(shown), credential: shown });
    const incoming = await sendAs(credential);
    if (incoming.status !== 401 || source === undefined || credential === undefined) {
      return incoming;
    }
    const renewed = await source.renew(credential);
    if (isSame(renewed, credential)) return incoming;
    incoming.body.destroy();
    return sendAs(renewed);
  };

  return {
    async request(request) {
      return withTimeout(request, async (signal) => {
        const { status, headers, body } = await open({ ...request, signal });
        const chunks: Buffer[] = [];
        for await (const chunk of body) chunks.push(chunk as Buffer);
        return { status, headers, body: Buffer.concat(chunks) };
      });
    },
    stream: open,
    close: () => connections.close(),
  };
}

/** Whether a renewed credential is what was refused already, so that asking again is no use. */
function isSame(one: Credential, other: Credential): boolean {
  return (
    one.token === other.token &&
    one.certificatePem === other.certificatePem &&
    one.keyPem === other.keyPem
  );
}

interface Sending {
  readonly config: ClientConfig;
  readonly base: URL;
  readonly route: Route;
  readonly credential: Credential | undefined;
}

/** Sends on the shared connection where there is one, and a second time on a new one if need be. */
async function send(request: HttpRequest, sending: Sending): Promise<HttpStream> {
  const { base, route } = sending;
  for (let isAgain = false; ; isAgain = true) {
    const session = await route.shared?.session(request.signal).catch(failed(base));
    if (session === undefined) return sendOverHttp1(request, sending);
    try {
      return await sendOverHttp2(session, request, sending);
    } catch (error) {
      if (!(error instanceof NotProcessed) || isAgain) return failed(base)(error);
    }
  }
}

const failed =
  ({ host }: URL) =>
  (error: unknown): never => {
    const isNetwork = error instanceof Error && error.name !== 'AbortError';
    throw isNetwork ? new ConnectionError(host, error) : error;
  };

/** Headers that HTTP/2 has none of, or spells otherwise. */
const connectionHeaders = ['host', 'connection', 'keep-alive', 'transfer-encoding', 'upgrade'];

function sendOverHttp2(
  session: SharedSession,
  { method, path, headers: own, body, signal }: HttpRequest,
  { config, base, credential }: Sending,
): Promise<HttpStream> {
  const headers = requestHeaders({ config, own, credential });
  const authority = String(headers['host'] ?? base.host);
  for (const name of connectionHeaders) delete headers[name];
  if (body !== undefined) headers['content-length'] = Buffer.byteLength(body);
  const pseudo = {
    ':method': method,
    ':scheme': 'https',
    ':authority': authority,
    ':path': base.pathname.replace(/\/$/, '') + path,
  };
  return session.send({ ...headers, ...pseudo }, { body, signal });
}

function sendOverHttp1(request: HttpRequest, sending: Sending): Promise<HttpStream> {
  const { config, base, route, credential } = sending;
  const { agent } = route;
  const secure = base.protocol === 'https:';
  const prefix = base.pathname.replace(/\/$/, '');
  return new Promise((resolve, reject) => {
    const headers = requestHeaders({ config, own: request.headers, credential });
    const { body } = request;
    if (body !== undefined) headers['content-length'] = Buffer.byteLength(body);
    const outgoing = (secure ? https : http).request({
      agent,
      protocol: base.protocol,
      hostname: base.hostname.replace(/^\[|\]$/g, ''),
      port: base.port === '' ? (secure ? 443 : 80) : Number(base.port),
      method: request.method,
      path: prefix + request.path,
      headers,
      ...(request.signal === undefined ? {} : { signal: request.signal }),
    });
    const response = (body: IncomingMessage) =>
      resolve({ status: body.statusCode ?? 0, headers: body.headers, body });
    const error = (error: NodeJS.ErrnoException) =>
      reject(error.name === 'AbortError' ? error : new ConnectionError(base.host, error));
    listen(outgoing, { where: 'client' }, { error, response });
    if (body !== undefined) outgoing.write(body);
    outgoing.end();
  });
}

/** Rejects with a TimeoutError when the request's time is over. */
async function withTimeout<T>(
  request: HttpRequest,
  run: (signal: AbortSignal | undefined) => Promise<T>,
): Promise<T> {
  const { timeoutMs, signal } = request;
  if (timeoutMs === undefined || timeoutMs === 0) return run(signal);
  const timeout = AbortSignal.timeout(Math.ceil(timeoutMs));
  try {
    return await run(signal === undefined ? timeout : AbortSignal.any([signal, timeout]));
  } catch (error) {
    // Node tells of any abort alike; what it was for is told by who asked for it.
    throw timeout.aborted && signal?.aborted !== true ? timeout.reason : error;
  }
}
