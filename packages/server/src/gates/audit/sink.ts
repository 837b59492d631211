import { errorText, type Logger, type MaybePromise } from '@wheelhouse/machinery';
import { type AuditEvent, legacyLine } from './event.ts';
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

/** Most lost events that one log line names. */
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
