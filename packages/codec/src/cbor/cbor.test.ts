import { type JsonValue, randomOf, runInOnePiece } from '@wheelhouse/machinery';
import type { Property, Schema } from '@wheelhouse/schema';
import { describe, expect, test } from 'vitest';
import {
  CborError,
  decodeCbor,
  decodeCborAs,
  decodeCborMap,
  decodeStoredCborSteps,
} from './decode.ts';
import { diagnoseCbor } from './diagnose.ts';
import { encodeCbor } from './encode.ts';
import { storedLimits, wellFormedSteps } from './well-formed.ts';

const decodeHex = (hex: string) => decodeCbor(Buffer.from(hex, 'hex'));

describe('encoding', () => {
  test.each<[JsonValue, string]>([
    [0, '00'],
    [24, '1818'],
    [-500, '3901f3'],
    [9007199254740993n, '1b0020000000000001'],
    [1.5, 'fb3ff8000000000000'],
    ['ab', '426162'],
    [[true, null], '82f5f6'],
    [{ a: { b: [] } }, 'a14161a1416280'],
  ])('%o', (value, hex) => {
    expect(encodeCbor(value).toString('hex')).toBe(`d9d9f7${hex}`);
    expect(decodeCbor(encodeCbor(value))).toEqual(value);
  });

  test('the buffer grows with its content', () => {
    const value = { text: 'x'.repeat(100_000), list: Array.from({ length: 1024 }, (_, n) => n) };
    expect(decodeCbor(encodeCbor(value))).toEqual(value);
  });
});

describe('decoding', () => {
  test.each<[string, string, JsonValue]>([
    ['text strings as well as byte strings', '82616141 62', ['a', 'b']],
    ['strings in pieces', '7f6161616 2ff', 'ab'],
    ['lists and maps without a length', 'bf61619f01ffff', { a: [1] }],
    ['halves', 'f93e00', 1.5],
    [
      'times as Go prints them',
      'c0781c323032342d30312d30325430333a30343a30352e35302b30303a3030',
      '2024-01-02T03:04:05.5Z',
    ],
    ['a time in text', 'c074323032342d30312d30325430333a30343a30355a', '2024-01-02T03:04:05Z'],
    ['a time in seconds', 'c11a659376a5', '2024-01-02T02:36:21Z'],
    ['bytes for base64', 'd6430001ff', 'AAH/'],
    ['bytes for base64 in a list', 'd6 82 430001ff d7 42 0aff', ['AAH/', '0aff']],
    ['bytes for base16', 'd7420aff', '0aff'],
    ['an unknown tag around a value', 'd9010001', 1],
    ['nil for a key, which is the key before', 'a1f601', { '': 1 }],
    ['a member named __proto__', 'a1695f5f70726f746f5f5f01', JSON.parse('{"__proto__":1}')],
  ])('%s', (_, hex, value) => {
    expect(decodeHex(hex.replaceAll(' ', ''))).toEqual(value);
  });

  test.each([
    ['nothing', '', 'EOF'],
    ['two items', '010203', 'cbor: 2 bytes of extraneous data starting at index 1'],
    ['a list that ends early', '8201', 'unexpected EOF'],
    ['a long list', '990401', 'cbor: exceeded max number of elements 1024 for CBOR array'],
    ['a long map', 'b90401', 'cbor: exceeded max number of key-value pairs 1024 for CBOR map'],
    [
      'a length beyond 63 bits',
      '5bffffffffffffffff',
      'cbor: byte string length 18446744073709551615 is too large, causing integer overflow',
    ],
    ['a string past the end', '5affffffff', 'unexpected EOF'],
    ['a stop where nothing began', 'ff', 'cbor: unexpected "break" code'],
    ['a stop behind a key', 'bf6161ff', 'cbor: unexpected "break" code'],
    [
      'pieces of another type',
      '7f4161ff',
      'cbor: wrong element type byte string for indefinite-length UTF-8 text string',
    ],
    [
      'pieces in pieces',
      '5f5fffff',
      'cbor: indefinite-length byte string chunk is not definite-length',
    ],
    [
      'reserved information',
      '1c',
      'cbor: invalid additional information 28 for type positive integer',
    ],
    ['a simple value in two bytes', 'f818', 'cbor: invalid simple value 24 for type primitives'],
    [
      'not a number',
      'f97e00',
      'cbor: data item of cbor type primitives is not accepted by protocol: floating-point NaN',
    ],
    [
      'infinity',
      'fa7f800000',
      'cbor: data item of cbor type primitives is not accepted by protocol: ' +
        'floating-point infinity',
    ],
    [
      'undefined',
      'f7',
      'cbor: data item of cbor type primitives is not accepted by protocol: ' +
        'simple value 23 is not recognized',
    ],
    ['a bignum', 'c24101', 'cbor: data item of cbor type tag is not accepted by protocol: bignum'],
    [
      'the same key twice, once as text',
      'a2416101616102',
      'cbor: found duplicate map key "a" at map element index 1',
    ],
    [
      'a number as a key',
      'a10101',
      'cbor: cannot unmarshal positive integer into Go value of type string',
    ],
    ['text that is no UTF-8', '61ff', 'cbor: invalid UTF-8 string'],
    [
      'an integer of 64 bits without sign',
      '1bffffffffffffffff',
      'cbor: cannot unmarshal positive integer into Go value of type int64 ' +
        "(18446744073709551615 overflows Go's int64)",
    ],
    [
      'bytes for a time',
      'c04161',
      'cbor: tag number 0 must be followed by text string, got byte string',
    ],
    [
      'a time that is none',
      'c0616e',
      'cbor: cannot set n for time.Time: parsing time "n" as "2006-01-02T15:04:05Z07:00": ' +
        'cannot parse "n" as "2006"',
    ],
    [
      'a time too late',
      'c11b7fffffffffffffff',
      'cbor: decoded time cannot be represented in RFC3339 format with sub-second precision: ' +
        'Time.MarshalText: year outside of range [0,9999]',
    ],
    ['a malformed item after one of the wrong type', '82f7', 'unexpected EOF'],
    ['the first of two faults', '82f061ff', 'simple value 16 is not recognized'],
  ])('%s is rejected', (_, hex, message) => {
    expect(() => decodeHex(hex)).toThrow(CborError);
    expect(() => decodeHex(hex)).toThrow(message);
  });

  test('nesting beyond the limit is rejected', () => {
    expect(() => decodeHex(`${'81'.repeat(100_000)}00`)).toThrow('max nested level');
  });

  test('random bytes yield a value or a CborError', () => {
    const seed = Number(process.env['SEED'] ?? Math.floor(Math.random() * 2 ** 31));
    const { below: next } = randomOf(seed);
    const whole = encodeCbor({ a: [1, 'two', { three: -3.5 }], b: { c: null, d: true } });
    for (let round = 0; round < Number(process.env['FUZZ_ROUNDS'] ?? 5_000); round += 1) {
      const body = Buffer.from(whole.subarray(0, 1 + next(whole.length)));
      for (let edits = 1 + next(6); edits > 0; edits -= 1) body[next(body.length)] = next(256);
      try {
        decodeCbor(body);
      } catch (error) {
        const text = `seed ${seed} round ${round}: ${String(error)}`;
        expect(error instanceof CborError, text).toBe(true);
      }
    }
  });
});

describe('decoding into a type', () => {
  const text: Schema = { type: 'string' };
  const schema: Schema = {
    type: 'object',
    typeName: 'test.v1.Thing',
    properties: new Map<string, Property>([
      ['name', { schema: text }],
      ['count', { schema: { type: 'integer', format: 'int32' }, pointer: true }],
      ['ratio', { schema: { type: 'number' } }],
      ['bytes', { schema: { type: 'string', format: 'byte' } }],
      ['at', { schema: { type: 'string', format: 'date-time' } }],
      ['port', { schema: { intOrString: true } }],
      ['tags', { schema: { type: 'array', items: text } }],
      ['map', { schema: { type: 'object', additionalProperties: text } }],
      ['any', { schema: { preserveUnknownFields: true, typeName: 'runtime.RawExtension' } }],
    ]),
  };
  const decode = (member: string, hex: string) =>
    decodeCborAs(
      schema,
      Buffer.concat([encodeCbor({ [member]: 0 }).subarray(0, -1), fromHex(hex)]),
    );
  const fromHex = (hex: string) => Buffer.from(hex, 'hex');

  test.each<[string, string, JsonValue]>([
    ['name', '4161', 'a'],
    ['name', 'd6420001', 'AAE='],
    ['count', '3a7fffffff', -2147483648],
    ['count', 'f7', null],
    ['ratio', '05', 5],
    ['bytes', '4461475672', 'aGVr'],
    ['bytes', 'd743616263', 'YWJj'],
    ['bytes', '83010203', 'AQID'],
    ['port', '1850', 80],
    ['tags', 'f6', null],
    ['map', 'bf61616162ff', { a: 'b' }],
    ['any', 'a1f601', { '': 1 }],
  ])('%s of %s', (name, hex, value) => {
    expect(decode(name, hex)).toEqual({ value: { [name]: value } });
  });

  test.each([
    ['name', '01', 'positive integer into Go struct field v1.Thing.name of type string'],
    ['count', '1a80000000', 'v1.Thing.count of type int32 (2147483648 overflows int32)'],
    ['count', 'f93c00', 'primitives into Go struct field v1.Thing.count of type int32'],
    ['ratio', '4161', 'byte string into Go struct field v1.Thing.ratio of type float64'],
    ['bytes', '6161', 'UTF-8 text string into Go struct field v1.Thing.bytes of type []uint8'],
    ['bytes', '4161', 'cbor: failed to decode base64 from byte string: illegal base64 data'],
    ['at', '00', 'positive integer into Go struct field v1.Thing.at of type string'],
    ['at', '4161', 'parsing time "a" as "2006-01-02T15:04:05Z07:00": cannot parse "a" as "2006"'],
    ['port', 'f4', 'primitives into Go struct field v1.Thing.port of type int32'],
    ['tags', 'a0', 'map into Go struct field v1.Thing.tags of type []string'],
    ['tags', '820161ff', 'positive integer into Go struct field v1.Thing.tags of type string'],
    ['map', '80', 'array into Go struct field v1.Thing.map of type map[string]string'],
    ['map', 'a2616161626161f7', 'simple value 23 is not recognized'],
    ['any', 'f7', 'failed to parse RawExtension bytes as CBOR: cbor: data item of cbor type'],
  ])('%s of %s is rejected', (name, hex, message) => {
    expect(() => decode(name, hex)).toThrow(message);
  });

  test('unknown members are reported by name and omitted', () => {
    const bytes = encodeCbor({ name: 'a', what: 1, count: 2, more: { what: 1 } });
    const { value, unknown } = decodeCborAs(schema, bytes);
    expect(value).toEqual({ name: 'a', count: 2 });
    expect(unknown?.paths).toEqual(['what', 'more']);
  });

  test('skipped values are not checked, but their keys are', () => {
    expect(decodeCborAs(schema, fromHex('a1617861ff')).value).toEqual({});
    expect(() => decodeCborAs(schema, fromHex('a2617800617800'))).toThrow(
      'cbor: found duplicate map key "x" at map element index 1',
    );
    expect(() => decodeCborAs(schema, fromHex('80'))).toThrow(
      'cbor: cannot unmarshal array into Go value of type v1.Thing ' +
        '(cannot decode CBOR array to struct without toarray option)',
    );
    expect(() => decodeCborAs(schema, fromHex('a1f501'))).toThrow(
      'cbor: cannot unmarshal primitives into Go value of type string (map key is of type ' +
        'primitives and cannot be used to match struct field name)',
    );
  });
});

test('diagnostic notation shows each type of item', () => {
  const hex =
    'd9d9f7a4416118ff626222bf6178f6ff41629f200a4041c3fb4341c37937e08000f93c00fb3e112e0be826d695ff' +
    '62c3a9825f4100ff5fff';
  expect(diagnoseCbor(Buffer.from(hex, 'hex'))).toBe(
    `55799({'a': 255, "b\\"": {_ "x": null}, 'b': [_ -1, 10, h'', h'c3', 10000000000000000.0, ` +
      `1.0, 1.0e-9], "\\u00e9": [(_ '\\u0000'), ''_]})`,
  );
});

test('STORE-2: stored values may have longer lists than bodies', () => {
  const value = { items: Array.from({ length: 2000 }, (_, index) => ({ index })) };
  const bytes = encodeCbor(value);
  expect(() => decodeCborMap(bytes)).toThrow(/1024/);
  const steps = decodeStoredCborSteps(bytes);
  let pauses = 0;
  for (let step = steps.next(); ; step = steps.next(), pauses += 1) {
    if (step.done !== true) continue;
    expect(step.value).toEqual(value);
    break;
  }
  expect(pauses).toBeGreaterThan(5);
});

test('TRUST-2: stored values are checked in steps, whatever their shape', () => {
  const bytes = encodeCbor({ a: Array.from({ length: 20_000 }, () => [0]) });
  let pauses = 0;
  for (const _ of wellFormedSteps(bytes, storedLimits)) pauses += 1;
  expect(pauses).toBeGreaterThan(20);
});

test.each([
  ['a map without a tag', 'a1616101'],
  ['another tag', 'c1a1616101'],
  ['no map', 'd9d9f701'],
  ['null', 'd9d9f7f6'],
  ['a key that repeats', 'd9d9f7a261610161618101'],
  ['a key of another type', 'd9d9f7a2f5016162a1f501'],
])('CODEC-4: stored values are decoded like bodies: %s', (_, hex) => {
  const bytes = Buffer.from(hex, 'hex');
  const outcome = (decode: () => JsonValue) => {
    try {
      return decode();
    } catch (error) {
      return String(error);
    }
  };
  const asBody = outcome(() => decodeCborMap(bytes));
  expect(outcome(() => runInOnePiece(decodeStoredCborSteps(bytes)))).toEqual(asBody);
});
