import {
  type JsonObject,
  type JsonValue,
  type ManagedFieldsEntry,
  objectsOf,
} from '@wheelhouse/machinery';
import { difference, emptySet, type FieldSet, hasPath, setOf, union } from './field-set.ts';
import {
  decodeFields,
  decodeManagedSteps,
  encodeFields,
  encodeManagedSteps,
  type Managed,
  noManaged,
} from './managed-fields.ts';
import { type FieldPath, fieldElement } from './path-element.ts';
import type { VersionedSet } from './updater.ts';

type Operation = 'Apply' | 'Update';

/**
 * The distinct names of the managers that own a path through an operation.
 * @param entries a `metadata.managedFields`; malformed entries own nothing
 */
export function ownersOf(
  entries: JsonValue | undefined,
  { operation, path }: { readonly operation: Operation; readonly path: FieldPath },
): readonly string[] {
  const owners = objectsOf(entries).filter(
    (entry) => entry['operation'] === operation && hasPath(readableFields(entry), path),
  );
  return [...new Set(owners.map(({ manager }) => String(manager ?? '')))];
}

/**
 * Transfers the fields of client-side apply's managers to an applier, as client-go does for an
 * upgrade to server-side apply, so that fields missing from the next apply are removed (SSA-9).
 * Takes a `metadata.managedFields` and returns the new one; undefined if nothing changes. Throws an
 * Error if an affected entry is malformed.
 */
export function upgradeOwners(
  entries: JsonValue | undefined,
  { from, to }: { readonly from: readonly string[]; readonly to: string },
): JsonObject[] | undefined {
  const original = objectsOf(entries);
  const upgraded = from.reduce((list, manager) => upgradeOwner(list, { manager, to }), original);
  return upgraded === original ? undefined : upgraded;
}

function upgradeOwner(
  entries: JsonObject[],
  { manager, to }: { readonly manager: string; readonly to: string },
): JsonObject[] {
  const isOld = (entry: JsonObject) => isOwner(entry, { manager, operation: 'Update' });
  const newest = entries.find(isOld);
  if (newest === undefined) return entries;
  const applier = entries.find((entry) => isOwner(entry, { manager: to, operation: 'Apply' }));
  const target = applier ?? newest;
  // Of updates in several versions, only those in the applier's version are transferred; the others
  // lose their owner.
  const oldInSameVersion = entries.find(
    (entry) => isOld(entry) && entry['apiVersion'] === target['apiVersion'],
  );
  const old =
    oldInSameVersion === undefined ? emptySet : decodeFields(oldInSameVersion['fieldsV1'] ?? {});
  const fieldsV1 = encodeFields(union(decodeFields(target['fieldsV1'] ?? {}), old));
  const merged: JsonObject = { ...target, manager: to, operation: 'Apply', fieldsV1 };
  return entries
    .map((entry) => (entry === target ? merged : entry))
    .filter((entry) => entry === merged || !isOld(entry));
}

function isOwner(
  entry: JsonObject,
  { manager, operation }: { readonly manager: string; readonly operation: Operation },
): boolean {
  return (
    entry['manager'] === manager &&
    entry['operation'] === operation &&
    (entry['subresource'] ?? '') === ''
  );
}

function readableFields(entry: JsonObject): FieldSet {
  try {
    return decodeFields(entry['fieldsV1'] ?? {});
  } catch {
    return emptySet;
  }
}

/** How the field `spec.replicas` of a Scale maps to a field in the versions of a kind (SSA-10). */
export interface ScaleMapping {
  /** apiVersion of the Scale objects: `autoscaling/v1`. */
  readonly scaleVersion: string;
  /** The object's version in which writes through the subresource are recorded. */
  readonly apiVersion: string;
  /**
   * Returns the dotted path in a version of the kind, such as `spec.replicas`; null if the version
   * has no scale, undefined if it does not exist.
   */
  readonly replicasPath: (apiVersion: string) => string | null | undefined;
}

const pathOf = (dotted: string): FieldPath => dotted.split('.').map(fieldElement);
const scaleReplicas = pathOf('spec.replicas');

type Entries = ManagedFieldsEntry[] | undefined;

/**
 * The managedFields of an object's Scale: only the owners of the replicas. In steps, because the
 * object may be large (TRUST-2). Throws an Error if an entry is malformed.
 */
export function* ownersForScale(entries: Entries, mapping: ScaleMapping): Generator<void, Entries> {
  const { managers, times } = yield* decodeManagedSteps(entries);
  const result = new Map<string, VersionedSet>();
  for (const [identity, owned] of managers) {
    const dotted = mapping.replicasPath(owned.apiVersion);
    if (typeof dotted !== 'string' || !hasPath(owned.set, pathOf(dotted))) continue;
    const set = setOf([scaleReplicas]);
    result.set(identity, { set, apiVersion: mapping.scaleVersion, applied: owned.applied });
  }
  return yield* asWritten({ managers: result, times }, noManaged);
}

/**
 * The managedFields of an object after a write to its Scale. Managers that no longer own the
 * replicas of the Scale lose them; those that do are recorded with the object's path. Throws like
 * `ownersForScale`.
 *
 * The identity of an updater includes its version, and in the Scale that is the Scale's version. So
 * its replicas move from its own entry to one with the same name and without a time, which the next
 * write of the object drops. kube-apiserver behaves in the same way.
 */
export function* ownersFromScale(
  entries: Entries,
  scaleEntries: Entries,
  mapping: ScaleMapping,
): Generator<void, Entries> {
  const parent = yield* decodeManagedSteps(entries);
  const scale = yield* decodeManagedSteps(scaleEntries);
  const result = new Map<string, VersionedSet>();
  const retained = new Set<string>();
  for (const [identity, owned] of parent.managers) {
    const dotted = mapping.replicasPath(owned.apiVersion);
    if (dotted === undefined) continue;
    const owns = dotted !== null && hasPath(owned.set, pathOf(dotted));
    if (!owns || scale.managers.has(identity)) {
      result.set(identity, owned);
      if (owns) retained.add(identity);
      continue;
    }
    const set = difference(owned.set, setOf([pathOf(dotted)]));
    if (set.size > 0) result.set(identity, { ...owned, set });
  }
  const dotted = mapping.replicasPath(mapping.apiVersion);
  for (const [identity, owned] of scale.managers) {
    if (retained.has(identity) || !dotted || !hasPath(owned.set, scaleReplicas)) continue;
    const set = setOf([pathOf(dotted)]);
    result.set(identity, { set, apiVersion: mapping.apiVersion, applied: owned.applied });
  }
  return yield* asWritten({ managers: result, times: parent.times }, parent);
}

/**
 * Encodes owners as a new list without cached owners, because these identities differ from those
 * that its entries decode to.
 * @param before the owners from which they were derived
 */
function* asWritten(managed: Managed, before: Managed): Generator<void, Entries> {
  const entries = yield* encodeManagedSteps(managed, before);
  return entries === undefined ? undefined : [...entries];
}
