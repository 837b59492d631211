import fc from 'fast-check';
import { expect, test } from 'vitest';
import { indentedPieces, indentJson } from './indent-json.ts';

const laidOut = (compact: string) => indentJson(Buffer.from(compact)).toString();

test('any JSON is laid out as JSON.stringify lays it out', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 6 }), (value) => {
      expect(laidOut(JSON.stringify(value))).toBe(JSON.stringify(value, null, 2));
    }),
    { numRuns: 500 },
  );
});

test('numbers and escapes stay as they are, and white space is not', () => {
  expect(laidOut('{"a": 9223372036854775807,\t"b":"\\u00e9\\"{,}"}\n')).toBe(
    '{\n  "a": 9223372036854775807,\n  "b": "\\u00e9\\"{,}"\n}',
  );
});

test('what grows beyond twice its size, and long strings, are there as a whole', () => {
  const value = {
    deep: JSON.parse(`${'['.repeat(300)}${']'.repeat(300)}`),
    long: 'é"'.repeat(500),
  };
  expect(laidOut(JSON.stringify(value))).toBe(JSON.stringify(value, null, 2));
});

test('what breaks off is laid out as far as it goes', () => {
  expect(laidOut('{"a":"b\\')).toBe('{\n  "a": "b\\');
});

test('TRUST-3: JSON in pieces is laid out as if it were whole, wherever it is cut', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 5 }), fc.integer({ min: 1, max: 9 }), (value, size) => {
      const json = Buffer.from(JSON.stringify({ value, text: '\\"\\\\"' }));
      const cut = Array.from({ length: Math.ceil(json.length / size) }, (_, n) =>
        json.subarray(n * size, (n + 1) * size),
      );
      const pieces = [...indentedPieces(cut)];
      expect(Buffer.concat(pieces).toString()).toBe(indentJson(json).toString());
    }),
    { numRuns: 300 },
  );
});

test('TRUST-2: deep values and long strings come in small pieces', () => {
  const deep = `${'['.repeat(3000)}${']'.repeat(3000)}`;
  const pieces = [...indentedPieces([Buffer.from(`[${deep},"${'\\"'.repeat(100_000)}"]`)])];
  expect(Math.max(...pieces.map(({ length }) => length))).toBeLessThan(64 * 1024);
  expect(Buffer.concat(pieces).length).toBeGreaterThan(18_000_000);
});
