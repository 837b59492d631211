import type { ClientRequest, IncomingMessage } from 'node:http';
import type { Duplex, Readable, Transform } from 'node:stream';
import { goNetworkError } from '@wheelhouse/client';
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
import type { AuthorizedCall } from '../endpoints/call.ts';
import type { RequestInfo } from '../request/parse-request.ts';
import { answerText } from './plain-answer.ts';
import {
  answeredHeaders,
  forwardedHeaders,
  type OutgoingHeaders,
  wantedProtocol,
} from './proxy-headers.ts';
import { hostPort, type RemoteAnswer, type RemoteRequest, type Transport } from './transport.ts';

/** The server side of a connection that switches protocols. */
interface UpgradedConnection {
  /** The answer that switches. */
  readonly answer: IncomingMessage;
  readonly socket: Duplex;
  /** Bytes received after it. */
  readonly head: Buffer;
}

/** Two joined connections. */
interface JoinedConnections {
  close(): void;
  /** Calls back once both have ended. */
  whenClosed(callback: () => void): void;
}

/**
 * Forwards the answer that switches protocols, and then all bytes in both directions. When one side
 * ends, the other receives what is in flight, and both are closed.
 */
function joinConnections(
  client: DetachedConnection,
  server: UpgradedConnection,
): JoinedConnections {
  const near = client.socket;
  const far = server.socket;
  let open = 2;
  let whenClosed = () => {};
  const end = () => {
    near.destroy();
    far.destroy();
  };
  const containment = { where: 'aggregation', end } as const;
  near.write(headOf(server.answer));
  if (server.head.length > 0) near.write(server.head);
  if (client.head.length > 0) far.write(client.head);
  for (const [one, other] of [
    [near, far],
    [far, near],
  ] as const) {
    listen(one, containment, {
      error: () => one.destroy(),
      end: () => destroySoon(other),
      close() {
        destroySoon(other);
        open -= 1;
        if (open === 0) whenClosed();
      },
    });
    one.pipe(other);
  }
  return {
    close: end,
    whenClosed(callback) {
      whenClosed = callback;
    },
  };
}

/** Whether the connection of a request is established, including TLS. */
function isConnected({ socket }: ClientRequest): boolean {
  if (socket === null || socket.connecting) return false;
  return !('secureConnecting' in socket) || socket.secureConnecting !== true;
}

function destroySoon(socket: Duplex): void {
  if (socket.destroyed) return;
  socket.end(contained({ where: 'aggregation' }, () => socket.destroy()));
}

/** The answer's head as received. */
function headOf({ rawHeaders, statusMessage }: IncomingMessage): Buffer {
  const lines = [`HTTP/1.1 101 ${statusMessage || 'Switching Protocols'}`];
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    lines.push(`${rawHeaders[index]}: ${rawHeaders[index + 1]}`);
  }
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
}

/** Characters that stay unescaped in a path besides unreserved ones. */
const plain = /%(?:24|26|2B|2C|3A|3B|3D|40)/g;

/**
 * The path as this server authorized it, escaped again, since another server might read the
 * client's own escapes as another path.
 */
export function escapedPath(path: string): string {
  return path
    .split('/')
    .map((segment) =>
      encodeURIComponent(segment)
        .replaceAll(plain, (escaped) => decodeURIComponent(escaped))
        .replaceAll(/[!'()*]/g, (character) => `%${hex(character)}`),
    )
    .join('/');
}

const hex = (character: string) => character.charCodeAt(0).toString(16).toUpperCase();

/** Path and query for another server. */
export function requestTarget({ path, query }: Pick<RequestInfo, 'path' | 'query'>): string {
  const text = query.toString();
  return escapedPath(path) + (text === '' ? '' : `?${text}`);
}

/** Settings of proxying. */
export interface RelaySettings {
  /** Whether other servers receive users' UIDs. */
  readonly forwardsUid: boolean;
  /** The Via name of this process, which detects loops. */
  readonly via: string;
  /** How redirects are handled. */
  readonly redirects: 'refused' | 'passed';
}

/** The target of a request, and how it and its answer are transformed. */
export interface RelayPlan {
  readonly place: { readonly host: string; readonly port: number };
  /** Escaped path and query. */
  readonly target: string;
  /** The method, if not the client's. */
  readonly method?: 'GET';
  /** Whether the client's body and protocol switch are forwarded. */
  readonly passes: 'everything' | 'nothing';
  /** Timeout for connecting in milliseconds; none when absent. */
  readonly connectTimeoutMs?: number;
  /** The request headers without hop-by-hop ones. */
  headers(): OutgoingHeaders;
  /** The response headers; `lines` are the other server's. */
  answered(lines: readonly string[]): ResponseHeaders;
  /** Whether redirects are refused. */
  readonly redirects: 'refused' | 'passed';
  /**
   * Returns the error for the client; undefined if it was answered already. `reached` says whether
   * the other server was reached, in which case `text` describes its fault.
   */
  refuse(problem: { readonly text: string; readonly reached: boolean }): StatusError | undefined;
  /** Streams that transform the answer's body, in order. */
  through?(incoming: IncomingMessage): readonly Transform[];
  /** Replaces an answer that must not be forwarded by an error. */
  replace?(incoming: IncomingMessage): Promise<StatusError> | undefined;
}

/** The parts of a request that a relay uses. */
type RelayedRequest = Pick<
  AuthorizedCall,
  'exchange' | 'info' | 'context' | 'deadline' | 'baseHeaders'
> & { readonly audit?: AuthorizedCall['audit'] | undefined };

interface RelayedCall {
  readonly call: RelayedRequest;
  readonly transport: Transport;
  readonly plan: RelayPlan;
}

/** Forwards a request as an aggregator does: with its path and the user's identity. */
export function aggregatedPlan(
  call: AuthorizedCall,
  { settings, place }: { readonly settings: RelaySettings; readonly place: RelayPlan['place'] },
): RelayPlan {
  const { exchange, info, user, baseHeaders } = call;
  const target = requestTarget(info);
  return {
    place,
    target,
    passes: 'everything',
    redirects: settings.redirects,
    headers: () =>
      forwardedHeaders(exchange, {
        user,
        forwardsUid: settings.forwardsUid,
        host: hostPort(place),
        path: target.split('?', 1)[0] ?? '',
        auditId: baseHeaders['audit-id'] ?? '',
        via: settings.via,
      }),
    answered: (lines) => answeredHeaders(lines, baseHeaders),
    refuse({ text, reached }) {
      answerText(call, { status: 503, text: reached ? text : `${unreachable}: ${text}` });
      return undefined;
    },
  };
}

/** Timeout for discovery documents. */
const discoveryTimeoutMs = 5_000;

const unreachable = 'error trying to reach service';
const brokenAnswer = 'net/http: HTTP/1.x transport connection broken';

/** Methods that are retried whenever a reused connection turns out to be closed. */
const repeatable = new Set(['GET', 'HEAD', 'OPTIONS']);

/**
 * One request on its way to another server, and its answer back, both streamed at the pace of the
 * slower side. It is in one of these states, and never returns to an earlier one:
 *
 * | state     | server answers  | it fails       | client leaves | timeout   | shutdown    |
 * |-----------|-----------------|----------------|---------------|-----------|-------------|
 * | asking    | answering       | over, with 503 | over          | over, 504 | asking      |
 * | answering | (its end:) over | over, cut off  | over          | cut off   | over, ended |
 */
export class Relay implements RemoteAnswer {
  readonly #call: RelayedCall;
  readonly #isLong: boolean;
  readonly #protocol: string | undefined;
  #state: 'asking' | 'answering' | 'over' = 'asking';
  #outgoing: ClientRequest | undefined;
  #incoming: IncomingMessage | undefined;
  #body: BodyStream | undefined;
  #stream: ResponseStream | undefined;
  #timer: Timer | undefined;
  #isLate = false;
  #whenOver: (() => void)[] = [];
  #resolve: () => void = () => {};
  #reject: (error: unknown) => void = () => {};

  constructor(call: RelayedCall) {
    this.#call = call;
    this.#isLong = isLongRunning(call.call.info);
    this.#protocol =
      call.plan.passes === 'everything' ? wantedProtocol(call.call.exchange) : undefined;
  }

  /** Resolves when the answer is complete, has begun if it may last, or is no longer awaited. */
  run(): Promise<void> {
    const { exchange } = this.#call.call;
    const outcome = new Promise<void>((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    exchange.onAbort(() => this.#end('cut'));
    if (this.#state === 'over') return outcome;
    this.#setTimer();
    if (this.#call.plan.passes === 'everything') this.#body = exchange.bodyStream();
    this.#ask();
    return outcome;
  }

  onAnswer(incoming: IncomingMessage): void {
    if (this.#state !== 'asking') {
      incoming.destroy();
      return;
    }
    const status = incoming.statusCode ?? 0;
    const replaced = this.#call.plan.replace?.(incoming);
    if (replaced !== undefined) this.#replace(replaced);
    else if (status < 200) this.#refuse({ text: brokenAnswer, reached: false });
    else if (this.#protocol !== undefined && status < 400) {
      this.#refuse({ text: `invalid upgrade response: status code ${status}`, reached: true });
    } else if (this.#isRefusedRedirect(incoming)) this.#refuseRedirect();
    else this.#pass(incoming, status);
  }

  onUpgrade(incoming: IncomingMessage, socket: Duplex, head: Buffer): void {
    const { exchange, context, audit } = this.#call.call;
    if (this.#state !== 'asking') {
      socket.destroy();
      return;
    }
    if (this.#protocol === undefined) {
      socket.destroy();
      const spoken = JSON.stringify(incoming.headers.upgrade ?? '');
      const text = `backend tried to switch protocol ${spoken} when "" was requested`;
      this.#refuse({ text, reached: true });
      return;
    }
    const taken = exchange.takeOver();
    if (taken === undefined) {
      socket.destroy();
      this.#refuse({ text: 'request connection cannot be hijacked', reached: true });
      return;
    }
    this.#state = 'over';
    this.#timer?.stop();
    for (const listener of this.#whenOver.splice(0)) listener();
    const recorded = audit?.beginStream(101);
    const joined = joinConnections(taken, { answer: incoming, socket, head });
    const shutdown = context.onShutdown(joined.close);
    joined.whenClosed(() => {
      shutdown.close();
      recorded?.();
    });
    this.#resolve();
  }

  onFailure(error: Error): void {
    if (this.#state !== 'asking') return;
    const { call } = this.#call;
    if (this.#mayRepeat(error)) {
      this.#ask();
      return;
    }
    const why = this.#isLate ? 'context deadline exceeded' : goNetworkError(error);
    call.context.logger.debug(2, 'another server could not be asked', { error: why });
    this.#refuse({ text: why, reached: false });
  }

  #mayRepeat(error: Error): boolean {
    const code = systemErrorCode(error);
    const isStale = this.#outgoing?.reusedSocket === true && code === 'ECONNRESET';
    const { method } = this.#call.call.exchange;
    return isStale && this.#body === undefined && repeatable.has(method);
  }

  #ask(): void {
    const { transport } = this.#call;
    const body = this.#body;
    let outgoing: ClientRequest;
    try {
      outgoing = transport.open(this.#request(), this);
    } catch (error) {
      // A user's name may contain characters that no header can carry.
      const isHeader = systemErrorCode(error) === 'ERR_INVALID_CHAR';
      if (!isHeader) throw error;
      this.#refuse({ text: 'net/http: invalid header field value', reached: false });
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
    const { plan, call } = this.#call;
    if (plan.connectTimeoutMs === undefined) return;
    const limit = call.context.clock.after(plan.connectTimeoutMs, () => {
      if (isConnected(outgoing)) return;
      outgoing.destroy(Object.assign(new Error('i/o timeout'), { code: 'ETIMEDOUT' }));
    });
    this.#whenOver.push(() => limit.stop());
  }

  #request(): RemoteRequest {
    const { call, plan } = this.#call;
    const headers = plan.headers();
    if (this.#protocol !== undefined) {
      headers['connection'] = ['Upgrade'];
      headers['upgrade'] = [this.#protocol];
    } else if (this.#body !== undefined && headers['content-length'] === undefined) {
      // Node.js does not add it for methods that usually have no body.
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
    const late = () => {
      this.#isLate = true;
      if (this.#state === 'answering') {
        context.metrics.countAbort(exchange, info);
        this.#end('cut');
      } else if (isDiscovery) this.onFailure(new Error('context deadline exceeded'));
    };
    const delayMs = isDiscovery ? Math.min(leftMs, discoveryTimeoutMs) : leftMs;
    this.#timer = context.clock.after(delayMs, late);
  }

  #isRefusedRedirect(incoming: IncomingMessage): boolean {
    const status = incoming.statusCode ?? 0;
    const leads = status >= 300 && status <= 399 && (incoming.headers.location ?? '') !== '';
    return leads && this.#call.plan.redirects === 'refused';
  }

  #refuseRedirect(): void {
    const { exchange, baseHeaders } = this.#call.call;
    this.#release();
    const text = 'the backend attempted to redirect this request, which is not permitted';
    const headers = { ...baseHeaders, 'content-type': 'text/plain; charset=utf-8' };
    exchange.send({ status: 502, headers, body: Buffer.from(text) });
    this.#resolve();
  }

  #refuse(problem: { readonly text: string; readonly reached: boolean }): void {
    this.#release();
    const { call, plan } = this.#call;
    const error = call.exchange.aborted ? undefined : plan.refuse(problem);
    if (error === undefined) this.#resolve();
    else this.#reject(error);
  }

  #replace(answer: Promise<StatusError>): void {
    answer.then((error) => {
      if (this.#state === 'over') return;
      this.#release();
      this.#reject(error);
    }, this.#reject);
  }

  #pass(incoming: IncomingMessage, status: number): void {
    const { exchange, info, context, audit } = this.#call.call;
    this.#state = 'answering';
    this.#incoming = incoming;
    const headers = this.#call.plan.answered(incoming.rawHeaders);
    const stream = exchange.stream({ status, headers });
    this.#stream = stream;
    const source = this.#through(incoming);
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
    const counted = context.metrics.beginWatch(exchange, info, this.#call.call.deadline);
    const recorded = audit?.beginStream(status);
    this.#whenOver.push(shutdown.close, counted, () => recorded?.());
    this.#resolve();
  }

  /** The answer's body as sent to the client. */
  #through(incoming: IncomingMessage): Readable {
    const cut = () => this.#end('cut');
    let source: Readable = incoming;
    for (const step of this.#call.plan.through?.(incoming) ?? []) {
      listen(step, { where: 'aggregation', end: cut }, { error: cut });
      this.#whenOver.push(() => step.destroy());
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

  /** Ends a started answer, completely or so that the client notices the interruption. */
  #end(how: 'whole' | 'cut'): void {
    if (this.#state === 'over') return;
    const stream = this.#stream;
    this.#release();
    if (how === 'whole') stream?.end();
    else if (!this.#call.call.exchange.aborted) stream?.destroy();
    this.#resolve();
  }

  #release(): void {
    this.#state = 'over';
    this.#timer?.stop();
    this.#body?.drop();
    // If both were read completely, the connection can be reused.
    const isDone = this.#incoming?.complete === true && this.#outgoing?.writableFinished === true;
    if (!isDone) this.#outgoing?.destroy();
    for (const listener of this.#whenOver.splice(0)) listener();
  }
}
