import { expect, test } from 'vitest';
import { randomOf } from '../base/host.ts';
import { type LabelOperator, type LabelRequirement, labelMatcher } from './label-selector.ts';

const operators: readonly LabelOperator[] = [
  '=',
  '==',
  '!=',
  'in',
  'notin',
  'exists',
  '!',
  'gt',
  'lt',
];

test('TRUST-4: a compiled matcher agrees with the individual requirements', () => {
  const seed = Date.now() >>> 0;
  const { below } = randomOf(seed);
  const value = () => ['1', '2', '3', '', 'x'][below(5)] as string;
  const key = () => ['a', 'b', 'c', 'd', 'constructor'][below(5)] as string;
  const requirement = (): LabelRequirement => {
    const operator = operators[below(operators.length)] as LabelOperator;
    const isBound = operator === 'gt' || operator === 'lt';
    if (isBound) return { key: key(), operator, values: [String(below(4))] };
    if (operator === 'exists' || operator === '!') return { key: key(), operator, values: [] };
    const isSet = operator === 'in' || operator === 'notin';
    return { key: key(), operator, values: isSet ? [value(), value()] : [value()] };
  };
  let matched = 0;
  for (let round = 0; round < 4000; round += 1) {
    const drawn = Array.from({ length: 1 + below(4) }, requirement);
    const few = labelMatcher(drawn);
    // Repeated requirements change only the number of requirements.
    const many = labelMatcher([...drawn, ...drawn, ...drawn, ...drawn, ...drawn]);
    const labels: Record<string, string> = {};
    for (let at = below(4); at > 0; at -= 1) labels[key()] = value();
    expect(many(labels), JSON.stringify({ seed, round, drawn, labels })).toBe(few(labels));
    if (few(labels)) matched += 1;
  }
  expect(matched).toBeGreaterThan(100);
});
