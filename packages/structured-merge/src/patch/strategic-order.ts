import { isObject, type JsonValue, member } from '@wheelhouse/machinery';
import { badType, directiveMember, itemIsNoMap, noMergeKey } from './strategic-fields.ts';

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
