/** Items that are sorted natively before they are merged. */
const runLength = 256;

/**
 * A sorted copy of `items`, in steps (TRUST-2). Stable; takes n log n comparisons.
 * @param order is negative, zero, or positive, and may throw
 * @param isStepOver whether to yield before the next run or merge
 */
export function* sortSteps<Item>(
  items: { readonly length: number; slice(from: number, to: number): Item[] },
  order: (left: Item, right: Item) => number,
  isStepOver: () => boolean,
): Generator<void, Item[]> {
  let runs: Item[][] = [];
  for (let at = 0; at < items.length; at += runLength) {
    if (isStepOver()) yield;
    const run = items.slice(at, Math.min(at + runLength, items.length));
    runs.push(run.sort(order));
  }
  while (runs.length > 1) {
    const merged: Item[][] = [];
    for (let at = 0; at < runs.length; at += 2) {
      const [firstRun = [], secondRun = []] = [runs[at], runs[at + 1]];
      merged.push(yield* mergeSteps(firstRun, secondRun, { order, isStepOver }));
    }
    runs = merged;
  }
  return runs[0] ?? [];
}

/** Merges two sorted lists; items of `firstRun` precede equal items of `secondRun`. */
function* mergeSteps<Item>(
  firstRun: readonly Item[],
  secondRun: readonly Item[],
  {
    order,
    isStepOver,
  }: {
    readonly order: (left: Item, right: Item) => number;
    readonly isStepOver: () => boolean;
  },
): Generator<void, Item[]> {
  const merged: Item[] = [];
  let [left, right] = [0, 0];
  while (left < firstRun.length && right < secondRun.length) {
    if (merged.length % runLength === 0 && isStepOver()) yield;
    const [first, second] = [firstRun[left] as Item, secondRun[right] as Item];
    const takesFirst = order(first, second) <= 0;
    merged.push(takesFirst ? first : second);
    if (takesFirst) left += 1;
    else right += 1;
  }
  return merged.concat(firstRun.slice(left), secondRun.slice(right));
}
