import { expect, test } from 'vitest';
import { parseResourceVersion } from './resource-version.ts';

test.each([
  [undefined, 0],
  ['', 0],
  ['0', 0],
  ['17', 17],
  ['007', 7],
  ['9007199254740991', 9007199254740991],
  ['9007199254740993', Infinity],
  ['18446744073709551615', Infinity],
])('parses %s', (text, revision) => {
  expect(parseResourceVersion(text)).toEqual({ ok: true, revision });
});

test.each([
  ['abc', 'strconv.ParseUint: parsing "abc": invalid syntax'],
  ['-1', 'strconv.ParseUint: parsing "-1": invalid syntax'],
  ['1e3', 'strconv.ParseUint: parsing "1e3": invalid syntax'],
  ['18446744073709551616', 'strconv.ParseUint: parsing "18446744073709551616": value out of range'],
])('rejects %s', (text, why) => {
  expect(parseResourceVersion(text)).toEqual({ ok: false, why });
});
