import { expect, test } from 'vitest';
import { milliValue, parseQuantity, roundToThousandths } from './quantity.ts';

const stored = (text: string) => {
  const quantity = parseQuantity(text);
  return 'error' in quantity ? quantity.error : quantity.text;
};

test.each([
  ['0', '0'],
  ['0Mi', '0'],
  ['5', '5'],
  ['+5', '+5'],
  ['1000', '1k'],
  ['1200', '1200'],
  ['12000', '12k'],
  ['1000m', '1'],
  ['1500m', '1500m'],
  ['0.5', '500m'],
  ['1.5', '1500m'],
  ['1.500', '1.500'],
  ['-0.5', '-500m'],
  ['100Mi', '100Mi'],
  ['1024Ki', '1Mi'],
  ['1025Ki', '1025Ki'],
  ['1536Mi', '1536Mi'],
  ['1.5Gi', '1536Mi'],
  ['0.5Gi', '512Mi'],
  ['512Ki', '512Ki'],
  ['1e3', '1e3'],
  ['1e1', '10'],
  ['100e1', '1e3'],
  ['1E', '1E'],
  ['1E3', '1E3'],
  ['0.0000000001', '1n'],
  ['0.5Ki', '512'],
  [' 7 ', '7'],
  ['123456789012345678901', '123456789012345678901'],
])('%j is stored as %j', (text, expected) => {
  expect(stored(text)).toBe(expected);
});

test.each(['', '1 Gi', 'abc', '1Gx', '1.2.3', '1m5x'])('%j is not a quantity', (text) => {
  expect(stored(text)).toMatch(/^quantities must match the regular expression '\^\(\[\+-\]/);
});

test.each(['--1', '1K', '1KK', '1Mm', '1e', '1ee3', '1e999999999', '1000e256'])(
  '%j has an unknown suffix',
  (text) => {
    expect(stored(text)).toBe("unable to parse quantity's suffix");
  },
);

test.each([
  ['1500u', 2n],
  ['999999999999999999', BigInt.asIntN(64, 999_999_999_999_999_999_000n)],
  ['10P', 0n],
  ['1e16', 0n],
  ['10000000e9', 0n],
  ['1e15', 10n ** 18n],
])('the thousandths of %s are %s', (text, expected) => {
  const quantity = parseQuantity(text);
  expect('error' in quantity ? quantity : milliValue(quantity)).toBe(expected);
});

test.each([
  [`${'1'.repeat(256)}`, `${'1'.repeat(256)}`],
  [`${'1'.repeat(254)}.5`, 'unable to parse numeric part of quantity'],
  [`${'1'.repeat(252)}e256`, 'unable to parse numeric part of quantity'],
  ['10e255', '10e255'],
  ['Pi', 'unable to parse numeric part of quantity'],
  ['+.Ei', 'unable to parse numeric part of quantity'],
  ['e-10', 'unable to parse numeric part of quantity'],
  ['Ti', '0'],
  ['.e-9', '0'],
  ['0Ei', '0'],
  ['.0e-10', '0'],
])('the stored form of %s is a quantity', (text, expected) => {
  expect(stored(text)).toBe(expected);
});

test('equal amounts have equal billionths', () => {
  const nano = (text: string) => (parseQuantity(text) as { nano: bigint }).nano;
  expect(nano('1Gi')).toBe(nano('1073741824'));
  expect(nano('250m')).toBe(nano('0.25'));
  expect(nano('1Ki') > nano('1k')).toBe(true);
});

test.each([
  ['500m', '500m'],
  ['1.500', '1.500'],
  ['1.5u', '1m'],
  ['100n', '1m'],
  ['1.234567', '1235m'],
  ['-1.0001', '-1001m'],
  ['2000u', '2m'],
  ['1e-4', '1e-3'],
])('%j prints as %j in thousandths', (text, expected) => {
  expect(roundToThousandths(stored(text))).toBe(expected);
});
