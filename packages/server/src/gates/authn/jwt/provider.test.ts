import { decodeJson } from '@wheelhouse/codec';
import type { JsonObject } from '@wheelhouse/machinery';
import { exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose';
import { beforeAll, describe, expect, test } from 'vitest';
import { isSigned, keysOf, signingAlgorithms } from './provider.ts';
import { readToken } from './token.ts';

let publicJwk: JWK;
let privateJwk: JWK;
let sign: (header: { alg: string; kid?: string }) => Promise<string>;

beforeAll(async () => {
  const { publicKey, privateKey } = await generateKeyPair('RS256', { extractable: true });
  publicJwk = await exportJWK(publicKey);
  privateJwk = await exportJWK(privateKey);
  sign = (header) => new SignJWT({ iss: 'x' }).setProtectedHeader(header).sign(privateKey);
});

async function isVerified(token: string, keys: readonly object[]): Promise<boolean> {
  const read = readToken(token);
  if (read === undefined) throw new Error('no token');
  return isSigned(read, keysOf({ keys: keys as JsonObject[] }));
}

describe('keys of a provider', () => {
  test('verify the tokens that they signed', async () => {
    expect(await isVerified(await sign({ alg: 'RS256' }), [publicJwk])).toBe(true);
    const named = await sign({ alg: 'RS256', kid: 'a' });
    expect(await isVerified(named, [{ ...publicJwk, kid: 'a', use: 'sig', alg: 'RS256' }])).toBe(
      true,
    );
  });

  test.each<[string, object]>([
    ['another id', { kid: 'b' }],
    ['an id that is not a string', { kid: ['a'] }],
    ['another use', { kid: 'a', use: 'enc' }],
    ['another algorithm', { kid: 'a', alg: 'PS256' }],
    ['another type', { kid: 'a', kty: 'EC', crv: 'P-256' }],
    ['no modulus', { kid: 'a', n: undefined }],
    ['an invalid modulus', { kid: 'a', n: 7 }],
  ])('with %s do not verify the token', async (_, change) => {
    const token = await sign({ alg: 'RS256', kid: 'a' });
    expect(await isVerified(token, [{ ...publicJwk, kid: 'a' }])).toBe(true);
    expect(await isVerified(token, [{ ...publicJwk, ...change }])).toBe(false);
  });

  test('that are private are used as public keys', async () => {
    expect(await isVerified(await sign({ alg: 'RS256' }), [privateJwk])).toBe(true);
  });

  test('that are symmetric or malformed are skipped', () => {
    const unsupported = [
      { kty: 'oct', k: 'AAAA' },
      { kty: 'OKP', crv: 'Ed25519', x: 'AA' },
      {},
      null,
      7,
      [],
    ];
    expect(keysOf({ keys: unsupported })).toEqual([]);
  });

  test('that are too short do not verify tokens', async () => {
    const { generateKeyPairSync, sign: signBytes } = await import('node:crypto');
    const short = generateKeyPairSync('rsa', { modulusLength: 1024 });
    const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url');
    const signed = `${encode({ alg: 'RS256' })}.${encode({ iss: 'x' })}`;
    const signature = signBytes('sha256', Buffer.from(signed), short.privateKey);
    const token = `${signed}.${signature.toString('base64url')}`;
    expect(await isVerified(token, [short.publicKey.export({ format: 'jwk' })])).toBe(false);
  });

  test.each(['{}', '[]', 'null', '{"keys":{}}', 'x'])('cannot be read from %s', (text) => {
    expect(() => keysOf(decodeJson(Buffer.from(text)).value)).toThrow();
  });

  test('have the algorithms that kube-apiserver accepts', () => {
    expect(signingAlgorithms.join(' ')).toBe(
      'ES256 ES384 ES512 PS256 PS384 PS512 RS256 RS384 RS512',
    );
  });
});
