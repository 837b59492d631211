import { describe, expect, test } from 'vitest';
import type { JsonValue } from '../../base/json.ts';
import { CborError, decodeCbor } from './decode.ts';
import { encodeCbor } from './encode.ts';

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

  test('grows with its content', () => {
    const value = { text: 'x'.repeat(100_000), list: Array.from({ length: 5000 }, (_, n) => n) };
    expect(decodeCbor(encodeCbor(value))).toEqual(value);
  });
});

describe('decoding', () => {
  test.each<[string, string, JsonValue]>([
    ['text strings as well as byte strings', '82616141 62', ['a', 'b']],
    ['strings in pieces', '7f6161616 2ff', 'ab'],
    ['lists and maps without a length', 'bf61619f01ffff', { a: [1] }],
    ['halves', 'f93e00', 1.5],
    ['a time in text', 'c074323032342d30312d30325430333a30343a30355a', '2024-01-02T03:04:05Z'],
    ['a time in seconds', 'c11a659376a5', '2024-01-02T02:36:21Z'],
    ['bytes for base64', 'd6430001ff', 'AAH/'],
    ['bytes for base16', 'd7420aff', '0aff'],
    ['an unknown tag around a value', 'd9010001', 1],
    ['a member named __proto__', 'a1695f5f70726f746f5f5f01', JSON.parse('{"__proto__":1}')],
  ])('%s', (_, hex, value) => {
    expect(decodeHex(hex.replaceAll(' ', ''))).toEqual(value);
  });

  test.each([
    ['nothing', '', 'unexpected EOF'],
    ['two items', '0101', 'extraneous data'],
    ['a length bomb', '9b00ffffffffffffff', 'unexpected EOF'],
    ['a string past the end', '5affffffff', 'unexpected EOF'],
    ['the same key twice, once as text', 'a2416101616102', 'found duplicate map key "a"'],
    ['a number as a key', 'a10101', 'map key'],
    ['text that is no UTF-8', '61ff', 'invalid UTF-8'],
    ['not a number', 'f97e00', 'NaN'],
    ['infinity', 'fa7f800000', 'NaN'],
    ['undefined', 'f7', 'simple value 23'],
    ['an integer of 64 bits without sign', '1bffffffffffffffff', 'overflows int64'],
    ['a bignum', 'c24101', 'bignum'],
    ['a time that is none', 'c0616e', 'as a time'],
    ['reserved information', '1c', 'additional information 28'],
  ])('%s is refused', (_, hex, message) => {
    expect(() => decodeHex(hex)).toThrow(CborError);
    expect(() => decodeHex(hex)).toThrow(message);
  });

  test('nesting beyond the limit is refused', () => {
    expect(() => decodeHex(`${'81'.repeat(100_000)}00`)).toThrow('max nested level');
  });

  test('random bytes give a value or a CborError', () => {
    const seed = Number(process.env['SEED'] ?? Math.floor(Math.random() * 2 ** 31));
    let state = seed;
    const next = (below: number) => {
      state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
      return (state >> 8) % below;
    };
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
