import { availableCondition, type ResourceDef } from '@wheelhouse/kinds';
import { type Counter, type Family, isObject } from '@wheelhouse/machinery';
import type { CachePool } from '../../registry/cache-pool.ts';
import { decodeEntry } from '../../registry/object-codec.ts';
import type { Entry } from '../../watchcache/contract.ts';
import type { Metrics } from '../process/metrics.ts';

/**
 * Shows which APIServices are not available, and gives the counter of those that have become so, by
 * name and reason.
 */
export function countUnavailable(
  metrics: Pick<Metrics, 'registry' | 'lookAt'>,
  of: { readonly caches: CachePool; readonly apiServices: ResourceDef },
): Family<Counter> {
  const { registry } = metrics;
  const stability = 'ALPHA';
  const unavailable = registry.gauge({
    name: 'aggregator_unavailable_apiservice',
    help: 'Gauge of APIServices which are marked as unavailable broken down by APIService name.',
    stability,
    labels: ['name'],
  });
  const availability = new WeakMap<Entry, boolean>();
  metrics.lookAt(async () => {
    const list = await of.caches.of(of.apiServices).list({
      namespace: '',
      resourceVersion: '0',
      resourceVersionMatch: undefined,
      limit: undefined,
      continueToken: undefined,
      filter: undefined,
    });
    unavailable.clear();
    for (const entry of list.entries()) {
      const isThere = availability.get(entry) ?? isAvailable(entry);
      availability.set(entry, isThere);
      unavailable.of(entry.index.name).set(isThere ? 0 : 1);
    }
  });
  return registry.counter({
    name: 'aggregator_unavailable_apiservice_total',
    help: 'Counter of APIServices which are marked as unavailable broken down by APIService name and reason.',
    stability,
    labels: ['name', 'reason'],
  });
}

function isAvailable(entry: Entry): boolean {
  const { status } = decodeEntry(entry);
  const conditions = isObject(status) ? status['conditions'] : undefined;
  if (!Array.isArray(conditions)) return false;
  return conditions.some(
    (one) => isObject(one) && one['type'] === availableCondition && one['status'] === 'True',
  );
}
