import { randomBytes } from 'node:crypto';
import { poly1305 as poly1305Tag } from '@noble/ciphers/_poly1305.js';
import { secretbox } from '@noble/ciphers/salsa.js';
import { runInOnePiece } from '@wheelhouse/machinery';
import { expect, test } from 'vitest';
import { openSteps, sealSteps } from './providers.ts';

const sealBox = (text: Buffer, options: Parameters<typeof sealSteps>[1]) =>
  runInOnePiece(sealSteps(text, options));
const openBox = (box: Buffer, options: Parameters<typeof openSteps>[1]) =>
  runInOnePiece(openSteps(box, options));

const hex = (text: string) => Buffer.from(text.replaceAll(/\s/g, ''), 'hex');

const poly1305 = (text: Buffer, key: Buffer) => Buffer.from(poly1305Tag(text, key));

/** NaCl's own test vector of crypto_secretbox. */
const vector = {
  key: hex('1b27556473e985d462cd51197a9a46c76009549eac6474f206c4ee0844f68389'),
  nonce: hex('69696ee955b62b73cd62bda875fc73d68219e0036b7a0b37'),
  text: hex(`be075fc53c81f2d5cf141316ebeb0c7b5228c52a4c62cbd44b66849b64244ffc
    e5ecbaaf33bd751a1ac728d45e6c61296cdc3c01233561f41db66cce314adb31
    0e3be8250c46f06dceea3a7fa1348057e2f6556ad6b1318a024a838f21af1fde
    048977eb48f59ffd4924ca1c60902e52f0a089bc76897040e082f93776384864
    5e0705`),
  box: hex(`f3ffc7703f9400e52a7dfb4b3d3305d98e993b9f48681273c29650ba32fc76ce
    48332ea7164d96a4476fb8c531a1186ac0dfc17c98dce87b4da7f011ec48c972
    71d2c20f9b928fe2270d6fb863d51738b48eeee314a7cc8ab932164548e526ae
    90224368517acfeabd6bb3732bc0e9da99832b61ca01b6de56244a9e88d5f9b3
    7973f622a43d14a6599b1f654cb45a74e355a5`),
};

test('STORE-3: secretbox matches NaCl’s test vector', () => {
  expect(sealBox(vector.text, vector).toString('hex')).toBe(vector.box.toString('hex'));
  expect(openBox(vector.box, vector)?.toString('hex')).toBe(vector.text.toString('hex'));
});

test('STORE-3: Poly1305 matches the tags of RFC 8439', () => {
  const key = hex('85d6be7857556d337f4452fe42d506a80103808afb0db2fd4abff6af4149f51b');
  const text = Buffer.from('Cryptographic Forum Research Group');
  expect(poly1305(text, key).toString('hex')).toBe('a8061dc1305136c6c22b8baf0c0127a9');
  const zeros = Buffer.alloc(64);
  expect(poly1305(zeros, Buffer.alloc(32)).toString('hex')).toBe('00'.repeat(16));
  // Vectors 7 to 9 of its appendix A.3: sums at and just above the modulus.
  const r = (first: string) => Buffer.concat([hex(first.padEnd(32, '0')), Buffer.alloc(16)]);
  const high = hex(`ff${'ff'.repeat(15)} f0${'ff'.repeat(15)} 11${'00'.repeat(15)}`);
  expect(poly1305(high, r('01')).toString('hex')).toBe(`05${'00'.repeat(15)}`);
  const even = hex(`ff${'ff'.repeat(15)} fb${'fe'.repeat(15)} 01${'01'.repeat(15)}`);
  expect(poly1305(even, r('01')).toString('hex')).toBe('00'.repeat(16));
  const low = hex(`fd${'ff'.repeat(15)}`);
  expect(poly1305(low, r('02')).toString('hex')).toBe(`fa${'ff'.repeat(15)}`);
});

test('STORE-3: a box of any length opens to its text, unless a bit was changed', () => {
  const [key, nonce] = [randomBytes(32), randomBytes(24)];
  const lengths = Array.from({ length: 200 }, (_, length) => length);
  for (const length of [...lengths, 131_039, 131_040, 131_073, 1_000_000]) {
    const text = randomBytes(length);
    const box = sealBox(text, { key, nonce });
    expect(openBox(box, { key, nonce })?.equals(text)).toBe(true);
    expect(box.equals(secretbox(key, nonce).seal(text))).toBe(true);
    const at = length % box.length;
    box[at] = (box[at] as number) ^ 1;
    expect(openBox(box, { key, nonce })).toBeUndefined();
  }
  expect(openBox(Buffer.alloc(15), { key, nonce })).toBeUndefined();
  const otherBox = sealBox(Buffer.from('x'), { key: randomBytes(32), nonce });
  expect(openBox(otherBox, { key, nonce })).toBeUndefined();
});
