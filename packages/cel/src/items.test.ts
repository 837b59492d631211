import { describe, expect, test } from 'vitest';
import { joined, LazyItems, reversed, sliced } from './items.ts';
import type { Items } from './values.ts';

/** Numbers in their order, each computed when it is read. */
class Numbers extends LazyItems {
  readonly length = 10_000;
  at(index: number): bigint | undefined {
    return index < this.length ? BigInt(index) : undefined;
  }
}

const numbers = Array.from(new Numbers());

/** A reproducible sequence of numbers below `limit`. */
function sequence(seed: number): (limit: number) => number {
  let state = seed;
  return (limit) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return Math.floor((state / 2_147_483_648) * limit);
  };
}

describe('TRUST-2: long lists share their items', () => {
  test.each([1, 2, 3, 4, 5, 6])('and read the same as copies would, sequence %d', (seed) => {
    const next = sequence(seed);
    let items: Items = seed % 2 === 0 ? new Numbers() : numbers;
    let copy = [...items];
    for (let operation = 0; operation < 40; operation += 1) {
      const [one, other] = [next(copy.length + 1), next(copy.length + 1)];
      const [from, to] = [Math.min(one, other), Math.max(one, other)];
      switch (copy.length > 60_000 ? 0 : next(4)) {
        case 0:
          if (to - from < 100) continue;
          items = sliced(items, from, to);
          copy = copy.slice(from, to);
          break;
        case 1:
          items = reversed(items);
          copy = copy.toReversed();
          break;
        case 2:
          items = joined(items, sliced(items, from, to));
          copy = copy.concat(copy.slice(from, to));
          break;
        default:
          items = joined(new Numbers(), items);
          copy = numbers.concat(copy);
      }
      expect(items.length).toBe(copy.length);
      const at = next(copy.length);
      expect(items.at(at)).toBe(copy[at]);
      expect(items.at(copy.length)).toBeUndefined();
      const end = Math.min(at + 9, copy.length);
      expect(items.slice(at, end)).toEqual(copy.slice(at, end));
    }
    expect([...items]).toEqual(copy);
  });

  test('joined to many short ones', () => {
    let items: Items = numbers;
    for (let time = 0; time < 30; time += 1) items = joined(items, [BigInt(time)]);
    expect(reversed(items).slice(0, 3)).toEqual([29n, 28n, 27n]);
    expect(sliced(items, 9_999, 10_002)).toEqual([9_999n, 0n, 1n]);
  });
});
