import { expect, test } from 'vitest';
import { stepsPart } from './steps.ts';

test('TRUST-2: the longest step of a request is measured in CPU time of the main thread', async () => {
  const figures = await stepsPart.run({ seed: 1, rounds: 1, log: () => {} });
  expect(figures['a small ConfigMap']).toMatch(/^\d+\.\d ms, status 201, 1 KiB$/);
}, 120_000);
