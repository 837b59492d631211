import type { MetricRegistry } from '@wheelhouse/machinery';
import { type ConditionMetrics, conditionMetrics } from '../webhooks/metrics.ts';
import type { PolicyErrorType } from './validation.ts';

/** What was done about a validation. */
export type Enforcement = 'allow' | 'deny' | 'audit' | 'warn';

/** What validating policies are measured by, under upstream's names. */
export interface PolicyMetrics {
  readonly conditions: ConditionMetrics;
  checked(check: {
    readonly policy: string;
    readonly binding: string;
    readonly error: PolicyErrorType;
    readonly action: Enforcement;
    readonly durationMs: number;
  }): void;
}

const buckets = [0.000_000_5, 0.001, 0.01, 0.1, 1];

/** Registers the metrics; once for a registry. */
export function policyMetrics(registry: MetricRegistry): PolicyMetrics {
  const labels = ['policy', 'policy_binding', 'error_type', 'enforcement_action'];
  const stability = 'BETA';
  const checks = registry.counter({
    name: 'apiserver_validating_admission_policy_check_total',
    help: 'Validation admission policy check total, labeled by policy and further identified by binding and enforcement action taken.',
    stability,
    labels,
  });
  const durations = registry.histogram({
    name: 'apiserver_validating_admission_policy_check_duration_seconds',
    help: 'Validation admission latency for individual validation expressions in seconds, labeled by policy and further including binding and enforcement action taken.',
    stability,
    labels,
    buckets,
  });
  return {
    conditions: conditionMetrics(registry),
    checked({ policy, binding, error, action, durationMs }) {
      checks.of(policy, binding, error, action).add(1);
      durations.of(policy, binding, error, action).observe(durationMs / 1000);
    },
  };
}
