import { expect, test } from 'vitest';
import { boundedList, listedBytesMax, listedMax } from './answer-bounds.ts';

const identity = (text: string) => text;

test('a short list is unchanged', () => {
  const list = ['one', 'two'];
  expect(boundedList(list, identity)).toEqual({ items: list, omitted: 0 });
});

test('a list has at most a hundred items', () => {
  const list = Array.from({ length: 250 }, (_, index) => `item ${index}`);
  expect(boundedList(list, identity)).toEqual({ items: list.slice(0, listedMax), omitted: 150 });
});

test('a list has at most 64 KiB of text, and the texts of other items are not rendered', () => {
  const long = 'é'.repeat(listedBytesMax / 8);
  let reads = 0;
  const textOf = (text: string) => {
    reads += 1;
    return text;
  };
  const { items, omitted } = boundedList(Array<string>(50).fill(long), textOf);
  expect(items).toHaveLength(4);
  expect(omitted).toBe(46);
  expect(reads).toBe(5);
});
