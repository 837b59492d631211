import { expect, test } from 'vitest';
import { growthPart } from './growth.ts';
import { plainCases } from './growth-requests.ts';

/** All known attacks, and some requests chosen by the seed. */
const rounds = plainCases.length + 5;

test('TRUST-2: CPU time and answers grow no faster than requests', async () => {
  const seed = Math.floor(Math.random() * 2 ** 31);
  const figures = await growthPart.run({ seed, rounds, log: () => {} });
  expect(figures['requests'], `seed ${seed}`).toBe(rounds);
}, 300_000);
