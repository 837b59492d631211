/**
 * Appends any number of items to a list. A spread argument (`target.push(...items)`) puts them on
 * the stack, which overflows at about 120,000 items (TRUST-1).
 */
export function appendAll<Item>(target: Item[], items: Iterable<Item>): void {
  for (const item of items) target.push(item);
}

/**
 * Returns the item at an index that must exist. Hot loops should iterate instead: this function
 * serves lists of all types, so the engine cannot specialize its access.
 * @throws RangeError if the list has no such item, which is a bug in the caller
 */
export function itemAt<Item>(items: ArrayLike<Item>, index: number): Item {
  const item = items[index];
  if (item === undefined)
    throw new RangeError(`index ${index} is outside a list of ${items.length} items`);
  return item;
}

/**
 * Returns for each value whether it equals an earlier one, in linear time.
 * @param values compared as the keys of a Map are
 */
export function repeats(values: readonly unknown[]): readonly boolean[] {
  const seen = new Set<unknown>();
  return values.map((value) => {
    if (seen.has(value)) return true;
    seen.add(value);
    return false;
  });
}

/** Returns the first item with each name. */
export function firstByName<Item>(
  items: readonly Item[],
  nameOf: (item: Item) => string,
): ReadonlyMap<string, Item> {
  const itemByName = new Map<string, Item>();
  for (const item of items) {
    const name = nameOf(item);
    if (!itemByName.has(name)) itemByName.set(name, item);
  }
  return itemByName;
}

/**
 * Returns the first index from `from` to before `to` for which `isBefore` is false, by bisection;
 * `to` if there is none. The indexes for which it is true must precede all others.
 */
export function firstIndex(
  { from = 0, to }: { readonly from?: number; readonly to: number },
  isBefore: (index: number) => boolean,
): number {
  let low = from;
  let high = to;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (isBefore(middle)) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Returns the largest number. Unlike `Math.max(...)`, accepts any number of them. */
export function largest(first: number, others: Iterable<number>): number {
  let best = first;
  for (const number of others) if (number > best) best = number;
  return best;
}

/** Returns the smallest number. Unlike `Math.min(...)`, accepts any number of them. */
export function smallest(first: number, others: Iterable<number>): number {
  let best = first;
  for (const number of others) if (number < best) best = number;
  return best;
}

/** Number of items that are sorted or merged in one step. */
const runLength = 250;

/**
 * Returns a sorted copy of a long list, produced in steps by a stable merge sort (TRUST-2) of
 * n log n comparisons, which may throw.
 * @param isStepOver whether to yield before the next run
 */
export function* sortSteps<Item>(
  items: { readonly length: number; slice(from: number, to: number): Item[] },
  compare: (left: Item, right: Item) => number,
  isStepOver: () => boolean = () => true,
): Generator<void, Item[]> {
  const order = { compare, isStepOver };
  let runs: Item[][] = [];
  for (let at = 0; at < items.length; at += runLength) {
    if (isStepOver()) yield;
    runs.push(items.slice(at, Math.min(at + runLength, items.length)).sort(compare));
  }
  while (runs.length > 1) {
    const longer: Item[][] = [];
    for (let at = 0; at < runs.length; at += 2) {
      longer.push(yield* mergeRuns(runs[at] ?? [], runs[at + 1] ?? [], order));
    }
    runs = longer;
  }
  return runs[0] ?? [];
}

function* mergeRuns<Item>(
  left: readonly Item[],
  right: readonly Item[],
  order: {
    readonly compare: (left: Item, right: Item) => number;
    readonly isStepOver: () => boolean;
  },
): Generator<void, Item[]> {
  const { compare, isStepOver } = order;
  const merged: Item[] = [];
  let rightAt = 0;
  for (const item of left) {
    for (; rightAt < right.length; rightAt += 1) {
      const earlier = itemAt(right, rightAt);
      if (compare(item, earlier) <= 0) break;
      merged.push(earlier);
      if (merged.length % runLength === 0 && isStepOver()) yield;
    }
    merged.push(item);
    if (merged.length % runLength === 0 && isStepOver()) yield;
  }
  appendAll(merged, right.slice(rightAt));
  return merged;
}
