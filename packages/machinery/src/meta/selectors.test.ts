import { describe, expect, test } from 'vitest';
import { parseFieldSelector, parseLabelSelector, sharedParse } from './selectors.ts';

const selects = (selector: string, labels: Record<string, string>) =>
  parseLabelSelector(selector).matches(labels);

function messageOf(read: () => unknown): string {
  try {
    read();
  } catch (error) {
    return (error as Error).message;
  }
  return '';
}
const labelMessage = (selector: string) => messageOf(() => parseLabelSelector(selector));

describe('label selectors', () => {
  test.each([
    ['', {}, true],
    ['x=a', { x: 'a' }, true],
    ['x==a', { x: 'b' }, false],
    ['x!=a', {}, true],
    ['x!=a', { x: 'a' }, false],
    ['x in (a,b)', { x: 'b' }, true],
    ['x in (a,b)', {}, false],
    ['x notin (a,b)', {}, true],
    ['x notin (a,b)', { x: 'a' }, false],
    ['x in ()', { x: '' }, true],
    ['x in (,a)', { x: '' }, true],
    ['x in (a,,b)', { x: '' }, true],
    ['x in (a,)', { x: '' }, true],
    ['x', { x: '' }, true],
    ['x', {}, false],
    ['!x', {}, true],
    ['! x', { x: '' }, false],
    ['x=', { x: '' }, true],
    ['x=,y', { x: '', y: '1' }, true],
    ['x>1', { x: '10' }, true],
    ['x<1', { x: '-3' }, true],
    ['x>1', { x: 'ten' }, false],
    ['x>1', {}, false],
    ['x>9223372036854775806', { x: '9223372036854775807' }, true],
    ['in in (in,notin)', { in: 'notin' }, true],
    ['in', { in: '' }, true],
    ['example.com/a=b', { 'example.com/a': 'b' }, true],
    ['\tx = a ,\n y', { x: 'a', y: '' }, true],
    ['constructor', {}, false],
    ['toString!=x', {}, true],
  ])('%j on %j is %j', (selector, labels, expected) => {
    expect(selects(selector, labels)).toBe(expected);
  });

  test('absent labels count as empty', () => {
    expect(parseLabelSelector('!x').matches(undefined)).toBe(true);
    expect(parseLabelSelector('x,y').matches(undefined)).toBe(false);
  });

  test('requirements are sorted by key', () => {
    expect(parseLabelSelector('b notin (z,y,z),!a').requirements).toEqual([
      { key: 'a', operator: '!', values: [] },
      { key: 'b', operator: 'notin', values: ['y', 'z'] },
    ]);
  });

  test.each([
    [',', "found ',', expected: !, identifier, or 'end of string'"],
    ['x,', "found '', expected: identifier after ','"],
    ['x a', "unable to parse requirement: found 'a', expected: in, notin, =, ==, !=, gt, lt"],
    ['!x=a', "found '=', expected: ',' or 'end of string'"],
    ['x=a b', "found 'b', expected: ',' or 'end of string'"],
    ['!', "unable to parse requirement: found '', expected: identifier"],
    ['x==!', "unable to parse requirement: found '!', expected: identifier"],
    ['x===a', "unable to parse requirement: found '=', expected: identifier"],
    ['x in', "unable to parse requirement: found '' expected: '('"],
    ['x in (', "unable to parse requirement: found '', expected: ',', ')' or identifier"],
    ['x in (a', "unable to parse requirement: found '', expected: ',' or ')'"],
    ['x in (a,=', "unable to parse requirement: found '=', expected: ',', or identifier"],
  ])('%j: %s', (selector, message) => {
    expect(labelMessage(selector)).toBe(message);
  });

  test('keys and values follow the label rules', () => {
    expect(labelMessage('-x')).toMatch(
      /^unable to parse requirement: <nil>: Invalid value: "-x": name part must consist of /,
    );
    expect(labelMessage('x=-a')).toMatch(
      /^unable to parse requirement: values\[0\]\[x\]: Invalid value: "-a": a valid label must be /,
    );
    expect(labelMessage('x>a')).toBe(
      'unable to parse requirement: values[0]: Invalid value: "a": ' +
        "for 'Gt', 'Lt' operators, the value must be an integer",
    );
  });
});

describe('field selectors', () => {
  test('terms are unescaped, and empty ones are ignored', () => {
    expect(parseFieldSelector('b!=1,,a==x\\,y\\=z\\\\,c=')).toEqual([
      { label: 'a', operator: '=', value: 'x,y=z\\' },
      { label: 'b', operator: '!=', value: '1' },
      { label: 'c', operator: '=', value: '' },
    ]);
    expect(parseFieldSelector('')).toEqual([]);
  });

  test.each([
    ['a,b=c', "invalid selector: 'a,b=c'; can't understand 'a'"],
    ['a=b=c', 'invalid field selector: unescaped character in value: 61'],
    ['a=\\x', 'invalid field selector: invalid escape sequence: \\x'],
    ['a=b\\', 'invalid field selector: invalid escape sequence: \\'],
  ])('%j: %s', (selector, message) => {
    expect(messageOf(() => parseFieldSelector(selector))).toBe(message);
  });
});

function countParses() {
  const parsed: string[] = [];
  const parse = sharedParse((text: string) => {
    parsed.push(text);
    if (text.startsWith('bad')) throw new Error('no');
    return { text };
  });
  return { parse, parsed };
}

test('TRUST-4: equal texts share one parsed value', () => {
  const { parse, parsed } = countParses();
  const long = 'x'.repeat(20_000);
  expect(parse('a=b')).toBe(parse('a=b'));
  const first = parse(long);
  // A copy, so that the strings are equal and not identical.
  expect(parse(Buffer.from(long).toString())).toBe(first);
  expect(parsed).toEqual(['a=b', long]);
});

test('TRUST-4: used values stay cached among any number of other texts', () => {
  const { parse, parsed } = countParses();
  for (let at = 0; at < 2000; at += 1) {
    parse('app=hot');
    parse(`app=cold-${at}`);
  }
  expect(parsed.filter((text) => text === 'app=hot')).toHaveLength(1);
  parse('app=cold-0');
  expect(parsed.filter((text) => text === 'app=cold-0')).toHaveLength(2);
});

test('a text that does not parse fails each time', () => {
  const { parse, parsed } = countParses();
  expect(() => parse('bad')).toThrow('no');
  expect(() => parse('bad')).toThrow('no');
  expect(parsed).toEqual(['bad', 'bad']);
});
