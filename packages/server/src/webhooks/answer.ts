import type { IncomingHttpHeaders } from 'node:http';
import { pipeline, type Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { goNetworkError, type StreamingClient } from '@wheelhouse/client';
import {
  type Clock,
  concatSteps,
  goQuoted,
  parseGoUrl,
  piecesWithin,
  runInSlices,
  systemErrorCode,
} from '@wheelhouse/machinery';

/** The answer of a webhook, with its whole body without compression. */
export interface WebhookAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly bytes: Buffer;
}

/** One call of a webhook. */
interface WebhookCall {
  /** The server as its configuration spells it, to which redirects must lead. */
  readonly origin: string;
  /** Path and query. */
  readonly path: string;
  readonly body: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  /** Maximum number of bytes of an answer, before and after its decompression. */
  readonly bytesMax: number;
  readonly tooLong: () => Error;
  readonly clock: Pick<Clock, 'monotonic'>;
}

/** An answer that arrived but has no usable body or leads nowhere. The message is client-go's. */
export class UnusableAnswer extends Error {
  /** The reason without an address. */
  readonly why: string;
  /** The status for metrics. */
  readonly code: number;

  constructor(message: string, options: ErrorOptions & { why: string; code?: number }) {
    super(message, options);
    this.why = options.why;
    this.code = options.code ?? 400;
  }
}

/** The body of an answer could not be read to its end. */
export class UnreadableBody extends UnusableAnswer {
  constructor(why: string, { cause }: { readonly cause: unknown }) {
    const isReset = systemErrorCode(cause) === 'ERR_HTTP2_STREAM_ERROR';
    const frame = isReset
      ? 'stream error when reading response body, may be caused by closed connection'
      : 'unexpected error when reading response body';
    super(`${frame}. Please retry. Original error: ${why}`, { why, cause });
  }
}

/** Whether an answer's status is one that client-go takes for a success. */
export const isSuccess = (status: number): boolean => status >= 200 && status <= 206;

const redirectsMax = 10;
const redirects: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
/** Redirects that keep the method and the body. */
const repeatedRedirects: ReadonlySet<number> = new Set([307, 308]);

/**
 * Posts a body and reads the whole answer as client-go does: decompresses it, and follows
 * redirects, but only to the same server, as no other may receive the body and the credentials.
 * Rejects with UnusableAnswer, the error of `tooLong`, or the network error.
 */
export async function exchange(client: StreamingClient, call: WebhookCall): Promise<WebhookAnswer> {
  let { path } = call;
  let body: string | undefined = call.body;
  for (let followed = 0; ; followed += 1) {
    const answer = await send(client, { ...call, path, body });
    const target = redirectedPath(answer, call.origin + path);
    if (target === undefined) return checked(answer);
    if (followed === redirectsMax) {
      const why = `stopped after ${redirectsMax} redirects`;
      throw new UnusableAnswer(`Post "${answer.headers.location}": ${why}`, { why });
    }
    path = target;
    // A client repeats the request as a GET after other redirects.
    if (!repeatedRedirects.has(answer.status)) body = undefined;
  }
}

/** The path that a redirect leads to, if it stays on the server. */
function redirectedPath({ status, headers }: WebhookAnswer, url: string): string | undefined {
  const { location } = headers;
  if (!redirects.has(status) || location === undefined) return undefined;
  const parsed = parseGoUrl(location);
  if (typeof parsed === 'string' || !URL.canParse(location, url)) {
    const why = typeof parsed === 'string' ? parsed : `parse ${goQuoted(location)}: invalid URL`;
    const message = `Post "${url}": failed to parse Location header ${goQuoted(location)}: ${why}`;
    throw new UnusableAnswer(message, { why: 'its redirect is malformed' });
  }
  const target = new URL(location, url);
  const { protocol, host } = new URL(url);
  const isSame = target.protocol === protocol && target.host === host;
  return isSame ? target.pathname + target.search : undefined;
}

/** Throws for an answer whose content type client-go cannot parse. */
function checked(answer: WebhookAnswer): WebhookAnswer {
  const { 'content-type': contentType = '' } = answer.headers;
  const why = contentType === '' ? undefined : mediaTypeFault(contentType);
  if (why === undefined) return answer;
  throw new UnusableAnswer(`Internal error occurred: ${why}`, { why, code: 500 });
}

async function send(
  client: StreamingClient,
  call: Omit<WebhookCall, 'body'> & { readonly body: string | undefined },
): Promise<WebhookAnswer> {
  const { path, body, headers: more, signal } = call;
  const { status, headers, ...answer } = await client.stream({
    method: body === undefined ? 'GET' : 'POST',
    path,
    headers: {
      accept: 'application/json, */*',
      'accept-encoding': 'gzip',
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...more,
    },
    body,
    signal,
  });
  const isZipped = headers['content-encoding']?.toLowerCase() === 'gzip';
  return { status, headers, bytes: await readBody(answer.body, { ...call, isZipped }) };
}

async function readBody(
  body: Readable,
  call: Pick<WebhookCall, 'bytesMax' | 'tooLong' | 'clock'> & { readonly isZipped: boolean },
): Promise<Buffer> {
  const { bytesMax, clock, isZipped } = call;
  let excess: Error | undefined;
  let receivedLength = 0;
  const tooLong = (): Error => {
    excess = call.tooLong();
    return excess;
  };
  const counted = async function* (): AsyncGenerator<Buffer> {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      receivedLength += chunk.length;
      if (receivedLength > bytesMax) throw tooLong();
      yield chunk;
    }
  };
  try {
    const whole = isZipped ? unzipped(counted()) : counted();
    return await readWhole(whole, { bytesMax, tooLong, clock });
  } catch (error) {
    if (excess !== undefined) throw excess;
    if (isZipped && receivedLength === 0 && systemErrorCode(error) === 'Z_BUF_ERROR') {
      return Buffer.alloc(0);
    }
    throw new UnreadableBody(bodyFault(error), { cause: error });
  } finally {
    // Decompression can fail or end while the rest of the body is awaited, without a time limit.
    body.destroy();
  }
}

function unzipped(chunks: AsyncIterable<Buffer>): AsyncIterable<Buffer> {
  const gunzip = createGunzip();
  // The iterator of the last stream reports the error.
  pipeline(chunks, gunzip, () => {});
  return gunzip;
}

/**
 * Reads a whole stream, in slices if it is long (TRUST-2). Destroys it and rejects with the error
 * of `tooLong` if it exceeds `bytesMax`.
 */
async function readWhole(
  stream: AsyncIterable<Buffer>,
  options: Pick<WebhookCall, 'bytesMax' | 'tooLong' | 'clock'>,
): Promise<Buffer> {
  const { bytesMax, tooLong, clock } = options;
  const pieces = await piecesWithin(stream, bytesMax);
  if (pieces === undefined) throw tooLong();
  return runInSlices(concatSteps(pieces), clock);
}

const zlibFaults: Readonly<Record<string, string>> = {
  'incorrect header check': 'gzip: invalid header',
  'incorrect data check': 'gzip: invalid checksum',
  'incorrect length check': 'gzip: invalid checksum',
};

/** Words an error about a body as Go does. */
function bodyFault(error: unknown): string {
  const code = systemErrorCode(error);
  if (code === 'ECONNRESET' || code === 'Z_BUF_ERROR') return 'unexpected EOF';
  if (code?.startsWith('Z_') !== true) return goNetworkError(error);
  const message = error instanceof Error ? error.message : '';
  return zlibFaults[message] ?? 'flate: corrupt input';
}

/** The characters of a token in a media type. */
const token = "[!#$%&'*+\\-.^_`{|}~0-9A-Za-z]+";
const parameter = new RegExp(
  `\\s*;\\s*(?<name>${token})\\s*=\\s*(?<value>${token}|"(?:[^"\\\\\\r\\n]|\\\\[^\\r\\n])*")`,
  'y',
);
const leadingToken = new RegExp(`^${token}`);

/**
 * Returns why Go's parser refuses a media type, with its parameters, in Go's words; undefined if it
 * accepts it.
 */
export function mediaTypeFault(contentType: string): string | undefined {
  // Otherwise each test for a remaining parameter would read all spaces at the end.
  const text = contentType.trimEnd();
  const [base = ''] = text.split(';', 1);
  const fault = typeFault(base.trim());
  if (fault !== undefined) return `mime: ${fault}`;
  const values = new Map<string, string>();
  let at = base.length;
  while (at < text.length) {
    parameter.lastIndex = at;
    const { name = '', value = '' } = parameter.exec(text)?.groups ?? {};
    if (name === '') {
      return text.slice(at).trimStart() === ';' ? undefined : 'mime: invalid media parameter';
    }
    const key = name.toLowerCase();
    if ((values.get(key) ?? value) !== value) return 'mime: duplicate parameter name';
    values.set(key, value);
    at = parameter.lastIndex;
  }
  return undefined;
}

function typeFault(type: string): string | undefined {
  const main = leadingToken.exec(type)?.[0] ?? '';
  if (main === '') return 'no media type';
  const rest = type.slice(main.length);
  if (rest === '') return undefined;
  if (!rest.startsWith('/')) return 'expected slash after first token';
  const sub = leadingToken.exec(rest.slice(1))?.[0] ?? '';
  if (sub === '') return 'expected token after slash';
  return rest.length > sub.length + 1 ? 'unexpected content after media subtype' : undefined;
}
