import { expect, test } from 'vitest';
import { sharedParse } from './selectors.ts';

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
