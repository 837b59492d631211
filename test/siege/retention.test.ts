import { expect, test } from 'vitest';
import { retentionPart } from './retention.ts';

test('TRUST-4: nothing stays in memory of requests with ever new values', async () => {
  const seed = Math.floor(Math.random() * 2 ** 31);
  const { requests } = await retentionPart.run({ seed, rounds: 1, log: () => {} });
  expect(requests, `seed ${seed}`).toBeGreaterThan(4000);
}, 120_000);
