import {
  background,
  type Clock,
  errorText,
  type Logger,
  type Timer,
  waitAtMost,
} from '@wheelhouse/machinery';
import {
  bytes,
  callUnary,
  chosen,
  fixed64,
  GrpcChannel,
  integer,
  many,
  message,
  nested,
  one,
  sent,
  text,
} from '@wheelhouse/store';
import type { Attributes, FinishedSpan } from './tracing.ts';

/** The messages of OpenTelemetry's protocol (OTLP 1.x) that exports of traces use. */
const value = message({ text: chosen(1, text), integer: chosen(3, integer) });
const attribute = message({ key: one(1, text), value: one(2, sent(value)) });
const link = message({ traceId: one(1, bytes), spanId: one(2, bytes) });
const status = message({ message: one(2, text), code: one(3, integer) });
const span = message({
  traceId: one(1, bytes),
  spanId: one(2, bytes),
  parentSpanId: one(4, bytes),
  name: one(5, text),
  kind: one(6, integer),
  startNs: one(7, fixed64),
  endNs: one(8, fixed64),
  attributes: many(9, nested(attribute)),
  links: many(13, nested(link)),
  status: one(15, sent(status)),
});
const scopeSpans = message({
  scope: one(1, nested(message({ name: one(1, text) }))),
  spans: many(2, nested(span)),
});
const resourceSpans = message({
  resource: one(1, nested(message({ attributes: many(1, nested(attribute)) }))),
  scopeSpans: many(2, nested(scopeSpans)),
});
const exportMethod = {
  path: '/opentelemetry.proto.collector.trace.v1.TraceService/Export',
  request: message({ resourceSpans: many(1, nested(resourceSpans)) }),
  response: message({}),
};

const kinds = { internal: 1, server: 2, client: 3 } as const;
const errorCode = 2;
/** The defaults of OpenTelemetry's batch processor: queue size, batch size, and export interval. */
const limits = { waiting: 2048, batch: 512, everyMs: 5000, callMs: 10_000 };
/** Maximum milliseconds that `close` waits for the collector. */
const closeMs = 1000;
const warningIntervalMs = 60_000;

/** The collector's address: `host:port`, or the path of a Unix socket. */
export type CollectorAddress = { readonly address: string } | { readonly socketPath: string };

/**
 * Exports batches of spans to a collector over gRPC without TLS. Spans that the collector rejects
 * or that do not fit into the queue are dropped, so that no request waits for its trace.
 */
export class OtlpExporter {
  readonly #options: {
    readonly clock: Clock;
    readonly logger: Logger;
    /** Resource attributes, such as `service.name`. */
    readonly resource: Attributes;
  };
  readonly #channel: GrpcChannel;
  #waiting: FinishedSpan[] = [];
  #lost = 0;
  #sending: Promise<void> | undefined;
  #warnedMs = Number.NEGATIVE_INFINITY;
  readonly #timer: Timer;

  constructor(
    to: CollectorAddress,
    options: { readonly clock: Clock; readonly logger: Logger; readonly resource: Attributes },
  ) {
    this.#options = options;
    const { clock } = options;
    this.#channel =
      'address' in to
        ? new GrpcChannel({ origin: `http://${to.address}`, clock })
        : new GrpcChannel({ origin: 'http://localhost', socketPath: to.socketPath, clock });
    this.#timer = clock.every(limits.everyMs, () => this.#startSending());
  }

  /** Queues a span, or drops it if the queue is full. */
  add(finished: FinishedSpan): void {
    if (this.#waiting.length >= limits.waiting) {
      this.#lost += 1;
      return;
    }
    this.#waiting.push(finished);
    if (this.#waiting.length >= limits.batch) this.#startSending();
  }

  /** Sends the queued spans for at most a second, and closes the connection. */
  async close(): Promise<void> {
    this.#timer.stop();
    const flushed = (this.#sending ?? Promise.resolve()).then(() => this.#send());
    await waitAtMost(this.#options.clock, closeMs, flushed);
    this.#waiting = [];
    this.#channel.close();
  }

  #startSending(): void {
    if (this.#sending !== undefined || this.#waiting.length === 0) return;
    this.#sending = this.#send().finally(() => {
      this.#sending = undefined;
    });
    background({ where: 'process' }, this.#sending);
  }

  /** Sends the queued spans until a call fails. Never rejects. */
  async #send(): Promise<void> {
    const { clock } = this.#options;
    const timeoutMs = limits.callMs;
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.slice(0, limits.batch);
      this.#waiting = this.#waiting.slice(limits.batch);
      const request = requestOf(batch, this.#options.resource);
      try {
        await callUnary(this.#channel, { method: exportMethod, request, timeoutMs, clock });
      } catch (error) {
        this.#lost += batch.length;
        this.#warn(error);
        return;
      }
    }
  }

  #warn(error: unknown): void {
    const { clock, logger } = this.#options;
    const nowMs = clock.monotonic();
    if (nowMs - this.#warnedMs < warningIntervalMs) return;
    this.#warnedMs = nowMs;
    logger.warn('cannot export spans', { error: errorText(error), lostSpans: this.#lost });
    this.#lost = 0;
  }
}

function requestOf(batch: readonly FinishedSpan[], resource: Attributes) {
  return {
    resourceSpans: [
      {
        resource: { attributes: attributesOf(resource) },
        scopeSpans: [{ scope: { name: 'wheelhouse' }, spans: batch.map(spanOf) }],
      },
    ],
  };
}

function spanOf({ kind, attributes, link: linked, error, ...rest }: FinishedSpan) {
  return {
    ...rest,
    kind: kinds[kind],
    attributes: attributesOf(attributes),
    links: linked === undefined ? [] : [linked],
    status: error === undefined ? undefined : { message: error, code: errorCode },
  };
}

function attributesOf(attributes: Attributes) {
  return Object.entries(attributes).map(([key, entry]) => ({
    key,
    value: typeof entry === 'number' ? { integer: entry } : { text: entry },
  }));
}
