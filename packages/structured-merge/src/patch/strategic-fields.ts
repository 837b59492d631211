import {
  goPlain,
  goText,
  goTypeName,
  isObject,
  type JsonValue,
  member,
} from '@wheelhouse/machinery';
import { resolved, type Schema } from '@wheelhouse/schema';

/**
 * Why a strategic merge patch failed: it is malformed (400), cannot be applied (422), or does not
 * match the object (a 500 in kube-apiserver).
 */
type StrategicFailure = 'format' | 'unprocessable' | 'mismatch';

/** A strategic merge patch that cannot be applied. The message is kube-apiserver's. */
export class StrategicMergeError extends Error {
  readonly kind: StrategicFailure;

  constructor(kind: StrategicFailure, message: string) {
    super(message);
    this.name = 'StrategicMergeError';
    this.kind = kind;
  }
}

const mismatch = (message: string) => new StrategicMergeError('mismatch', message);

/**
 * The error for a directive that begins like `$deleteFromPrimitiveList` but names no field (400).
 */
export const badPrimitiveList = () =>
  new StrategicMergeError('format', 'invalid patch format of primitive list');
/** The error for `$retainKeys` that is no list, or omits a member of the patch (400). */
export const badRetainKeys = () =>
  new StrategicMergeError('format', 'invalid patch format of retainKeys');
/** The error for `$setElementOrder` that names no field or differs between merged patches (400). */
export const badElementOrder = () =>
  new StrategicMergeError('format', 'invalid patch format of setElementOrder list');
/** The error for a merged list whose first item is a list (422). */
export const listOfLists = () =>
  new StrategicMergeError('unprocessable', 'lists of lists are not supported');

const typeText = (value: JsonValue | undefined) =>
  value === null || value === undefined ? goText(null) : goTypeName(value);

const noMergeKey = (item: JsonValue, key: string) =>
  mismatch(`map: ${goPlain(item)} does not contain declared merge key: ${key}`);
/** The error for a value of another type where the merge needs a list or a map. */
export const badType = (expected: '[]' | 'map', actual: JsonValue | undefined) => {
  const expectedType = expected === '[]' ? '[]interface {}' : 'map[string]interface {}';
  return mismatch(`expected a ${expectedType}, but received a ${typeText(actual)}`);
};
/**
 * The error for a `$patch` that is not a directive where it stands; `item` is the rest of the map.
 */
export const badDirective = (directive: JsonValue, item: JsonValue) =>
  mismatch(`unknown patch type: ${goText(directive)} in map: ${goPlain(item)}`);
/** The error for `$patch: merge` in an item of a list, where kube-apiserver does not support it. */
export const mergeDirectiveInList = () =>
  mismatch('merging lists cannot yet be specified in the patch');
/** The error for a merged list of maps whose field declares no merge key. */
export const noKeyDeclared = (typeKind: string) =>
  mismatch(`cannot merge lists without merge key for ${typeKind}`);
/** The error for lists with items of several types; the message contains all lists. */
export const mixedItems = (lists: readonly JsonValue[]) =>
  mismatch(`list element types are not identical: ${goPlain([...lists])}`);
/** The error where the type of items decides, but the lists are empty. */
export const noItems = () => mismatch('no elements in any of the given slices');
/** The error for an item of a list merged by key that is no map; `index` counts from 0. */
export const itemIsNoMap = (index: number) => mismatch(`value for key ${index} is not a map`);
/** The error for items of a patch in another order than its `$setElementOrder` states. */
export const orderDiffers = (patch: JsonValue, order: JsonValue) =>
  mismatch(
    `The order in patch list:\n${goPlain(patch)}\n doesn't match $setElementOrder list:\n${goPlain(order)}\n`,
  );
const noSuchField = (typeName: string, field: string) =>
  mismatch(
    `unable to find api field in struct ${typeName} for the json field ${JSON.stringify(field)}`,
  );
const notAStruct = (typeKind: string) =>
  mismatch(`merging an object in json but data type is not struct, instead is: ${typeKind}`);
const notAList = (typeKind: string) =>
  mismatch(`expected slice or array type, but got: ${typeKind}`);
/** The error for two patches to be merged whose `$retainKeys` differ. */
export const retainKeysDiffer = (left: JsonValue, right: JsonValue) =>
  mismatch(
    `${goPlain(left)} and ${goPlain(right)} are not deep equal: ` +
      'this may happen when calculating the 3-way diff patch',
  );
/** The error for versions of an object that have a `$patch` that is no text. */
export const badDirectiveValue = () => mismatch('invalid value for special key: $patch');
const badStrategies = (strategies: readonly string[]) =>
  mismatch(`unexpected patch strategy: [${strategies.join(' ')}]`);

/** Directive in an object or list item: `replace` or `delete`. */
export const directiveMember = '$patch';
/** Directive in an object: the names of all members to retain. */
export const retainKeysMember = '$retainKeys';
/** `$deleteFromPrimitiveList/finalizers`: scalars to remove from a list. */
export const deleteListPrefix = '$deleteFromPrimitiveList';
/** `$setElementOrder/containers`: the order of a list, with objects reduced to their merge keys. */
export const elementOrderPrefix = '$setElementOrder';

/** How patches merge a field. */
export interface FieldMerging {
  /** Schema of the field. */
  readonly schema: Schema;
  /** Undefined for the default, which merges objects and replaces lists. */
  readonly strategy: 'merge' | 'replace' | undefined;
  /** Merge key of a merged list of objects; empty if there is none. */
  readonly mergeKey: string;
  /** Whether patches of the object list all members to retain. */
  readonly retains: boolean;
}

/** Go's reflect.Kind of a schema's type, for messages. */
export function goKindOf(schema: Schema): string {
  const at = resolved(schema);
  if (at.type === 'array') return 'slice';
  if (at.properties !== undefined) return 'struct';
  if (at.type === 'object') return 'map';
  if (at.type === 'integer') return at.format === 'int64' ? 'int64' : 'int32';
  if (at.type === 'boolean') return 'bool';
  if (at.type === 'number') return 'float64';
  return at.type === 'string' ? 'string' : 'struct';
}

/**
 * Looks up a field by its JSON name, ignoring case if there is no exact match. Throws if it does
 * not exist.
 */
export function mergingOf(schema: Schema, name: string): FieldMerging {
  const at = resolved(schema);
  const { properties, typeName = 'runtime.RawExtension' } = at;
  const kind = goKindOf(at);
  if (properties === undefined && kind !== 'struct') throw notAStruct(kind);
  const property = properties?.get(name) ?? byFoldedName(properties ?? new Map(), name);
  if (property === undefined) throw noSuchField(typeName.split('.').at(-1) ?? '', name);
  const field = resolved(property.schema);
  return {
    schema: field,
    strategy: strategyOf(field.patchStrategies ?? []),
    mergeKey: field.patchMergeKey ?? '',
    retains: field.patchStrategies?.includes('retainKeys') === true,
  };
}

function byFoldedName(properties: NonNullable<Schema['properties']>, name: string) {
  const folded = name.toLowerCase();
  for (const [fieldName, property] of properties) {
    if (fieldName.toLowerCase() === folded) return property;
  }
  return undefined;
}

/** Like `mergingOf` for a list; returns the schema of its items. */
export function listMergingOf(schema: Schema, name: string): FieldMerging {
  const merging = mergingOf(schema, name);
  const { items } = merging.schema;
  if (merging.schema.type !== 'array' || items === undefined) throw notAList(goKindOf(schema));
  return { ...merging, schema: resolved(items) };
}

function strategyOf(strategies: readonly string[]): FieldMerging['strategy'] {
  const others = strategies.filter((strategy) => strategy !== 'retainKeys');
  if (strategies.length > 2 || others.length > 1) throw badStrategies(strategies);
  const [strategy] = others;
  return strategy === 'merge' || strategy === 'replace' ? strategy : undefined;
}

/** The identity of an item: its merge key, or the item itself if there is no merge key. */
export function identityOfItem(
  item: JsonValue | undefined,
  mergeKey: string,
): JsonValue | undefined {
  if (mergeKey === '') return item;
  return isObject(item) ? member(item, mergeKey) : undefined;
}

/** The first position of each item, by identity. */
export function positions(list: readonly JsonValue[], mergeKey: string) {
  const byIdentity = new Map<JsonValue | undefined, number>();
  for (const [index, item] of list.entries()) {
    const identity = identityOfItem(item, mergeKey);
    if (!byIdentity.has(identity)) byIdentity.set(identity, index);
  }
  return byIdentity;
}

/** Splits a merged list into the items in `order` and the others. */
function partition(
  merged: readonly JsonValue[],
  order: readonly JsonValue[],
  mergeKey: string,
): { readonly ordered: JsonValue[]; readonly others: JsonValue[] } {
  const positionsInOrder = positions(order, mergeKey);
  const firstNonMap = mergeKey === '' ? -1 : order.findIndex((item) => !isObject(item));
  const ordered: JsonValue[] = [];
  const others: JsonValue[] = [];
  for (const item of merged) {
    const place = positionsInOrder.get(requiredIdentity(item, mergeKey));
    // kube-apiserver's search for an item fails if an earlier item is not a map.
    if (firstNonMap >= 0 && (place === undefined || place > firstNonMap)) {
      throw itemIsNoMap(firstNonMap);
    }
    if (place !== undefined) ordered.push(item);
    else others.push(item);
  }
  for (const item of order) requiredIdentity(item, mergeKey);
  return { ordered, others };
}

/** The merge key of an item. Throws StrategicMergeError if the item has none. */
export function requiredKey(item: JsonValue | undefined, mergeKey: string): JsonValue {
  if (!isObject(item)) throw badType('map', item);
  const key = member(item, mergeKey);
  if (key === undefined) throw noMergeKey(item, mergeKey);
  return key;
}

/** The identity of an item. Throws StrategicMergeError if the item lacks the merge key. */
export const requiredIdentity = (item: JsonValue, mergeKey: string): JsonValue =>
  mergeKey === '' ? item : requiredKey(item, mergeKey);

/**
 * Sorts a merged list: items in `order` keep that order, the others keep the order of the object.
 * An item of the object precedes one of `order` if it did so in the object: with the object `a b c`
 * and the order `c a`, the result is `b c a`, because `b` preceded `c`.
 */
export function inOrder(
  merged: readonly JsonValue[],
  order: readonly JsonValue[],
  options: { readonly live: readonly JsonValue[]; readonly mergeKey: string },
): JsonValue[] {
  const { live, mergeKey } = options;
  const { ordered, others } = partition(merged, order, mergeKey);
  const before = positions(live, mergeKey);
  const left = sortBy(others, before, mergeKey);
  const right = sortBy(ordered, positions(order, mergeKey), mergeKey);
  const sorted: JsonValue[] = [];
  let leftAt = 0;
  let rightAt = 0;
  while (leftAt < left.length && rightAt < right.length) {
    const leftPlace = before.get(identityOfItem(left[leftAt], mergeKey));
    const rightPlace = before.get(identityOfItem(right[rightAt], mergeKey));
    if (leftPlace !== undefined && rightPlace !== undefined && leftPlace < rightPlace) {
      sorted.push(left[leftAt++]!);
    } else sorted.push(right[rightAt++]!);
  }
  return [...sorted, ...left.slice(leftAt), ...right.slice(rightAt)];
}

/** Number of items up to which a list with unknown items is sorted like in kube-apiserver. */
const shortListMax = 20;

/** Sorts items by position, and deletions last. Unknown items have no fixed place. */
function sortBy(
  items: readonly JsonValue[],
  order: ReadonlyMap<JsonValue | undefined, number>,
  mergeKey: string,
): JsonValue[] {
  const at = (item: JsonValue) => order.get(identityOfItem(item, mergeKey)) ?? -1;
  const deletions = items.filter(isDeletion);
  const others = items.filter((item) => !isDeletion(item));
  const isShort = others.length <= shortListMax && others.some((item) => at(item) < 0);
  const sorted = isShort
    ? insertionSorted(others, at)
    : others.sort((left, right) => at(left) - at(right));
  return [...sorted, ...deletions];
}

/**
 * Insertion sort, as in Go's sort of a short list. An item moves ahead of every other if either is
 * unknown, whose position is negative; this comparison of kube-apiserver is not an order.
 */
function insertionSorted(items: readonly JsonValue[], at: (item: JsonValue) => number) {
  const sorted: JsonValue[] = [];
  for (const item of items) {
    const place = at(item);
    let index = sorted.length;
    for (; index > 0; index -= 1) {
      const before = at(sorted[index - 1] ?? null);
      if (place >= 0 && before >= 0 && before <= place) break;
    }
    sorted.splice(index, 0, item);
  }
  return sorted;
}

/** Whether an item of a patch deletes the item with its key. */
export const isDeletion = (item: JsonValue): boolean =>
  isObject(item) && member(item, directiveMember) === 'delete';
