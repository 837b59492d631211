import { describe, expect, test } from 'vitest';
import { TooManyValues, YamlError } from './decode-limits.ts';
import { checkDocument } from './yaml-grammar.ts';

/** Checks a text; returns where its document ends, or the error, and the number of pauses. */
function checked(text: string, valuesMax?: number) {
  const steps = checkDocument(text, valuesMax);
  for (let pauses = 0; ; pauses += 1) {
    try {
      const { done, value } = steps.next();
      if (done === true) return { end: value.end, pauses };
    } catch (error) {
      return { error, pauses };
    }
  }
}

describe('TRUST-2: checking a YAML text', () => {
  test.each([
    ['"', '"', '\\x41'],
    ['"', '"', '\\n'],
    ['"', '"', '\\ud83d\\ude00'],
    ['"', '"', 'word\n '],
    ["'", "'", "''"],
    ["'", "'", 'word '],
    ['[', ']', 'word'],
    ['[', ']', 'a#'],
    ['[', ']', 'a:b '],
    ['[', ']', 'a\n'],
    ['- ', '\n', 'a#b '],
    ['- ', '\n', '#a:b\n  c'],
  ])('pauses within %s%s with many of %j', (open, close, unit) => {
    // The lengths put pauses at each character of the unit.
    for (let shift = 0; shift < unit.length; shift += 1) {
      const start = `${open}x${'w'.repeat(shift)}`;
      const text = `${start}${unit.repeat(600_000 / unit.length)}x${close}`;
      const { end, pauses } = checked(text);
      expect(end).toBe(text.length);
      expect(pauses).toBeGreaterThan(3);
      const wrong = `${text.slice(0, -1)}\n${close === '\n' ? '- @' : '---'}`;
      expect(checked(wrong).error).toBeInstanceOf(YamlError);
    }
  });

  test.each([
    ['lists', '[],'],
    ['maps', '{},'],
    ['scalars', 'a,'],
    ['aliases', '*x ,'],
    ['empty values', '!!str ,'],
  ])('stops at the limit on %s', (_, unit) => {
    const { error, pauses } = checked(`[&x 1,${unit.repeat(500_000)}]`, 10_000);
    expect(error).toEqual(new TooManyValues(10_000));
    expect(pauses).toBeLessThan(150);
    expect(checked(`[&x 1,${unit.repeat(9_998)}]`, 10_000).error).toBeUndefined();
  });
});
