import { expect, test } from 'vitest';
import { randomOf } from './host.ts';

const choices = (seed: number) => {
  const { below, chance, fraction, pick } = randomOf(seed);
  return Array.from({ length: 1000 }, () => [fraction(), below(6), chance(0.25), pick(['a', 'b'])]);
};

test('equal seeds make equal choices, and other seeds make others', () => {
  expect(choices(7)).toEqual(choices(7));
  expect(choices(7)).not.toEqual(choices(8));
});

test('choices stay in their range and are about as frequent as they should be', () => {
  const all = choices(1);
  expect(all.every(([fraction]) => Number(fraction) >= 0 && Number(fraction) < 1)).toBe(true);
  expect(new Set(all.map(([, below]) => below))).toEqual(new Set([0, 1, 2, 3, 4, 5]));
  expect(all.filter(([, , isChosen]) => isChosen).length).toBeGreaterThan(200);
  expect(all.filter(([, , isChosen]) => isChosen).length).toBeLessThan(300);
  expect(new Set(all.map(([, , , picked]) => picked))).toEqual(new Set(['a', 'b']));
});
