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
import { answerLimits, decodeJsonInSlices } from '@wheelhouse/codec';
import {
  type Clock,
  concatSteps,
  type Dialect,
  errorText,
  isObject,
  type JsonObject,
  normalizeUrlPath,
  parseGoUrl,
  pause,
  random,
  runInSlices,
  systemErrorCode,
  type WaitingClient,
  type Webhook,
  WebhookError,
  type WebhookOutcome,
  whenAborted,
} from '@wheelhouse/machinery';
import { printGoDuration } from '@wheelhouse/schema';
import { hostRoots } from '../files/followed-files.ts';
import { apiRelease } from '../views/version.ts';
import type { ClientMeter } from './client-metrics.ts';

/**
 * Reads a whole stream, in slices if it is long (TRUST-2). Beyond `bytesMax` the stream is
 * destroyed and the error of `tooLong` thrown.
 */
export async function readWhole(
  stream: AsyncIterable<Buffer>,
  options: {
    readonly bytesMax: number;
    readonly tooLong: () => Error;
    readonly clock: Pick<Clock, 'monotonic'>;
  },
): Promise<Buffer> {
  const { bytesMax, tooLong, clock } = options;
  const chunks: Buffer[] = [];
  let length = 0;
  // Leaving the loop destroys the stream.
  for await (const chunk of stream) {
    length += chunk.length;
    if (length > bytesMax) throw tooLong();
    chunks.push(chunk);
  }
  return runInSlices(concatSteps(chunks), clock);
}

/** A webhook with open connections. */
export interface ConnectedWebhook extends Webhook {
  /** Posts `body` once; only the status of the answer decides whether it was accepted. */
  post(body: string): Promise<void>;
  /** Lets calls in flight end, then closes the connections. */
  retire(): void;
  /** Ends calls in flight with outcome `canceled`. */
  close(): void;
}

/** One attempt, for metrics. */
export interface WebhookAttempt {
  readonly outcome: WebhookOutcome;
  readonly durationMs: number;
}

const attemptsMax = 5;
const usualFirstPauseMs = 500;
const pauseFactor = 1.5;
const pauseJitter = 0.2;
/** Maximum pause that a Retry-After header may request. */
const retryAfterMaxMs = 10_000;
const answerBytesMax = 1024 * 1024;
const defaultCallsMax = 1000;

/** A failed attempt, and whether another one may succeed. */
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
 * A webhook at the address of `client`, called as kube-apiserver does: each attempt within
 * `timeoutMs`, up to five attempts with growing pauses if the connection was reset or the answer is
 * 500, 504, 429, or has Retry-After. Throws on a malformed address.
 */
export function createWebhook(options: {
  readonly client: ClientConfig;
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly onAttempt?: (attempt: WebhookAttempt) => void;
  readonly meter?: ClientMeter | undefined;
  /** Pause before the second attempt. */
  readonly firstPauseMs?: number;
  /** Maximum calls in flight; more mean that the service does not answer, and fail at once. */
  readonly callsMax?: number;
}): ConnectedWebhook {
  const { timeoutMs, callsMax = defaultCallsMax } = options;
  const { major, minor, patch } = apiRelease;
  const server = sentUrl(options.client.server);
  const http = createHttpClient({
    ...options.client,
    server,
    protocol: 'negotiated',
    userAgent: `kube-apiserver/v${major}.${minor}.${patch}`,
  });
  const closed = new AbortController();
  // Each call in flight adds a listener.
  setMaxListeners(0, closed.signal);
  const path = pathOf(server, timeoutMs);
  const { host } = new URL(server);
  const asking = { ...options, http, path, host, closed: closed.signal };
  let calls = 0;
  let retired = false;
  const dropUnused = (): void => {
    if (retired && calls === 0) http.close();
  };
  const counted = async <T>(run: () => Promise<T>): Promise<T> => {
    if (calls >= callsMax) {
      throw new WebhookError('too many calls of the webhook are under way', { outcome: 'error' });
    }
    calls += 1;
    try {
      return await run();
    } finally {
      calls -= 1;
      dropUnused();
    }
  };
  return {
    call: (body, read, client) =>
      counted(() =>
        whileWaited(asking, client, (waited) => persist(waited, () => attempt(waited, body, read))),
      ),
    post: (body) => counted(async () => void (await post(asking, body))),
    retire() {
      retired = true;
      dropUnused();
    },
    close() {
      closed.abort();
      http.close();
    },
  };
}

interface Asking {
  readonly http: HttpClient;
  readonly path: string;
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly closed: AbortSignal;
  readonly onAttempt?: (attempt: WebhookAttempt) => void;
  readonly meter?: ClientMeter | undefined;
  readonly host: string;
  readonly firstPauseMs?: number;
}

/** Runs work that ends when the server stops or the client gives up. */
async function whileWaited<T>(
  asking: Asking,
  client: WaitingClient | undefined,
  run: (asking: Asking) => Promise<T>,
): Promise<T> {
  if (client === undefined) return run(asking);
  const ended = new AbortController();
  const end = () => ended.abort();
  const { closed } = asking;
  const release = whenAborted(closed, { where: 'webhook' }, end);
  client.onAbort(end);
  try {
    return await run({ ...asking, closed: ended.signal });
  } finally {
    release();
  }
}

/** Retries until success, a permanent failure, or the last attempt. */
async function persist<T>(asking: Asking, run: () => Promise<T>): Promise<T> {
  const { clock, closed, firstPauseMs = usualFirstPauseMs } = asking;
  for (let tried = 1, pauseMs = firstPauseMs; ; tried += 1, pauseMs *= pauseFactor) {
    try {
      return await run();
    } catch (error) {
      const retry = error instanceof AttemptError ? error.retry : undefined;
      if (retry === undefined || tried === attemptsMax || closed.aborted) throw error;
      const jittered = pauseMs * (1 + random() * pauseJitter);
      const ms = Math.max(jittered, retry.afterMs);
      // If nobody waits any more, the next attempt fails accordingly.
      await pause(clock, { ms, signal: closed, where: 'webhook' }).catch(() => {});
    }
  }
}

async function attempt<T>(
  asking: Asking,
  body: string,
  read: (answer: JsonObject) => T,
): Promise<T> {
  const { clock, onAttempt } = asking;
  const startMs = clock.monotonic();
  let outcome: WebhookOutcome = 'error';
  try {
    const value = await understood(await post(asking, body), { read, clock });
    outcome = 'success';
    return value;
  } catch (error) {
    if (error instanceof WebhookError) outcome = error.outcome;
    throw error;
  } finally {
    onAttempt?.({ outcome, durationMs: clock.monotonic() - startMs });
  }
}

/** The address with its path as kube-apiserver's clients send it. */
function sentUrl(server: string): string {
  const parsed = parseGoUrl(server);
  return typeof parsed === 'string'
    ? server
    : new URL(server).origin + normalizeUrlPath(parsed.path);
}

/** The request path. Like kube-apiserver's, it contains the timeout. */
function pathOf(server: string, timeoutMs: number): string {
  const root = new URL(server).pathname === '/' ? '/' : '';
  return `${root}?timeout=${printGoDuration(BigInt(Math.round(timeoutMs * 1e6)))}`;
}

async function post(asking: Asking, body: string): Promise<Buffer> {
  const { http, path, timeoutMs, clock, closed } = asking;
  const ended = new AbortController();
  let isLate = false;
  const timer = clock.after(timeoutMs, () => {
    isLate = true;
    ended.abort();
  });
  // Not AbortSignal.any: some Node.js releases never release signals derived from a lasting one.
  const release = whenAborted(closed, { where: 'webhook' }, () => ended.abort());
  try {
    const run = () => send(http, { path, body, signal: ended.signal, clock });
    const answer = asking.meter?.measured({ host: asking.host, body }, run) ?? run();
    const { status, bytes, headers } = await answer;
    if (status >= 200 && status < 300) return bytes;
    throw refused(status, headers['retry-after']);
  } catch (error) {
    if (error instanceof WebhookError) throw error;
    if (isLate) {
      const message = `the webhook did not answer within ${timeoutMs} ms`;
      throw new AttemptError(message, { outcome: 'timeout', cause: error });
    }
    if (closed.aborted) {
      throw new AttemptError('nobody waits for the answer', { outcome: 'canceled', cause: error });
    }
    throw unreachable(error);
  } finally {
    release();
    timer.stop();
  }
}

async function send(
  http: HttpClient,
  request: {
    readonly path: string;
    readonly body: string;
    readonly signal: AbortSignal;
    readonly clock: Clock;
  },
) {
  const { clock, ...posted } = request;
  const headers = { accept: 'application/json, */*', 'content-type': 'application/json' };
  const answer = await http.stream({ method: 'POST', headers, ...posted });
  const bytes = await readWhole(answer.body, { bytesMax: answerBytesMax, tooLong, clock });
  return { status: answer.status, headers: answer.headers, bytes };
}

const tooLong = () =>
  new AttemptError(`the webhook's answer is longer than ${answerBytesMax} bytes`, {
    outcome: 'error',
  });

const worthRetrying = new Set([429, 500, 504]);

function refused(status: number, retryAfter: string | undefined): AttemptError {
  const seconds = /^[1-9]\d{0,8}$/.test(retryAfter ?? '') ? Number(retryAfter) : 0;
  const message = `the webhook answered with status ${status}`;
  const outcome = status === 504 ? 'timeout' : 'error';
  if (seconds === 0 && !worthRetrying.has(status)) return new AttemptError(message, { outcome });
  return new AttemptError(message, {
    outcome,
    retryAfterMs: Math.min(seconds * 1000, retryAfterMaxMs),
  });
}

function unreachable(error: unknown): AttemptError {
  const code = error instanceof ConnectionError ? error.code : systemErrorCode(error);
  const shown = typeof code === 'string' && code !== '' ? ` (${code})` : '';
  const message = `the webhook cannot be reached${shown}`;
  const retry = code === 'ECONNRESET' ? { retryAfterMs: 0 } : {};
  return new AttemptError(message, { outcome: 'error', cause: error, ...retry });
}

async function understood<T>(
  answer: Buffer,
  { read, clock }: { readonly read: (answer: JsonObject) => T; readonly clock: Clock },
): Promise<T> {
  try {
    const { value } = await decodeJsonInSlices(answer, { clock, limits: answerLimits });
    if (!isObject(value)) throw new Error('it is no object');
    return read(value);
  } catch (error) {
    const why = errorText(error);
    const message = `the webhook's answer cannot be understood: ${why}`;
    throw new AttemptError(message, { outcome: 'error', cause: error });
  }
}

/**
 * Connection settings of the webhook in a kubeconfig's current context. Rejects with an error that
 * names the file when it is unreadable or names no server.
 */
export async function webhookOfKubeconfig(file: string): Promise<ClientConfig> {
  try {
    const config = await loadKubeconfig({ files: [file], required: true });
    const { client } = resolveContext(config);
    const context = config.contexts.get(config.currentContext)?.body ?? {};
    const cluster = textMember(context, 'cluster') ?? '';
    const entry = config.clusters.get(cluster);
    // Interactive programs would fall back to a server on this machine.
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

/** Trusts the host's CAs if the kubeconfig names none. */
function withHostRoots(client: ClientConfig): ClientConfig {
  if (client.caPem !== undefined || client.insecureSkipTlsVerify === true) return client;
  return client.server.startsWith('https:') ? { ...client, caPem: hostRoots() } : client;
}

/**
 * Returns the endpoint for access reviews of the cluster in which this process runs as a workload.
 * Throws outside a cluster, since the server would call itself.
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

/** Client credentials for a webhook's host, `host:port`; undefined for none. */
export type WebhookCredentials = (host: string) => Partial<ClientConfig> | undefined;

/**
 * Reads credentials for admission webhooks from a kubeconfig whose users are named after hosts
 * (ADM-2): `name.namespace.svc:8443`, without a port for 443, `*.namespace.svc` and `*` as
 * wildcards, and otherwise the user of the current context. Rejects with an error that names the
 * file when it is unusable.
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
  const names = [host, ...bare].flatMap((one) => [one, ...wildcards(one)]);
  const named = [...names, '*'].find((name) => config.users.has(name));
  if (named !== undefined) return named;
  const context = config.contexts.get(config.currentContext)?.body;
  const user = context === undefined ? undefined : textMember(context, 'user');
  return user !== undefined && config.users.has(user) ? user : undefined;
}

/** `*.b.c` and `*.c` for `a.b.c`. */
function wildcards(host: string): string[] {
  const steps = host.split('.');
  return steps.slice(1).map((_, index) => `*.${steps.slice(index + 1).join('.')}`);
}

/**
 * The credentials of a user, without address and CA, which the webhook's own configuration
 * determines.
 */
function credentialsOf(config: Kubeconfig, user: string): Partial<ClientConfig> {
  const { client } = resolveContext(
    { ...config, currentContext: '' },
    { user, server: 'https://webhook.invalid' },
  );
  const { certificatePem, keyPem, token, basicAuth, credentials, impersonate } = client;
  return { certificatePem, keyPem, token, basicAuth, credentials, impersonate };
}
