import type { ClientRequest, IncomingMessage } from 'node:http';
import type { Duplex, Readable, Transform } from 'node:stream';
import { dialTimeoutCode, goNetworkError, handshakeTimeoutCode } from '@wheelhouse/client';
import {
  type BodyStream,
  contained,
  type DetachedConnection,
  isLongRunning,
  listen,
  type ResponseHeaders,
  type ResponseStream,
  type StatusError,
  systemErrorCode,
  type Timer,
} from '@wheelhouse/machinery';
import { sendLine } from '../answer/respond.ts';
import type { AuthorizedCall } from '../endpoints/call.ts';
import type { RequestInfo } from '../request/parse-request.ts';
import {
  forwardedHeaders,
  type IdentityTest,
  type OutgoingHeaders,
  requestedProtocol,
  responseHeaders,
} from './proxy-headers.ts';
import { hostPort, type RemoteAnswer, type RemoteRequest, type Transport } from './transport.ts';

/** A server's connection that switched protocols. */
interface UpgradedConnection {
  /** The answer with status 101. */
  readonly answer: IncomingMessage;
  readonly socket: Duplex;
  /** Bytes received after the answer. */
  readonly head: Buffer;
}

/** Two joined connections. */
interface JoinedConnections {
  close(): void;
  /** Sets the function to call once both have closed. */
  onClosed(callback: () => void): void;
}

/**
 * Forwards the answer that switches protocols, and then all bytes in both directions. When one side
 * ends, the remaining bytes are delivered to the other, and both are closed.
 */
function joinConnections(
  client: DetachedConnection,
  server: UpgradedConnection,
): JoinedConnections {
  const near = client.socket;
  const far = server.socket;
  let open = 2;
  let onClosed = () => {};
  const end = () => {
    near.destroy();
    far.destroy();
  };
  const containment = { where: 'aggregation', end } as const;
  near.write(headOf(server.answer));
  if (server.head.length > 0) near.write(server.head);
  if (client.head.length > 0) far.write(client.head);
  for (const [from, to] of [
    [near, far],
    [far, near],
  ] as const) {
    listen(from, containment, {
      error: () => from.destroy(),
      end: () => destroySoon(to),
      close() {
        destroySoon(to);
        open -= 1;
        if (open === 0) onClosed();
      },
    });
    from.pipe(to);
  }
  return {
    close: end,
    onClosed(callback) {
      onClosed = callback;
    },
  };
}

/** Whether the connection of a request, including TLS, is established. */
function isConnected(request: ClientRequest | undefined): boolean {
  const socket = request?.socket ?? undefined;
  if (socket === undefined || socket.connecting) return false;
  return !('secureConnecting' in socket) || socket.secureConnecting !== true;
}

function destroySoon(socket: Duplex): void {
  if (socket.destroyed) return;
  socket.end(contained({ where: 'aggregation' }, () => socket.destroy()));
}

/** The head of the answer, as received. */
function headOf({ rawHeaders, statusMessage }: IncomingMessage): Buffer {
  const lines = [`HTTP/1.1 101 ${statusMessage || 'Switching Protocols'}`];
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    lines.push(`${rawHeaders[index]}: ${rawHeaders[index + 1]}`);
  }
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
}

/** Escapes of reserved characters that a path may contain unescaped. */
const unescapedMarks = /%(?:24|26|2B|2C|3A|3B|3D|40)/g;

/**
 * Escapes the path that was authorized. The client's escapes are not forwarded, since another
 * server might decode them to another path.
 */
export function escapedPath(path: string): string {
  return path
    .split('/')
    .map((segment) =>
      encodeURIComponent(segment)
        .replaceAll(unescapedMarks, (escaped) => decodeURIComponent(escaped))
        .replaceAll(/[!'()*]/g, (character) => `%${hex(character)}`),
    )
    .join('/');
}

const hex = (character: string) => character.charCodeAt(0).toString(16).toUpperCase();

/** The escaped path and query of a request. */
export function requestTarget({ path, query }: Pick<RequestInfo, 'path' | 'query'>): string {
  const text = query.toString();
  return escapedPath(path) + (text === '' ? '' : `?${text}`);
}

/** Settings for requests to aggregated servers. */
export interface RelaySettings {
  /** Whether other servers receive users' UIDs. */
  readonly forwardsUid: boolean;
  /** The name of this process in `Via` headers, for the detection of loops. */
  readonly via: string;
  /** Whether redirects reach the client. */
  readonly redirects: 'rejected' | 'passed';
  /** Recognizes headers that must not come from a client. */
  readonly isIdentity: IdentityTest;
}

/** Why a request has no usable answer. */
interface RelayProblem {
  readonly text: string;
  /** Whether the other server answered; `text` then describes its answer. */
  readonly isReached: boolean;
}

/** The target of a request, and the transformation of the request and its answer. */
export interface RelayPlan {
  readonly place: { readonly host: string; readonly port: number };
  /** Escaped path and query. */
  readonly target: string;
  /** Defaults to the client's method. */
  readonly method?: 'GET';
  /** Whether the client's body and its request to switch protocols are forwarded. */
  readonly forwards: 'everything' | 'nothing';
  /** Returns the headers of the request, without hop-by-hop ones. */
  headers(): OutgoingHeaders;
  /**
   * Returns the headers of the response.
   *
   * @param lines names and values of the other server's headers, alternating
   */
  responseHeaders(lines: readonly string[]): ResponseHeaders;
  /** Whether redirects reach the client. */
  readonly redirects: 'rejected' | 'passed';
  /**
   * Returns the error for the client; undefined if this function has answered it.
   */
  errorFor(problem: RelayProblem): StatusError | undefined;
  /** Returns the streams that transform the body of the answer, in order. */
  transforms?(incoming: IncomingMessage): readonly Transform[];
  /** Returns the error that replaces an answer; undefined to forward the answer. */
  replace?(incoming: IncomingMessage): Promise<StatusError> | undefined;
}

/** The parts of a client's request that a relay uses. */
type RelayedRequest = Pick<
  AuthorizedCall,
  'exchange' | 'info' | 'context' | 'deadline' | 'baseHeaders'
> & { readonly audit?: AuthorizedCall['audit'] | undefined };

interface RelayedCall {
  readonly call: RelayedRequest;
  readonly transport: Transport;
  readonly plan: RelayPlan;
}

/** The plan of a request to an aggregated server: the client's path, and the user's identity. */
export function aggregatedPlan(
  call: AuthorizedCall,
  { settings, place }: { readonly settings: RelaySettings; readonly place: RelayPlan['place'] },
): RelayPlan {
  const { exchange, info, user, baseHeaders } = call;
  const target = requestTarget(info);
  return {
    place,
    target,
    forwards: 'everything',
    redirects: settings.redirects,
    headers: () =>
      forwardedHeaders(exchange, {
        user,
        forwardsUid: settings.forwardsUid,
        host: hostPort(place),
        path: target.split('?', 1)[0] ?? '',
        auditId: baseHeaders['audit-id'] ?? '',
        via: settings.via,
        isIdentity: settings.isIdentity,
      }),
    responseHeaders: (lines) => responseHeaders(lines, baseHeaders),
    errorFor(problem) {
      sendLine(call, { status: 503, text: unreached(call, problem) });
      return undefined;
    },
  };
}

/** The message for a problem, in kube-apiserver's words for ordinary requests and upgrades. */
export function unreached(
  { exchange }: Pick<RelayedRequest, 'exchange'>,
  { text, isReached }: RelayProblem,
): string {
  if (isReached) return text;
  const isUpgrade = requestedProtocol(exchange) !== undefined;
  return `${isUpgrade ? 'error dialing backend' : 'error trying to reach service'}: ${text}`;
}

/** Timeout of discovery documents, milliseconds. */
const discoveryTimeoutMs = 5_000;
/** Timeout of connecting, TLS included, milliseconds. */
const connectTimeoutMs = 30_000;

/** The text of a 502 for a redirect that may not be passed on. */
export const redirected = 'the backend attempted to redirect this request, which is not permitted';

/** Whether an answer sends its client elsewhere. */
export function isRedirect(answer: {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
}): boolean {
  const { status, headers } = answer;
  return status >= 300 && status <= 399 && (headers.location ?? '') !== '';
}

const brokenAnswer = 'net/http: HTTP/1.x transport connection broken';

/** The headers of an answer without a body, whose length breaks the answer over HTTP/2. */
function withoutLength({ 'content-length': _, ...headers }: ResponseHeaders): ResponseHeaders {
  return headers;
}

/** Methods that are retried if the server closed a reused connection. */
const retriedMethods = new Set(['GET', 'HEAD', 'OPTIONS']);

/**
 * Relays one request to another server, and the answer to the client, with backpressure in both
 * directions. It never returns to an earlier state:
 *
 * - `requesting`: `answering` follows when the server answers; `finished` follows when the server
 *   fails (503), the request times out (504), or the client disconnects. A shutdown has no effect.
 * - `answering`: `finished` follows at the end of the answer, at a shutdown, which ends the answer
 *   cleanly, and when the client disconnects. A failure or a timeout cuts the answer off.
 */
export class Relay implements RemoteAnswer {
  readonly #call: RelayedCall;
  readonly #isLong: boolean;
  readonly #protocol: string | undefined;
  #state: 'requesting' | 'answering' | 'finished' = 'requesting';
  #outgoing: ClientRequest | undefined;
  #incoming: IncomingMessage | undefined;
  #body: BodyStream | undefined;
  #stream: ResponseStream | undefined;
  #timer: Timer | undefined;
  #isLate = false;
  #onFinished: (() => void)[] = [];
  #resolve: () => void = () => {};
  #reject: (error: unknown) => void = () => {};

  constructor(call: RelayedCall) {
    this.#call = call;
    this.#isLong = isLongRunning(call.call.info);
    this.#protocol =
      call.plan.forwards === 'everything' ? requestedProtocol(call.call.exchange) : undefined;
  }

  /**
   * Sends the request. Resolves when the answer is complete, when that of a long-running request
   * begins, or when the client leaves. Rejects with a StatusError for the client. Call it once.
   */
  run(): Promise<void> {
    const { exchange } = this.#call.call;
    const outcome = new Promise<void>((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    exchange.onAbort(() => this.#end('cut'));
    if (this.#state === 'finished') return outcome;
    this.#setTimer();
    if (this.#call.plan.forwards === 'everything') this.#body = exchange.bodyStream();
    this.#send();
    return outcome;
  }

  onAnswer(incoming: IncomingMessage): void {
    // The client is about to receive a 504, and no timer is left to end an answer that begins now.
    if (this.#state !== 'requesting' || this.#isLate) {
      incoming.destroy();
      return;
    }
    const status = incoming.statusCode ?? 0;
    const replaced = this.#call.plan.replace?.(incoming);
    if (replaced !== undefined) this.#replace(replaced);
    else if (status < 200) this.#fail({ text: brokenAnswer, isReached: false });
    else if (this.#protocol !== undefined && status < 400) {
      this.#fail({ text: `invalid upgrade response: status code ${status}`, isReached: true });
    } else if (this.#isForbiddenRedirect(incoming)) this.#rejectRedirect();
    else this.#forward(incoming, status);
  }

  onUpgrade(incoming: IncomingMessage, socket: Duplex, head: Buffer): void {
    const { exchange, info, context, audit, deadline } = this.#call.call;
    if (this.#state !== 'requesting') {
      socket.destroy();
      return;
    }
    if (this.#protocol === undefined) {
      socket.destroy();
      const protocol = JSON.stringify(incoming.headers.upgrade ?? '');
      const text = `backend tried to switch protocol ${protocol} when "" was requested`;
      this.#fail({ text, isReached: true });
      return;
    }
    const taken = exchange.takeOver();
    if (taken === undefined) {
      socket.destroy();
      this.#fail({ text: 'request connection cannot be hijacked', isReached: true });
      return;
    }
    this.#state = 'finished';
    this.#timer?.stop();
    for (const listener of this.#onFinished.splice(0)) listener();
    const counted = context.metrics.beginStream(exchange, info, deadline);
    const recorded = audit?.beginStream(101);
    const joined = joinConnections(taken, { answer: incoming, socket, head });
    const shutdown = context.onShutdown(joined.close);
    joined.onClosed(() => {
      shutdown.close();
      counted();
      recorded?.();
    });
    this.#resolve();
  }

  onFailure(error: Error): void {
    if (this.#state !== 'requesting') return;
    const { call } = this.#call;
    if (this.#isRetryable(error)) {
      this.#send();
      return;
    }
    const why = this.#isLate ? 'context deadline exceeded' : goNetworkError(error);
    call.context.logger.debug(2, 'cannot reach another server', { error: why });
    // kube-apiserver reads the answer to an upgrade itself, without words of its own in the error.
    const isCut = why === 'EOF' && this.#protocol !== undefined && isConnected(this.#outgoing);
    this.#fail(
      isCut ? { text: 'unexpected EOF', isReached: true } : { text: why, isReached: false },
    );
  }

  #isRetryable(error: Error): boolean {
    const code = systemErrorCode(error);
    const isStale = this.#outgoing?.reusedSocket === true && code === 'ECONNRESET';
    const { method } = this.#call.call.exchange;
    return isStale && this.#body === undefined && retriedMethods.has(method);
  }

  #send(): void {
    const { transport } = this.#call;
    const body = this.#body;
    let outgoing: ClientRequest;
    try {
      outgoing = transport.open(this.#request(), this);
    } catch (error) {
      // The user's name may contain characters that are invalid in headers.
      const isHeader = systemErrorCode(error) === 'ERR_INVALID_CHAR';
      if (!isHeader) throw error;
      this.#fail({ text: 'net/http: invalid header field value', isReached: false });
      return;
    }
    this.#outgoing = outgoing;
    this.#limitConnecting(outgoing);
    if (body === undefined) {
      outgoing.end();
      return;
    }
    listen(outgoing, { where: 'aggregation' }, { drain: () => body.resume() });
    body.deliverTo({
      piece: (bytes) => {
        if (!outgoing.destroyed && !outgoing.write(bytes)) body.pause();
      },
      end: () => void outgoing.end(),
    });
  }

  #limitConnecting(outgoing: ClientRequest): void {
    const { clock } = this.#call.call.context;
    const limit = clock.after(connectTimeoutMs, () => {
      if (isConnected(outgoing)) return;
      const code = outgoing.socket?.connecting === false ? handshakeTimeoutCode : dialTimeoutCode;
      outgoing.destroy(Object.assign(new Error('the connection takes too long'), { code }));
    });
    this.#onFinished.push(() => limit.stop());
  }

  #request(): RemoteRequest {
    const { call, plan } = this.#call;
    const headers = plan.headers();
    if (this.#protocol !== undefined) {
      headers['connection'] = ['Upgrade'];
      headers['upgrade'] = [this.#protocol];
    } else if (this.#body !== undefined && headers['content-length'] === undefined) {
      // Node.js does not add this header for methods that usually have no body.
      headers['transfer-encoding'] = ['chunked'];
    }
    const { place, target, method = call.exchange.method } = plan;
    return { method, ...place, target, headers };
  }

  #setTimer(): void {
    const { info, context, exchange, deadline } = this.#call.call;
    if (this.#isLong) return;
    const segments = info.path.split('/').filter((segment) => segment !== '');
    const isDiscovery = !info.isResourceRequest && segments.length === 3;
    const leftMs = Math.max(0, deadline.dueMs - context.clock.monotonic());
    const onTimeout = () => {
      this.#isLate = true;
      if (this.#state === 'answering') {
        context.metrics.countAbort(exchange, info);
        this.#end('cut');
      } else if (isDiscovery) this.onFailure(new Error('context deadline exceeded'));
    };
    const delayMs = isDiscovery ? Math.min(leftMs, discoveryTimeoutMs) : leftMs;
    this.#timer = context.clock.after(delayMs, onTimeout);
  }

  #isForbiddenRedirect(incoming: IncomingMessage): boolean {
    const { statusCode: status = 0, headers } = incoming;
    return this.#call.plan.redirects === 'rejected' && isRedirect({ status, headers });
  }

  #rejectRedirect(): void {
    const { exchange, baseHeaders } = this.#call.call;
    this.#release();
    const headers = { ...baseHeaders, 'content-type': 'text/plain; charset=utf-8' };
    exchange.send({ status: 502, headers, body: Buffer.from(redirected) });
    this.#resolve();
  }

  #fail(problem: RelayProblem): void {
    this.#release();
    const { call, plan } = this.#call;
    const error = call.exchange.aborted ? undefined : plan.errorFor(problem);
    if (error === undefined) this.#resolve();
    else this.#reject(error);
  }

  #replace(answer: Promise<StatusError>): void {
    answer.then((error) => {
      if (this.#state === 'finished') return;
      this.#release();
      this.#reject(error);
    }, this.#reject);
  }

  #forward(incoming: IncomingMessage, status: number): void {
    const { exchange, info, context, audit } = this.#call.call;
    this.#state = 'answering';
    this.#incoming = incoming;
    const received = this.#call.plan.responseHeaders(incoming.rawHeaders);
    const headers = status === 204 ? withoutLength(received) : received;
    const stream = exchange.stream({ status, headers });
    this.#stream = stream;
    const source = this.#transformed(incoming);
    stream.onDrain(() => source.resume());
    const cut = () => this.#end('cut');
    listen(
      source,
      { where: 'aggregation', end: cut },
      {
        data: (piece: Buffer) => {
          if (this.#state === 'answering' && !stream.write(piece)) source.pause();
        },
        end: () => this.#end(incoming.complete ? 'whole' : 'cut'),
        close: cut,
      },
    );
    if (!this.#isLong) return;
    const shutdown = context.onShutdown(() => this.#end('whole'));
    const counted = context.metrics.beginStream(exchange, info, this.#call.call.deadline);
    const recorded = audit?.beginStream(status);
    this.#onFinished.push(shutdown.close, counted, () => recorded?.());
    this.#resolve();
  }

  /** The body of the answer after all transformations. */
  #transformed(incoming: IncomingMessage): Readable {
    const cut = () => this.#end('cut');
    let source: Readable = incoming;
    for (const step of this.#call.plan.transforms?.(incoming) ?? []) {
      listen(step, { where: 'aggregation', end: cut }, { error: cut });
      this.#onFinished.push(() => step.destroy());
      if (source === incoming) {
        const close = () => {
          if (!incoming.complete) cut();
        };
        listen(incoming, { where: 'aggregation', end: cut }, { close });
      }
      source = source.pipe(step);
    }
    return source;
  }

  /** Ends the answer: 'cut' makes the client notice that it is incomplete. */
  #end(how: 'whole' | 'cut'): void {
    if (this.#state === 'finished') return;
    const stream = this.#stream;
    this.#release();
    if (how === 'whole') stream?.end();
    else if (!this.#call.call.exchange.aborted) stream?.destroy();
    this.#resolve();
  }

  #release(): void {
    this.#state = 'finished';
    this.#timer?.stop();
    this.#body?.drop();
    // A connection with a complete request and answer can be reused.
    const isDone = this.#incoming?.complete === true && this.#outgoing?.writableFinished === true;
    if (!isDone) this.#outgoing?.destroy();
    for (const listener of this.#onFinished.splice(0)) listener();
  }
}
