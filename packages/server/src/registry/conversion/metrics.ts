import type { MetricRegistry } from '@wheelhouse/machinery';

/** Types of failures, as labeled in kube-apiserver's metrics. */
export type ConversionFault =
  | 'conversion_webhook_call_failure'
  | 'conversion_webhook_malformed_response_failure'
  | 'conversion_webhook_partial_response_failure'
  | 'conversion_webhook_invalid_converted_object_failure';

/** One conversion by a webhook. */
export interface MeasuredConversion {
  readonly crdName: string;
  /** Versions without the group. */
  readonly fromVersion: string;
  readonly toVersion: string;
  readonly durationMs: number;
  /** Absent after a success. */
  readonly fault?: ConversionFault;
}

/** Counts conversions. */
export type ConversionMetrics = (conversion: MeasuredConversion) => void;

const requestBuckets = [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 45, 60];
const kindBuckets = Array.from({ length: 15 }, (_, step) => 0.001 * 2 ** step);

/** Registers the metrics of conversions; call it once per registry. */
export function conversionMetrics(registry: MetricRegistry): ConversionMetrics {
  const labels = ['result', 'failure_type'];
  const requests = registry.counter({
    name: 'apiserver_conversion_webhook_request_total',
    help: 'Counter for conversion webhook requests with success/failure and failure error type',
    stability: 'ALPHA',
    labels,
  });
  const durations = registry.histogram({
    name: 'apiserver_conversion_webhook_duration_seconds',
    help: 'Conversion webhook request latency',
    stability: 'ALPHA',
    labels,
    buckets: requestBuckets,
  });
  const byKind = registry.histogram({
    name: 'apiserver_crd_conversion_webhook_duration_seconds',
    help: 'CRD webhook conversion duration in seconds',
    stability: 'ALPHA',
    labels: ['crd_name', 'from_version', 'to_version', 'succeeded'],
    buckets: kindBuckets,
  });
  return ({ crdName, fromVersion, toVersion, durationMs, fault }) => {
    const seconds = durationMs / 1000;
    const outcome = [fault === undefined ? 'success' : 'failure', fault ?? ''] as const;
    requests.of(...outcome).add(1);
    durations.of(...outcome).observe(seconds);
    const succeeded = String(fault === undefined);
    byKind.of(crdName, fromVersion, toVersion, succeeded).observe(seconds);
  };
}
