import { type Clock, createMetricRegistry, type MetricRegistry } from '@wheelhouse/machinery';
import { addStartTime } from '../process/process-metrics.ts';
import type { HealthEndpoint } from './health.ts';
import { apiRelease } from './version.ts';

/** What became of checks of health, in a registry of its own (OPS-1). */
export interface HealthMetrics {
  readonly registry: MetricRegistry;
  checked(check: {
    readonly name: string;
    readonly endpoint: HealthEndpoint;
    readonly result: 'success' | 'error';
  }): void;
}

/** Shown at `/metrics/slis`, to be asked for more often than all the rest. */
export function createHealthMetrics(clock: Clock): HealthMetrics {
  const release = `${apiRelease.major}.${apiRelease.minor}`;
  const registry = createMetricRegistry({ release, hidden: 'hidden' });
  const last = registry.gauge({
    name: 'kubernetes_healthcheck',
    help: 'Whether a check of health succeeded when it was last made.',
    stability: 'STABLE',
    labels: ['name', 'type'],
  });
  const total = registry.counter({
    name: 'kubernetes_healthchecks_total',
    help: 'Checks of health, by how they ended.',
    stability: 'STABLE',
    labels: ['name', 'type', 'status'],
  });
  addStartTime(registry, clock);
  return {
    registry,
    checked({ name, endpoint, result }) {
      last.of(name, endpoint).set(result === 'success' ? 1 : 0);
      total.of(name, endpoint, result).add(1);
    },
  };
}
