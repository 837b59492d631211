import { expect, test } from 'vitest';
import { decodeContinue, encodeContinue, parseResourceVersion } from './resource-version.ts';

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

const version = 'meta.test/v1';
const raw = (value: unknown) =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url');

test('decodes an encoded token', () => {
  const point = { revision: 77, start: 'default/wéb\0' };
  const token = encodeContinue(point, version);
  expect(token).toMatch(/^[A-Za-z0-9_-]+$/);
  expect(decodeContinue(token, version)).toEqual({ ok: true, point });
});

const head = 'continue key is not valid';
const bad: readonly [string, string][] = [
  ['=', `${head}: illegal base64 data at input byte 0`],
  ['abcde', `${head}: illegal base64 data at input byte 4`],
  ['abcd\nefghi', `${head}: illegal base64 data at input byte 9`],
  [raw('not json'), `${head}: invalid character 'o' in literal null (expecting 'u')`],
  [raw('tru'), `${head}: invalid character ' ' in literal true (expecting 'e')`],
  [raw('{"v"'), `${head}: unexpected end of JSON input`],
  [
    Buffer.from([0x7b, 0x80]).toString('base64url'),
    `${head}: ${String.raw`invalid character '\u0080'`} looking for beginning of object key string`,
  ],
  [raw('[1]'), `${head}: json: cannot unmarshal array into Go value of type storage.continueToken`],
  [
    raw({ v: version, rv: true, start: [] }),
    `${head}: json: cannot unmarshal bool into Go struct field continueToken.rv of type int64`,
  ],
  [
    raw({ V: version, Start: 5 }),
    `${head}: json: cannot unmarshal number into Go struct field continueToken.start of type string`,
  ],
  [raw('null'), `${head}: server does not recognize this encoded version `],
  [raw({ rv: 1, start: 'a' }), `${head}: server does not recognize this encoded version `],
  [
    raw({ v: 'meta.other/v1', rv: 1, start: 'a' }),
    `${head}: server does not recognize this encoded version meta.other/v1`,
  ],
  [
    raw({ v: version, rv: 0, start: 'a' }),
    `${head}: incorrect encoded start resourceVersion (version ${version})`,
  ],
  [
    raw(`{"v":"${version}","rv":1.0,"start":"a"}`),
    `${head}: json: cannot unmarshal number 1.0 into Go struct field continueToken.rv of type int64`,
  ],
  [raw({ v: version, rv: 1, start: '' }), `${head}: encoded start key empty (version ${version})`],
  [raw({ v: version, rv: 1, start: '../secrets/a' }), `${head}: ../secrets/a`],
  [raw({ v: version, rv: 1, start: 'a/../../b' }), `${head}: a/../../b`],
  [raw({ v: version, rv: 1, start: './a' }), `${head}: ./a`],
  [raw({ v: version, rv: 1, start: 'a/' }), `${head}: a/`],
  [raw({ v: version, rv: 1, start: 'a//b' }), `${head}: a//b`],
  ['a'.repeat(100_000), `${head}: too long`],
];

test.each(bad)('rejects $0', (token, why) => {
  expect(decodeContinue(token, version)).toEqual({ ok: false, why });
});
