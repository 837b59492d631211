import { isIPv6 } from 'node:net';
import {
  type ClientConfig,
  createHttpClient,
  goNetworkError,
  type HttpClient,
} from '@wheelhouse/client';
import { decodeJsonInSlices } from '@wheelhouse/codec';
import {
  type Clock,
  isObject,
  normalizePath,
  normalizeUrlPath,
  parseGoUrl,
  pause,
  whenAborted,
} from '@wheelhouse/machinery';
import {
  type WebhookAddress,
  WebhookCallError,
  type WebhookPort,
} from '../../admission/webhooks/port.ts';
import { hostRoots } from '../../files/followed-files.ts';
import type { ClientMeter } from '../../webhooks/client-metrics.ts';
import type { ResolveService } from '../../webhooks/service-address.ts';
import { readWhole, type WebhookCredentials } from '../../webhooks/webhook-client.ts';

const byStatus: Readonly<Record<number, string>> = {
  400: 'the server rejected our request for an unknown reason',
  401: 'the server has asked for the client to provide credentials',
  404: 'the server could not find the requested resource',
  405: 'the server does not allow this method on the requested resource',
  409: 'the server reported a conflict',
  415: 'the server was unable to process the request due to unsupported media type',
  422: 'the server rejected our request due to an error in our request',
  429: 'the server has received too many requests and has asked us to try again later',
  503: 'the server is currently unable to handle the request',
  504: 'the server was unable to return a response in the time allotted, but may still be processing the request',
};

/** Maximum number of bytes of an error response that the message repeats. */
const shownBytesMax = 64 * 1024;

/** The message for an error response: that of its Status, or kube-apiserver's text for its code. */
async function serverResponseError(
  { status, bytes, isText }: Awaited<ReturnType<typeof send>>,
  clock: Clock,
): Promise<string> {
  const message = await statusMessage(bytes, clock);
  if (message !== undefined) return message;
  if (Object.hasOwn(byStatus, status)) return byStatus[status] ?? '';
  const text = isText ? bytes.toString('utf8', 0, shownBytesMax).trim() : 'unknown';
  if (status === 403) return text === '' ? 'unknown' : text;
  if (status >= 500) {
    const why = JSON.stringify(text === '' ? 'unknown' : text.slice(0, 2048));
    return `an error on the server (${why}) has prevented the request from succeeding`;
  }
  return `the server responded with the status code ${status} but did not return more information`;
}

async function statusMessage(body: Buffer, clock: Clock): Promise<string | undefined> {
  try {
    const { value } = await decodeJsonInSlices(body, { clock });
    if (!isObject(value) || value['kind'] !== 'Status' || value['status'] !== 'Failure') {
      return undefined;
    }
    const { message } = value;
    return typeof message === 'string' && message !== '' ? message : undefined;
  } catch {
    return undefined;
  }
}

/** Maximum number of cached webhook clients, each with its own connections. */
const clientsMax = 200;
/**
 * Maximum response size in bytes; a base64 patch of a whole object is a third larger than the
 * object.
 */
const usualAnswerBytesMax = 8 * 1024 * 1024;
const retriesMax = 10;
const redirectsMax = 10;
/** Redirect codes that keep the method and the body. */
const repeatedRedirects: ReadonlySet<number> = new Set([307, 308]);

/** The dependencies of all calls. */
interface CallContext {
  readonly clock: Clock;
  readonly resolve: ResolveService;
  readonly credentials?: WebhookCredentials | undefined;
  readonly meter: ClientMeter;
  readonly clients: Map<string, HttpClient>;
}

/** One attempt of a call. */
interface Attempt {
  readonly client: HttpClient;
  readonly path: string;
  readonly host: string | undefined;
  /** `host:port` as the configuration spells it. */
  readonly named: string;
  readonly body: string;
  readonly headers: Readonly<Record<string, string>> | undefined;
  readonly signal: AbortSignal;
  readonly answerBytesMax: number;
}

/**
 * Calls admission webhooks (ADM-2): one attempt per call, within its timeout. Another attempt
 * follows only a response with Retry-After or a redirect to another path on the same server.
 */
export function createAdmissionWebhooks(options: {
  readonly clock: Clock;
  readonly resolve: ResolveService;
  readonly credentials?: WebhookCredentials | undefined;
  readonly meter: ClientMeter;
}): WebhookPort {
  const context: CallContext = { ...options, clients: new Map() };
  return {
    async post({ address, body, timeoutMs, signal, headers, ...request }) {
      const { answerBytesMax = usualAnswerBytesMax } = request;
      const ended = new AbortController();
      let isLate = false;
      const timer = options.clock.after(timeoutMs, () => {
        isLate = true;
        ended.abort();
      });
      const onAbort = () => ended.abort();
      const release =
        signal === undefined ? undefined : whenAborted(signal, { where: 'webhook' }, onAbort);
      const seconds = Math.ceil(timeoutMs / 1000);
      const url = `${shownUrl(address)}?timeout=${seconds}s`;
      try {
        const target = await targetOf(address, context);
        const path = `${target.path}?timeout=${seconds}s`;
        const attempt = { ...target, path, body, headers, signal: ended.signal, answerBytesMax };
        return await sendWithRetries(context, attempt);
      } catch (error) {
        if (error instanceof WebhookCallError) throw error;
        const abortReason = isLate ? 'context deadline exceeded' : 'context canceled';
        const reason = ended.signal.aborted ? abortReason : undefined;
        throw new WebhookCallError(`Post "${url}": ${reason ?? goNetworkError(error)}`, {
          cause: error,
          isCanceled: reason === 'context canceled',
        });
      } finally {
        release?.();
        timer.stop();
      }
    },
  };
}

/** The address as the configuration spells it, for messages. */
function shownUrl(address: WebhookAddress): string {
  if (address.service === undefined) {
    if (!URL.canParse(address.url)) return address.url;
    return `${new URL(address.url).origin}${pathOf(address.url)}`;
  }
  const { namespace, name, path, port } = address.service;
  return `https://${name}.${namespace}.svc:${port}${normalizePath(path)}`;
}

/** The path of a webhook's URL. */
function pathOf(url: string): string {
  const parsed = parseGoUrl(url);
  return typeof parsed === 'string' ? new URL(url).pathname : normalizeUrlPath(parsed.path);
}

async function targetOf(
  address: WebhookAddress,
  context: CallContext,
): Promise<Pick<Attempt, 'client' | 'path' | 'host' | 'named'>> {
  const { caPem } = address;
  if (address.service === undefined) {
    const url = new URL(address.url);
    const server = url.origin;
    const host = url.port === '' ? `${url.hostname}:443` : url.host;
    return {
      client: clientFor({ server, caPem }, host, context),
      path: pathOf(address.url),
      host: undefined,
      named: url.host,
    };
  }
  const { namespace, name, path, port } = address.service;
  const tlsServerName = `${name}.${namespace}.svc`;
  const at = await context.resolve({ namespace, name, port });
  const server = `https://${isIPv6(at.host) ? `[${at.host}]` : at.host}:${at.port}`;
  const host = `${tlsServerName}:${port}`;
  return {
    client: clientFor({ server, caPem, tlsServerName }, host, context),
    path: normalizePath(path),
    host,
    named: host,
  };
}

/** Returns the client for an address, cached while it is among the most recently used. */
function clientFor(
  config: Pick<ClientConfig, 'server' | 'caPem' | 'tlsServerName'>,
  host: string,
  { clients, credentials }: CallContext,
): HttpClient {
  const key = JSON.stringify([config, host]);
  const cached = clients.get(key);
  clients.delete(key);
  const client =
    cached ??
    createHttpClient({
      userAgent: 'kube-apiserver-admission',
      protocol: 'negotiated',
      ...credentials?.(host),
      ...config,
      caPem: config.caPem ?? hostRoots(),
    });
  clients.set(key, client);
  for (const [oldest, { close }] of clients) {
    if (clients.size <= clientsMax) break;
    clients.delete(oldest);
    close();
  }
  return client;
}

async function sendWithRetries(context: CallContext, first: Attempt): Promise<Buffer> {
  let attempt = first;
  let retries = 0;
  let redirects = 0;
  for (;;) {
    const { named: host, body } = attempt;
    const call = { host, body };
    const answer = await context.meter.measure(call, () => send(attempt, context.clock));
    const { status, bytes, retryAfter } = answer;
    if (status >= 200 && status < 300) {
      if (bytes.length === 0) throw emptyAnswer(answer);
      return bytes;
    }
    const redirected = redirectedPath(attempt, answer);
    if (redirected !== undefined) {
      redirects += 1;
      if (redirects > redirectsMax) {
        const url = `https://${host}${redirected}`;
        throw new WebhookCallError(`Post "${url}": stopped after ${redirectsMax} redirects`);
      }
      attempt = { ...attempt, path: redirected };
      continue;
    }
    const seconds = /^\d{1,9}$/.test(retryAfter ?? '') ? Number(retryAfter) : undefined;
    const isTemporary = status === 429 || status >= 500;
    if (seconds === undefined || !isTemporary || retries === retriesMax) {
      const message = await serverResponseError(answer, context.clock);
      throw new WebhookCallError(message, { code: status });
    }
    context.meter.countRetry(host, status);
    retries += 1;
    await pause(context.clock, { ms: seconds * 1000, signal: attempt.signal, where: 'webhook' });
  }
}

/** The path that a redirect leads to, if it keeps the body and stays on the configured server. */
function redirectedPath(
  { named, path }: Attempt,
  { status, location }: { readonly status: number; readonly location: string | undefined },
): string | undefined {
  const base = `https://${named}`;
  if (!repeatedRedirects.has(status) || location === undefined) return undefined;
  if (!URL.canParse(location, base + path)) return undefined;
  const url = new URL(location, base + path);
  return url.origin === new URL(base).origin ? url.pathname + url.search : undefined;
}

async function send(attempt: Attempt, clock: Clock) {
  const { client, path, host, body, headers: more, signal, answerBytesMax } = attempt;
  const {
    status,
    headers,
    body: stream,
  } = await client.stream({
    method: 'POST',
    path,
    headers: {
      accept: 'application/json, */*',
      'content-type': 'application/json',
      ...more,
      ...(host === undefined ? {} : { host }),
    },
    body,
    signal,
  });
  const { 'content-type': contentType } = headers;
  const tooLong = () => new WebhookCallError(`the answer is longer than ${answerBytesMax} bytes`);
  const bytes = await readWhole(stream, { bytesMax: answerBytesMax, tooLong, clock });
  const { location, 'retry-after': retryAfter } = headers;
  const isText = (contentType ?? 'text/plain').startsWith('text/');
  return { status, bytes, location, retryAfter, contentType, isText };
}

function emptyAnswer({ status, contentType }: Awaited<ReturnType<typeof send>>): WebhookCallError {
  const type = contentType ?? 'application/json';
  const message = `0-length response with status code: ${status} and content type: ${type}`;
  return new WebhookCallError(message);
}
