import type { ManagedFieldsEntry } from '@wheelhouse/machinery';
import { difference, hasPath, setOf } from './field-set.ts';
import { decodeManaged, encodeManaged, type Managed } from './managed-fields.ts';
import { type FieldPath, fieldElement } from './path-element.ts';
import type { VersionedSet } from './updater.ts';

/** Where the versions of a kind keep what its scale sub-resource calls `spec.replicas` (SSA-10). */
export interface ScaleMapping {
  /** apiVersion of the Scale objects: `autoscaling/v1`. */
  readonly scaleVersion: string;
  /** The object's version a write through the sub-resource counts in. */
  readonly apiVersion: string;
  /**
   * Dotted path per apiVersion of the kind: `spec.replicas`. Null: that version has no scale;
   * undefined: the kind has no such version.
   */
  readonly replicasPath: (apiVersion: string) => string | null | undefined;
}

const pathOf = (dotted: string): FieldPath => dotted.split('.').map(fieldElement);
const scaleReplicas = pathOf('spec.replicas');

/**
 * The owners of an object as its Scale shows them: only who owns the replicas. Throws an Error when
 * an entry cannot be read.
 */
export function ownersForScale(
  entries: readonly ManagedFieldsEntry[] | undefined,
  mapping: ScaleMapping,
): ManagedFieldsEntry[] | undefined {
  const { managers, times } = decodeManaged(entries === undefined ? undefined : [...entries]);
  const result = new Map<string, VersionedSet>();
  for (const [identity, owned] of managers) {
    const dotted = mapping.replicasPath(owned.apiVersion);
    if (typeof dotted !== 'string' || !hasPath(owned.set, pathOf(dotted))) continue;
    const set = setOf([scaleReplicas]);
    result.set(identity, { set, apiVersion: mapping.scaleVersion, applied: owned.applied });
  }
  return asWritten({ managers: result, times });
}

/**
 * The owners of an object after a write to its Scale: who no longer owns the replicas there loses
 * them, who owns them there is recorded with the object's own path. Throws as `ownersForScale`.
 *
 * An updater is one by its version too, and known there by the Scale's: its replicas go from its own
 * entry into one of the same name without a time, which the next write of the object drops, as upstream.
 */
export function ownersFromScale(
  entries: readonly ManagedFieldsEntry[] | undefined,
  scaleEntries: readonly ManagedFieldsEntry[] | undefined,
  mapping: ScaleMapping,
): ManagedFieldsEntry[] | undefined {
  const parent = decodeManaged(entries === undefined ? undefined : [...entries]);
  const scale = decodeManaged(scaleEntries === undefined ? undefined : [...scaleEntries]);
  const result = new Map<string, VersionedSet>();
  const kept = new Set<string>();
  for (const [identity, owned] of parent.managers) {
    const dotted = mapping.replicasPath(owned.apiVersion);
    if (dotted === undefined) continue;
    const owns = dotted !== null && hasPath(owned.set, pathOf(dotted));
    if (!owns || scale.managers.has(identity)) {
      result.set(identity, owned);
      if (owns) kept.add(identity);
      continue;
    }
    const set = difference(owned.set, setOf([pathOf(dotted)]));
    if (set.size > 0) result.set(identity, { ...owned, set });
  }
  const dotted = mapping.replicasPath(mapping.apiVersion);
  for (const [identity, owned] of scale.managers) {
    if (kept.has(identity) || !dotted || !hasPath(owned.set, scaleReplicas)) continue;
    const set = setOf([pathOf(dotted)]);
    result.set(identity, { set, apiVersion: mapping.apiVersion, applied: owned.applied });
  }
  return asWritten({ managers: result, times: parent.times });
}

/** A list that says no more than what is written in it: identities here are not those of its entries. */
function asWritten(managed: Managed): ManagedFieldsEntry[] | undefined {
  const entries = encodeManaged(managed);
  return entries === undefined ? undefined : [...entries];
}
