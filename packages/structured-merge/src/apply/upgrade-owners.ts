import { type JsonObject, type JsonValue, objectsOf } from '@wheelhouse/machinery';
import { emptySet, type FieldSet, hasPath, union } from './field-set.ts';
import { decodeFields, encodeFields } from './managed-fields.ts';
import type { FieldPath } from './path-element.ts';

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
