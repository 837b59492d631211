import type { Histogram, MetricRegistry } from '@wheelhouse/machinery';
import { slowBuckets } from './request-series.ts';

const directives: ReadonlySet<string> = new Set(['Ignore', 'Warn', 'Strict']);

/**
 * Measures writes by what their `fieldValidation` says (OPS-1). The reference has these series, and
 * never observes anything in them.
 */
export function fieldValidationMetrics(
  registry: MetricRegistry,
): (query: URLSearchParams, tookMs: number) => void {
  const family = registry.histogram({
    name: 'field_validation_request_duration_seconds',
    help: 'Response latency distribution in seconds of writes for each field validation value.',
    stability: 'ALPHA',
    labels: ['field_validation'],
    buckets: slowBuckets,
  });
  const silent = family.of('');
  const seriesOf = (query: URLSearchParams): Histogram => {
    const given = query.size === 0 ? null : query.get('fieldValidation');
    if (given === null || given === '') return silent;
    return family.of(directives.has(given) ? given : 'invalid');
  };
  return (query, tookMs) => seriesOf(query).observe(tookMs / 1000);
}
