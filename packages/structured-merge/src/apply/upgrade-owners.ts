import { isObject, type JsonObject, type JsonValue } from '@wheelhouse/machinery';
import { emptySet, type FieldSet, hasPath, union } from './field-set.ts';
import { decodeFields, encodeFields } from './managed-fields.ts';
import type { FieldPath } from './path-element.ts';

type Operation = 'Apply' | 'Update';

/**
 * Names of the managers that own a path by an operation, each once.
 * @param entries a `metadata.managedFields`; entries that cannot be read own nothing
 */
export function ownersOf(
  entries: JsonValue | undefined,
  { operation, path }: { readonly operation: Operation; readonly path: FieldPath },
): readonly string[] {
  const owners = entriesOf(entries).filter(
    (entry) => entry['operation'] === operation && hasPath(readableFields(entry), path),
  );
  return [...new Set(owners.map(({ manager }) => String(manager ?? '')))];
}

/**
 * Gives an applier what managers of client-side applies own, as upstream's clients do when one goes
 * over to server-side apply: so that what it stops naming goes (SSA-9). Takes a
 * `metadata.managedFields`; returns the new one, undefined where nothing changes. Throws an Error for
 * an entry concerned that cannot be read.
 */
export function upgradeOwners(
  entries: JsonValue | undefined,
  { from, to }: { readonly from: readonly string[]; readonly to: string },
): JsonObject[] | undefined {
  const original = entriesOf(entries);
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
  // Of its updates in several versions those of the applier's count; the rest lose their owner.
  const same = entries.find((one) => isOld(one) && one['apiVersion'] === target['apiVersion']);
  const old = same === undefined ? emptySet : decodeFields(same['fieldsV1'] ?? {});
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

const entriesOf = (entries: JsonValue | undefined): JsonObject[] =>
  Array.isArray(entries) ? entries.filter(isObject) : [];

function readableFields(entry: JsonObject): FieldSet {
  try {
    return decodeFields(entry['fieldsV1'] ?? {});
  } catch {
    return emptySet;
  }
}
