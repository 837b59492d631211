import { runInOnePiece, WorkBudget, WorkExceeded } from '@wheelhouse/machinery';
import { RE2JS } from 're2js';
import { expect, test } from 'vitest';
import { checkPatternParts, Pattern, sizeOfPattern } from './pattern.ts';
import { matchesInSteps, searchOf } from './pattern-steps.ts';

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
  const { instructions: estimate } = sizeOfPattern(source);
  expect(estimate).toBeGreaterThanOrEqual(size - 2);
  expect(estimate).toBeLessThan(8 * size + 16);
});

test.each([
  ['\\pL', 143],
  ['[^\\p{Greek}\\PN]', 70],
  ['(?i)[\\pL]', 71],
  ['(?s-m:(?mi:[B-\\x{1e900}]))', 3],
  [`(?i)[A-\\x{300}${String.fromCodePoint(0x300)}-${String.fromCodePoint(0x1e900)}]`, 3],
  ['(|a)', 1_286],
  ['a*b|', 1_286],
  ['\\d', 4_501],
  ['[a-c]', 1_801],
])('TRUST-2: a new pattern cannot contain %s %i times', (part, count) => {
  expect(() => checkPatternParts(part.repeat(count))).toThrow('at most 9000 parts');
  expect(() => checkPatternParts(part.repeat(Math.floor(count / 2)))).not.toThrow();
  // Earlier versions stored such patterns.
  expect(new Pattern(part.repeat(count)).size).toBeGreaterThan(1);
});

test('patterns of practice have few parts', () => {
  for (const source of ['(?i)^[a-z\\d_.-]+$', '^[\\p{L}\\p{N}]{1,900}$', '(?i)[^\\x00-\\x7f]']) {
    expect(sizeOfPattern(source).parts).toBeLessThan(200);
    expect(new Pattern(source).test('a1')).toBe(!source.includes('^\\x'));
  }
});

const texts = [
  '',
  'abc',
  'cd\n',
  'a'.repeat(999),
  'é1{z}\u{1f600}\ud800 AZ_a.b',
  '1.example.com',
  'a\nb',
  ...Array.from({ length: 20 }, (_, at) =>
    Array.from(
      { length: 40 },
      (_, index) => 'ab\n .é\u{1f600}'[(at * 7919 + index * index) % 7],
    ).join(''),
  ),
];

const searched = [
  '^a.*b$',
  '(?m)^b$',
  '(?s)a.b',
  '\\bab\\B',
  '^$',
  '',
  '[^a]\\pL$',
  '(?i)É|k',
  '^(?:a|b)*a(?:a|b){9}$',
  'a+?|b',
  '(a|ab)(c|bcd)?',
  'b*',
  '(?:a|b)*?.b',
];

test.each([...patterns, ...searched])('TRUST-2: %s matches the same in steps', (source) => {
  const compiled = RE2JS.compile(source);
  const { prog } = compiled.re2Input;
  const pattern = new Pattern(source);
  expect(pattern.size).toBe(prog.inst.length);
  for (const text of texts) {
    const isMatch = compiled.test(text);
    expect([text, runInOnePiece(matchesInSteps(prog, text))]).toEqual([text, isMatch]);
    expect([text, pattern.test(text)]).toEqual([text, isMatch]);
    expect([text, runInOnePiece(pattern.testSteps(text))]).toEqual([text, isMatch]);
  }
});

test('TRUST-2: a large pattern is parsed and compiled in steps of their own', () => {
  const pattern = new Pattern('^(abcdefg){900}$');
  const stepsOf = (work: Iterator<void, unknown>) => {
    let steps = 1;
    while (work.next().done !== true) steps += 1;
    return steps;
  };
  expect(stepsOf(pattern.testSteps('abc'))).toBe(3);
  expect(stepsOf(pattern.testSteps('abc'))).toBe(1);
  expect(stepsOf(new Pattern('abc').testSteps('abc'))).toBe(1);
});

test('TRUST-2: a long match takes steps', () => {
  const pattern = new Pattern('^(?:a|b)*a(?:a|b){900}$');
  const text = 'abbaab'.repeat(1_000);
  const work = pattern.testSteps(text);
  let steps = 1;
  let step = work.next();
  for (; step.done !== true; step = work.next()) steps += 1;
  expect(step.value).toBe(pattern.test(text));
  expect(steps).toBeGreaterThan(50);
});

test('TRUST-2: oversized patterns are rejected before they are compiled', () => {
  expect(() => new Pattern(`(?:${'a?'.repeat(2000)}){1000}`)).toThrow(/10000 instructions/);
  expect(() => new Pattern('a'.repeat(20_000))).toThrow(/16384 characters/);
  expect(() => new Pattern('a(')).toThrow(/missing closing/);
});

const unlimited = Number.POSITIVE_INFINITY;

function findAll(
  source: string,
  text: string,
  { limit = unlimited, steps = 1_000_000 } = {},
): string[] {
  const budget = new WorkBudget({ what: 'the search', steps });
  return runInOnePiece(new Pattern(source).findSteps(text, limit, budget));
}

test.each([...patterns, ...searched])('%s finds the same in steps', (source) => {
  const compiled = RE2JS.compile(source);
  const budget = new WorkBudget({ what: 'the search', steps: unlimited });
  for (const text of texts) {
    const search = searchOf(compiled.re2Input.prog, text, budget);
    for (let from = 0; from <= text.length; from += 1 + Math.floor(text.length / 4)) {
      if (/^[\udc00-\udfff]/.test(text.slice(from)) && from > 0) continue;
      const matcher = compiled.matcher(text);
      const isFound = matcher.find(from);
      const match = runInOnePiece(search(from));
      expect([source, text, from, match?.start, match?.end]).toEqual([
        ...[source, text, from],
        ...(isFound ? [matcher.start(), matcher.end()] : [undefined, undefined]),
      ]);
    }
  }
});

test('an empty match right after another match does not count, as in Go', () => {
  expect(findAll('x*', 'axb')).toEqual(['', 'x', '']);
  expect(findAll('a*', 'baaab')).toEqual(['', 'aaa', '']);
  expect(findAll('', 'a\u{1f600}')).toEqual(['', '', '']);
  expect(findAll('b|', 'abab')).toEqual(['', 'b', 'b']);
  expect(findAll('(?m)^', 'a\nb')).toEqual(['', '']);
});

test('TRUST-2: the search for all matches has a budget', () => {
  expect(findAll('a.*z|a', 'bazzab')).toEqual(['azz', 'a']);
  expect(findAll('a', 'aaa', { limit: 2 })).toEqual(['a', 'a']);
  const text = 'a'.repeat(20_000);
  expect(() => findAll('a.*z|a', text)).toThrow(WorkExceeded);
  expect(findAll('a', text)).toHaveLength(20_000);
});

test('a long search takes steps', () => {
  const pattern = new Pattern('(?:a|b)*a(?:a|b){900}c|(?:ab){2}');
  const text = `${'abb'.repeat(1_000)}abab${'abb'.repeat(1_000)}`;
  const work = pattern.findSteps(text, 9, new WorkBudget({ what: 'it', steps: 1e8 }));
  let steps = 1;
  let step = work.next();
  for (; step.done !== true; step = work.next()) steps += 1;
  expect(step.value).toEqual(['abab']);
  expect(steps).toBeGreaterThan(50);
});
