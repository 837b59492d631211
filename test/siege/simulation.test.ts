import { expect, test } from 'vitest';
import { simulationPart } from './simulation/simulation-part.ts';

const seed = Number(process.env['SEED'] ?? 1);
const rounds = 5;

test(`${rounds} simulated histories from seed ${seed} on keep every guarantee`, async () => {
  const figures = await simulationPart.run({ seed, rounds, log: () => {} });
  expect(figures['histories']).toBe(rounds);
  expect(figures['writes']).toBeGreaterThan(rounds * 5);
}, 120_000);
