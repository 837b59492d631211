import fc from 'fast-check';
import { expect, test } from 'vitest';
import { indentedPieces } from './indent-json.ts';

const indented = (json: Buffer) => Buffer.concat([...indentedPieces([json])]).toString();
const laidOut = (compact: string) => indented(Buffer.from(compact));

test('any JSON is indented like JSON.stringify does', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 6 }), (value) => {
      expect(laidOut(JSON.stringify(value))).toBe(JSON.stringify(value, null, 2));
    }),
    { numRuns: 500 },
  );
});

test('numbers and escapes are unchanged, and white space is removed', () => {
  expect(laidOut('{"a": 9223372036854775807,\t"b":"\\u00e9\\"{,}"}\n')).toBe(
    '{\n  "a": 9223372036854775807,\n  "b": "\\u00e9\\"{,}"\n}',
  );
});

test('output of more than twice the size and long strings are complete', () => {
  const value = {
    deep: JSON.parse(`${'['.repeat(300)}${']'.repeat(300)}`),
    long: 'é"'.repeat(500),
  };
  expect(laidOut(JSON.stringify(value))).toBe(JSON.stringify(value, null, 2));
});

test('truncated input is indented up to its end', () => {
  expect(laidOut('{"a":"b\\')).toBe('{\n  "a": "b\\');
});

test('TRUST-3: JSON in pieces of any size is indented like the whole', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 5 }), fc.integer({ min: 1, max: 9 }), (value, size) => {
      const json = Buffer.from(JSON.stringify({ value, text: '\\"\\\\"' }));
      const cut = Array.from({ length: Math.ceil(json.length / size) }, (_, n) =>
        json.subarray(n * size, (n + 1) * size),
      );
      const pieces = [...indentedPieces(cut)];
      expect(Buffer.concat(pieces).toString()).toBe(indented(json));
    }),
    { numRuns: 300 },
  );
});

test('TRUST-2: deep values and long strings are divided into small pieces', () => {
  const deep = `${'['.repeat(3000)}${']'.repeat(3000)}`;
  const pieces = [...indentedPieces([Buffer.from(`[${deep},"${'\\"'.repeat(100_000)}"]`)])];
  expect(Math.max(...pieces.map(({ length }) => length))).toBeLessThan(64 * 1024);
  expect(Buffer.concat(pieces).length).toBeGreaterThan(18_000_000);
});
