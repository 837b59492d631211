import { itemAt } from '../base/lists.ts';

/** Most errors, warnings, or causes that one answer lists (TRUST-3). */
export const listedMax = 100;

/** Most bytes of UTF-8 that the texts of such a list have together (TRUST-3). */
export const listedBytesMax = 64 * 1024;

/**
 * Most warnings that a rule about pairs makes: each item of a list may be a warning with each other,
 * and few of them are listed. What is counted as omitted is then less than there would be.
 */
export const pairWarningsMax = 10 * listedMax;

/** The same for errors: a rule that compares items with each other complains of no more pairs. */
export const pairErrorsMax = 1000;

/** Most characters of one value that an answer shows. */
export const shownValueMax = 8 * 1024;

/** Most characters of one error, warning, or cause: a shown value and what is said about it. */
export const shownTextMax = shownValueMax + 1024;

/** Most characters of the path of a field. */
export const shownPathMax = 1536;

/** A text of at most `max` characters; behind a longer one stands how many are left out. */
export function shortened(text: string, max: number): string {
  if (text.length <= max) return text;
  const isSplit = (text.charCodeAt(max - 1) & 0xfc00) === 0xd800;
  const kept = isSplit ? max - 1 : max;
  return `${text.slice(0, kept)}... (${text.length - kept} more characters)`;
}

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
    bytes += Buffer.byteLength(textOf(itemAt(list, kept)));
    if (bytes > listedBytesMax) break;
    kept += 1;
  }
  if (kept === list.length) return { items: list, omitted: 0 };
  return { items: list.slice(0, kept), omitted: list.length - kept };
}

/**
 * How an answer says that it leaves items out, as the last item of its list: `and 20 more errors`.
 * @param what the items' name in the singular
 */
export function omittedText(omitted: number, what: string): string {
  return `and ${omitted} more ${what}${omitted === 1 ? '' : 's'}`;
}

/**
 * Different texts in the order in which they are added, as many as an answer may list. Texts behind
 * the bound are counted but not kept, so that neither time nor memory grows with them.
 */
export class BoundedTexts {
  readonly #what: string;
  #texts: Set<string> | undefined;
  #bytes = 0;
  #omitted = 0;

  /** @param what the texts' name in the singular: `warning` */
  constructor(what: string) {
    this.#what = what;
  }

  /** Adds a text, shortened, unless it is there. Behind the bound, repeated texts count each time. */
  add(text: string): void {
    this.#texts ??= new Set();
    const short = shortened(text, shownTextMax);
    if (this.#texts.has(short)) return;
    const bytes = Buffer.byteLength(short);
    if (this.#texts.size === listedMax || this.#bytes + bytes > listedBytesMax) {
      this.omit(1);
      return;
    }
    this.#texts.add(short);
    this.#bytes += bytes;
  }

  addAll(texts: Iterable<string>): void {
    for (const text of texts) this.add(text);
  }

  /** Counts texts that were never made. */
  omit(count: number): void {
    this.#omitted += count;
  }

  get isEmpty(): boolean {
    return this.#texts === undefined && this.#omitted === 0;
  }

  /** The texts without a last one that counts what is omitted. */
  get texts(): readonly string[] {
    return this.#texts === undefined ? [] : [...this.#texts];
  }

  get omitted(): number {
    return this.#omitted;
  }

  /** The texts, and behind them how many are omitted, if any are. */
  get list(): readonly string[] {
    const { texts } = this;
    return this.#omitted === 0 ? texts : [...texts, omittedText(this.#omitted, this.#what)];
  }
}
