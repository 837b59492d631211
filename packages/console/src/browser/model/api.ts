import { parseJson } from '@wheelhouse/machinery';
import { isObject, type JsonObject, type JsonValue } from '@wheelhouse/machinery/browser';
import { failureOf, Unreachable } from './failure.ts';
import type { BytesReader, Fetch, FetchAnswer } from './ports.ts';

/** A line longer than this ends the stream: no event is, and memory is not the server's to fill. */
const lineCharactersMax = 64 * 1024 * 1024;

/**
 * The lines of a stream, without their ends. A line that the stream breaks off in is dropped: a cut
 * connection leaves one. Throws RangeError for a line that is too long.
 */
async function* linesOf(reader: BytesReader): AsyncGenerator<string> {
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
    if (pending.length > lineCharactersMax) throw new RangeError('a line of the watch is too long');
  }
}

/** A request of the API, by a path below the server's own. */
export interface ApiRequest {
  readonly path: string;
  readonly method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Members that are undefined or empty are left out. */
  readonly query?: Readonly<Record<string, string | number | undefined>>;
  readonly body?: string | JsonObject;
  /** Of a body that is text. */
  readonly type?: string;
  readonly accept?: string;
  readonly signal?: AbortSignal;
  /** Of the document that is known already: the answer may be 304. */
  readonly etag?: string | undefined;
}

export interface ApiAnswer {
  readonly status: number;
  readonly text: string;
  /** What the server wants the user to know (`Warning` headers). */
  readonly warnings: readonly string[];
  readonly etag: string | undefined;
}

/**
 * The API as the user may use it: every request carries the user's own credential and nothing else.
 * All methods reject with ApiFailure for an answer that is no success, with Unreachable when there
 * was none, and with the signal's reason once it is aborted.
 */
export interface Api {
  send(request: ApiRequest): Promise<ApiAnswer>;
  /** Like `send`, for an answer that is a JSON object. */
  json(request: ApiRequest): Promise<JsonObject>;
  /** The values of an answer that is a stream of them, a line each; ends when the server ends it. */
  stream(request: ApiRequest): Promise<AsyncGenerator<JsonObject>>;
}

/** What one sign-in shows with its requests; the next one's is another, be its token the same. */
export interface Credential {
  /** Undefined where the browser's certificate, or a proxy, says who the user is. */
  readonly token: string | undefined;
}

export interface ApiOptions {
  readonly fetch: Fetch;
  /** What paths are put behind: the page's origin and what a proxy put before the server's paths. */
  readonly base: string;
  readonly credential: () => Credential;
  /** Called for a 401, with what was shown: it has expired, or never was one. */
  readonly onUnauthorized: (credential: Credential) => void;
  /** Reads an answer in YAML. */
  readonly parseYaml: (text: string) => Promise<JsonValue | undefined>;
}

/** The API behind a `fetch`. */
export function createApi(options: ApiOptions): Api {
  const open = (request: ApiRequest) => openAnswer(options, request);
  const send = async (request: ApiRequest): Promise<ApiAnswer> => {
    const answer = await open(request);
    return {
      status: answer.status,
      text: await bodyOf(answer, request.signal),
      warnings: warningsOf(answer.headers.get('warning')),
      etag: answer.headers.get('etag') ?? undefined,
    };
  };
  return {
    send,
    async json(request) {
      const { text } = await send(request);
      const value = parsed(text);
      if (!isObject(value)) throw new Unreachable(new Error('the answer is no JSON object'));
      return value;
    },
    async stream(request) {
      const answer = await open(request);
      return valuesOf(answer, request.signal);
    },
  };
}

async function openAnswer(options: ApiOptions, request: ApiRequest): Promise<FetchAnswer> {
  const { path, method = 'GET', body, signal } = request;
  const credential = options.credential();
  const { token } = credential;
  const type = request.type ?? 'application/json';
  const headers: Record<string, string> = {
    accept: request.accept ?? 'application/json',
    ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    ...(body === undefined ? {} : { 'content-type': type }),
    ...(request.etag === undefined ? {} : { 'if-none-match': request.etag }),
  };
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  let answer: FetchAnswer;
  try {
    answer = await options.fetch(`${options.base}${path}${queryOf(request.query)}`, {
      method,
      headers,
      ...(body === undefined ? {} : { body: text }),
      ...(signal === undefined ? {} : { signal }),
      cache: 'no-store',
      credentials: 'same-origin',
      redirect: 'error',
    });
  } catch (error) {
    throw brokenOff(error, signal);
  }
  const { status } = answer;
  if ((status >= 200 && status < 300) || (status === 304 && request.etag !== undefined)) {
    return answer;
  }
  if (status === 401) options.onUnauthorized(credential);
  throw await refusalOf(answer, options, signal);
}

async function refusalOf(
  answer: FetchAnswer,
  { parseYaml }: ApiOptions,
  signal: AbortSignal | undefined,
): Promise<Error> {
  const text = await bodyOf(answer, signal);
  const isYaml = answer.headers.get('content-type')?.includes('yaml') === true;
  const body = isYaml ? await parseYaml(text) : parsed(text);
  return failureOf(body, { code: answer.status, retryAfter: answer.headers.get('retry-after') });
}

async function bodyOf(answer: FetchAnswer, signal: AbortSignal | undefined): Promise<string> {
  try {
    return await answer.text();
  } catch (error) {
    throw brokenOff(error, signal);
  }
}

async function* valuesOf(
  answer: FetchAnswer,
  signal: AbortSignal | undefined,
): AsyncGenerator<JsonObject> {
  const reader = answer.body?.getReader();
  if (reader === undefined) return;
  try {
    for await (const line of linesOf(reader)) {
      if (line === '') continue;
      const value = parsed(line);
      if (!isObject(value)) throw new Error('a line of the answer is no JSON object');
      yield value;
    }
  } catch (error) {
    throw brokenOff(error, signal);
  } finally {
    // Whoever stops reading early closes the stream; how it ends is no longer of interest.
    reader.cancel().catch(() => {});
  }
}

/** What was thrown, unless the caller itself broke off. */
function brokenOff(error: unknown, signal: AbortSignal | undefined): unknown {
  return signal?.aborted === true ? signal.reason : new Unreachable(error);
}

function parsed(text: string): JsonValue | undefined {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

function queryOf(query: ApiRequest['query'] = {}): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== '') parameters.set(name, String(value));
  }
  return parameters.size === 0 ? '' : `?${parameters.toString()}`;
}

/** The texts of `Warning` headers, which a browser gives joined: `299 - "one", 299 - "two"`. */
function warningsOf(header: string | null): string[] {
  if (header === null) return [];
  return [...header.matchAll(/\d{3} \S+ "((?:[^"\\]|\\.)*)"/g)].map((found) =>
    (found[1] ?? '').replace(/\\(.)/g, '$1'),
  );
}
