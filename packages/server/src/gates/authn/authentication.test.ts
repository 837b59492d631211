import { type Exchange, randomOf, StatusError } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import { createAuthentication } from './authentication.ts';
import type { Authenticator } from './contract.ts';
import { parseBearer } from './credentials.ts';
import { createStaticTokenAuthenticator } from './static-token.ts';

function exchangeWith(authorization?: string, memo = new Map<symbol, unknown>()): Exchange {
  const connection = { memo, encrypted: true, peerCertificates: () => [] };
  return {
    header: (name: string) => (name === 'authorization' ? authorization : undefined),
    connection,
  } as unknown as Exchange;
}

const alice = { name: 'alice', uid: '1', groups: ['dev'], extra: {} };
const byToken = createStaticTokenAuthenticator({
  name: 'file',
  entries: [{ token: 'secret', user: alice }],
});

describe('bearer header', () => {
  test.each([
    ['Bearer abc', 'abc'],
    ['bearer abc', 'abc'],
    ['BEARER abc', 'abc'],
    ['  Bearer abc  ', 'abc'],
    ['Bearer abc def', 'abc'],
    ['Bearer  abc', undefined],
    ['Bearer ', undefined],
    ['Bearer', undefined],
    ['Basic abc', undefined],
    ['', undefined],
  ])('%j -> %j', (header, token) => {
    expect(parseBearer(header)).toBe(token);
  });
});

describe('authentication', () => {
  const authenticate = createAuthentication({ authenticators: [byToken], anonymous: true });

  test('AUTHN-12: a valid token authenticates its user, in system:authenticated', () => {
    expect(authenticate(exchangeWith('Bearer secret'))).toEqual({
      ...alice,
      groups: ['dev', 'system:authenticated'],
    });
  });

  test('AUTHN-1: a request without credentials is anonymous, or 401 if that is disabled', () => {
    const strict = createAuthentication({ authenticators: [byToken], anonymous: false });
    expect(authenticate(exchangeWith())).toMatchObject({
      name: 'system:anonymous',
      groups: ['system:unauthenticated'],
    });
    expect(() => strict(exchangeWith())).toThrow(StatusError);
  });

  test('AUTHN-1: an invalid credential is 401, never anonymous', () => {
    for (const token of ['wrong', 'secre', 'secret2', 'SECRET', '__proto__', '\u0000']) {
      expect(() => authenticate(exchangeWith(`Bearer ${token}`))).toThrow('Unauthorized');
    }
  });

  test('a cached header does not leak to another connection or header', () => {
    const memo = new Map<symbol, unknown>();
    expect(authenticate(exchangeWith('Bearer secret', memo))).toMatchObject({ name: 'alice' });
    expect(authenticate(exchangeWith('Bearer secret', memo))).toMatchObject({ name: 'alice' });
    expect(() => authenticate(exchangeWith('Bearer other', memo))).toThrow();
    expect(authenticate(exchangeWith(undefined, memo))).toMatchObject({ name: 'system:anonymous' });
  });

  test('AUTHN-12: a later authenticator may accept a token that earlier ones rejected', async () => {
    const user = { name: 'root', uid: '', groups: ['system:masters'], extra: {} };
    const admin = createStaticTokenAuthenticator({
      name: 'admin',
      entries: [{ token: 'own', user }],
    });
    const slow: Authenticator = {
      name: 'slow',
      authenticate: async () => {
        throw new Error('not mine');
      },
    };
    const all = createAuthentication({ authenticators: [byToken, slow, admin], anonymous: true });
    await expect(all(exchangeWith('Bearer own'))).resolves.toMatchObject({
      groups: ['system:masters', 'system:authenticated'],
    });
    await expect(all(exchangeWith('Bearer nobody'))).rejects.toThrow('Unauthorized');
  });

  test('random tokens are never accepted and never crash', () => {
    const seed = Math.floor(Math.random() * 2 ** 31);
    const { fraction: next } = randomOf(seed);
    for (let round = 0; round < 2000; round++) {
      const length = Math.floor(next() * 20);
      const codes = Array.from({ length }, () => Math.floor(next() * 300));
      const header = `Bearer ${String.fromCharCode(...codes)}`;
      let user: unknown;
      try {
        user = authenticate(exchangeWith(header));
      } catch (error) {
        expect(error, `seed ${seed}`).toBeInstanceOf(StatusError);
        continue;
      }
      expect(user, `seed ${seed}`).toMatchObject({ name: 'system:anonymous' });
    }
  });
});
