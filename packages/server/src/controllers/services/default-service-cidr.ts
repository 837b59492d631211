import { cidrsOf, objectsAt, type ResourceDef } from '@wheelhouse/kinds';
import { type Dialect, jsonEqual } from '@wheelhouse/machinery';
import { decodeEntry } from '../../registry/object-codec.ts';
import type { ControllerTools } from '../tools.ts';
import { type Controller, createWorkQueue, runningQueue } from '../work-queue.ts';
import { readyCondition } from './service-addresses.ts';

/**
 * Maintains the ServiceCIDR of the ranges from the command line: creates it if absent, and marks it
 * ready unless it has a Ready condition. A ServiceCIDR with other ranges is not changed.
 */
export function startDefaultServiceCidr(
  options: ControllerTools & {
    readonly ranges: ResourceDef;
    readonly cidrs: readonly string[];
    readonly dialect: Dialect;
  },
): Controller & { readonly first: Promise<void> } {
  const { ranges, cidrs, caches, writer, dialect, clock } = options;
  const name = dialect.productName;
  const cache = caches.of(ranges);
  const at = { def: ranges, namespace: '', name };
  const apiVersion = ranges.storage.apiVersion;
  const kind = 'ServiceCIDR';
  const sync = async (): Promise<void> => {
    if ((await cache.get(name, undefined)) === undefined) {
      await writer.create(at, {
        apiVersion,
        kind,
        metadata: { name },
        spec: { cidrs: [...cidrs] },
      });
    }
    const entry = await cache.get(name, undefined);
    if (entry === undefined || entry.index.deleting === true) return;
    const range = decodeEntry(entry);
    if (objectsAt(range, 'status', 'conditions').some(({ type }) => type === 'Ready')) return;
    if (!jsonEqual([...cidrsOf(range)], [...cidrs])) return;
    const message = 'Kubernetes default Service CIDR is ready';
    const conditions = [readyCondition({ status: 'True', message, nowMs: clock.now() })];
    const status = { conditions };
    await writer.apply(
      { ...at, subresource: 'status' },
      { apiVersion, kind, metadata: { name }, status },
    );
  };
  const queue = createWorkQueue({
    ...options,
    name: `${name}-service-cidr-controller`,
    run: sync,
    workers: 1,
  });
  const subscription = cache.subscribe(({ previous, current }) => {
    if ((current ?? previous)?.key === name) queue.add(name);
  });
  const first = sync();
  return {
    first,
    close: runningQueue(queue, subscription, () => first.catch(() => {})).close,
  };
}
