import { expect, test } from 'vitest';
import { canonicalJson, goQuoted } from './go-values.ts';

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

test('members of canonical JSON are in the order of their UTF-8 bytes', () => {
  const value = { '\u{1f600}': 1, '\uff01': [2n ** 60n, { b: null, a: undefined }], a: 'x' };
  expect(canonicalJson(value)).toBe(
    '{"a":"x","\uff01":[1152921504606846976,{"b":null}],"\u{1f600}":1}',
  );
});
