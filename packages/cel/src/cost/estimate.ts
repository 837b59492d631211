/**
 * Ranges of sizes and costs as cel-go's checker works them out before an expression is run. Counts are
 * unsigned 64-bit integers there; here they are numbers that stop at the same largest value.
 */
export interface Range {
  readonly min: number;
  readonly max: number;
}

/** The largest count: what has no bound. */
export const unbounded = 2 ** 64;

const saturated = (value: number): number => Math.min(value, unbounded);

export const exactly = (count: number): Range => ({ min: count, max: count });
export const unknownSize: Range = { min: 0, max: unbounded };
export const nothing: Range = exactly(0);

export function plus(one: Range, other: Range): Range {
  return { min: saturated(one.min + other.min), max: saturated(one.max + other.max) };
}

export function times(one: Range, other: Range): Range {
  return { min: product(one.min, other.min), max: product(one.max, other.max) };
}

export function product(one: number, other: number): number {
  return one === 0 || other === 0 ? 0 : saturated(one * other);
}

/** Each bound times a cost per unit, rounded up. */
export function scaled(range: Range, perUnit: number): Range {
  const scale = (count: number) => saturated(Math.ceil(count * perUnit));
  return { min: scale(range.min), max: scale(range.max) };
}

/** The range that holds both. */
export function hull(one: Range, other: Range): Range {
  return { min: Math.min(one.min, other.min), max: Math.max(one.max, other.max) };
}

export function sumOf(ranges: readonly Range[]): Range {
  return ranges.reduce(plus, nothing);
}

/** What reading a character of a text costs. */
export const perCharacter = 0.1;
/** What a character of a pattern multiplies the reading of a text by. */
export const perPatternCharacter = 0.25;
