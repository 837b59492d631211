import { expect, test } from 'vitest';
import { parseDurationFormat } from './formats.ts';

const second = 1_000_000_000n;
const day = 86_400n * second;

test.each([
  ['1h30m', 5_400n * second],
  ['7d', 7n * day],
  ['2 weeks', 14n * day],
  ['1wk 1Day, 2 hr and 3\tMinutes', 8n * day + 7_380n * second],
  ['3nanoseconds 2 µs 1 millis 5micro', 1_007_003n],
  ['1 2s', 2n * second],
  ['1-s 3sec', 3n * second],
  ['4x 1d', day],
  ['0000000000000000000000000000001s', second],
  ['9223372036854775807d', BigInt.asIntN(64, (2n ** 63n - 1n) * day)],
])('the duration %j', (text, nanoseconds) => {
  expect(parseDurationFormat(text)).toBe(nanoseconds);
});

test.each([
  ['', 'unable to parse  as duration'],
  ['7', 'unable to parse 7 as duration'],
  ['1constructor', 'unable to parse 1constructor as duration'],
  ['7 x', 'unable to parse 7 x as duration'],
  ['d 7', 'unable to parse d 7 as duration'],
  ['1d 9223372036854775808x', 'strconv.Atoi: parsing "9223372036854775808": value out of range'],
])('no duration: %j', (text, problem) => {
  expect(parseDurationFormat(text)).toBe(problem);
});

test.each([
  ['digits', '1'.repeat(500_000)],
  ['white space', `1${' '.repeat(500_000)}`.repeat(2)],
  ['zeros', `${'0'.repeat(500_000)}1x`],
])('a long text of %s takes linear time', (_, text) => {
  expect(parseDurationFormat(text)).toBe(`unable to parse ${text} as duration`);
});
