import type { ClientRequest, IncomingMessage } from 'node:http';
import type { Duplex, Readable, Transform } from 'node:stream';
import { goNetworkError } from '@wheelhouse/client';
import {
  type BodyStream,
  contained,
  isLongRunning,
  listen,
  type ResponseHeaders,
  type ResponseStream,
  type StatusError,
  systemErrorCode,
  type TakenConnection,
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

/** The other side of a connection that goes on in another protocol. */
interface UpgradedConnection {
  /** The answer that says so. */
  readonly answer: IncomingMessage;
  readonly socket: Duplex;
  /** What has come behind it already. */
  readonly head: Buffer;
}

/** Two connections that are one. */
interface JoinedConnections {
  close(): void;
  /** Calls back once, when both have ended. */
  whenClosed(callback: () => void): void;
}

/**
 * Passes on the answer by which another server changes the protocol, and then all bytes both ways.
 * When one side has no more to say, the other gets what is on its way, and both are closed.
 */
function joinConnections(client: TakenConnection, server: UpgradedConnection): JoinedConnections {
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

/** Whether the connection of a request is made, with TLS. */
function isConnected({ socket }: ClientRequest): boolean {
  if (socket === null || socket.connecting) return false;
  return !('secureConnecting' in socket) || socket.secureConnecting !== true;
}

function destroySoon(socket: Duplex): void {
  if (socket.destroyed) return;
  socket.end(contained({ where: 'aggregation' }, () => socket.destroy()));
}

/** The answer's head as it came. */
function headOf({ rawHeaders, statusMessage }: IncomingMessage): Buffer {
  const lines = [`HTTP/1.1 101 ${statusMessage || 'Switching Protocols'}`];
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    lines.push(`${rawHeaders[index]}: ${rawHeaders[index + 1]}`);
  }
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
}

/** Stand as they are in a path; everything else but unreserved characters is escaped. */
const plain = /%(?:24|26|2B|2C|3A|3B|3D|40)/g;

/**
 * The path as this server has understood and authorized it, escaped anew: what another server makes
 * of the client's own escapes might be another path.
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

/** How requests are passed on. */
export interface RelaySettings {
  /** Whether the other server learns users' uids. */
  readonly tellsUid: boolean;
  /** The name of this process, by which it knows requests that come back to it. */
  readonly via: string;
  /** What becomes of an answer that leads elsewhere. */
  readonly redirects: 'refused' | 'passed';
}

/** Where a request goes, and what becomes of it and of its answer on the way. */
export interface RelayPlan {
  readonly place: { readonly host: string; readonly port: number };
  /** Path and query, escaped. */
  readonly target: string;
  /** The method, where it is not the client's. */
  readonly method?: 'GET';
  /** Whether the client's body and its wish for another protocol are passed on. */
  readonly passes: 'everything' | 'nothing';
  /** Ends a connection that is not made in time, in milliseconds; no limit when absent. */
  readonly connectTimeoutMs?: number;
  /** Those of the request, but for what concerns its connection. */
  headers(): OutgoingHeaders;
  /** Those of the answer to the client; `lines` are the other server's. */
  answered(lines: readonly string[]): ResponseHeaders;
  /** Whether an answer of this status that leads elsewhere is refused. */
  readonly redirects: 'refused' | 'passed';
  /**
   * Gives the error to answer the client with; undefined when it has been answered. `reached` says
   * whether the other server was, so that `text` is about what it did.
   */
  refuse(problem: { readonly text: string; readonly reached: boolean }): StatusError | undefined;
  /** Streams through which the answer's body goes, in turn. */
  through?(incoming: IncomingMessage): readonly Transform[];
  /** Takes an answer that is not to be passed on, and gives the error to answer with instead. */
  replace?(incoming: IncomingMessage): Promise<StatusError> | undefined;
}

/** What a relay needs of a request. */
export type RelayedRequest = Pick<
  AuthorizedCall,
  'exchange' | 'info' | 'context' | 'deadline' | 'baseHeaders'
> & { readonly audit?: AuthorizedCall['audit'] | undefined };

export interface RelayedCall {
  readonly call: RelayedRequest;
  readonly transport: Transport;
  readonly plan: RelayPlan;
}

/** Passes a request on as an aggregator does: with its path, and with who asks. */
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
        tellsUid: settings.tellsUid,
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

/** What a server serves is told at once, or not at all. */
const discoveryTimeoutMs = 5_000;

const unreachable = 'error trying to reach service';
const brokenAnswer = 'net/http: HTTP/1.x transport connection broken';

/** Asked again as often as a connection that was kept turns out to have been closed. */
const repeatable = new Set(['GET', 'HEAD', 'OPTIONS']);

/**
 * One request on its way to another server, and its answer back, both piece by piece and as fast as
 * the slower side takes them. It is in one of these states, and never goes back:
 * | state     | other server answers | it fails       | client goes | time is up | stop of ours |
 * |-----------|----------------------|----------------|-------------|------------|--------------|
 * | asking    | answering            | over, with 503 | over        | over, 504  | asking       |
 * | answering | (the end:) over      | over, cut off  | over        | cut off    | over, ended  |
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

  /**
   * Resolves when the answer has been given, or has begun if it may last, or when nobody waits for it
   * any more.
   */
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
    for (const tell of this.#whenOver.splice(0)) tell();
    const recorded = audit?.streaming(101);
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
      // A user's name may hold what no header can.
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
      // Node does not think of it where a method has no body as a rule.
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
        context.metrics.aborted(exchange, info);
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
    const counted = context.metrics.longRunning(exchange, info, this.#call.call.deadline);
    const recorded = audit?.streaming(status);
    this.#whenOver.push(shutdown.close, counted, () => recorded?.());
    this.#resolve();
  }

  /** The answer's body as it goes to the client. */
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

  /** Ends the answer, if there is one: as it should, or so that the client sees that it is not. */
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
    // Where both have been read to their ends, the next request may have the connection.
    const isDone = this.#incoming?.complete === true && this.#outgoing?.writableFinished === true;
    if (!isDone) this.#outgoing?.destroy();
    for (const tell of this.#whenOver.splice(0)) tell();
  }
}
