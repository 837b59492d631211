import type { Counter, MetricRegistry } from '@wheelhouse/machinery';

/** Metrics of the audit log (OPS-2). */
export interface AuditMetrics {
  readonly events: Counter;
  readonly rejected: Counter;
  errors(plugin: string): Counter;
  level(level: string): Counter;
}

/**
 * Registers the metrics of the audit log under kube-apiserver's names, with or without a policy.
 */
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
