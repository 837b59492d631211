import { setMaxListeners } from 'node:events';
import {
  type ClientConfig,
  ConnectionError,
  createHttpClient,
  type HttpClient,
  type InClusterOptions,
  inClusterConfig,
  type Kubeconfig,
  loadKubeconfig,
  resolveContext,
  textMember,
} from '@wheelhouse/client';
import { decodeReviewAnswer } from '@wheelhouse/codec';
import {
  type Clock,
  type Dialect,
  errorText,
  type JsonObject,
  normalizeUrlPath,
  parseGoUrl,
  pause,
  retryPauseMs,
  systemErrorCode,
  type WaitingClient,
  type Webhook,
  WebhookError,
  type WebhookOutcome,
  whenAborted,
} from '@wheelhouse/machinery';
import { printGoDuration } from '@wheelhouse/schema';
import { apiRelease } from '../documents/version.ts';
import { hostRoots } from '../files/followed-files.ts';
import { exchange, isSuccess, UnusableAnswer } from './answer.ts';
import type { ClientMeter } from './client-metrics.ts';

/** A webhook and its connections. */
interface ConnectedWebhook extends Webhook {
  /** Posts `body` once. Rejects with a WebhookError unless the status is 2xx. */
  post(body: string): Promise<void>;
  /** Closes the connections once no call is in flight. */
  retire(): void;
  /** Cancels calls in flight, which then reject with outcome `canceled`. */
  close(): void;
}

/** One attempt, for metrics. */
export interface WebhookAttempt {
  readonly outcome: WebhookOutcome;
  readonly durationMs: number;
}

const defaultFirstPauseMs = 500;
/** Maximum pause that a Retry-After header can cause. */
const retryAfterMaxMs = 10_000;
const answerBytesMax = 1024 * 1024;
const defaultCallsMax = 1000;

/** A failed attempt, which is retried if `retry` is set. */
class AttemptError extends WebhookError {
  readonly retry: { readonly afterMs: number } | undefined;

  constructor(
    message: string,
    options: ErrorOptions & { outcome: WebhookError['outcome']; retryAfterMs?: number },
  ) {
    super(message, options);
    this.retry = options.retryAfterMs === undefined ? undefined : { afterMs: options.retryAfterMs };
  }
}

/**
 * Creates a webhook that is called as kube-apiserver does: with a timeout for each attempt, and up
 * to five attempts with growing pauses if the connection is reset or the answer is a 429, 500, or
 * 504, or has Retry-After. Throws if the address of `client` is malformed.
 */
export function createWebhook(options: {
  readonly client: ClientConfig;
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly onAttempt?: (attempt: WebhookAttempt) => void;
  readonly meter?: ClientMeter | undefined;
  /** Pause before the second attempt; defaults to 500 ms. */
  readonly firstPauseMs?: number;
  /** Maximum number of calls in flight, beyond which calls fail at once; defaults to 1000. */
  readonly callsMax?: number;
}): ConnectedWebhook {
  const { timeoutMs, callsMax = defaultCallsMax } = options;
  const { major, minor, patch } = apiRelease;
  const server = normalizedUrl(options.client.server);
  const { origin, host } = new URL(server);
  const http = createHttpClient({
    ...options.client,
    server: origin,
    protocol: 'negotiated',
    userAgent: `kube-apiserver/v${major}.${minor}.${patch}`,
  });
  const closed = new AbortController();
  // Each call in flight adds a listener.
  setMaxListeners(0, closed.signal);
  const path = pathOf(server, timeoutMs);
  const context = { ...options, http, path, origin, host, closed: closed.signal };
  let calls = 0;
  let retired = false;
  const closeWhenIdle = (): void => {
    if (retired && calls === 0) http.close();
  };
  const withLimit = async <T>(run: () => Promise<T>): Promise<T> => {
    if (calls >= callsMax) {
      throw new WebhookError('too many calls to the webhook are in flight', { outcome: 'error' });
    }
    calls += 1;
    try {
      return await run();
    } finally {
      calls -= 1;
      closeWhenIdle();
    }
  };
  return {
    call: (body, read, client) =>
      withLimit(() =>
        whileClientWaits(context, client, (context) =>
          withRetries(context, () => attempt(context, body, read)),
        ),
      ),
    post: (body) => withLimit(async () => void (await post(context, body))),
    retire() {
      retired = true;
      closeWhenIdle();
    },
    close() {
      closed.abort();
      http.close();
    },
  };
}

/** What the attempts of a call have in common. */
interface CallContext {
  readonly http: HttpClient;
  readonly path: string;
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly closed: AbortSignal;
  readonly onAttempt?: (attempt: WebhookAttempt) => void;
  readonly meter?: ClientMeter | undefined;
  readonly origin: string;
  readonly host: string;
  readonly firstPauseMs?: number;
}

/** Runs work with a context that is also canceled when the client gives up. */
async function whileClientWaits<T>(
  context: CallContext,
  client: WaitingClient | undefined,
  run: (context: CallContext) => Promise<T>,
): Promise<T> {
  if (client === undefined) return run(context);
  const ended = new AbortController();
  const end = () => ended.abort();
  const { closed } = context;
  const release = whenAborted(closed, { where: 'webhook' }, end);
  client.onAbort(end);
  try {
    return await run({ ...context, closed: ended.signal });
  } finally {
    release();
  }
}

/** Retries until success, a permanent failure, or the last attempt. */
async function withRetries<T>(context: CallContext, run: () => Promise<T>): Promise<T> {
  const { clock, closed, firstPauseMs = defaultFirstPauseMs } = context;
  for (let attempts = 1; ; attempts += 1) {
    try {
      return await run();
    } catch (error) {
      const retry = error instanceof AttemptError ? error.retry : undefined;
      if (retry === undefined || closed.aborted) throw error;
      const pauseMs = retryPauseMs(firstPauseMs, attempts);
      if (pauseMs === undefined) throw error;
      const ms = Math.max(pauseMs, retry.afterMs);
      // If the pause is aborted, the next attempt rejects with outcome `canceled`.
      await pause(clock, { ms, signal: closed, where: 'webhook' }).catch(() => {});
    }
  }
}

async function attempt<T>(
  context: CallContext,
  body: string,
  read: (answer: JsonObject) => T,
): Promise<T> {
  const { clock, onAttempt } = context;
  const startMs = clock.monotonic();
  let outcome: WebhookOutcome = 'error';
  try {
    const value = await decodeAnswer(await post(context, body), { read, clock });
    outcome = 'success';
    return value;
  } catch (error) {
    if (error instanceof WebhookError) outcome = error.outcome;
    throw error;
  } finally {
    onAttempt?.({ outcome, durationMs: clock.monotonic() - startMs });
  }
}

/** The address with its path normalized as in kube-apiserver. */
function normalizedUrl(server: string): string {
  const parsed = parseGoUrl(server);
  return typeof parsed === 'string'
    ? server
    : new URL(server).origin + normalizeUrlPath(parsed.path);
}

/** The path of a request, which includes the timeout as in kube-apiserver. */
function pathOf(server: string, timeoutMs: number): string {
  const timeout = printGoDuration(BigInt(Math.round(timeoutMs * 1e6)));
  return `${new URL(server).pathname}?timeout=${timeout}`;
}

async function post(context: CallContext, body: string): Promise<Buffer> {
  const { http, path, origin, timeoutMs, clock, closed } = context;
  const ended = new AbortController();
  let hasTimedOut = false;
  const timer = clock.after(timeoutMs, () => {
    hasTimedOut = true;
    ended.abort();
  });
  // Some Node.js releases leak the signals that AbortSignal.any derives from a long-lived one.
  const release = whenAborted(closed, { where: 'webhook' }, () => ended.abort());
  try {
    const { signal } = ended;
    const limits = { bytesMax: answerBytesMax, tooLong: tooLongError, clock };
    const run = () => exchange(http, { origin, path, body, signal, ...limits });
    const answer = context.meter?.measure({ host: context.host, body }, run) ?? run();
    const { status, bytes, headers } = await answer;
    if (isSuccess(status)) return bytes;
    throw statusError(status, headers['retry-after']);
  } catch (error) {
    if (error instanceof WebhookError) throw error;
    if (hasTimedOut) {
      const message = `the webhook did not answer within ${timeoutMs} ms`;
      throw new AttemptError(message, { outcome: 'timeout', cause: error });
    }
    if (closed.aborted) {
      throw new AttemptError('the call was canceled', { outcome: 'canceled', cause: error });
    }
    throw error instanceof UnusableAnswer ? unusable(error) : connectionError(error);
  } finally {
    release();
    timer.stop();
  }
}

const tooLongError = () =>
  new AttemptError(`the webhook's answer exceeds ${answerBytesMax} bytes`, { outcome: 'error' });

const retriedStatuses = new Set([429, 500, 504]);

function statusError(status: number, retryAfter: string | undefined): AttemptError {
  const seconds = /^[1-9]\d{0,8}$/.test(retryAfter ?? '') ? Number(retryAfter) : 0;
  const message = `the webhook answered with status ${status}`;
  const outcome = status === 504 ? 'timeout' : 'error';
  if (seconds === 0 && !retriedStatuses.has(status)) return new AttemptError(message, { outcome });
  return new AttemptError(message, {
    outcome,
    retryAfterMs: Math.min(seconds * 1000, retryAfterMaxMs),
  });
}

function unusable(error: UnusableAnswer): AttemptError {
  const isReset = error.cause instanceof Error && systemErrorCode(error.cause) === 'ECONNRESET';
  const retry = isReset ? { retryAfterMs: 0 } : {};
  const message = `the webhook's answer cannot be read: ${error.why}`;
  return new AttemptError(message, { outcome: 'error', cause: error, ...retry });
}

function connectionError(error: unknown): AttemptError {
  const code = error instanceof ConnectionError ? error.code : systemErrorCode(error);
  const shown = typeof code === 'string' && code !== '' ? ` (${code})` : '';
  const message = `cannot reach the webhook${shown}`;
  const retry = code === 'ECONNRESET' ? { retryAfterMs: 0 } : {};
  return new AttemptError(message, { outcome: 'error', cause: error, ...retry });
}

async function decodeAnswer<T>(
  answer: Buffer,
  { read, clock }: { readonly read: (answer: JsonObject) => T; readonly clock: Clock },
): Promise<T> {
  try {
    return read(await decodeReviewAnswer(answer, { clock }));
  } catch (error) {
    const why = errorText(error);
    const message = `the webhook's answer is invalid: ${why}`;
    throw new AttemptError(message, { outcome: 'error', cause: error });
  }
}

/**
 * Reads the connection settings of a webhook from the current context of a kubeconfig. Rejects with
 * an error that names the file if it is unreadable or names no server.
 */
export async function webhookOfKubeconfig(file: string): Promise<ClientConfig> {
  try {
    const config = await loadKubeconfig({ files: [file], required: true });
    const { client } = resolveContext(config, {}, { env: process.env });
    const context = config.contexts.get(config.currentContext)?.body ?? {};
    const cluster = textMember(context, 'cluster') ?? '';
    const entry = config.clusters.get(cluster);
    // Without this check, the context would resolve to a server on this machine.
    if (entry === undefined || textMember(entry.body, 'server') === undefined) {
      const shown = JSON.stringify(cluster);
      throw new Error(`invalid configuration: no server found for cluster ${shown}`);
    }
    return withHostRoots(client);
  } catch (error) {
    const why = errorText(error);
    throw new Error(`webhook kubeconfig ${file}: ${why}`, { cause: error });
  }
}

/** The settings with the host's CAs if the kubeconfig names none. */
function withHostRoots(client: ClientConfig): ClientConfig {
  if (client.caPem !== undefined || client.insecureSkipTlsVerify === true) return client;
  return client.server.startsWith('https:') ? { ...client, caPem: hostRoots() } : client;
}

/**
 * Returns the endpoint for access reviews of the cluster in which this process runs as a workload.
 * Throws outside of a cluster.
 */
export function webhookInCluster(
  reviewApi: { readonly dialect: Dialect; readonly version: string },
  options: InClusterOptions = {
    env: process.env,
    folder: `/var/run/secrets/${reviewApi.dialect.label('serviceaccount')}`,
  },
): ClientConfig {
  const { client } = inClusterConfig(options);
  const group = reviewApi.dialect.group('authorization');
  const path = `/apis/${group}/${reviewApi.version}/subjectaccessreviews`;
  return { ...client, server: client.server + path };
}

/** Returns the client credentials for a webhook's `host:port`; undefined for none. */
export type WebhookCredentials = (host: string) => Partial<ClientConfig> | undefined;

/**
 * Reads credentials for admission webhooks from a kubeconfig (ADM-2). Its users are named after
 * hosts: `name.namespace.svc:8443`, without a port for 443, or with wildcards (`*.namespace.svc`,
 * `*`). Other hosts get the user of the current context. Rejects with an error that names the file
 * if it is invalid.
 */
export async function readWebhookCredentials(file: string): Promise<WebhookCredentials> {
  const config = await loadKubeconfig({ files: [file], required: true }).catch((error: Error) => {
    throw new Error(`webhook kubeconfig ${file}: ${error.message}`);
  });
  const credentialsByUser = new Map<string, Partial<ClientConfig>>();
  return (host) => {
    const user = userFor(config, host);
    if (user === undefined) return undefined;
    const credentials = credentialsByUser.get(user) ?? credentialsOf(config, user);
    credentialsByUser.set(user, credentials);
    return credentials;
  };
}

function userFor(config: Kubeconfig, host: string): string | undefined {
  const bare = host.endsWith(':443') ? [host.slice(0, -':443'.length)] : [];
  const names = [host, ...bare].flatMap((name) => [name, ...wildcards(name)]);
  const named = [...names, '*'].find((name) => config.users.has(name));
  if (named !== undefined) return named;
  const context = config.contexts.get(config.currentContext)?.body;
  const user = context === undefined ? undefined : textMember(context, 'user');
  return user !== undefined && config.users.has(user) ? user : undefined;
}

/** The wildcards that match a host: `*.b.c` and `*.c` for `a.b.c`. */
function wildcards(host: string): string[] {
  const steps = host.split('.');
  return steps.slice(1).map((_, index) => `*.${steps.slice(index + 1).join('.')}`);
}

/** The credentials of a user, without address and CA, which the webhook's configuration sets. */
function credentialsOf(config: Kubeconfig, user: string): Partial<ClientConfig> {
  const { client } = resolveContext(
    { ...config, currentContext: '' },
    { user, server: 'https://webhook.invalid' },
  );
  const { certificatePem, keyPem, token, basicAuth, credentials, impersonate } = client;
  return { certificatePem, keyPem, token, basicAuth, credentials, impersonate };
}
