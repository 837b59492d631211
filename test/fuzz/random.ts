/** Random choices that a seed repeats. */
export interface Random {
  /** An integer from 0 to below `end`. */
  below(end: number): number;
  chance(probability: number): boolean;
  pick<T>(items: readonly T[]): T;
}

/** A small pseudorandom generator (mulberry32). */
export function randomOf(seed: number): Random {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return {
    below: (end) => Math.floor(next() * end),
    chance: (probability) => next() < probability,
    pick: (items) => items[Math.floor(next() * items.length)] as (typeof items)[number],
  };
}
