import fc from 'fast-check';
import { expect, test } from 'vitest';
import { indentJson } from './indent-json.ts';

const laidOut = (compact: string) => indentJson(Buffer.from(compact)).toString();

test('any JSON is laid out as JSON.stringify lays it out', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 6 }), (value) => {
      expect(laidOut(JSON.stringify(value))).toBe(`${JSON.stringify(value, null, 2)}\n`);
    }),
    { numRuns: 500 },
  );
});

test('numbers and escapes stay as they are, and white space is not', () => {
  expect(laidOut('{"a": 9223372036854775807,\t"b":"\\u00e9\\"{,}"}\n')).toBe(
    '{\n  "a": 9223372036854775807,\n  "b": "\\u00e9\\"{,}"\n}\n',
  );
});

test('what grows beyond twice its size, and long strings, are there as a whole', () => {
  const value = {
    deep: JSON.parse(`${'['.repeat(300)}${']'.repeat(300)}`),
    long: 'é"'.repeat(500),
  };
  expect(laidOut(JSON.stringify(value))).toBe(`${JSON.stringify(value, null, 2)}\n`);
});

test('what breaks off is laid out as far as it goes', () => {
  expect(laidOut('{"a":"b\\')).toBe('{\n  "a": "b\\\n');
});
