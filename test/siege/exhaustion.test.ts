import { expect, test } from 'vitest';
import { exhaustionPart } from './exhaustion.ts';

test('TRUST-4: servers short of heap or files refuse work, survive, and recover', {
  timeout: 300_000,
}, async () => {
  const seed = Date.now() >>> 0;
  const figures = await exhaustionPart.run({ seed, rounds: 1, log: () => {} });
  expect(figures.refused, `seed ${seed}`).toBeGreaterThan(0);
  expect(figures['watches-with-large-selectors-turned-away'], `seed ${seed}`).toBeGreaterThan(0);
  expect(figures['files-connections-closed'], `seed ${seed}`).toBeGreaterThan(0);
});
