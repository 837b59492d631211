import { isObject, type JsonValue, member } from '@wheelhouse/machinery';
import { directiveMember } from './strategic-directives.ts';
import { badType, itemIsNoMap, noMergeKey } from './strategic-error.ts';

/** What identifies an item: the item itself, or with a merge key that member of it. */
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

/** Parts a merged list into the items that are in a given list and the others. */
export function partition(
  merged: readonly JsonValue[],
  given: readonly JsonValue[],
  mergeKey: string,
): { readonly inGiven: JsonValue[]; readonly others: JsonValue[] } {
  const known = positions(given, mergeKey);
  const noMap = mergeKey === '' ? -1 : given.findIndex((item) => !isObject(item));
  const inGiven: JsonValue[] = [];
  const others: JsonValue[] = [];
  for (const item of merged) {
    const place = known.get(requiredIdentity(item, mergeKey));
    // Whoever looks for an item comes upon what is none first.
    if (noMap >= 0 && (place === undefined || place > noMap)) throw itemIsNoMap(noMap);
    if (place !== undefined) inGiven.push(item);
    else others.push(item);
  }
  if (noMap >= 0 && merged.length > 0) throw badType('map', given[noMap]);
  return { inGiven, others };
}

function requiredIdentity(item: JsonValue, mergeKey: string): JsonValue {
  if (mergeKey === '') return item;
  if (!isObject(item)) throw badType('map', item);
  const identity = member(item, mergeKey);
  if (identity === undefined) throw noMergeKey(item, mergeKey);
  return identity;
}

/**
 * The merged list in its order: items of the given list as that has them, the others as the object had
 * them. An item of the object comes before one of the given list when it did so in the object; with
 * the object `a b c` and the given `c a`, the result is `b c a`: `b` stood before `c`.
 */
export function inOrder(
  merged: readonly JsonValue[],
  given: readonly JsonValue[],
  options: { readonly live: readonly JsonValue[]; readonly mergeKey: string },
): JsonValue[] {
  const { live, mergeKey } = options;
  const { inGiven, others } = partition(merged, given, mergeKey);
  const before = positions(live, mergeKey);
  const left = sortBy(others, before, mergeKey);
  const right = sortBy(inGiven, positions(given, mergeKey), mergeKey);
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

/** Items that are deletions themselves, as a patch has them, go last. */
function sortBy(
  items: readonly JsonValue[],
  order: ReadonlyMap<JsonValue | undefined, number>,
  mergeKey: string,
): JsonValue[] {
  const at = (item: JsonValue) =>
    isDeletion(item) ? Number.MAX_SAFE_INTEGER : (order.get(identityOfItem(item, mergeKey)) ?? -1);
  return [...items].sort((one, other) => at(one) - at(other));
}

/** Whether an item of a patch says that the one of its key goes. */
export const isDeletion = (item: JsonValue): boolean =>
  isObject(item) && member(item, directiveMember) === 'delete';
