import { createHmac } from 'node:crypto';
import { ConfigurationError } from '@wheelhouse/codec';
import { dialectOf, type JsonValue, runInOnePiece, systemClock } from '@wheelhouse/machinery';
import {
  readAuthenticationConfiguration,
  validateAuthentication,
} from '@wheelhouse/server/testing';
import { type CryptoKey, exportSPKI, importJWK } from 'jose';
import { expect, test } from 'vitest';
import { temporaryFile, untilEnd } from '../support/cleanup.ts';
import { eventually } from '../support/harness.ts';
import { quickClock } from '../support/quick-clock.ts';
import { withServer } from '../support/with-server.ts';
import { clientId, signingPair, startProvider } from './oidc-provider.ts';
import { whoAmI } from './who-am-i.ts';

const seed = Number(process.env['SEED'] ?? Math.floor(systemClock.now()) % 1_000_000);
const rounds = Number(process.env['FUZZ_ROUNDS'] ?? 200);
const group = 'authentication.svc.io';

/** Numbers in [0, 1) that a seed repeats. */
function randomOf(start: number): () => number {
  let state = start;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return state / 2 ** 31;
  };
}

const failures: string[] = [];

const provider = await untilEnd(startProvider());
const issuer = { url: provider.url, certificateAuthority: provider.caPem, audiences: [clientId] };
const text = JSON.stringify({
  apiVersion: 'apiserver.config.svc.io/v1beta1',
  kind: 'AuthenticationConfiguration',
  jwt: [
    {
      issuer,
      claimValidationRules: [{ expression: 'claims.sub.size() < 100' }],
      claimMappings: {
        username: { expression: "claims.sub + ''" },
        groups: { claim: 'groups', prefix: '' },
      },
    },
  ],
});
const file = temporaryFile('authentication.json', text);
const fail = (message: string, fields?: object) =>
  void failures.push(`${message} ${JSON.stringify(fields)}`);
const server = await withServer({
  clock: quickClock(10),
  logger: { verbosity: 0, info: () => {}, warn: () => {}, error: fail, debug: () => {} },
  authentication: { configFile: { path: file, anonymousFlag: 'absent' } },
});

/** Sends a token to an endpoint where its text may be arbitrary. */
async function isReviewed(token: string): Promise<boolean> {
  const body = { apiVersion: `${group}/v1`, kind: 'TokenReview', spec: { token } };
  const answer = await server.post(`/apis/${group}/v1/tokenreviews`, body);
  expect([201, 400, 413, 422], `seed ${seed}: ${answer.text.slice(0, 300)}`).toContain(
    answer.status,
  );
  return answer.body?.status?.authenticated === true;
}

const headerMax = 60_000;

const encode = (part: unknown) =>
  Buffer.from(typeof part === 'string' ? part : JSON.stringify(part)).toString('base64url');

test('AUTHN-7: no forged token is accepted', async () => {
  const good = await provider.token({ sub: 'jane' });
  await eventually(async () => (await whoAmI(server, good)).status === 201);
  const [head = '', body = '', signature = ''] = good.split('.');
  const [pair] = provider.keys;
  const publicKey = await importJWK(pair!.publicJwk, 'RS256', { extractable: true });
  const pem = await exportSPKI(publicKey as CryptoKey);
  const hmac = (header: object, key: string) => {
    const signed = `${encode(header)}.${body}`;
    return `${signed}.${createHmac('sha256', key).update(signed).digest('base64url')}`;
  };
  const mine = await signingPair('RS256', 'first', 1);
  const signedByMe = (header: Record<string, unknown>) =>
    provider.token({ sub: 'mallory' }, { by: mine, header });
  const forged = [
    `${encode({ alg: 'none' })}.${body}.`,
    `${encode({ alg: 'none', kid: 'first' })}.${body}.${signature}`,
    `${encode({ alg: 'None' })}.${body}.AA`,
    hmac({ alg: 'HS256', kid: 'first' }, pem),
    hmac({ alg: 'HS256', kid: 'first' }, pem.trim()),
    hmac({ alg: 'HS256', kid: 'first' }, JSON.stringify(pair!.publicJwk)),
    hmac({ alg: 'HS256', kid: 'first' }, ''),
    hmac({ alg: 'RS256', kid: 'first' }, pem),
    await signedByMe({}),
    await signedByMe({ jwk: mine.publicJwk }),
    await signedByMe({ jku: `${provider.url}/keys` }),
    await signedByMe({ kid: '__proto__' }),
    await signedByMe({ kid: 'x'.repeat(10_000) }),
    await provider
      .token({ sub: 'jane' }, { header: { crit: ['exp'], exp: 1 } })
      .catch(() => 'a.b.c'),
    `${encode({ alg: 'RS256', kid: 'first', crit: ['x'], x: 1 })}.${body}.${signature}`,
    `${encode({ alg: 'RS256', kid: 'first', b64: false, crit: ['b64'] })}.${body}.${signature}`,
    `${encode({ alg: ['RS256'], kid: 'first' })}.${body}.${signature}`,
    `${head}.${encode({ iss: provider.url, sub: 'mallory', aud: clientId, exp: 4e9 })}.${signature}`,
    `${head}.${body}`,
    `${head}.${body}.`,
    `${head}..${signature}`,
    `.${body}.${signature}`,
    `${head}.${body}.${signature}.x`,
    `${head}.${body}.${signature}.x.y`,
    `${head}.${body}.${signature}=`,
    `${head}.${body}.${signature}${signature}`,
    `${head}.${body}.${'A'.repeat(signature.length)}`,
    `${head}.${encode('[]')}.${signature}`,
    `${head}.${encode('{')}.${signature}`,
    `${head}.${encode(`{"iss":"${provider.url}","a":${'['.repeat(20_000)}`)}.${signature}`,
    `${head}.${encode({ iss: provider.url, pad: 'x'.repeat(80_000) })}.${signature}`,
    `${'A'.repeat(90_000)}.${body}.${signature}`,
    '.'.repeat(50_000),
    '..',
  ];
  for (const [index, token] of forged.entries()) {
    // A token that is too long for a header ends the stream.
    if (token.length < headerMax) {
      expect((await whoAmI(server, token)).status, `forged token ${index}`).toBe(401);
    }
    expect(await isReviewed(token), `forged token ${index}`).toBe(false);
  }
  expect((await whoAmI(server, good)).status).toBe(201);
}, 60_000);

test(`AUTHN-7: no token changed by chance (seed ${seed}) is let in, nor stops the server`, async () => {
  const random = randomOf(seed);
  const below = (limit: number) => Math.floor(random() * limit);
  const good = await provider.token({ sub: 'jane', groups: ['a'] });
  await eventually(async () => (await whoAmI(server, good)).status === 201);
  const letters = 'ABCZabcz019-_.';
  const mutate = (token: string): string => {
    const at = below(token.length);
    const letter = letters[below(letters.length)] ?? '';
    switch (below(6)) {
      case 0:
        return token.slice(0, at) + letter + token.slice(at + 1);
      case 1:
        return token.slice(0, at);
      case 2:
        return token.slice(0, at) + letter + token.slice(at);
      case 3:
        return token.slice(0, at) + token.slice(at + 1 + below(5));
      case 4:
        return token.slice(0, at) + token.slice(at).split('').reverse().join('');
      default:
        return token + token.slice(0, at);
    }
  };
  for (let round = 0; round < rounds; round += 1) {
    let token = good;
    for (let count = below(3); count >= 0; count -= 1) token = mutate(token);
    if (token === good) continue;
    const where = `seed ${seed}, round ${round}: ${token}`;
    // An empty token is no credential.
    if (token !== '') expect((await whoAmI(server, token)).status, where).toBe(401);
    const anything = token.replaceAll(/[AZ]/g, () => String.fromCodePoint(below(0xd7ff)));
    if (anything !== good) expect(await isReviewed(anything), where).toBe(false);
  }
  expect((await whoAmI(server, good)).status).toBe(201);
  // Slow providers are logged, which is no failure of the server.
  const own = failures.filter((line) => !line.startsWith('oidc authenticator:'));
  expect(own).toEqual([]);
}, 60_000);

const sample = {
  apiVersion: 'apiserver.config.svc.io/v1beta1',
  kind: 'AuthenticationConfiguration',
  jwt: [
    {
      issuer: {
        url: 'https://issuer.example',
        discoveryURL: 'https://discovery.example/x',
        certificateAuthority: '',
        audiences: ['a', 'b'],
        audienceMatchPolicy: 'MatchAny',
      },
      claimValidationRules: [
        { claim: 'hd', requiredValue: 'x' },
        { expression: "claims.hd == 'x' && claims.list.all(i, i > 1)", message: 'm' },
      ],
      claimMappings: {
        username: { expression: "claims.sub + '@' + claims.?name.orValue('')" },
        groups: { claim: 'groups', prefix: 'g:' },
        uid: { expression: 'string(claims.exp - claims.iat)' },
        extra: [{ key: 'example.org/a', valueExpression: "['a'].map(x, x + claims.b)" }],
      },
      userValidationRules: [{ expression: "!user.username.startsWith('system:')", message: 'm' }],
    },
  ],
  anonymous: { enabled: true, conditions: [{ path: '/livez' }] },
};

/** Changes a value at one place. */
function disturb(value: JsonValue, below: (limit: number) => number): JsonValue {
  const odd: readonly JsonValue[] = [
    null,
    0,
    -1.5,
    true,
    '',
    'x',
    [],
    {},
    [[]],
    '\u0000',
    '"'.repeat(50),
    'claims.'.repeat(500),
    '('.repeat(5000),
    `${'['.repeat(300)}1${']'.repeat(300)}`,
    'https://[::1',
    '-----BEGIN CERTIFICATE-----\nAA\n-----END CERTIFICATE-----',
    'a'.repeat(20_000),
    '__proto__',
  ];
  if (typeof value !== 'object' || value === null || below(8) === 0) {
    return odd[below(odd.length)] ?? null;
  }
  const members = Object.entries(value);
  const [key, member] = members[below(members.length)] ?? [];
  const copy = Array.isArray(value) ? [...value] : { ...value };
  if (key === undefined || below(12) === 0) {
    if (Array.isArray(copy)) copy.push(odd[below(odd.length)] ?? null);
    else copy[`k${below(100)}`] = odd[below(odd.length)];
  } else if (below(10) === 0) Reflect.deleteProperty(copy, key);
  else Reflect.set(copy, key, disturb(member ?? null, below));
  return copy;
}

test(`AUTHN-8: no file changed by chance (seed ${seed}) does more than be refused`, async () => {
  const random = randomOf(seed + 1);
  const below = (limit: number) => Math.floor(random() * limit);
  const dialect = dialectOf('svc');
  const outcomes = { good: 0, refused: 0, unread: 0 };
  for (let round = 0; round < rounds; round += 1) {
    let text = JSON.stringify(round % 2 === 0 ? disturb(sample, below) : sample);
    if (round % 2 === 1) {
      const at = below(text.length);
      const part = ['"', '{', '}', ':', ' ', '&a', '*a', '\u0000', '', "'", '\n'][below(11)] ?? '';
      text = text.slice(0, at) + part + text.slice(at + below(4));
    }
    const where = `seed ${seed}, round ${round}: ${text.slice(0, 2000)}`;
    try {
      const configuration = await readAuthenticationConfiguration(text, dialect);
      const { errors } = runInOnePiece(
        validateAuthentication(configuration, {
          disallowedIssuers: ['x'],
          dialect,
          anonymousConfigurable: true,
        }),
      );
      outcomes[errors.length === 0 ? 'good' : 'refused'] += 1;
    } catch (error) {
      expect(error, where).toBeInstanceOf(ConfigurationError);
      outcomes.unread += 1;
    }
  }
  // A fuzz test with only one of the outcomes proves little.
  expect(Math.min(...Object.values(outcomes)), JSON.stringify(outcomes)).toBeGreaterThan(
    rounds / 60,
  );
}, 60_000);
