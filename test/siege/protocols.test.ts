import { expect, test } from 'vitest';
import { namedAttacks } from './protocol-attacks.ts';
import { attacksPerRound, protocolsPart } from './protocols.ts';

test('TRUST-1: hostile peers of every protocol end only their own connections', {
  timeout: 120_000,
}, async () => {
  const seed = Date.now() % 2 ** 31;
  const rounds = Math.ceil(namedAttacks.length / attacksPerRound);
  const { attacks } = await protocolsPart.run({ seed, rounds, log: () => {} });
  expect(attacks, `seed ${seed}`).toBeGreaterThanOrEqual(namedAttacks.length);
});
