import { expect, test } from 'vitest';
import { mediaTypeFault } from './answer.ts';

test.each([
  ['a/b', undefined],
  ['a/b ;', undefined],
  ['a/b; c=d ', undefined],
  ['a/b; c=d; ', undefined],
  ['a/b;;', 'mime: invalid media parameter'],
  ['a/b; c', 'mime: invalid media parameter'],
  [' ; c=d', 'mime: no media type'],
])('the fault of %j is %s', (text, fault) => {
  expect(mediaTypeFault(text)).toBe(fault);
});

test('TRUST-2: a media type is read in linear time', () => {
  const text = `a/b${';c=d'.repeat(40_000)}${' '.repeat(160_000)}`;
  const startMs = performance.now();
  expect(mediaTypeFault(text)).toBeUndefined();
  expect(performance.now() - startMs).toBeLessThan(1000);
});
