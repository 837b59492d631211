import { expect, test } from 'vitest';
import { appendAll, firstByName, firstIndex, largest, repeats, smallest } from './lists.ts';

test('TRUST-1: lists of any length are appended and compared without overflowing the stack', () => {
  const many = Array.from({ length: 200_000 }, (_, index) => index);
  const target = [-1];
  appendAll(target, many);
  expect(target).toHaveLength(200_001);
  expect(target.at(-1)).toBe(199_999);
  expect(largest(7, many)).toBe(199_999);
  expect(smallest(7, many)).toBe(0);
  expect(largest(7, [])).toBe(7);
});

test('every value that equals an earlier one is a repeat', () => {
  expect(repeats(['a', 'b', 'a', '', 'a', ''])).toEqual([false, false, true, false, true, true]);
  expect(repeats([1, '1', 1])).toEqual([false, false, true]);
});

test('the first item with each name is found', () => {
  const items = [
    { name: 'a', at: 0 },
    { name: 'b', at: 1 },
    { name: 'a', at: 2 },
  ];
  const found = firstByName(items, ({ name }) => name);
  expect([...found.values()].map(({ at }) => at)).toEqual([0, 1]);
});

test.each([
  [{ to: 0 }, 5, 0],
  [{ to: 4 }, 0, 0],
  [{ to: 4 }, 3, 2],
  [{ to: 4 }, 9, 4],
  [{ from: 2, to: 4 }, 0, 2],
])('the first index in %j of a number from %d is %d', (range, least, index) => {
  const numbers = [1, 2, 4, 7];
  expect(firstIndex(range, (at) => (numbers[at] ?? 0) < least)).toBe(index);
});
