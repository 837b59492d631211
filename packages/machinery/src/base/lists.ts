/**
 * Appends items to a list, however many there are. A spread argument (`target.push(...items)`) puts
 * them on the stack, which overflows at some 120,000 (TRUST-1).
 */
export function appendAll<Item>(target: Item[], items: Iterable<Item>): void {
  for (const item of items) target.push(item);
}

/**
 * Whether each value equals an earlier one, in linear time.
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

/** The first item of each name. */
export function firstByName<Item>(
  items: readonly Item[],
  nameOf: (item: Item) => string,
): ReadonlyMap<string, Item> {
  const found = new Map<string, Item>();
  for (const item of items) {
    const name = nameOf(item);
    if (!found.has(name)) found.set(name, item);
  }
  return found;
}

/** The largest of some numbers and a first one, however many there are. */
export function largest(first: number, others: Iterable<number>): number {
  let found = first;
  for (const one of others) if (one > found) found = one;
  return found;
}

/** The smallest of some numbers and a first one. */
export function smallest(first: number, others: Iterable<number>): number {
  let found = first;
  for (const one of others) if (one < found) found = one;
  return found;
}
