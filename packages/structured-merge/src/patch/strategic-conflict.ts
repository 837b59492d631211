import {
  compareText,
  goPlain,
  isObject,
  type JsonObject,
  type JsonValue,
  jsonEqual,
  member,
} from '@wheelhouse/machinery';
import type { Schema } from '@wheelhouse/schema';
import {
  badType,
  directiveMember,
  type FieldMerging,
  listMergingOf,
  mergingOf,
  retainKeysMember,
} from './strategic-fields.ts';
import { itemKind } from './strategic-merge.ts';
import { requiredKey } from './strategic-order.ts';

/**
 * Whether two strategic merge patches of one type conflict by setting a field differently. Merged
 * lists of scalars never conflict. Throws StrategicMergeError if the patches cannot be compared.
 */
export function patchesConflict(schema: Schema, left: JsonObject, right: JsonObject): boolean {
  return Object.entries(left).some(([name, value]) => {
    const otherValue = member(right, name);
    if (name === directiveMember || name === retainKeysMember) return false;
    if (value === undefined || otherValue === undefined) return false;
    if (Array.isArray(value)) {
      const field = listMergingOf(schema, name);
      return !Array.isArray(otherValue) || listsConflict(field, value, otherValue);
    }
    if (!isObject(value)) return !jsonEqual(value, otherValue);
    const field = mergingOf(schema, name);
    return !isObject(otherValue) || objectsConflict(field, value, otherValue);
  });
}

function objectsConflict(
  { schema, strategy }: Pick<FieldMerging, 'schema' | 'strategy'>,
  left: JsonObject,
  right: JsonObject,
): boolean {
  // A directive concerns the whole object.
  if (member(left, directiveMember) !== member(right, directiveMember)) return true;
  return strategy !== 'replace' && patchesConflict(schema, left, right);
}

function listsConflict(
  field: FieldMerging,
  left: readonly JsonValue[],
  right: readonly JsonValue[],
): boolean {
  const kind = itemKind([left, right]);
  if (field.strategy === 'merge') return kind === 'map' && itemsConflict(field, left, right);
  if (left.length !== right.length) return true;
  if (kind !== 'map') return !jsonEqual(sortedScalars(left), sortedScalars(right));
  const { schema } = field;
  return left.some((item, at) => {
    const otherItem = right[at];
    if (!isObject(item) || !isObject(otherItem)) return true;
    return objectsConflict({ schema, strategy: undefined }, item, otherItem);
  });
}

/** Compares two merged lists of objects by merge key. */
function itemsConflict(
  { schema, mergeKey }: FieldMerging,
  left: readonly JsonValue[],
  right: readonly JsonValue[],
): boolean {
  const otherItems = byKey(right, mergeKey);
  return [...byKey(left, mergeKey)].some(([key, item]) => {
    const otherItem = otherItems.get(key);
    if (otherItem === undefined) return false;
    return objectsConflict({ schema, strategy: undefined }, item, otherItem);
  });
}

function byKey(items: readonly JsonValue[], mergeKey: string): ReadonlyMap<string, JsonObject> {
  const itemsByKey = new Map<string, JsonObject>();
  for (const item of items) {
    if (!isObject(item)) throw badType('map', item);
    itemsByKey.set(goPlain(requiredKey(item, mergeKey)), item);
  }
  return itemsByKey;
}

function sortedScalars(items: readonly JsonValue[]): JsonValue[] {
  return [...new Set(items)].sort((left, right) => compareText(goPlain(left), goPlain(right)));
}
