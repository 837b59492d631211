import { expect, test } from 'vitest';
import { connectionsWithin } from './memory.ts';

const limits = (soft: string) =>
  'Limit                     Soft Limit           Hard Limit           Units\n' +
  `Max open files            ${soft.padEnd(20)} 1048576              files\n`;

test.each([
  ['150', 86],
  ['1024', 896],
  ['1048576', 1_047_552],
  ['40', 16],
])('TRUST-4: of %s files, %d can be connections', (soft, connections) => {
  expect(connectionsWithin(limits(soft))).toBe(connections);
});

test('an unknown limit is no limit', () => {
  expect(connectionsWithin('')).toBe(Number.POSITIVE_INFINITY);
});
