import type { Logger } from '../base/log.ts';
import type { MaybePromise } from '../base/maybe-promise.ts';
import type { Counter, MetricRegistry } from '../base/metrics.ts';
import { type AuditEvent, legacyLine } from './event.ts';

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

/** What the audit log counts (OPS-2). */
export interface AuditMetrics {
  readonly events: Counter;
  readonly rejected: Counter;
  errors(plugin: string): Counter;
  level(level: string): Counter;
}

/** Registers the audit log's metrics under upstream's names. */
export function createAuditMetrics(registry: MetricRegistry): AuditMetrics {
  const counter = (name: string, help: string, labels: readonly string[] = []) =>
    registry.counter({ name: `apiserver_audit_${name}`, help, labels, stability: 'ALPHA' });
  const events = counter(
    'event_total',
    'Counter of audit events generated and sent to the audit backend.',
  );
  const errors = counter(
    'error_total',
    'Counter of audit events that failed to be audited properly. Plugin identifies the plugin affected by the error.',
    ['plugin'],
  );
  const levels = counter(
    'level_total',
    'Counter of policy levels for audit events (1 per request).',
    ['level'],
  );
  const rejected = counter(
    'requests_rejected_total',
    'Counter of apiserver requests rejected due to an error in audit logging backend.',
  );
  return {
    events: events.of(),
    rejected: rejected.of(),
    errors: (plugin) => errors.of(plugin),
    level: (level) => levels.of(level),
  };
}

/** Losses of one cause come by the thousand; the log names only so many of the events. */
const namedMax = 10;

/** Counts losses, and tells the server's own log of them. */
export function createTellLoss(metrics: AuditMetrics, logger: Logger): TellLoss {
  return ({ plugin, error, events }) => {
    metrics.errors(plugin).add(events.length);
    logger.error('audit events were lost', {
      plugin,
      count: events.length,
      error: error instanceof Error ? error.message : String(error),
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
