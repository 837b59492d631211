import { expect, test } from 'vitest';
import { base64ErrorAt, canonicalBase64, canonicalJson, goQuoted } from './go-values.ts';

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

test.each([
  ['', undefined],
  ['YQ==', undefined],
  ['YW\r\nJj\nYWI\n=\n', undefined],
  ['YQ', 0],
  ['Y\nQ', 1],
  ['YW\nFjYW', 5],
  ['Y!', 1],
  ['YW\n!j', 3],
  ['YWFj=', 4],
  ['YWFjY=aa', 5],
  ['YWE=a', 4],
  ['YWE=\n\na', 6],
  ['YQ=', 3],
  ['YQ\n=\n', 5],
  ['YQ=a', 2],
  ['YQ\n=\na', 4],
  ['YQ==\n\nx', 6],
])('base64 %j fails at %s, as in Go', (text, at) => {
  expect(base64ErrorAt(text)).toBe(at);
});

test.each([
  ['', ''],
  ['YW\r\nJj\nYWI\n=\n', 'YWJjYWI='],
  ['YR==', 'YQ=='],
  ['YWFhYWF=', 'YWFhYWE='],
])('base64 %j has the canonical form %s', (text, canonical) => {
  expect(canonicalBase64(text)).toBe(canonical);
});

test('members of canonical JSON are in the order of their UTF-8 bytes', () => {
  const value = { '\u{1f600}': 1, '\uff01': [2n ** 60n, { b: null, a: undefined }], a: 'x' };
  expect(canonicalJson(value)).toBe(
    '{"a":"x","\uff01":[1152921504606846976,{"b":null}],"\u{1f600}":1}',
  );
});

test.each([
  ['ab-_', undefined],
  ['ab+/', 2],
  ['-/==', 1],
])('base64url %j fails at %s, as in Go', (text, at) => {
  expect(base64ErrorAt(text, 'url')).toBe(at);
});
