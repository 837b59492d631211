import type { JsonObject } from '@wheelhouse/machinery';
import { at } from '../cells.ts';
import type { PodSpec } from '../gen/types/core/v1.ts';
import type { Stored } from '../stored.ts';

const counted = ['cpu', 'memory'];

/**
 * A pod's quality class: `Guaranteed` when every container limits both cpu and memory and requests
 * as much, `BestEffort` when none says anything of either, else `Burstable`. Amounts that a pod states
 * as a whole count in place of its containers'.
 */
export function qualityOfService(spec: Stored<PodSpec>): string {
  const containers =
    spec.resources === undefined
      ? [...(spec.containers ?? []), ...(spec.initContainers ?? [])]
      : [{ resources: spec.resources ?? {} }];
  const amount = (container: JsonObject, kind: 'limits' | 'requests', name: string) => {
    const value = at(container, 'resources', kind, name);
    return value === undefined || value === '0' ? undefined : value;
  };
  const any = containers.some((container) =>
    counted.some(
      (name) =>
        amount(container, 'limits', name) !== undefined ||
        amount(container, 'requests', name) !== undefined,
    ),
  );
  if (!any) return 'BestEffort';
  const guaranteed = containers.every((container) =>
    counted.every((name) => {
      const limit = amount(container, 'limits', name);
      return limit !== undefined && amount(container, 'requests', name) === limit;
    }),
  );
  return guaranteed ? 'Guaranteed' : 'Burstable';
}
