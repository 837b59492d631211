import { errorText, type Logger, type MaybePromise } from '@wheelhouse/machinery';
import { type AuditEvent, legacyLine } from './event.ts';
import type { AuditMetrics } from './metrics.ts';

/** Where events go. */
export interface AuditSink {
  /** Takes events; false: they are lost, which the sink has told of. Never throws. */
  process(events: readonly AuditEvent[]): MaybePromise<boolean>;
  /** The server is about to end: from now on nothing is tried twice. */
  hurry?(): void;
  /** Hands on what it holds back, then lets go of what it has open; bounded in time. */
  close(): Promise<void>;
}

/** Tells of events that were lost: `plugin` is the sink's name in the metric. */
export type TellLoss = (loss: {
  readonly plugin: 'buffered' | 'log' | 'truncate' | 'webhook';
  readonly error: unknown;
  readonly events: readonly AuditEvent[];
}) => void;

/** Losses of one cause come by the thousand; the log names only so many of the events. */
const namedMax = 10;

/** Counts losses, and tells the server's own log of them. */
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

/** Hands events to all of several sinks. */
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

/** A sink whose losses do not concern the request (mode `blocking`). */
export function forgivingSink(sink: AuditSink): AuditSink {
  return {
    process(events) {
      const taken = sink.process(events);
      return taken instanceof Promise ? taken.then(() => true) : true;
    },
    close: () => sink.close(),
  };
}
