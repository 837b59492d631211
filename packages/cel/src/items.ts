import { itemAt } from '@wheelhouse/machinery';
import type { Items, Value } from './values.ts';

/** Items that are computed when they are read. */
export abstract class LazyItems implements Items {
  abstract readonly length: number;
  abstract at(index: number): Value | undefined;

  slice(from: number, to: number): Value[] {
    return Array.from({ length: to - from }, (_, index) => this.at(from + index) ?? null);
  }

  *[Symbol.iterator](): Generator<Value> {
    for (let index = 0; index < this.length; index += 1) yield this.at(index) ?? null;
  }
}

/** Maximum number of items that a list copies; longer lists share their items (TRUST-2). */
const copiedMax = 4_096;

/** The items from one index up to another one. */
export function sliced(items: Items, from: number, to: number): Items {
  if (to - from <= copiedMax) return items.slice(from, to);
  const parts: Part[] = [];
  let end = 0;
  for (const part of partsOf(items)) {
    const [first, last] = [Math.max(from - end, 0), Math.min(to - end, part.length)];
    end += part.length;
    if (first < last) {
      parts.push({ ...part, start: part.start + first * part.by, length: last - first });
    }
  }
  return new SharedItems(parts);
}

/** The items in the opposite order. */
export function reversed(items: Items): Items {
  if (items.length <= copiedMax) return items.slice(0, items.length).reverse();
  const parts = partsOf(items).toReversed();
  return new SharedItems(
    parts.map((part) => ({
      ...part,
      start: part.start + (part.length - 1) * part.by,
      by: -part.by,
    })),
  );
}

/** The items of two lists one after the other. */
export function joined(left: Items, right: Items): Items {
  const length = left.length + right.length;
  if (length > copiedMax) return new SharedItems([...partsOf(left), ...partsOf(right)]);
  return arrayOf(left).concat(arrayOf(right));
}

const arrayOf = (items: Items): readonly Value[] =>
  Array.isArray(items) ? items : items.slice(0, items.length);

/** Adjacent items of an array or of a JSON list, in either direction. */
interface Part {
  readonly items: Items;
  readonly start: number;
  readonly length: number;
  /** 1 or -1. */
  readonly by: number;
}

function partsOf(items: Items): readonly Part[] {
  if (items instanceof SharedItems) return items.parts;
  return items.length === 0 ? [] : [{ items, start: 0, length: items.length, by: 1 }];
}

/** The items of parts of other lists. */
class SharedItems extends LazyItems {
  readonly parts: readonly Part[];
  readonly length: number;
  /** The index of the first item of each part. */
  readonly #starts: readonly number[];
  /** The part that was read last. */
  #current = 0;

  constructor(parts: readonly Part[]) {
    super();
    this.parts = parts;
    let length = 0;
    this.#starts = parts.map((part) => {
      length += part.length;
      return length - part.length;
    });
    this.length = length;
  }

  at(index: number): Value | undefined {
    if (index >= this.length) return undefined;
    let start = itemAt(this.#starts, this.#current);
    let part = itemAt(this.parts, this.#current);
    if (index < start || index >= start + part.length) {
      this.#current = this.#partAt(index);
      start = itemAt(this.#starts, this.#current);
      part = itemAt(this.parts, this.#current);
    }
    return part.items.at(part.start + (index - start) * part.by);
  }

  /** The part that holds an item, found by bisection. */
  #partAt(index: number): number {
    let [low, high] = [0, this.parts.length - 1];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (itemAt(this.#starts, middle) <= index) low = middle;
      else high = middle - 1;
    }
    return low;
  }
}
