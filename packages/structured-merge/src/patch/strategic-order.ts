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

/** First position of each item. */
export function positions(list: readonly JsonValue[], mergeKey: string) {
  const found = new Map<JsonValue | undefined, number>();
  for (const [index, item] of list.entries()) {
    const identity = identityOfItem(item, mergeKey);
    if (!found.has(identity)) found.set(identity, index);
  }
  return found;
}

/** Splits a merged list into the items in `order` and the others. */
export function partition(
  merged: readonly JsonValue[],
  order: readonly JsonValue[],
  mergeKey: string,
): { readonly ordered: JsonValue[]; readonly others: JsonValue[] } {
  const positionsInOrder = positions(order, mergeKey);
  const noMap = mergeKey === '' ? -1 : order.findIndex((item) => !isObject(item));
  const ordered: JsonValue[] = [];
  const others: JsonValue[] = [];
  for (const item of merged) {
    const place = positionsInOrder.get(requiredIdentity(item, mergeKey));
    // kube-apiserver's search for an item fails if an earlier item is not a map.
    if (noMap >= 0 && (place === undefined || place > noMap)) throw itemIsNoMap(noMap);
    if (place !== undefined) ordered.push(item);
    else others.push(item);
  }
  if (noMap >= 0 && merged.length > 0) throw badType('map', order[noMap]);
  return { ordered, others };
}

function requiredIdentity(item: JsonValue, mergeKey: string): JsonValue {
  if (mergeKey === '') return item;
  if (!isObject(item)) throw badType('map', item);
  const identity = member(item, mergeKey);
  if (identity === undefined) throw noMergeKey(item, mergeKey);
  return identity;
}

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
  const out: JsonValue[] = [];
  let leftAt = 0;
  let rightAt = 0;
  while (leftAt < left.length && rightAt < right.length) {
    const one = before.get(identityOfItem(left[leftAt], mergeKey));
    const other = before.get(identityOfItem(right[rightAt], mergeKey));
    if (one !== undefined && other !== undefined && one < other) out.push(left[leftAt++]!);
    else out.push(right[rightAt++]!);
  }
  return [...out, ...left.slice(leftAt), ...right.slice(rightAt)];
}

/** Moves deletions to the end. */
function sortBy(
  items: readonly JsonValue[],
  order: ReadonlyMap<JsonValue | undefined, number>,
  mergeKey: string,
): JsonValue[] {
  const at = (item: JsonValue) =>
    isDeletion(item) ? Number.MAX_SAFE_INTEGER : (order.get(identityOfItem(item, mergeKey)) ?? -1);
  return [...items].sort((one, other) => at(one) - at(other));
}

/** Whether an item of a patch deletes the item with its key. */
export const isDeletion = (item: JsonValue): boolean =>
  isObject(item) && member(item, directiveMember) === 'delete';
