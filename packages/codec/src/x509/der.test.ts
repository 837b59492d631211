import { expect, test } from 'vitest';
import { DerError, oidText, readDer } from './der.ts';

/** The DER encoding of an object identifier with this content. */
function oid(content: readonly number[]): Buffer {
  const length =
    content.length < 0x80 ? [content.length] : [0x82, content.length >> 8, content.length & 0xff];
  return Buffer.from([0x06, ...length, ...content]);
}

test.each([
  [[0x2a, 0x86, 0x48], '1.2.840'],
  [[0x55, 0x1d, 0x0f], '2.5.29.15'],
  [[0x88, 0x37, 0x03], '2.999.3'],
  [[0x2a, 0x87, 0xff, 0xff, 0xff, 0x7f], '1.2.2147483647'],
])('the dotted form of %j is %s', (content, text) => {
  expect(oidText(readDer(oid(content)))).toBe(text);
});

test('TRUST-5: an arc of more than 31 bits is rejected, as in Go', () => {
  const element = readDer(oid([0x2a, 0x88, 0x80, 0x80, 0x80, 0x00]));
  expect(() => oidText(element)).toThrow(DerError);
});

test('TRUST-2: a long arc is rejected at once', () => {
  const element = readDer(oid([...new Array<number>(64_000).fill(0xff), 0x7f]));
  const start = performance.now();
  expect(() => oidText(element)).toThrow(DerError);
  expect(performance.now() - start).toBeLessThan(100);
});
