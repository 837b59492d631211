/**
 * Appends any number of items to a list. A spread argument (`target.push(...items)`) puts them on
 * the stack, which overflows at about 120,000 items (TRUST-1).
 */
export function appendAll<Item>(target: Item[], items: Iterable<Item>): void {
  if (!Array.isArray(items)) for (const item of items) target.push(item);
  // Before the engine optimizes this function, indexes take a quarter of the time of an iterator.
  else for (let at = 0; at < items.length; at += 1) target.push(items[at]);
}

/**
 * Returns the items of all lists. For lists of tens of thousands of items, spreading them in a
 * literal takes ten times as long, milliseconds before the engine optimizes the function around it.
 */
export function joined<Item>(...lists: (readonly Item[])[]): Item[] {
  let items: Item[] = [];
  for (const list of lists) if (list.length > 0) items = items.concat(list);
  return items;
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
 * Returns a function that returns for each value whether an earlier call received an equal one.
 * Values are compared as the keys of a Map are.
 */
export function seenBefore(): (value: unknown) => boolean {
  const seen = new Set<unknown>();
  return (value) => {
    if (seen.has(value)) return true;
    seen.add(value);
    return false;
  };
}

/** Returns for each value whether it equals an earlier one, in linear time. */
export const repeats = (values: readonly unknown[]): readonly boolean[] => values.map(seenBefore());

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

/** A result, or a generator of it, between whose steps the caller may pause (TRUST-2). */
export type MaybeSteps<Result> = Result | Generator<void, Result>;

/** Number of items that one step handles. */
const itemsPerStep = 100;

/** Number of results from which copying them is a step of its own. */
const manyResults = 1000;

/**
 * Whether an item of a list has a property, in steps (TRUST-2).
 * @param has may itself take steps
 * @param options.perStep items that one step looks at
 */
export function* someSteps<Item>(
  list: Iterable<Item>,
  has: (item: Item) => boolean | Generator<void, boolean>,
  { perStep = itemsPerStep } = {},
): Generator<void, boolean> {
  let count = 0;
  for (const item of list) {
    count += 1;
    if (count % perStep === 0) yield;
    const found = has(item);
    if (typeof found === 'boolean' ? found : yield* found) return true;
  }
  return false;
}

/**
 * The results of a function for each item of a list, in steps (TRUST-2).
 * @param resultsOf may itself take steps
 * @param perStep items that one step handles
 */
export function* flatMapSteps<Item, Result>(
  list: Iterable<Item>,
  resultsOf: (item: Item, index: number) => MaybeSteps<readonly Result[]>,
  perStep = itemsPerStep,
): Generator<void, Result[]> {
  let results: Result[] = [];
  let index = 0;
  for (const item of list) {
    if (index % perStep === perStep - 1) yield;
    const itemResults = resultsOf(item, index);
    index += 1;
    if ('next' in itemResults) {
      const found = yield* itemResults;
      if (found.length < manyResults) appendAll(results, found);
      else results = results.concat(found);
      // The item's own lists may all be shorter than a step.
      yield;
    } else appendAll(results, itemResults);
  }
  // The caller copies the results.
  if (results.length >= manyResults) yield;
  return results;
}
