import { expect, test } from 'vitest';
import { identityPart } from './identity.ts';

test('TRUST-5: no credential gets more than the role matrix grants', {
  timeout: 60_000,
}, async () => {
  const seed = Date.now() % 2 ** 31;
  const { requests } = await identityPart.run({ seed, rounds: 120, log: () => {} });
  expect(requests, `seed ${seed}`).toBe(120);
});
