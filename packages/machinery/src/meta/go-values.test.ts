import { expect, test } from 'vitest';
import { goQuoted } from './go-values.ts';

test.each([
  ['plain é 語', '"plain é 語"'],
  ['"\\', '"\\"\\\\"'],
  ['\n\t\v\x07', '"\\n\\t\\v\\a"'],
  ['\x01\x7f', '"\\x01\\x7f"'],
  ['\u00a0\u2028', '"\\u00a0\\u2028"'],
  ['\u{e0001}', '"\\U000e0001"'],
])('%j is quoted as in Go', (text, quoted) => {
  expect(goQuoted(text)).toBe(quoted);
});
