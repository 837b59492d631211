/** Random choices that a seed repeats. The methods do not depend on `this`. */
export interface Random {
  /** A number from 0 to below 1. */
  fraction(): number;
  /** An integer from 0 to below `end`. */
  below(end: number): number;
  chance(probability: number): boolean;
  /** An item of a list that is not empty. */
  pick<T>(items: readonly T[]): T;
}

/** Creates a small pseudorandom generator (mulberry32): equal seeds make equal choices. */
export function randomOf(seed: number): Random {
  let state = seed >>> 0;
  const fraction = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (end: number) => Math.floor(fraction() * end);
  return {
    fraction,
    below,
    chance: (probability) => fraction() < probability,
    pick: (items) => items[below(items.length)] as (typeof items)[number],
  };
}
