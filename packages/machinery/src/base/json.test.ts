import { expect, test } from 'vitest';
import { cloneJsonSteps, type JsonObject } from './json.ts';
import { inOnePiece } from './work.ts';

test('TRUST-2: a large value is copied in steps, and shares nothing with its copy', () => {
  const value: JsonObject = {
    items: Array.from({ length: 5_000 }, (_, index) => ({ name: `i${index}`, none: null })),
    ['__proto__x']: { a: [1n, true, ''] },
  };
  const work = cloneJsonSteps(value);
  let steps = 0;
  let step = work.next();
  for (; step.done !== true; step = work.next()) steps += 1;
  expect(step.value).toEqual(value);
  expect(step.value['items']).not.toBe(value['items']);
  // Each item counts, and so do its two members.
  expect(steps).toBeGreaterThanOrEqual(15_000 / 500);
  const odd: JsonObject = JSON.parse('{"__proto__":{"a":1}}');
  expect(Object.keys(inOnePiece(cloneJsonSteps(odd)))).toEqual(['__proto__']);
});
