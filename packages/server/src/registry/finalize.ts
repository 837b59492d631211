import type { Strategy } from '@wheelhouse/kinds';
import type { ApiObject } from '@wheelhouse/machinery';
import type { WriteResult } from '@wheelhouse/store';
import type { Entry } from '../watchcache/contract.ts';
import type { Target } from './contract.ts';
import { decodeEntry } from './object-codec.ts';
import { type Registry, storing } from './registry.ts';

/** Marked for deletion, no grace left and nothing that holds it: to be removed (DEL-1). */
export function isFinalized(strategy: Strategy, object: ApiObject): boolean {
  const { metadata } = object;
  return (
    metadata.deletionTimestamp !== undefined &&
    (metadata.deletionGracePeriodSeconds ?? 0) === 0 &&
    (metadata.finalizers ?? []).length === 0 &&
    (strategy.mayRemove?.(object) ?? true)
  );
}

/** Removes the object at the revision read. */
export async function removeFinalized(
  registry: Registry,
  options: { target: Target; current: Entry },
): Promise<WriteResult> {
  const { target, current } = options;
  const { def } = target;
  const key = def.storage.prefix + current.key;
  const result = await storing(() => registry.store.delete({ key, expect: current.revision }));
  const { afterRemoval } = def.strategy;
  if (result.ok && afterRemoval !== undefined) await afterRemoval(decodeEntry(current));
  return result;
}
