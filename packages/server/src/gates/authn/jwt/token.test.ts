import { expect, test } from 'vitest';
import { checkClaims, JwtError, readToken } from './token.ts';

const encode = (part: unknown) => Buffer.from(JSON.stringify(part)).toString('base64url');
const tokenOf = (claims: unknown, header: unknown = { alg: 'RS256', kid: 'a' }) =>
  `${encode(header)}.${encode(claims)}.c2ln`;

test('a token is parsed without being trusted', () => {
  const token = readToken(tokenOf({ iss: 'https://x', sub: 'y' }));
  expect(token).toMatchObject({
    algorithm: 'RS256',
    keyId: 'a',
    issuer: 'https://x',
    claims: { iss: 'https://x', sub: 'y' },
  });
  expect(readToken(tokenOf({ iss: 7 }, { alg: 7, kid: 7 }))).toMatchObject({
    algorithm: '',
    keyId: '',
    issuer: '',
  });
});

test('Google’s issuer has two spellings', () => {
  const issuer = 'https://accounts.google.com';
  expect(readToken(tokenOf({ iss: 'accounts.google.com' }))?.issuer).toBe(issuer);
  expect(readToken(tokenOf({ iss: issuer }))?.issuer).toBe(issuer);
});

test.each([
  ['', 'nothing'],
  ['a.b', 'two parts'],
  [`${tokenOf({})}.x`, 'four parts'],
  [tokenOf([]), 'claims that are not an object'],
  [tokenOf({}, []), 'a header that is not an object'],
  [tokenOf({}, { alg: 'RS256', b64: false }), 'an unencoded payload'],
  [tokenOf({}).replace('c2ln', 'c2ln='), 'padding'],
  [tokenOf({}).replace('c2ln', 'c2lu_x'), 'nonzero unused bits'],
  [tokenOf({ a: 'x'.repeat(70_000) }), 'too long'],
])('$0 is not a token: $1', (text) => {
  expect(readToken(text)).toBeUndefined();
});

const nowMs = 1_000_000_000_000;
const verify = (claims: object) =>
  checkClaims({ aud: 'us', exp: 1_000_000_100, ...claims }, { audiences: ['us', 'we'], nowMs });

test.each<[object, number]>([
  [{}, 1_000_000_100_000],
  [{ exp: '1000000100' }, 1_000_000_100_000],
  [{ exp: 1_000_000_000.5 }, 1_000_000_000_500],
  [{ exp: 1_000_000_000 }, 1_000_000_000_000],
  [{ nbf: 1_000_000_060 }, 1_000_000_100_000],
  [{ aud: ['them', 'we'] }, 1_000_000_100_000],
])('claims with %j are valid until %d', (claims, expiresMs) => {
  expect(verify(claims)).toBe(expiresMs);
});

test.each([
  [{ exp: 999_999_999 }, 'token is expired'],
  [{ exp: undefined }, 'token is expired'],
  [{ exp: null }, 'token is expired'],
  [{ exp: 'soon' }, 'exp is not a time'],
  [{ exp: {} }, 'exp is not a time'],
  [{ nbf: 1_000_000_061 }, 'before the nbf'],
  [{ nbf: [] }, 'nbf is not a time'],
  [{ aud: [] }, 'expected audience in ["us" "we"]'],
  [{ aud: { us: true } }, 'expected audience in ["us" "we"]'],
  [{ aud: [['us']] }, 'expected audience in ["us" "we"]'],
])('claims with %j are invalid', (claims, message) => {
  expect(() => verify(claims)).toThrow(JwtError);
  expect(() => verify(claims)).toThrow(message);
});
