import { WorkBudget, WorkExceeded } from '@wheelhouse/machinery';
import { RE2JS } from 're2js';
import { expect, test } from 'vitest';
import { Pattern, programSizeOf } from './pattern.ts';

const patterns = [
  'abc',
  'a|b|cd',
  '(?:a?){1000}',
  'a?'.repeat(500),
  '((a{10}){10}){10}',
  '(?:[a-z]{1,30}\\.){1,30}b',
  '^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$',
  '[]a]{3}[^]b]{2,}',
  '\\Qa{1000}\\E{3}',
  '(?i)(?:\\pL{30}){30}',
  '[[:alpha:]-z]{4}\\x{41}{5}',
  '(?P<name>a*){7}(b+)?',
];

test.each(patterns)('TRUST-2: the size of %s is estimated before it is compiled', (source) => {
  const size = RE2JS.compile(source).programSize();
  const estimate = programSizeOf(source);
  expect(estimate).toBeGreaterThanOrEqual(size - 2);
  expect(estimate).toBeLessThan(8 * size + 16);
});

test('TRUST-2: oversized patterns are refused before they are compiled', () => {
  expect(() => new Pattern(`(?:${'a?'.repeat(2000)}){1000}`)).toThrow(/10000 instructions/);
  expect(() => new Pattern('a'.repeat(20_000))).toThrow(/16384 characters/);
  expect(() => new Pattern('a(')).toThrow(/missing closing/);
});

test('TRUST-2: the search for all matches has a budget, since each may scan the whole rest', () => {
  const budget = () => new WorkBudget({ what: 'the search', steps: 1_000_000 });
  const pattern = new Pattern('a.*z|a');
  expect(pattern.findAll('bazzab', 9, budget())).toEqual(['azz', 'a']);
  expect(new Pattern('x*').findAll('axb', 9, budget())).toEqual(['', 'x', '', '']);
  expect(pattern.findAll('aaa', 2, budget())).toEqual(['a', 'a']);
  const text = 'a'.repeat(20_000);
  expect(() => pattern.findAll(text, Number.POSITIVE_INFINITY, budget())).toThrow(WorkExceeded);
});
