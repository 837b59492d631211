import {
  type ClientConfig,
  createHttpClient,
  environmentProxy,
  goNetworkError,
  goResponseError,
  type HttpClient,
  type StreamingClient,
} from '@wheelhouse/client';
import { decodeReviewAnswer } from '@wheelhouse/codec';
import {
  type Clock,
  type Dialect,
  hostInUrl,
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
import type { AggregationSlot } from '../../endpoints/call.ts';
import { hostRoots } from '../../files/followed-files.ts';
import {
  exchange,
  isSuccess,
  UnreadableBody,
  UnusableAnswer,
  type WebhookAnswer,
} from '../../webhooks/answer.ts';
import type { ClientMeter } from '../../webhooks/client-metrics.ts';
import type { ResolveService } from '../../webhooks/service-address.ts';
import type { WebhookCredentials } from '../../webhooks/webhook-client.ts';

/** Maximum number of bytes of an error response that the message repeats. */
const shownBytesMax = 2048;

/** The message for an error response: that of its Status, or kube-apiserver's text for its code. */
async function serverResponseError(answer: WebhookAnswer, clock: Clock): Promise<string> {
  const { status, bytes } = answer;
  const message = await statusMessage(bytes, clock);
  if (message !== undefined) return message;
  const isText = (answer.headers['content-type'] ?? 'text/').toLowerCase().startsWith('text/');
  const text = isText ? bytes.toString('utf8', 0, shownBytesMax).trim() : 'unknown';
  return goResponseError(status, text).message;
}

async function statusMessage(body: Buffer, clock: Clock): Promise<string | undefined> {
  try {
    const { kind, status, message } = await decodeReviewAnswer(body, { clock });
    if (kind !== 'Status' || status !== 'Failure') return undefined;
    return typeof message === 'string' ? message : '';
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

/** The dependencies of all calls. */
interface CallContext {
  readonly clock: Clock;
  readonly resolve: ResolveService;
  readonly dialect: Pick<Dialect, 'productName'>;
  readonly aggregation: AggregationSlot;
  readonly credentials?: WebhookCredentials | undefined;
  readonly meter: ClientMeter;
  readonly clients: Map<string, HttpClient>;
}

/** One attempt of a call. */
interface Attempt {
  readonly client: StreamingClient;
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
 * follows only a response with Retry-After.
 */
export function createAdmissionWebhooks(options: {
  readonly clock: Clock;
  readonly dialect: Pick<Dialect, 'productName'>;
  readonly resolve: ResolveService;
  /** Serves webhooks of other servers through this server's own Service. */
  readonly aggregation: AggregationSlot;
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
        throw callError(error, { url, reason });
      } finally {
        release?.();
        timer.stop();
      }
    },
  };
}

/** The error of a call without a usable answer; `reason` is that of an abort. */
function callError(
  error: unknown,
  { url, reason }: { readonly url: string; readonly reason: string | undefined },
): WebhookCallError {
  const isCanceled = reason === 'context canceled';
  if (error instanceof UnusableAnswer) {
    const isAborted = reason !== undefined && error instanceof UnreadableBody;
    const { message } = isAborted ? new UnreadableBody(reason, { cause: undefined }) : error;
    return new WebhookCallError(message, { cause: error, code: error.code, isCanceled });
  }
  const message = `Post "${url}": ${reason ?? goNetworkError(error)}`;
  return new WebhookCallError(message, { cause: error, isCanceled });
}

/** The address as the configuration spells it, for messages. */
function shownUrl(address: WebhookAddress): string {
  if (address.service === undefined) {
    return URL.canParse(address.url)
      ? `https://${hostOf(address.url)}${pathOf(address.url)}`
      : address.url;
  }
  const { namespace, name, path, port } = address.service;
  return `https://${name}.${namespace}.svc:${port}${normalizePath(path)}`;
}

/** The host of a webhook's URL, and the port if it states one. */
function hostOf(url: string): string {
  const parsed = parseGoUrl(url);
  return typeof parsed === 'string' ? new URL(url).host : parsed.host;
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
      client: clientFor(
        { server, caPem, proxyUrl: environmentProxy(url, process.env) },
        host,
        context,
      ),
      path: pathOf(address.url),
      host: undefined,
      named: hostOf(address.url),
    };
  }
  const { namespace, name, path, port } = address.service;
  const tlsServerName = `${name}.${namespace}.svc`;
  const { aggregation, dialect } = context;
  const isOwn = tlsServerName === `${dialect.productName}.default.svc` && port === 443;
  const own = isOwn ? aggregation.active?.clientFor(normalizePath(path)) : undefined;
  if (own !== undefined) {
    const named = `${tlsServerName}:${port}`;
    return { client: own, path: normalizePath(path), host: undefined, named };
  }
  const at = await context.resolve({ namespace, name, port });
  const server = `https://${hostInUrl(at.host)}:${at.port}`;
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
  config: Pick<ClientConfig, 'server' | 'caPem' | 'tlsServerName' | 'proxyUrl'>,
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

async function sendWithRetries(context: CallContext, attempt: Attempt): Promise<Buffer> {
  const { clock, meter } = context;
  for (let retries = 0; ; retries += 1) {
    const { named: host, body } = attempt;
    const answer = await meter.measure({ host, body }, () => send(attempt, clock));
    const { status, bytes } = answer;
    if (isSuccess(status)) {
      if (bytes.length === 0) throw emptyAnswer(answer);
      return bytes;
    }
    const { 'retry-after': retryAfter = '' } = answer.headers;
    const seconds = /^\d{1,9}$/.test(retryAfter) ? Number(retryAfter) : undefined;
    const isTemporary = status === 429 || status >= 500;
    if (seconds === undefined || !isTemporary || retries === retriesMax) {
      const message = await serverResponseError(answer, clock);
      throw new WebhookCallError(message, { code: status });
    }
    meter.countRetry(host, status);
    await pause(clock, { ms: seconds * 1000, signal: attempt.signal, where: 'webhook' });
  }
}

function send(attempt: Attempt, clock: Clock): Promise<WebhookAnswer> {
  const { client, host, named, headers, answerBytesMax, ...call } = attempt;
  const tooLong = () => new WebhookCallError(`the answer is longer than ${answerBytesMax} bytes`);
  return exchange(client, {
    ...call,
    origin: `https://${named}`,
    headers: { ...headers, ...(host === undefined ? {} : { host }) },
    bytesMax: answerBytesMax,
    tooLong,
    clock,
  });
}

function emptyAnswer({ status, headers }: WebhookAnswer): WebhookCallError {
  const type = headers['content-type'] ?? 'application/json';
  const message = `0-length response with status code: ${status} and content type: ${type}`;
  return new WebhookCallError(message);
}
