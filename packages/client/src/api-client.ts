import { encodeJson, parseWrittenJson } from '@wheelhouse/codec';
import {
  type Clock,
  isObject,
  type JsonObject,
  type JsonValue,
  pause,
  programClock,
  type StatusDetails,
} from '@wheelhouse/machinery';
import {
  createHttpClient,
  type HttpClient,
  type HttpResponse,
  type HttpStream,
  readAll,
  type WebSocketRequest,
} from './http-client.ts';
import type { ClientConfig } from './kubeconfig/client-config.ts';
import type { MessageConnection } from './web-socket.ts';

/** Maximum number of retries, as in client-go. */
const retriesMax = 10;

/** The parts of a response that decide whether to retry. */
type Retriable = Pick<HttpResponse, 'status' | 'headers'> & {
  readonly body: HttpResponse['body'] | HttpStream['body'];
};

/**
 * Sends a request, and retries up to ten times while the server asks for a delay. Calls
 * `onResponse` with each response and the monotonic time of its request in milliseconds. Rejects
 * with the signal's reason if it aborts a delay.
 */
async function sendWithRetries<A extends Retriable>(
  sendOnce: () => Promise<A>,
  options: {
    readonly clock: Clock;
    readonly signal: AbortSignal | undefined;
    readonly onResponse: (response: A, startMs: number) => void;
  },
): Promise<A> {
  const { clock, signal, onResponse } = options;
  for (let retries = 0; ; retries += 1) {
    const startMs = performance.now();
    const response = await sendOnce();
    onResponse(response, startMs);
    const waitMs = retryAfterMs(response);
    if (waitMs === undefined || retries === retriesMax) return response;
    if (!Buffer.isBuffer(response.body)) response.body.resume();
    await pause(clock, { ms: waitMs, signal, where: 'client' });
  }
}

/** The delay in milliseconds that the server requests before a retry; undefined if none. */
function retryAfterMs({ status, headers }: Retriable): number | undefined {
  const retryAfter = headers['retry-after'] ?? '';
  const isTransient = status === 429 || status >= 500;
  return isTransient && /^\d{1,6}$/.test(retryAfter) ? Number(retryAfter) * 1000 : undefined;
}

/** A response that reports a failure, with its Status. */
export class ApiError extends Error {
  readonly code: number;
  /** The reason of the Status; empty if the response has none. */
  readonly reason: string;
  readonly details: StatusDetails | undefined;

  constructor(options: {
    code: number;
    reason: string;
    message: string;
    details?: StatusDetails | undefined;
  }) {
    super(options.message);
    this.name = 'ApiError';
    this.code = options.code;
    this.reason = options.reason;
    this.details = options.details;
  }
}

/** A request for JSON; GET by default. */
export interface ApiRequest {
  readonly method?: string;
  readonly path: string;
  readonly query?: Readonly<Record<string, string | undefined>>;
  readonly accept?: string;
  readonly contentType?: string;
  readonly body?: JsonValue | Buffer | string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** A successful response; the type `T` is not checked. */
interface ApiResponse<T extends object = JsonObject> {
  readonly status: number;
  readonly object: T;
}

/**
 * The API over HTTP with JSON bodies. Rejects with ApiError for every failure that the server
 * reports. Retries up to ten times if the server asks for a delay (429 or 5xx with Retry-After).
 */
export interface ApiClient {
  readonly http: HttpClient;
  /** Sends a request. Resolves with the decoded body. */
  send<T extends object = JsonObject>(request: ApiRequest): Promise<ApiResponse<T>>;
  /** Resolves with the decoded body of a GET; the type `T` is not checked. */
  get<T extends object = JsonObject>(
    path: string,
    query?: Readonly<Record<string, string | undefined>>,
  ): Promise<T>;
  /** Resolves with the text of a GET, such as `/metrics` or `/healthz`. */
  raw(path: string): Promise<string>;
  /** Opens a streaming response; the caller reads `body`. */
  stream(request: ApiRequest): Promise<HttpStream>;
  /** Opens a WebSocket in one of the protocols. Rejects with ApiError if the server refuses. */
  webSocket(request: WebSocketRequest): Promise<MessageConnection>;
  /** Closes idle connections; active requests continue. */
  close(): void;
}

/** Receives every warning of the server, and every request; never receives credentials. */
interface ApiObserver {
  warning?(text: string): void;
  request?(event: {
    method: string;
    url: string;
    headers: Readonly<Record<string, string>>;
    status: number;
    tookMs: number;
  }): void;
}

/**
 * Creates a client for one server. `timeoutMs` limits each request, in milliseconds; 0 for no
 * limit.
 */
export function createApiClient(
  config: ClientConfig,
  options: {
    readonly timeoutMs?: number;
    /** The server-side time limit to send with every request, such as `1m30s`. */
    readonly timeoutText?: string;
    readonly observer?: ApiObserver;
    readonly clock?: Clock;
  } = {},
): ApiClient {
  const http = createHttpClient(config);
  const { observer, timeoutMs, timeoutText, clock = programClock } = options;

  const prepare = (request: ApiRequest) => {
    const query = timeoutText === undefined ? {} : { timeout: timeoutText };
    return prepareRequest({ ...request, query: { ...query, ...request.query } }, timeoutMs);
  };
  const observe = (
    request: { method: string; path: string; headers: Readonly<Record<string, string>> },
    response: { status: number; headers: { warning?: string | undefined } },
    startMs: number,
  ): void => {
    const { warning } = response.headers;
    if (warning !== undefined) for (const text of warningTexts(warning)) observer?.warning?.(text);
    const tookMs = Math.round(performance.now() - startMs);
    const url = new URL(request.path, config.server).href;
    const { method, headers } = request;
    observer?.request?.({ method, url, headers, status: response.status, tookMs });
  };

  const sendRecorded = <A extends Retriable>(
    request: ReturnType<typeof prepare>,
    sendOnce: () => Promise<A>,
  ): Promise<A> =>
    sendWithRetries(sendOnce, {
      clock,
      signal: request.signal,
      onResponse: (response, startMs) => observe(request, response, startMs),
    });
  const send = async <T extends object>(request: ApiRequest): Promise<ApiResponse<T>> => {
    const preparedRequest = prepare(request);
    const response = await sendRecorded(preparedRequest, () => http.request(preparedRequest));
    if (response.status >= 400) throw errorOf(response.status, response.body);
    const object = parseJson(response.body);
    if (!isObject(object)) throw unexpectedError(response.status, response.body);
    return { status: response.status, object: object as T };
  };

  return {
    http,
    send,
    get: async <T extends object>(path: string, query?: ApiRequest['query']) =>
      (await send<T>({ path, ...(query === undefined ? {} : { query }) })).object,
    async raw(path) {
      const preparedRequest = { ...prepare({ path }), headers: { accept: '*/*' } };
      const response = await sendRecorded(preparedRequest, () => http.request(preparedRequest));
      if (response.status >= 400) throw errorOf(response.status, response.body);
      return response.body.toString();
    },
    async stream(request) {
      const preparedRequest = prepare(request);
      const response = await sendRecorded(preparedRequest, () => http.stream(preparedRequest));
      if (response.status < 400) return response;
      throw errorOf(response.status, await readAll(response.body));
    },
    webSocket: (request) => http.webSocket(request).catch(throwRefusal),
    close: () => http.close(),
  };
}

/** Throws the ApiError of a refused WebSocket, or any other error unchanged. */
async function throwRefusal(error: unknown): Promise<never> {
  const { WebSocketRefused } = await import('./web-socket.ts');
  if (!(error instanceof WebSocketRefused)) throw error;
  throw errorOf(error.status, error.body);
}

function prepareRequest(request: ApiRequest, timeoutMs: number | undefined) {
  return {
    method: request.method ?? 'GET',
    path: pathWithQuery(request.path, request.query),
    headers: {
      accept: request.accept ?? 'application/json',
      ...(request.body === undefined
        ? {}
        : { 'content-type': request.contentType ?? 'application/json' }),
    },
    body: encodeBody(request.body),
    signal: request.signal,
    timeoutMs,
  };
}

function pathWithQuery(path: string, query: ApiRequest['query']): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value !== undefined) parameters.set(name, value);
  }
  parameters.sort();
  if (parameters.size === 0) return path;
  return `${path}${path.includes('?') ? '&' : '?'}${parameters}`;
}

function encodeBody(body: ApiRequest['body']): Buffer | string | undefined {
  if (body === undefined || typeof body === 'string' || Buffer.isBuffer(body)) return body;
  return encodeJson(body);
}

function parseJson(body: Buffer): unknown {
  try {
    return parseWrittenJson(body);
  } catch {
    return undefined;
  }
}

/** Creates the ApiError of a failed response from its Status, or else from its text. */
export function errorOf(status: number, body: Buffer): ApiError {
  const parsed = parseJson(body);
  return isObject(parsed) && parsed.kind === 'Status'
    ? statusError(parsed, status)
    : unexpectedError(status, body);
}

/** Creates the ApiError for a Status: the body of a response, or an ERROR event of a watch. */
export function statusError(status: JsonObject, code = 500): ApiError {
  return new ApiError({
    code: typeof status.code === 'number' ? status.code : code,
    reason: typeof status.reason === 'string' ? status.reason : '',
    message: typeof status.message === 'string' ? status.message : 'unknown',
    details: isObject(status.details) ? (status.details as StatusDetails) : undefined,
  });
}

function unexpectedError(status: number, body: Buffer): ApiError {
  const text = body.subarray(0, 2048).toString().trim();
  const message = text === '' ? `the server answered with status ${status}` : text;
  return new ApiError({ code: status, reason: reasonsByCode[status] ?? '', message });
}

const reasonsByCode: Readonly<Record<number, string>> = {
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  429: 'TooManyRequests',
  503: 'ServiceUnavailable',
};

/**
 * Parses the texts of a `Warning` header: `299 - "text"`, several separated by commas. Like
 * client-go, skips other codes, dates, and texts with control characters.
 */
export function warningTexts(header: string): string[] {
  // Node decodes headers as Latin-1; texts are UTF-8.
  const decoded = /[^\0-\xff]/.test(header) ? header : Buffer.from(header, 'latin1').toString();
  const texts: string[] = [];
  let end = 0;
  for (let at = decoded.indexOf('"'); at >= 0; at = decoded.indexOf('"', end)) {
    const isWarning = /(?:^|[\s,])299 \S+ $/.test(decoded.slice(end, at));
    let text = '';
    for (end = at + 1; end < decoded.length && decoded[end] !== '"'; end++) {
      if (decoded[end] === '\\') end += 1;
      text += decoded[end] ?? '';
    }
    if (isWarning && !/\p{Cc}/u.test(text)) texts.push(text);
    end += 1;
  }
  return texts;
}

/** Default maximum number of objects of a page. */
const pageSize = '500';

/**
 * Reads a list in pages of at most 500 objects, or of another `limit` in `query`, and yields the
 * body of each page; a `limit` of undefined requests the whole list. Rejects with ApiError, such as
 * the 410 of an expired continue token.
 */
export async function* listPages(
  client: ApiClient,
  options: { readonly path: string; readonly query: Readonly<Record<string, string | undefined>> },
): AsyncGenerator<JsonObject> {
  let token: string | undefined;
  do {
    const { object } = await client.send({
      path: options.path,
      query: { limit: pageSize, ...options.query, continue: token },
    });
    yield object;
    const next = isObject(object.metadata) ? object.metadata.continue : undefined;
    token = typeof next === 'string' && next !== '' ? next : undefined;
  } while (token !== undefined);
}

/** One event of a watch. */
export interface WatchEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR';
  readonly object: JsonObject;
}

/** The stream is not a watch: a line is not an event or exceeds the limit. */
class WatchStreamError extends Error {}

const types: ReadonlySet<unknown> = new Set(['ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK', 'ERROR']);

/**
 * Yields the events in the body of a watch response, one JSON document per line. Ends with the
 * body, and drops an incomplete last line, which a broken connection leaves. Rejects if a line is
 * not an event.
 * @param options.lineBytesMax maximum length of a line in bytes (64 MiB)
 */
export async function* watchEvents(
  body: AsyncIterable<Buffer | string>,
  options: { readonly lineBytesMax?: number } = {},
): AsyncGenerator<WatchEvent> {
  for await (const line of lines(body, options.lineBytesMax ?? 64 * 1024 * 1024)) {
    if (line.length === 0) continue;
    yield parseEvent(line);
  }
}

function parseEvent(line: Buffer): WatchEvent {
  let value: unknown;
  try {
    value = parseWrittenJson(line);
  } catch {
    throw new WatchStreamError('a line of the watch is not JSON');
  }
  if (!isObject(value) || !types.has(value.type) || !isObject(value.object)) {
    throw new WatchStreamError('a line of the watch is not an event');
  }
  return { type: value.type as WatchEvent['type'], object: value.object };
}

async function* lines(
  body: AsyncIterable<Buffer | string>,
  lineBytesMax: number,
): AsyncGenerator<Buffer> {
  let pending: Buffer[] = [];
  let pendingBytes = 0;
  for await (const piece of body) {
    const chunk = typeof piece === 'string' ? Buffer.from(piece) : piece;
    let from = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
      const tail = chunk.subarray(from, end);
      yield pending.length === 0 ? tail : Buffer.concat([...pending, tail]);
      pending = [];
      pendingBytes = 0;
      from = end + 1;
    }
    if (from === chunk.length) continue;
    pending.push(chunk.subarray(from));
    pendingBytes += chunk.length - from;
    if (pendingBytes > lineBytesMax) throw new WatchStreamError('a line of the watch is too long');
  }
}
