import { itemAt } from '../base/lists.ts';

/** Maximum number of errors, warnings, or causes in one response (TRUST-3). */
export const listedMax = 100;

/** Maximum total size of the texts of such a list, bytes of UTF-8 (TRUST-3). */
export const listedBytesMax = 64 * 1024;

/**
 * Maximum number of warnings from a rule that compares pairs of items: their number is quadratic,
 * and few are listed. The reported number of omitted warnings may be too small.
 */
export const pairWarningsMax = 10 * listedMax;

/** The same limit for errors of a rule that compares pairs of items. */
export const pairErrorsMax = 1000;

/** Maximum number of characters of a value in a response. */
export const shownValueMax = 8 * 1024;

/** Maximum number of characters of one error, warning, or cause, including a value. */
export const shownTextMax = shownValueMax + 1024;

/** Maximum number of characters of a field path. */
export const shownPathMax = 1536;

/** Truncates a text to `max` characters and appends the number of omitted ones. */
export function truncateText(text: string, max: number): string {
  if (text.length <= max) return text;
  const isSplit = (text.charCodeAt(max - 1) & 0xfc00) === 0xd800;
  const kept = isSplit ? max - 1 : max;
  return `${text.slice(0, kept)}... (${text.length - kept} more characters)`;
}

/** The length at which a growing path is truncated; with the number of omitted characters it fits. */
const growingPathMax = shownPathMax - 40;

/**
 * A field path with another part. A path that is too long for a response is truncated and does not
 * grow further, so that a long name is not copied for each error below it (TRUST-3).
 */
export function longerPath(path: string, part: string): string {
  return path.length > growingPathMax ? path : truncateText(path + part, growingPathMax);
}

/** The items of a list that fit into a response, and the number of omitted ones. */
interface BoundedList<Item> {
  readonly items: readonly Item[];
  readonly omitted: number;
}

/**
 * Truncates a list to the limits of one response: at most `listedMax` items whose texts have at
 * most `listedBytesMax` bytes in total. Does not read the texts of omitted items.
 * @param textOf returns an item's text; called once for each kept item and once more
 */
export function boundedList<Item>(
  list: readonly Item[],
  textOf: (item: Item) => string,
): BoundedList<Item> {
  let bytes = 0;
  let kept = 0;
  while (kept < list.length && kept < listedMax) {
    bytes += Buffer.byteLength(textOf(itemAt(list, kept)));
    if (bytes > listedBytesMax) break;
    kept += 1;
  }
  if (kept === list.length) return { items: list, omitted: 0 };
  return { items: list.slice(0, kept), omitted: list.length - kept };
}

/**
 * Returns the last item of a truncated list: `and 20 more errors`.
 * @param what singular noun for an item
 */
export function omittedText(omitted: number, what: string): string {
  return `and ${omitted} more ${what}${omitted === 1 ? '' : 's'}`;
}

/**
 * Distinct texts in order of addition, up to the limits of one response. Texts beyond the limit are
 * counted but not kept, so time and memory do not grow with them.
 */
export class BoundedTexts {
  readonly #what: string;
  #texts: Set<string> | undefined;
  #bytes = 0;
  #omitted = 0;

  /** @param what singular noun for a text: `warning` */
  constructor(what: string) {
    this.#what = what;
  }

  /**
   * Adds a truncated text unless it is empty or present. Beyond the limit, repeated texts are
   * counted each time.
   */
  add(text: string): void {
    if (text === '') return;
    this.#texts ??= new Set();
    const short = truncateText(text, shownTextMax);
    if (this.#texts.has(short)) return;
    const isFull = this.#texts.size === listedMax;
    const bytes = isFull ? 0 : Buffer.byteLength(short);
    if (isFull || this.#bytes + bytes > listedBytesMax) {
      this.omit(1);
      return;
    }
    this.#texts.add(short);
    this.#bytes += bytes;
  }

  /** Adds several texts. */
  addAll(texts: Iterable<string>): void {
    for (const text of texts) this.add(text);
  }

  /** Counts texts that were not generated. */
  omit(count: number): void {
    this.#omitted += count;
  }

  get isEmpty(): boolean {
    return this.#texts === undefined && this.#omitted === 0;
  }

  /** The texts without the final one that counts omissions. */
  get texts(): readonly string[] {
    return this.#texts === undefined ? [] : [...this.#texts];
  }

  get omitted(): number {
    return this.#omitted;
  }

  /** The texts, followed by the number of omitted ones, if any. */
  get list(): readonly string[] {
    const { texts } = this;
    return this.#omitted === 0 ? texts : [...texts, omittedText(this.#omitted, this.#what)];
  }
}
