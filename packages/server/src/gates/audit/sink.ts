import {
  type Clock,
  type Dialect,
  errorText,
  type Logger,
  type MaybePromise,
  retryPauseMs,
} from '@wheelhouse/machinery';
import { type AuditEvent, encodeEvent, legacyLine, reaches } from './event.ts';
import type { AuditMetrics } from './metrics.ts';

/** A destination of audit events. */
export interface AuditSink {
  /** Accepts events; false if some were lost, which the sink has reported. Never throws. */
  process(events: readonly AuditEvent[]): MaybePromise<boolean>;
  /** Called when the server is about to exit: later failures are not retried. */
  stopRetrying?(): void;
  /** Forwards buffered events and releases resources, in bounded time. */
  close(): Promise<void>;
}

/** Reports lost events; `plugin` is the sink's name in the metric. */
export type ReportLoss = (loss: {
  readonly plugin: 'buffered' | 'log' | 'truncate' | 'webhook';
  readonly error: unknown;
  readonly events: readonly AuditEvent[];
}) => void;

/** Maximum number of lost events that one log line names. */
const namedMax = 10;

/** Creates the function that counts and logs lost events. */
export function createLossReporter(metrics: AuditMetrics, logger: Logger): ReportLoss {
  return ({ plugin, error, events }) => {
    metrics.errors(plugin).add(events.length);
    logger.error('audit events were lost', {
      plugin,
      count: events.length,
      error: errorText(error),
      events: events.slice(0, namedMax).map(legacyLine),
    });
  };
}

/** Combines sinks into one that forwards events to all of them. */
export function allSinks(sinks: readonly AuditSink[]): AuditSink {
  const [only] = sinks;
  if (only !== undefined && sinks.length === 1) return only;
  return {
    process(events) {
      const results = sinks.map((sink) => sink.process(events));
      if (!results.some((result) => result instanceof Promise))
        return results.every((result) => result === true);
      return Promise.all(results).then((all) => all.every(Boolean));
    },
    async close() {
      await Promise.all(sinks.map((sink) => sink.close()));
    },
  };
}

/** Wraps a sink so that lost events do not fail the request (mode `blocking`). */
export function bestEffortSink(sink: AuditSink): AuditSink {
  return {
    process(events) {
      const taken = sink.process(events);
      return taken instanceof Promise ? taken.then(() => true) : true;
    },
    close: () => sink.close(),
  };
}

/** The format of log lines; `legacy` is the short human-readable form. */
export type LogFormat = 'legacy' | 'json';

/** The destination of lines; `write` throws if a line cannot be written. */
export interface LineWriter {
  write(line: string): void;
  close(): Promise<void>;
}

/** Creates a sink that writes one line for each event (OPS-2). */
export function createLogSink(options: {
  readonly writer: LineWriter;
  readonly format: LogFormat;
  /** `audit.svc.io/v1` */
  readonly apiVersion: string;
  readonly reportLoss: ReportLoss;
}): AuditSink {
  const { writer, format, reportLoss } = options;
  const head = `{"kind":"Event","apiVersion":${JSON.stringify(options.apiVersion)},`;
  const lineOf = (event: AuditEvent): string =>
    format === 'legacy' ? `${legacyLine(event)}\n` : `${head}${encodeEvent(event).slice(1)}\n`;
  return {
    process(events) {
      let isWhole = true;
      for (const event of events) {
        try {
          writer.write(lineOf(event));
        } catch (error) {
          isWhole = false;
          reportLoss({ plugin: 'log', error, events: [event] });
        }
      }
      return isWhole;
    },
    close: () => writer.close(),
  };
}

/** A service that receives lists of events; `post` rejects if it does not accept a list. */
interface EventPost {
  post(body: string): Promise<void>;
  close(): void;
}

/**
 * Creates a sink that posts lists of events to a service (OPS-2). A list is posted up to five
 * times, with growing pauses, or at most once more when the server is about to exit.
 */
export function createWebhookSink(options: {
  readonly service: EventPost;
  /** `audit.svc.io/v1` */
  readonly apiVersion: string;
  readonly initialBackoffMs: number;
  readonly clock: Clock;
  readonly reportLoss: ReportLoss;
}): AuditSink {
  const { service, clock, reportLoss } = options;
  const head = `{"kind":"EventList","apiVersion":${JSON.stringify(options.apiVersion)},`;
  const pendingPauses = new Set<() => void>();
  const inFlight = new Set<Promise<boolean>>();
  let isClosing = false;
  const pause = (delayMs: number) =>
    new Promise<void>((resolve) => {
      if (isClosing) return resolve();
      const done = () => {
        timer.stop();
        pendingPauses.delete(done);
        resolve();
      };
      const timer = clock.after(delayMs, done);
      pendingPauses.add(done);
    });
  const stopRetrying = (): void => {
    isClosing = true;
    for (const done of [...pendingPauses]) done();
  };
  const postWithRetries = async (body: string): Promise<void> => {
    for (let attempts = 1; ; attempts += 1) {
      try {
        return await service.post(body);
      } catch (error) {
        const pauseMs = isClosing ? undefined : retryPauseMs(options.initialBackoffMs, attempts);
        if (pauseMs === undefined) throw error;
        await pause(pauseMs);
      }
    }
  };
  return {
    process(events) {
      const items = events.map(encodeEvent).join(',');
      const sending = postWithRetries(`${head}"metadata":{},"items":[${items}]}\n`).then(
        () => true,
        (error: unknown) => {
          reportLoss({ plugin: 'webhook', error, events });
          return false;
        },
      );
      inFlight.add(sending);
      return sending.finally(() => inFlight.delete(sending));
    },
    stopRetrying,
    async close() {
      stopRetrying();
      await Promise.all(inFlight);
      service.close();
    },
  };
}

/**
 * Wraps a sink so that the size of events and batches is limited (OPS-2): the objects are removed
 * from an event that is too large, which is annotated; an event that is still too large is dropped;
 * a batch that is too large is split.
 */
export function truncatingSink(
  sink: AuditSink,
  options: {
    readonly eventBytesMax: number;
    readonly batchBytesMax: number;
    readonly dialect: Dialect;
    readonly reportLoss: ReportLoss;
  },
): AuditSink {
  const { eventBytesMax, batchBytesMax, dialect, reportLoss } = options;
  const annotation = `${dialect.group('audit')}/truncated`;
  return {
    process(events) {
      const lost: AuditEvent[] = [];
      const batches: AuditEvent[][] = [];
      let batchBytes = 0;
      for (const original of events) {
        const event = fitting(original, eventBytesMax, annotation);
        const bytes = sizeOf(event);
        if (bytes > eventBytesMax) {
          lost.push(event);
          continue;
        }
        const current = batches.at(-1);
        if (current === undefined || batchBytes + bytes > batchBytesMax) {
          batches.push([event]);
          batchBytes = bytes;
        } else {
          current.push(event);
          batchBytes += bytes;
        }
      }
      if (lost.length > 0) {
        const error = new Error('event is too large even after truncating');
        reportLoss({ plugin: 'truncate', error, events: lost });
      }
      return forwardBatches(sink, batches);
    },
    close: () => sink.close(),
  };
}

async function forwardRest(
  sink: AuditSink,
  rest: { readonly pending: Promise<boolean>; readonly batches: readonly AuditEvent[][] },
): Promise<boolean> {
  let isWhole = await rest.pending;
  for (const batch of rest.batches) isWhole = (await sink.process(batch)) && isWhole;
  return isWhole;
}

function forwardBatches(sink: AuditSink, batches: readonly AuditEvent[][]) {
  let isWhole = true;
  for (let index = 0; index < batches.length; index += 1) {
    const taken = sink.process(batches[index] ?? []);
    if (taken instanceof Promise) {
      const rest = forwardRest(sink, { pending: taken, batches: batches.slice(index + 1) });
      return rest.then((isRestWhole) => isRestWhole && isWhole);
    }
    isWhole = taken && isWhole;
  }
  return isWhole;
}

function fitting(event: AuditEvent, bytesMax: number, annotation: string): AuditEvent {
  if (!reaches(event.level, 'Request') || sizeOf(event) <= bytesMax) return event;
  const annotations = new Map(event.annotations).set(annotation, 'true');
  return { ...event, requestObject: undefined, responseObject: undefined, annotations };
}

function sizeOf(event: AuditEvent): number {
  return Buffer.byteLength(encodeEvent(event));
}
