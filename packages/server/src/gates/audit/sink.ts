import {
  type Clock,
  type Dialect,
  errorText,
  type Logger,
  type MaybePromise,
  random,
} from '@wheelhouse/machinery';
import { type AuditEvent, encodeEvent, legacyLine, reaches } from './event.ts';
import type { AuditMetrics } from './metrics.ts';

/** A destination of audit events. */
export interface AuditSink {
  /** Accepts events; false: they are lost, and the sink has reported it. Never throws. */
  process(events: readonly AuditEvent[]): MaybePromise<boolean>;
  /** Called when the server is about to exit: nothing is retried from now on. */
  hurry?(): void;
  /** Forwards buffered events and releases resources, in bounded time. */
  close(): Promise<void>;
}

/** Reports lost events: `plugin` is the sink's name in the metric. */
export type TellLoss = (loss: {
  readonly plugin: 'buffered' | 'log' | 'truncate' | 'webhook';
  readonly error: unknown;
  readonly events: readonly AuditEvent[];
}) => void;

/** Maximum number of lost events that one log line names. */
const namedMax = 10;

/** Counts lost events and logs them. */
export function createTellLoss(metrics: AuditMetrics, logger: Logger): TellLoss {
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

/** Forwards events to several sinks. */
export function allSinks(sinks: readonly AuditSink[]): AuditSink {
  const [only] = sinks;
  if (only !== undefined && sinks.length === 1) return only;
  return {
    process(events) {
      const taken = sinks.map((sink) => sink.process(events));
      if (!taken.some((one) => one instanceof Promise)) return taken.every((one) => one === true);
      return Promise.all(taken).then((all) => all.every(Boolean));
    },
    async close() {
      await Promise.all(sinks.map((sink) => sink.close()));
    },
  };
}

/** A sink whose losses do not fail the request (mode `blocking`). */
export function forgivingSink(sink: AuditSink): AuditSink {
  return {
    process(events) {
      const taken = sink.process(events);
      return taken instanceof Promise ? taken.then(() => true) : true;
    },
    close: () => sink.close(),
  };
}

/** `legacy`: short lines for people. */
export type LogFormat = 'legacy' | 'json';

/** The destination of lines; `write` throws if a line cannot be written. */
export interface LineWriter {
  write(line: string): void;
  close(): Promise<void>;
}

/** Writes one line for each event (OPS-2). */
export function createLogSink(options: {
  readonly writer: LineWriter;
  readonly format: LogFormat;
  /** `audit.svc.io/v1` */
  readonly apiVersion: string;
  readonly tellLoss: TellLoss;
}): AuditSink {
  const { writer, format, tellLoss } = options;
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
          tellLoss({ plugin: 'log', error, events: [event] });
        }
      }
      return isWhole;
    },
    close: () => writer.close(),
  };
}

/** Posts a JSON text; rejects if the service does not accept it. */
interface EventPost {
  post(body: string): Promise<void>;
  close(): void;
}

const attemptsMax = 5;
const pauseFactor = 1.5;
const pauseJitter = 0.2;

/**
 * Posts lists of events to a service (OPS-2). After any failure the list is posted again, up to
 * five times with growing pauses, or at most once more when the server is about to exit.
 */
export function createWebhookSink(options: {
  readonly service: EventPost;
  /** `audit.svc.io/v1` */
  readonly apiVersion: string;
  readonly initialBackoffMs: number;
  readonly clock: Clock;
  readonly tellLoss: TellLoss;
}): AuditSink {
  const { service, clock, tellLoss } = options;
  const head = `{"kind":"EventList","apiVersion":${JSON.stringify(options.apiVersion)},`;
  const pausing = new Set<() => void>();
  const underWay = new Set<Promise<boolean>>();
  let isClosing = false;
  const pause = (delayMs: number) =>
    new Promise<void>((resolve) => {
      if (isClosing) return resolve();
      const done = () => {
        timer.stop();
        pausing.delete(done);
        resolve();
      };
      const timer = clock.after(delayMs, done);
      pausing.add(done);
    });
  const hurry = (): void => {
    isClosing = true;
    for (const done of [...pausing]) done();
  };
  const persist = async (body: string): Promise<void> => {
    let pauseMs = options.initialBackoffMs;
    for (let tried = 1; ; tried += 1) {
      try {
        return await service.post(body);
      } catch (error) {
        if (tried === attemptsMax || isClosing) throw error;
      }
      await pause(pauseMs * (1 + random() * pauseJitter));
      pauseMs *= pauseFactor;
    }
  };
  return {
    process(events) {
      const items = events.map(encodeEvent).join(',');
      const sending = persist(`${head}"metadata":{},"items":[${items}]}\n`).then(
        () => true,
        (error: unknown) => {
          tellLoss({ plugin: 'webhook', error, events });
          return false;
        },
      );
      underWay.add(sending);
      return sending.finally(() => underWay.delete(sending));
    },
    hurry,
    async close() {
      hurry();
      await Promise.all(underWay);
      service.close();
    },
  };
}

/**
 * Limits the size of events and batches: an event that is too large is annotated and loses its
 * objects, and is dropped if that is not enough; a batch that is too large is split (OPS-2).
 */
export function truncatingSink(
  sink: AuditSink,
  options: {
    readonly eventBytesMax: number;
    readonly batchBytesMax: number;
    readonly dialect: Dialect;
    readonly tellLoss: TellLoss;
  },
): AuditSink {
  const { eventBytesMax, batchBytesMax, dialect, tellLoss } = options;
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
        tellLoss({ plugin: 'truncate', error, events: lost });
      }
      return handOn(sink, batches);
    },
    close: () => sink.close(),
  };
}

async function handOnRest(
  sink: AuditSink,
  rest: { readonly pending: Promise<boolean>; readonly batches: readonly AuditEvent[][] },
): Promise<boolean> {
  let isWhole = await rest.pending;
  for (const batch of rest.batches) isWhole = (await sink.process(batch)) && isWhole;
  return isWhole;
}

function handOn(sink: AuditSink, batches: readonly AuditEvent[][]) {
  let isWhole = true;
  for (let index = 0; index < batches.length; index += 1) {
    const taken = sink.process(batches[index] ?? []);
    if (taken instanceof Promise) {
      const rest = handOnRest(sink, { pending: taken, batches: batches.slice(index + 1) });
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
