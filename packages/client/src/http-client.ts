import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import http from 'node:http';
import https from 'node:https';
import type { Duplex, Readable } from 'node:stream';
import type { PeerCertificate } from 'node:tls';
import { types } from 'node:util';
import {
  type Clock,
  checkServerNames,
  delayMsMax,
  errorText,
  escapeHeaderKey,
  ipVersion,
  listen,
  programClock,
  returningErrors,
  systemErrorCode,
  trustOptions,
  whenAborted,
} from '@wheelhouse/machinery';
import {
  abortError,
  type Cancelable,
  idleMs,
  NotProcessed,
  SharedConnection,
  type SharedSession,
  secureAgent,
  TunnelAgent,
} from './connections.ts';
import { expireIdle, retireAgent } from './idle-connections.ts';
import type { ClientConfig, Credential, Impersonation } from './kubeconfig/client-config.ts';
import type { MessageConnection } from './web-socket.ts';

/** How requests reach a server. */
interface Route {
  readonly agent: http.Agent;
  /** To be called with each response that the agent receives. */
  readonly onResponse: (response: IncomingMessage) => void;
  /** The connection that all requests share, if the server supports it; tried before the agent. */
  readonly shared?: SharedConnection | undefined;
}

/** The kept-alive connections of a client, which all use the same client certificate. */
interface Connections {
  /** Returns the route of a request. A new certificate closes the connections of the old one. */
  routeFor(credential: Credential | undefined): Route;
  close(): void;
}

/** Reads a whole body. Rejects if the connection ends early. */
export async function readAll(body: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** Creates the connections of a client, which open on demand. */
function createConnections(config: ClientConfig, secure: boolean): Connections {
  if (!secure) {
    const agent =
      config.proxyUrl === undefined
        ? new http.Agent({ keepAlive: true })
        : new TunnelAgent(config.proxyUrl);
    const route = { agent, onResponse: expireIdle(agent, idleMs) };
    return { routeFor: () => route, close: () => retireAgent(agent) };
  }
  const configured = { certificatePem: config.certificatePem, keyPem: config.keyPem };
  let presented: Credential = configured;
  let route: (Route & { readonly close: () => void }) | undefined;
  const drop = (): void => {
    route?.close();
    route = undefined;
  };
  const stopNotifications = config.credentials?.onCertificateChange(drop);
  return {
    routeFor(credential) {
      const selected = credential?.certificatePem === undefined ? configured : credential;
      // A connection keeps its certificate, so a new one requires a new handshake.
      if (
        selected.certificatePem !== presented.certificatePem ||
        selected.keyPem !== presented.keyPem
      ) {
        drop();
      }
      presented = selected;
      route ??= secureRoute(config, selected);
      return route;
    },
    close() {
      stopNotifications?.();
      drop();
    },
  };
}

function secureRoute(
  config: ClientConfig,
  presented: Credential,
): Route & { readonly close: () => void } {
  const { proxyUrl, protocol } = config;
  const options = { keepAlive: true, ...tlsOptions(config, presented) };
  if (protocol === 'negotiated' && proxyUrl === undefined) {
    const shared = new SharedConnection(new URL(config.server), options);
    const { agent } = shared;
    const onResponse = expireIdle(agent, idleMs);
    return { agent, onResponse, shared, close: () => shared.close() };
  }
  const agent = secureAgent(options, proxyUrl);
  return { agent, onResponse: expireIdle(agent, idleMs), close: () => retireAgent(agent) };
}

function tlsOptions(config: ClientConfig, presented: Credential): https.AgentOptions {
  return {
    ...trustOptions(config.caPem),
    ...(presented.certificatePem === undefined ? {} : { cert: presented.certificatePem }),
    ...(presented.keyPem === undefined ? {} : { key: presented.keyPem }),
    ...nameCheck(config.tlsServerName),
    ...(config.insecureSkipTlsVerify === true ? { rejectUnauthorized: false } : {}),
  };
}

/** Verifies a name or an IP address; Server Name Indication sends only names. */
function nameCheck(name: string | undefined): https.AgentOptions {
  const isAddress = name !== undefined && ipVersion(name) !== 0;
  const check = (host: string, certificate: PeerCertificate) =>
    checkServerNames(isAddress ? name : host, certificate);
  const serverName = name === undefined || isAddress ? {} : { servername: name };
  return { ...serverName, checkServerIdentity: returningErrors(check) };
}

/**
 * Creates the headers of a request: its explicit ones, and authentication unless they include it.
 */
export function requestHeaders(options: {
  readonly config: ClientConfig;
  readonly explicitHeaders: Readonly<Record<string, string | readonly string[]>> | undefined;
  readonly credential: Credential | undefined;
}): OutgoingHttpHeaders {
  const { config, explicitHeaders, credential } = options;
  const headers: OutgoingHttpHeaders = { accept: 'application/json' };
  for (const [name, value] of Object.entries(explicitHeaders ?? {})) {
    headers[name] = typeof value === 'string' ? value : [...value];
  }
  if (config.userAgent !== undefined) headers['user-agent'] ??= config.userAgent;
  const token = config.token?.() || credential?.token;
  if (hasAuthorization(explicitHeaders)) {
    // The explicit header takes precedence.
  } else if (token) {
    headers['authorization'] = `Bearer ${token}`;
  } else if (config.basicAuth !== undefined) {
    const { username, password } = config.basicAuth;
    headers['authorization'] = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
  }
  if (config.impersonate !== undefined) impersonate(headers, config.impersonate);
  return headers;
}

/** Whether headers include a credential. */
function hasAuthorization(explicitHeaders: Readonly<Record<string, unknown>> | undefined): boolean {
  return Object.keys(explicitHeaders ?? {}).some((name) => name.toLowerCase() === 'authorization');
}

function impersonate(headers: OutgoingHttpHeaders, identity: Impersonation): void {
  headers['impersonate-user'] = identity.user;
  if (identity.uid !== undefined) headers['impersonate-uid'] = identity.uid;
  if (identity.groups.length > 0) headers['impersonate-group'] = [...identity.groups];
  for (const [key, values] of identity.extra ?? []) {
    if (values.length > 0) headers[`impersonate-extra-${escapeHeaderKey(key)}`] = [...values];
  }
}

/** A request over HTTP. */
interface HttpRequest {
  readonly method: string;
  /** Path and query, relative to the server's prefix. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  readonly body?: Buffer | string | undefined;
  /** Aborts the request with an AbortError. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Time limit of the whole response in milliseconds; none unless positive. `stream` ignores it.
   */
  readonly timeoutMs?: number | undefined;
}

/** A response with its whole body. */
export interface HttpResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** A response whose body is still arriving. */
export interface HttpStream {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Readable;
}

/** A request to open a WebSocket. */
export interface WebSocketRequest {
  /** Path and query, relative to the server's prefix. */
  readonly path: string;
  /** The acceptable protocols, in order of preference. */
  readonly protocols: readonly string[];
  /** Closes the connection when it aborts. */
  readonly signal?: AbortSignal | undefined;
  /** The clock for pings; the program's if absent. */
  readonly clock?: Clock;
}

/** Kept-alive connections to one server: HTTP/1.1, or one HTTP/2 connection if negotiated. */
export interface HttpClient {
  /** Resolves when the response is complete. Rejects with a TimeoutError after `timeoutMs`. */
  request(request: HttpRequest): Promise<HttpResponse>;
  /** Resolves when the response headers arrive; the caller reads or destroys the body. */
  stream(request: HttpRequest): Promise<HttpStream>;
  /**
   * Opens a WebSocket in one of the protocols. Rejects with WebSocketRefused if the server refuses,
   * and with ConnectionError if the server is unreachable.
   */
  webSocket(request: WebSocketRequest): Promise<MessageConnection>;
  /** Closes idle connections; active requests continue. */
  close(): void;
}

/** The part of a client that reads the body of each response itself. */
export type StreamingClient = Pick<HttpClient, 'stream'>;

/** The server is unreachable; `cause` is the network error. */
export class ConnectionError extends Error {
  readonly code: string;
  /** The host, and the port unless it is the usual one of a URL. */
  readonly host: string;
  /** `host:port` */
  readonly address: string;

  constructor(server: string | URL, cause: NodeJS.ErrnoException) {
    super(cause.message, { cause });
    this.name = 'ConnectionError';
    this.code = cause.code ?? '';
    this.host = typeof server === 'string' ? server : server.host;
    const isUsualPort = typeof server !== 'string' && server.port === '';
    const usualPort = isUsualPort && server.protocol === 'https:' ? 443 : 80;
    this.address = isUsualPort ? `${this.host}:${usualPort}` : this.host;
  }
}

/** Go's wording for an error while a body arrives; Node reports a lost connection by a code. */
export const bodyErrorText = (error: unknown): string =>
  systemErrorCode(error) === 'ECONNRESET' ? 'unexpected EOF' : errorText(error);

/** The connection was lost while the response arrived. */
export class LostResponseError extends ConnectionError {
  constructor(server: string | URL, cause: NodeJS.ErrnoException) {
    super(server, cause);
    this.message =
      'unexpected error when reading response body. Please retry. ' +
      `Original error: ${bodyErrorText(cause)}`;
  }
}

/**
 * Creates a client, which opens no connection before the first request. Throws on a malformed URL.
 * Its requests reject with ConnectionError if the server is unreachable, and with CredentialError
 * if no credential is available.
 */
export function createHttpClient(config: ClientConfig): HttpClient {
  const base = new URL(config.server);
  const secure = base.protocol === 'https:';
  const connections = createConnections(config, secure);

  const open = async (request: HttpRequest): Promise<HttpStream> => {
    const source = hasAuthorization(request.headers) ? undefined : config.credentials;
    const credential = await source?.current();
    const sendAs = (presented: Credential | undefined) =>
      send(request, {
        config,
        base,
        route: connections.routeFor(presented),
        credential: presented,
      });
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
        return {
          status,
          headers,
          body: await readAll(body).catch(failWith(LostResponseError, base)),
        };
      });
    },
    stream: open,
    async webSocket({ path, protocols, signal, clock = programClock }) {
      const { openWebSocket, WebSocketRefused } = await import('./web-socket.ts');
      const source = config.credentials;
      const url = new URL(base.href.replace(/^http/, 'ws').replace(/\/$/, '') + path);
      const openAs = (credential: Credential | undefined) =>
        openWebSocket({
          url,
          protocols,
          signal,
          clock,
          agent: connections.routeFor(credential).agent,
          headers: requestHeaders({ config, explicitHeaders: undefined, credential }),
        }).catch((error: unknown) => {
          if (error instanceof WebSocketRefused) throw error;
          return failWith(ConnectionError, base)(error);
        });
      const credential = await source?.current();
      try {
        return await openAs(credential);
      } catch (error) {
        const isStale = error instanceof WebSocketRefused && error.status === 401;
        const renewed = isStale && credential ? await source?.renew(credential) : undefined;
        if (renewed === undefined || isSame(renewed, credential)) throw error;
        return openAs(renewed);
      }
    },
    close: () => connections.close(),
  };
}

/** Whether a renewed credential equals the rejected one, so that a retry is pointless. */
function isSame(left: Credential, right: Credential | undefined): boolean {
  return (
    left.token === right?.token &&
    left.certificatePem === right?.certificatePem &&
    left.keyPem === right?.keyPem
  );
}

interface SendContext {
  readonly config: ClientConfig;
  readonly base: URL;
  readonly route: Route;
  readonly credential: Credential | undefined;
}

/** Sends on the shared connection, if any. Retries an unprocessed request once on a new one. */
async function send(request: HttpRequest, context: SendContext): Promise<HttpStream> {
  const { base, route } = context;
  for (let isRetry = false; ; isRetry = true) {
    const session = await route.shared
      ?.session(request.signal)
      .catch(failWith(ConnectionError, base));
    if (session === undefined) return sendOverHttp1(request, context);
    try {
      return await sendOverHttp2(session, request, context);
    } catch (error) {
      if (!(error instanceof NotProcessed) || isRetry) {
        return failWith(ConnectionError, base)(error);
      }
    }
  }
}

/** Returns a function that throws a network error as one of a class. */
const failWith =
  (NetworkError: typeof ConnectionError, server: URL) =>
  (error: unknown): never => {
    // Under jest, Node's errors are instances of the Error of another realm.
    const isError = error instanceof Error || types.isNativeError(error);
    throw isError && error.name !== 'AbortError' ? new NetworkError(server, error) : error;
  };

/** Headers that HTTP/2 forbids or replaces with pseudo-headers. */
const connectionHeaders = ['host', 'connection', 'keep-alive', 'transfer-encoding', 'upgrade'];

function sendOverHttp2(
  session: SharedSession,
  { method, path, headers: explicitHeaders, body, signal }: HttpRequest,
  { config, base, credential }: SendContext,
): Promise<HttpStream> {
  const headers = requestHeaders({ config, explicitHeaders, credential });
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

function sendOverHttp1(request: HttpRequest, context: SendContext): Promise<HttpStream> {
  const { config, base, route, credential } = context;
  const { agent } = route;
  const secure = base.protocol === 'https:';
  const prefix = base.pathname.replace(/\/$/, '');
  return new Promise((resolve, reject) => {
    const headers = requestHeaders({ config, explicitHeaders: request.headers, credential });
    const { body } = request;
    if (body !== undefined) headers['content-length'] = Buffer.byteLength(body);
    const { signal } = request;
    const options: https.RequestOptions & Cancelable = {
      agent,
      protocol: base.protocol,
      hostname: base.hostname.replace(/^\[|\]$/g, ''),
      port: base.port === '' ? (secure ? 443 : 80) : Number(base.port),
      method: request.method,
      path: prefix + request.path,
      headers,
      canceled: signal,
      ...(signal === undefined ? {} : { signal }),
    };
    const outgoing = (secure ? https : http).request(options);
    const response = (body: IncomingMessage) => {
      release();
      route.onResponse(body);
      resolve({ status: body.statusCode ?? 0, headers: body.headers, body });
    };
    const error = (error: NodeJS.ErrnoException) => {
      release();
      reject(error.name === 'AbortError' ? error : new ConnectionError(base, error));
    };
    // Node.js reports an abort only once there is a connection, such as a tunnel through a proxy.
    const release =
      signal === undefined
        ? () => {}
        : whenAborted(signal, { where: 'client' }, () => reject(abortError(signal)));
    // Without a listener, Node.js closes the connection and reports neither answer nor error.
    const upgrade = (_: IncomingMessage, socket: Duplex) => {
      socket.destroy();
      error(protocolSwitched());
    };
    listen(outgoing, { where: 'client' }, { error, response, upgrade });
    if (body !== undefined) outgoing.write(body);
    outgoing.end();
  });
}

const protocolSwitched = () =>
  Object.assign(new Error('the server switched protocols'), { code: 'ERR_PROTOCOL_SWITCHED' });

/** Rejects with a TimeoutError when the time limit of the request passes. */
async function withTimeout<T>(
  request: HttpRequest,
  run: (signal: AbortSignal | undefined) => Promise<T>,
): Promise<T> {
  const { timeoutMs, signal } = request;
  if (timeoutMs === undefined || timeoutMs <= 0) return run(signal);
  const timeout = AbortSignal.timeout(Math.min(Math.ceil(timeoutMs), delayMsMax));
  try {
    return await run(signal === undefined ? timeout : AbortSignal.any([signal, timeout]));
  } catch (error) {
    // Node reports every abort the same way, so distinguish the timeout by its signal.
    throw timeout.aborted && signal?.aborted !== true ? timeout.reason : error;
  }
}
