/** Most errors, warnings, or causes that one answer lists (TRUST-3). */
export const listedMax = 100;

/** Most bytes of UTF-8 that the texts of such a list have together (TRUST-3). */
export const listedBytesMax = 64 * 1024;

/** The first items of a list that an answer may have, and how many it leaves out. */
export interface BoundedList<Item> {
  readonly items: readonly Item[];
  readonly omitted: number;
}

/**
 * Cuts a list to what one answer may hold: at most `listedMax` items whose texts have at most
 * `listedBytesMax` bytes together. Reads no text behind the cut.
 * @param textOf an item's text, asked once for each item that is kept and once more
 */
export function boundedList<Item>(
  list: readonly Item[],
  textOf: (item: Item) => string,
): BoundedList<Item> {
  let bytes = 0;
  let kept = 0;
  while (kept < list.length && kept < listedMax) {
    bytes += Buffer.byteLength(textOf(list[kept] as Item));
    if (bytes > listedBytesMax) break;
    kept += 1;
  }
  if (kept === list.length) return { items: list, omitted: 0 };
  return { items: list.slice(0, kept), omitted: list.length - kept };
}
