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
  type HttpAnswer,
  type HttpClient,
  type HttpStream,
  type WebSocketRequest,
  wholeOf,
} from './http-client.ts';
import type { ClientConfig } from './kubeconfig/client-config.ts';
import type { MessageConnection } from './web-socket.ts';

/** The same as in client-go. */
const retriesMax = 10;

/** The parts of a response that decide whether to retry. */
type Retriable = Pick<HttpAnswer, 'status' | 'headers'> & {
  readonly body: HttpAnswer['body'] | HttpStream['body'];
};

/**
 * Sends a request, and retries up to ten times while the server asks for a delay. Calls `heard`
 * with each response and the time of its request. Rejects with the signal's reason if it aborts a
 * delay.
 */
async function askPatiently<A extends Retriable>(
  ask: () => Promise<A>,
  options: {
    readonly clock: Clock;
    readonly signal: AbortSignal | undefined;
    readonly heard: (answer: A, startMs: number) => void;
  },
): Promise<A> {
  const { clock, signal, heard } = options;
  for (let retries = 0; ; retries += 1) {
    const startMs = performance.now();
    const answer = await ask();
    heard(answer, startMs);
    const waitMs = retryAfterMs(answer);
    if (waitMs === undefined || retries === retriesMax) return answer;
    if (!Buffer.isBuffer(answer.body)) answer.body.resume();
    await pause(clock, { ms: waitMs, signal, where: 'client' });
  }
}

/** The delay in milliseconds that the server requests before a retry; undefined if none. */
function retryAfterMs({ status, headers }: Retriable): number | undefined {
  const retryAfter = headers['retry-after'] ?? '';
  const mayPass = status === 429 || status >= 500;
  return mayPass && /^\d{1,6}$/.test(retryAfter) ? Number(retryAfter) * 1000 : undefined;
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

export interface ApiRequest {
  readonly method?: string;
  readonly path: string;
  readonly query?: Readonly<Record<string, string | undefined>>;
  readonly accept?: string;
  readonly contentType?: string;
  readonly body?: JsonValue | Buffer | string | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface ApiAnswer<T extends object = JsonObject> {
  readonly status: number;
  readonly object: T;
}

/**
 * The API over HTTP with JSON bodies. Throws every failure that the server reports as ApiError.
 * Retries up to ten times if the server asks for a delay (429 or 5xx with Retry-After).
 */
export interface ApiClient {
  readonly http: HttpClient;
  send<T extends object = JsonObject>(request: ApiRequest): Promise<ApiAnswer<T>>;
  /** The decoded body of a GET; the type `T` is not checked. */
  get<T extends object = JsonObject>(
    path: string,
    query?: Readonly<Record<string, string | undefined>>,
  ): Promise<T>;
  /** A GET whose body is not JSON, such as `/metrics` and `/healthz`. */
  raw(path: string): Promise<string>;
  /** Opens a streaming response; the caller reads `body`. */
  stream(request: ApiRequest): Promise<HttpStream>;
  /** Opens a WebSocket in one of the protocols. Rejects with ApiError if the server refuses. */
  webSocket(request: WebSocketRequest): Promise<MessageConnection>;
  close(): void;
}

/** Receives every `Warning` header and, for `-v`, every request; never sees credentials. */
export interface ApiObserver {
  warning?(text: string): void;
  request?(event: { method: string; url: string; status: number; tookMs: number }): void;
}

/** Makes a client for one server. */
export function createApiClient(
  config: ClientConfig,
  options: {
    readonly timeoutMs?: number;
    /** Sent with every request as its server-side time limit, such as `1m30s`. */
    readonly timeoutText?: string;
    readonly observer?: ApiObserver;
    readonly clock?: Clock;
  } = {},
): ApiClient {
  const http = createHttpClient(config);
  const { observer, timeoutMs, timeoutText: toldTimeout, clock = programClock } = options;

  const prepare = (request: ApiRequest) => {
    const query = toldTimeout === undefined ? {} : { timeout: toldTimeout };
    return prepared({ ...request, query: { ...query, ...request.query } }, timeoutMs);
  };
  const note = (
    request: { method: string; path: string },
    answer: { status: number; headers: { warning?: string | undefined } },
    startMs: number,
  ): void => {
    const { warning } = answer.headers;
    if (warning !== undefined) for (const text of warningTexts(warning)) observer?.warning?.(text);
    const tookMs = Math.round(performance.now() - startMs);
    const url = new URL(request.path, config.server).href;
    observer?.request?.({ method: request.method, url, status: answer.status, tookMs });
  };

  const askTill = <A extends Retriable>(
    request: ReturnType<typeof prepare>,
    ask: () => Promise<A>,
  ): Promise<A> =>
    askPatiently(ask, {
      clock,
      signal: request.signal,
      heard: (answer, startMs) => note(request, answer, startMs),
    });
  const send = async <T extends object>(request: ApiRequest): Promise<ApiAnswer<T>> => {
    const preparedRequest = prepare(request);
    const answer = await askTill(preparedRequest, () => http.request(preparedRequest));
    if (answer.status >= 400) throw errorOf(answer.status, answer.body);
    const object = parseJson(answer.body);
    if (!isObject(object)) throw unexpected(answer.status, answer.body);
    return { status: answer.status, object: object as T };
  };

  return {
    http,
    send,
    get: async <T extends object>(path: string, query?: ApiRequest['query']) =>
      (await send<T>({ path, ...(query === undefined ? {} : { query }) })).object,
    async raw(path) {
      const preparedRequest = { ...prepare({ path }), headers: { accept: '*/*' } };
      const answer = await askTill(preparedRequest, () => http.request(preparedRequest));
      if (answer.status >= 400) throw errorOf(answer.status, answer.body);
      return answer.body.toString();
    },
    async stream(request) {
      const preparedRequest = prepare(request);
      const answer = await askTill(preparedRequest, () => http.stream(preparedRequest));
      if (answer.status < 400) return answer;
      throw errorOf(answer.status, await wholeOf(answer.body));
    },
    webSocket: (request) => http.webSocket(request).catch(throwRefusal),
    close: () => http.close(),
  };
}

/** Converts a WebSocket refusal to ApiError; rethrows other errors. */
async function throwRefusal(error: unknown): Promise<never> {
  const { WebSocketRefused } = await import('./web-socket.ts');
  if (!(error instanceof WebSocketRefused)) throw error;
  throw errorOf(error.status, error.body);
}

function prepared(request: ApiRequest, timeoutMs: number | undefined) {
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

/** The ApiError of a failed response, from its Status or else from its text. */
export function errorOf(status: number, body: Buffer): ApiError {
  const parsed = parseJson(body);
  return isObject(parsed) && parsed.kind === 'Status'
    ? statusError(parsed, status)
    : unexpected(status, body);
}

/** The ApiError for a Status: the body of a response, or an ERROR event of a watch. */
export function statusError(status: JsonObject, code = 500): ApiError {
  return new ApiError({
    code: typeof status.code === 'number' ? status.code : code,
    reason: typeof status.reason === 'string' ? status.reason : '',
    message: typeof status.message === 'string' ? status.message : 'unknown',
    details: isObject(status.details) ? (status.details as StatusDetails) : undefined,
  });
}

function unexpected(status: number, body: Buffer): ApiError {
  const text = body.subarray(0, 2048).toString().trim();
  const message = text === '' ? `the server answered with status ${status}` : text;
  return new ApiError({ code: status, reason: reasonOfCode[status] ?? '', message });
}

const reasonOfCode: Readonly<Record<number, string>> = {
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  429: 'TooManyRequests',
  503: 'ServiceUnavailable',
};

/** Texts of a `Warning` header: `299 - "text"`, several separated by commas. */
export function warningTexts(header: string): string[] {
  const texts: string[] = [];
  for (let at = header.indexOf('"'); at >= 0; at = header.indexOf('"', at)) {
    let text = '';
    let end = at + 1;
    for (; end < header.length && header[end] !== '"'; end++) {
      if (header[end] === '\\') end += 1;
      text += header[end] ?? '';
    }
    texts.push(text);
    at = end + 1;
  }
  return texts;
}
