import { AsyncLocalStorage } from 'node:async_hooks';
import { randomBytes } from 'node:crypto';
import { type Clock, type Exchange, errorText, redactSecrets } from '@wheelhouse/machinery';
import type { RequestInfo } from '../request/parse-request.ts';
import type { Answered, Authorized, TimedOut } from '../request/request-state.ts';
import type { RequestObserver } from './request-observers.ts';

/** The attributes of a span. */
export type Attributes = Readonly<Record<string, string | number>>;

/** The context in which another program continues a trace. */
interface RemoteContext {
  readonly traceId: Buffer;
  readonly spanId: Buffer;
}

/**
 * A finished span. Texts have at most `textMax` characters; times are in nanoseconds since the
 * epoch.
 */
export interface FinishedSpan extends RemoteContext {
  /** Empty for the root span of a trace. */
  readonly parentSpanId: Buffer;
  readonly name: string;
  readonly kind: 'internal' | 'server' | 'client';
  readonly startNs: bigint;
  readonly endNs: bigint;
  readonly attributes: Attributes;
  /** The trace that the client's headers name. */
  readonly link: RemoteContext | undefined;
  /** The error; undefined after a success. */
  readonly error: string | undefined;
}

const noSpan = Buffer.alloc(0);

/** The trace that the current work is part of. */
interface TraceContext {
  readonly traceId: Buffer;
  readonly isSampled: boolean;
  /** The parent of new spans, which changes during the request. */
  spanId: Buffer;
}

/** The trace context of a request. */
interface TracedRequest extends TraceContext {
  readonly rootId: Buffer;
  readonly link: RemoteContext | undefined;
  readonly startMs: number;
}

/** A span, without its times and outcome. */
interface SpanDescription {
  readonly name: string;
  readonly kind?: FinishedSpan['kind'];
  readonly attributes: Attributes;
}

/**
 * Records spans of requests and exports a fraction of them (OPS-1). A client's trace is recorded
 * only as a link, so that clients do not control sampling.
 */
export class Tracer {
  readonly #contexts = new AsyncLocalStorage<TraceContext>();
  readonly #requests = new WeakMap<Exchange, TracedRequest>();
  readonly #clock: Clock;
  readonly #originMs: number;
  /** Traces with a number below are sampled; numbers have 63 bits. */
  readonly #sampledBelow: bigint;
  readonly #onSpan: (span: FinishedSpan) => void;

  /** @param options.samplingRate the number of requests per million whose spans are exported */
  constructor(options: {
    readonly clock: Clock;
    readonly samplingRate: number;
    readonly onSpan: (span: FinishedSpan) => void;
  }) {
    this.#clock = options.clock;
    this.#originMs = options.clock.now() - options.clock.monotonic();
    this.#sampledBelow = (BigInt(options.samplingRate) << 63n) / 1_000_000n;
    this.#onSpan = options.onSpan;
  }

  /** Answers a request in its own trace. */
  serve<T>(exchange: Exchange, answer: () => T): T {
    const traceId = randomBytes(16);
    const isSampled = traceId.readBigUInt64BE(8) >> 1n < this.#sampledBelow;
    const rootId = randomBytes(8);
    const request: TracedRequest = {
      traceId,
      isSampled,
      spanId: rootId,
      rootId,
      link: isSampled ? remoteContext(exchange.header('traceparent')) : undefined,
      startMs: this.#clock.monotonic(),
    };
    this.#requests.set(exchange, request);
    return this.#contexts.run(request, answer);
  }

  /** Runs work in a span of its request; without a span if the request is not sampled. */
  async within<T>(
    { name, kind, attributes }: SpanDescription,
    work: () => T | Promise<T>,
  ): Promise<T> {
    const place = this.#contexts.getStore();
    if (place?.isSampled !== true) return work();
    const startMs = this.#clock.monotonic();
    const own: TraceContext = { ...place, spanId: randomBytes(8) };
    let error: string | undefined;
    try {
      return await this.#contexts.run(own, work);
    } catch (failure) {
      error = errorText(failure);
      throw failure;
    } finally {
      const parentSpanId = place.spanId;
      this.#end({
        place,
        spanId: own.spanId,
        parentSpanId,
        startMs,
        name,
        kind,
        attributes,
        error,
      });
    }
  }

  /** Headers with which another server continues the current trace. */
  headers(): Readonly<Record<string, string>> {
    const place = this.#contexts.getStore();
    if (place === undefined) return {};
    const { traceId, spanId, isSampled } = place;
    const flags = isSampled ? '01' : '00';
    return { traceparent: `00-${traceId.toString('hex')}-${spanId.toString('hex')}-${flags}` };
  }

  /** Observes the gates, the endpoint, and the end of each request. */
  readonly observer: RequestObserver = {
    authenticate: ({ exchange, startMs, authenticatedMs: endMs }) => {
      this.#recordGate(exchange, { name: 'authentication', startMs, endMs });
    },
    admit: ({ exchange, seat, admittedMs: endMs }) => {
      const startMs = seat.arrivalMs ?? endMs;
      this.#recordGate(exchange, { name: 'priorityandfairness', startMs, endMs });
    },
    authorize: ({ exchange, info, admittedMs: startMs, authorizedMs: endMs }) => {
      this.#recordGate(exchange, { name: 'authorization', startMs, endMs });
      const request = this.#requests.get(exchange);
      if (request?.isSampled === true && endpointName(info) !== undefined) {
        request.spanId = randomBytes(8);
      }
    },
    expire: (state) => this.#endRequest(state),
    finish: (state) => {
      if (state.phase === 'answered') this.#endRequest(state);
    },
  };

  #recordGate(
    exchange: Exchange,
    times: { readonly name: string; readonly startMs: number; readonly endMs: number },
  ): void {
    const place = this.#requests.get(exchange);
    if (place?.isSampled !== true) return;
    const spanId = randomBytes(8);
    this.#end({ ...times, place, spanId, parentSpanId: place.rootId, attributes: {} });
  }

  #endRequest({ last, failure }: Answered | TimedOut): void {
    const { exchange, auditId } = last;
    const place = this.#requests.get(exchange);
    if (place?.isSampled !== true) return;
    if (last.phase === 'authorized') this.#endEndpoint(place, last);
    const { rootId: spanId, startMs, link } = place;
    const isFault = (exchange.responseCode ?? 0) >= 500;
    this.#end({
      place,
      spanId,
      parentSpanId: noSpan,
      startMs,
      name: requestName(exchange, last.phase === 'arrived' ? undefined : last.info),
      kind: 'server',
      attributes: requestAttributes(exchange, auditId),
      link,
      error: isFault ? (failure?.status.message ?? '') : undefined,
    });
  }

  #endEndpoint(place: TracedRequest, last: Authorized): void {
    const name = endpointName(last.info);
    if (name === undefined) return;
    const { spanId, rootId: parentSpanId } = place;
    const { authorizedMs: startMs } = last;
    const attributes = endpointAttributes(last);
    this.#end({ place, spanId, parentSpanId, startMs, name, attributes });
  }

  #end(span: {
    readonly place: TraceContext;
    readonly spanId: Buffer;
    readonly parentSpanId: Buffer;
    readonly startMs: number;
    readonly endMs?: number;
    readonly name: string;
    readonly kind?: FinishedSpan['kind'] | undefined;
    readonly attributes: Attributes;
    readonly link?: RemoteContext | undefined;
    readonly error?: string | undefined;
  }): void {
    const { place, spanId, parentSpanId, kind = 'internal', error } = span;
    if (!place.isSampled) return;
    const attributes = Object.entries(span.attributes).map(
      ([key, value]) => [key, typeof value === 'string' ? ownText(value) : value] as const,
    );
    this.#onSpan({
      traceId: place.traceId,
      spanId,
      parentSpanId,
      name: ownText(span.name),
      kind,
      startNs: this.#nanoseconds(span.startMs),
      endNs: this.#nanoseconds(span.endMs ?? this.#clock.monotonic()),
      attributes: Object.fromEntries(attributes),
      link: span.link,
      error: error === undefined ? undefined : ownText(error),
    });
  }

  #nanoseconds(monotonicMs: number): bigint {
    const ms = this.#originMs + monotonicMs;
    const whole = Math.floor(ms);
    return BigInt(whole) * 1_000_000n + BigInt(Math.round((ms - whole) * 1e6));
  }
}

const endpointNames: Readonly<Record<string, string>> = {
  get: 'Get',
  list: 'List',
  watch: 'List',
  create: 'Create',
  update: 'Update',
  patch: 'Patch',
  delete: 'Delete',
  deletecollection: 'Delete',
};

/** The name of a request's endpoint span; undefined if it has none. */
function endpointName({ isResourceRequest, verb }: RequestInfo): string | undefined {
  return isResourceRequest ? endpointNames[verb] : undefined;
}

const parentForm = /^00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}$/;

/** Parses a `traceparent` header (W3C Trace Context); undefined if it is malformed. */
function remoteContext(header: string | undefined): RemoteContext | undefined {
  const [, trace = '', span = ''] = parentForm.exec(header ?? '') ?? [];
  if (/^0*$/.test(trace) || /^0*$/.test(span)) return undefined;
  return { traceId: Buffer.from(trace, 'hex'), spanId: Buffer.from(span, 'hex') };
}

/** The method, and for a resource the path with placeholders for names. */
function requestName({ method }: Exchange, info: RequestInfo | undefined): string {
  if (info?.isResourceRequest !== true) return method;
  const { group, version, namespace, resource, name, subresource } = info;
  const parts = [
    ...(group === '' ? ['api'] : ['apis', group]),
    version,
    ...(namespace === '' ? [] : ['namespaces', '{:namespace}']),
    resource,
    ...(name === '' ? [] : ['{:name}']),
    ...(subresource === '' ? [] : [subresource]),
  ];
  return `${method} /${parts.join('/')}`;
}

/** Maximum length of a text in a span, in characters. */
const textMax = 2048;

/** A copy, since a part of a text keeps the whole of it in memory while the span waits. */
function ownText(text: string): string {
  return Buffer.from(text.slice(0, textMax)).toString();
}

function requestAttributes(exchange: Exchange, auditId: string): Attributes {
  const { method, url, httpVersion, remoteAddress, responseCode = 0 } = exchange;
  return {
    'http.method': method,
    'http.scheme': exchange.connection.encrypted ? 'https' : 'http',
    'http.target': redactSecrets(url),
    'http.flavor': httpVersion,
    'net.host.name': exchange.header('host') ?? exchange.header(':authority') ?? '',
    'net.sock.peer.addr': remoteAddress,
    'user_agent.original': exchange.header('user-agent') ?? '',
    'http.status_code': responseCode,
    'audit-id': auditId,
  };
}

function endpointAttributes({ exchange, info, auditId }: Authorized): Attributes {
  return {
    accept: exchange.header('accept') ?? '',
    'audit-id': auditId,
    client: exchange.remoteAddress,
    'api-group': info.group,
    'api-version': info.version,
    name: info.name,
    subresource: info.subresource,
    namespace: info.namespace,
    protocol: exchange.httpVersion === '2' ? 'HTTP/2.0' : 'HTTP/1.1',
    resource: info.resource,
    scope: scopeOf(info),
    url: exchange.url.split('?', 1)[0] ?? '',
    'user-agent': exchange.header('user-agent') ?? '',
    verb: info.verb.toUpperCase(),
  };
}

function scopeOf({ name, namespace }: RequestInfo): string {
  if (name !== '') return 'resource';
  return namespace === '' ? 'cluster' : 'namespace';
}
