import {
  isObject,
  type JsonObject,
  type JsonValue,
  parseExactJson,
} from '@wheelhouse/machinery/browser';
import { ApiFailure, failureOf, Unreachable } from './failure.ts';
import { printJson } from './json.ts';
import type { BytesReader, Fetch, FetchResponse } from './ports.ts';
import { formatQuery } from './query.ts';

/** Maximum length of a line. A longer one ends the stream, which bounds memory. */
const lineCharactersMax = 64 * 1024 * 1024;

/**
 * Yields the lines of a stream without their terminators. Drops an incomplete last line, as after
 * a broken connection. Throws RangeError if a line is too long.
 */
async function* readLines(reader: BytesReader): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let pending = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const text = pending + decoder.decode(value, { stream: true });
    let from = 0;
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', from)) {
      yield text.slice(from, end);
      from = end + 1;
    }
    pending = text.slice(from);
    if (pending.length > lineCharactersMax)
      throw new RangeError('a line of the response is too long');
  }
}

/** A request to the API; its path is relative to the base path. */
export interface ApiRequest {
  readonly path: string;
  readonly method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Query parameters; undefined and empty ones are omitted. */
  readonly query?: Readonly<Record<string, string | number | undefined>>;
  readonly body?: string | JsonObject;
  /** Content type of a text body. */
  readonly type?: string;
  readonly accept?: string;
  readonly signal?: AbortSignal;
  /** ETag of the cached document; the response may be 304. */
  readonly etag?: string | undefined;
}

/** A response whose body has been read. */
interface ApiResponse {
  readonly status: number;
  readonly text: string;
  /** Texts of the `Warning` headers. */
  readonly warnings: readonly string[];
  readonly etag: string | undefined;
}

/**
 * The server's API with the credential of the user. All methods reject with ApiFailure for an
 * unsuccessful response, with Unreachable if there is no complete response, and with the signal's
 * reason if aborted.
 */
export interface Api {
  send(request: ApiRequest): Promise<ApiResponse>;
  /** Like `send`, for a response that is a JSON object. */
  json(request: ApiRequest): Promise<JsonObject>;
  /**
   * Yields the values of a stream, one JSON document per line; ends when the server ends the
   * stream.
   */
  stream(request: ApiRequest): Promise<AsyncGenerator<JsonObject>>;
}

/** The credential of one sign-in, compared by identity even if tokens are equal. */
export interface Credential {
  /** Undefined if a client certificate or a proxy identifies the user. */
  readonly token: string | undefined;
}

interface ApiOptions {
  readonly fetch: Fetch;
  /** Prefix of all paths: the origin of the page and any prefix of a proxy. */
  readonly base: string;
  readonly credential: () => Credential;
  /** Called for a 401 with the rejected credential, which is expired or invalid. */
  readonly onUnauthorized: (credential: Credential) => void;
  /** Parses a YAML response. */
  readonly parseYaml: (text: string) => Promise<JsonValue | undefined>;
}

/** Creates an API that sends its requests with `fetch`. */
export function createApi(options: ApiOptions): Api {
  const open = (request: ApiRequest) => fetchResponse(options, request);
  const send = async (request: ApiRequest): Promise<ApiResponse> => {
    const response = await open(request);
    return {
      status: response.status,
      text: await readBody(response, request.signal),
      warnings: parseWarnings(response.headers.get('warning')),
      etag: response.headers.get('etag') ?? undefined,
    };
  };
  return {
    send,
    async json(request) {
      const { text } = await send(request);
      const value = tryParseJson(text);
      if (!isObject(value)) throw new Unreachable(new Error('the response is not a JSON object'));
      return value;
    },
    async stream(request) {
      const response = await open(request);
      return readValues(response, request.signal);
    },
  };
}

async function fetchResponse(options: ApiOptions, request: ApiRequest): Promise<FetchResponse> {
  const { path, method = 'GET', body, signal } = request;
  const [, dots] = /\/(\.\.?)(?:[/?]|$)/.exec(path) ?? [];
  // A browser would resolve the segment, which changes what the path names.
  if (dots !== undefined) {
    const message = `invalid resource name "${dots}": [may not be '${dots}']`;
    throw new ApiFailure({ code: 400, reason: 'BadRequest', message });
  }
  const credential = options.credential();
  const { token } = credential;
  const type = request.type ?? 'application/json';
  const headers: Record<string, string> = {
    accept: request.accept ?? 'application/json',
    ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    ...(body === undefined ? {} : { 'content-type': type }),
    ...(request.etag === undefined ? {} : { 'if-none-match': request.etag }),
  };
  const text = typeof body === 'object' ? printJson(body, '') : body;
  let response: FetchResponse;
  try {
    response = await options.fetch(`${options.base}${path}${formatQuery(request.query ?? {})}`, {
      method,
      headers,
      ...(body === undefined ? {} : { body: text }),
      ...(signal === undefined ? {} : { signal }),
      cache: 'no-store',
      credentials: 'same-origin',
      redirect: 'error',
    });
  } catch (error) {
    throw requestError(error, signal);
  }
  const { status } = response;
  if ((status >= 200 && status < 300) || (status === 304 && request.etag !== undefined)) {
    return response;
  }
  if (status === 401) options.onUnauthorized(credential);
  throw await readFailure(response, options, signal);
}

async function readFailure(
  response: FetchResponse,
  { parseYaml }: ApiOptions,
  signal: AbortSignal | undefined,
): Promise<Error> {
  const text = await readBody(response, signal);
  const isYaml = response.headers.get('content-type')?.includes('yaml') === true;
  const body = isYaml ? await parseYaml(text) : tryParseJson(text);
  return failureOf(body, {
    code: response.status,
    retryAfter: response.headers.get('retry-after'),
  });
}

async function readBody(response: FetchResponse, signal: AbortSignal | undefined): Promise<string> {
  try {
    return await response.text();
  } catch (error) {
    throw requestError(error, signal);
  }
}

async function* readValues(
  response: FetchResponse,
  signal: AbortSignal | undefined,
): AsyncGenerator<JsonObject> {
  const reader = response.body?.getReader();
  if (reader === undefined) return;
  try {
    for await (const line of readLines(reader)) {
      if (line === '') continue;
      const value = tryParseJson(line);
      if (!isObject(value)) throw new Error('a line of the response is not a JSON object');
      yield value;
    }
  } catch (error) {
    throw requestError(error, signal);
  } finally {
    // A consumer that stops early closes the stream, so an error no longer matters.
    reader.cancel().catch(() => {});
  }
}

/** Converts an error to Unreachable, unless the caller aborted the request. */
function requestError(error: unknown, signal: AbortSignal | undefined): unknown {
  return signal?.aborted === true ? signal.reason : new Unreachable(error);
}

function tryParseJson(text: string): JsonValue | undefined {
  try {
    return parseExactJson(text);
  } catch {
    return undefined;
  }
}

/** Splits `Warning` headers, which a browser joins: `299 - "one", 299 - "two"`. */
function parseWarnings(header: string | null): string[] {
  if (header === null) return [];
  return [...header.matchAll(/\d{3} \S+ "((?:[^"\\]|\\.)*)"/g)].map((match) =>
    (match[1] ?? '').replace(/\\(.)/g, '$1'),
  );
}
