import type { Logger } from '@wheelhouse/machinery';
import { readOptions } from '@wheelhouse/server/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { temporaryFile, untilEnd } from '../support/cleanup.ts';
import { eventually, type TestServer } from '../support/harness.ts';
import { type QuickClock, quickClock } from '../support/quick-clock.ts';
import { withServer } from '../support/with-server.ts';
import { forgeNamesake } from './forged-certificates.ts';
import {
  clientId,
  collecting,
  inSeconds,
  type SigningPair,
  signingPair,
  startProvider,
} from './oidc-provider.ts';
import { userOfToken, whoAmI } from './who-am-i.ts';

const group = 'authentication.svc.io';

// Periodic tasks run ten times as often on the quick clock, so no server outlives its test.
const clock = quickClock(10);
const provider = await untilEnd(startProvider());
const ca = temporaryFile('ca.crt', provider.caPem);

/** The settings from the flags, with those that name the provider. */
function flagged(flags: readonly string[], from = { url: provider.url, caFile: ca }) {
  const outcome = readOptions([
    `--oidc-issuer-url=${from.url}`,
    `--oidc-client-id=${clientId}`,
    ...(from.caFile === '' ? [] : [`--oidc-ca-file=${from.caFile}`]),
    ...flags,
  ]);
  if (outcome.kind !== 'options') throw new Error('no options');
  const { oidc } = outcome.options.config.authentication;
  if (oidc === undefined) throw new Error('no flags of OpenID Connect');
  return { oidc };
}

function start(
  flags: readonly string[] = [],
  more: { logger?: Logger; from?: { url: string; caFile: string }; by?: QuickClock } = {},
): Promise<TestServer> {
  const { logger, from, by = clock } = more;
  return withServer({
    clock: by,
    ...(logger === undefined ? {} : { logger }),
    authentication: flagged(flags, from),
  });
}

/** Starts a server that has found the provider. */
async function startReady(...flags: string[]): Promise<TestServer> {
  const server = await start(flags);
  await ready(server);
  return server;
}

async function ready(server: TestServer): Promise<void> {
  await userOfToken(server, await provider.token(everything));
}

/** Claims that satisfy every server of these tests. */
const everything = { sub: 'x', email: 'x@example.com', hd: 'example.com', note: 'a,b=c' };

/** The status of a token on a server that has already discovered the provider. */
const statusOf = async (server: TestServer, token: string) => (await whoAmI(server, token)).status;

const authenticated = 'system:authenticated';

describe('AUTHN-7: the user', () => {
  test('AUTHN-7: is the issuer and sub, without groups, by default', async () => {
    const server = await start();
    const token = await provider.token({ sub: 'jane', groups: ['a'], jti: 'token-1' });
    expect(await userOfToken(server, token)).toEqual({
      username: `${provider.url}#jane`,
      groups: [authenticated],
      extra: { [`${group}/credential-id`]: ['JTI=token-1'] },
    });
    expect(await statusOf(server, await provider.token({ name: 'no sub' }))).toBe(401);
    expect(await statusOf(server, await provider.token({ sub: 7 }))).toBe(401);
  });

  test('AUTHN-7: may be the issuer and another claim', async () => {
    const server = await start(['--oidc-username-claim=name']);
    const token = await provider.token({ sub: 'x', name: 'Jane' });
    expect((await userOfToken(server, token)).username).toBe(`${provider.url}#Jane`);
  });

  test('AUTHN-7: may be an email address, unless it is unverified', async () => {
    const server = await start(['--oidc-username-claim=email']);
    const email = 'jane@example.com';
    expect((await userOfToken(server, await provider.token({ email }))).username).toBe(email);
    const verified = await provider.token({ email, email_verified: true });
    expect((await userOfToken(server, verified)).username).toBe(email);
    for (const email_verified of [false, 'true', 1, null]) {
      const token = await provider.token({ email, email_verified });
      expect(await statusOf(server, token), String(email_verified)).toBe(401);
    }
  });

  test.each([
    ['-', 'jane'],
    ['corp:', 'corp:jane'],
  ])('AUTHN-7: has the prefix %s', async (prefix, username) => {
    const server = await start([`--oidc-username-prefix=${prefix}`]);
    expect((await userOfToken(server, await provider.token({ sub: 'jane' }))).username).toBe(
      username,
    );
  });

  test('AUTHN-7: must have a name', async () => {
    const server = await startReady('--oidc-username-prefix=-');
    expect(await statusOf(server, await provider.token({ sub: '' }))).toBe(401);
  });

  test('AUTHN-7: has the groups of a claim, each prefixed', async () => {
    const server = await start(['--oidc-groups-claim=roles', '--oidc-groups-prefix=corp:']);
    const groupsOf = async (roles: unknown) =>
      (await userOfToken(server, await provider.token({ sub: 'x', roles }))).groups;
    expect(await groupsOf(['a', 'b'])).toEqual(['corp:a', 'corp:b', authenticated]);
    expect(await groupsOf('one')).toEqual(['corp:one', authenticated]);
    expect(await groupsOf([])).toEqual([authenticated]);
    expect(await groupsOf(undefined)).toEqual([authenticated]);
    for (const roles of [7, { a: 1 }, ['a', 7], [['a']]]) {
      const token = await provider.token({ sub: 'x', roles });
      expect(await statusOf(server, token), JSON.stringify(roles)).toBe(401);
    }
    const plain = await start(['--oidc-groups-claim=roles']);
    const token = await provider.token({ sub: 'x', roles: ['a'] });
    expect((await userOfToken(plain, token)).groups).toEqual(['a', authenticated]);
  });

  test('AUTHN-7: needs every required claim', async () => {
    const flags = ['--oidc-required-claim=hd=example.com', '--oidc-required-claim=note=a,b=c'];
    const server = await startReady(...flags);
    const token = await provider.token({ sub: 'x', hd: 'example.com', note: 'a,b=c' });
    expect(await statusOf(server, token)).toBe(201);
    for (const claims of [
      { hd: 'example.com' },
      { hd: 'example.com', note: 'a' },
      { hd: ['example.com'], note: 'a,b=c' },
      { hd: 'example.org', note: 'a,b=c' },
    ]) {
      const insufficient = await provider.token({ sub: 'x', ...claims });
      expect(await statusOf(server, insufficient), JSON.stringify(claims)).toBe(401);
    }
  });

  test('AUTHN-7: is reviewed for the server’s audiences', async () => {
    const server = await startReady();
    const review = async (token: string, audiences?: string[]) => {
      const spec = { token, audiences };
      const body = { apiVersion: `${group}/v1`, kind: 'TokenReview', spec };
      return (await server.post(`/apis/${group}/v1/tokenreviews`, body)).body.status;
    };
    const token = await provider.token({ sub: 'jane' });
    const own = 'https://svc.default.svc';
    expect(await review(token)).toEqual({
      authenticated: true,
      user: { username: `${provider.url}#jane`, groups: [authenticated] },
      audiences: [own],
    });
    expect((await review(token, ['elsewhere'])).authenticated).toBeUndefined();
    const bad = await review(await provider.token({ sub: 'jane', aud: 'secret-audience' }));
    expect(bad.authenticated).toBeUndefined();
    expect(bad.error).toContain('oidc: verify token: oidc: expected audience "wheelhouse"');
    expect(JSON.stringify(bad)).not.toContain('secret-audience');
  });
});

describe('AUTHN-7: a token', () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startReady();
    // All tests of this block use it.
  });
  afterAll(() => server.stop());

  test.each([
    ['is for another audience', { aud: 'other' }],
    ['is for no audience', { aud: undefined }],
    ['has expired', { exp: inSeconds(-5) }],
    ['never expires', { exp: undefined }],
    ['expires at no time', { exp: 'tomorrow' }],
    ['is not good yet', { nbf: inSeconds(300) }],
    ['was issued at no time', { iat: 'yesterday' }],
    ['was issued at null', { iat: null }],
    ['is for an audience that is no text', { aud: [clientId, 7] }],
    ['has a subject that is no text', { sub: 7, name: 'x' }],
    ['has a nonce that is no text', { nonce: ['x'] }],
    ['has malformed names of claims', { _claim_names: { groups: 7 } }],
    ['has malformed sources of claims', { _claim_sources: { source: 'x' } }],
    ['is of another issuer', { iss: 'https://other.example' }],
    ['is of no issuer', { iss: undefined }],
  ])('AUTHN-7: that %s is 401, never anonymous', async (_, claims) => {
    const answer = await whoAmI(server, await provider.token({ sub: 'x', ...claims }));
    expect(answer.status).toBe(401);
    expect(answer.body).toMatchObject({ reason: 'Unauthorized', message: 'Unauthorized' });
  });

  test('AUTHN-7: may have several audiences, and start up to a minute from now', async () => {
    const claims = { sub: 'x', aud: ['other', clientId], nbf: inSeconds(20) };
    expect(await statusOf(server, await provider.token(claims))).toBe(201);
  });

  test('AUTHN-7: is refused once it expires, even if it was cached', async () => {
    const token = await provider.token({ sub: 'x', exp: inSeconds(60) });
    expect(await statusOf(server, token)).toBe(201);
    clock.skip(61_000);
    expect(await statusOf(server, token)).toBe(401);
  });

  test('AUTHN-7: needs an algorithm of the list, RS256 by default', async () => {
    const all = 'RS256,RS384,RS512,ES256,ES384,ES512,PS256,PS384,PS512';
    const pairs: SigningPair[] = [];
    for (const algorithm of all.split(',')) {
      pairs.push(await signingPair(algorithm, `key-${algorithm}`));
    }
    const several = await untilEnd(startProvider({ keys: pairs }));
    const caFile = temporaryFile('ca.crt', several.caPem);
    const from = { url: several.url, caFile };
    const [byDefault, byList] = [
      await start([], { from }),
      await start([`--oidc-signing-algs=${all}`], { from }),
    ];
    for (const by of pairs) {
      const token = await several.token({ sub: 'x' }, { by });
      expect((await userOfToken(byList, token)).username).toBe(`${several.url}#x`);
      if (by.algorithm === 'RS256') await userOfToken(byDefault, token);
      else expect(await statusOf(byDefault, token), by.algorithm).toBe(401);
    }
  });

  test('AUTHN-7: without a key id is tried with every key', async () => {
    const others = [1, 2].map((number) => signingPair('RS256', undefined, number));
    const pairs = [...(await Promise.all(others)), provider.keys[0]!];
    provider.keys = pairs;
    clock.skip(6000);
    const token = await provider.token({ sub: 'x' }, { by: pairs[1]! });
    expect(await statusOf(server, token)).toBe(201);
    provider.keys = pairs.slice(2);
  });
});

describe('AUTHN-7: keys', () => {
  test('AUTHN-7: rotate without a restart, and fetches for unknown keys are limited', async () => {
    // The host may take longer for these requests than until the next fetch is allowed.
    const still = quickClock(10, { monotonic: 'still' });
    const server = await start(['--oidc-signing-algs=RS256,ES256'], { by: still });
    await ready(server);
    const [old] = provider.keys;
    const next = await signingPair('ES256', 'second');
    const early = await provider.token({ sub: 'x' }, { by: next });
    expect(await statusOf(server, early)).toBe(401);
    provider.keys = [old!, next];
    expect(await statusOf(server, await provider.token({ sub: 'x' }, { by: next }))).toBe(201);
    expect(await statusOf(server, await provider.token({ sub: 'y' }, { by: old! }))).toBe(201);
    const before = provider.requests.length;
    const stranger = await signingPair('ES256', 'stranger');
    for (let count = 0; count < 20; count += 1) {
      const token = await provider.token({ sub: String(count) }, { by: stranger });
      expect(await statusOf(server, token)).toBe(401);
    }
    expect(provider.requests.length - before).toBe(0);
    still.skip(5000);
    const fetched = provider.requests.length;
    for (let count = 0; count < 20; count += 1) {
      const token = await provider.token({ sub: `later-${count}` }, { by: stranger });
      expect(await statusOf(server, token)).toBe(401);
    }
    expect(provider.requests.length - fetched).toBe(1);
    provider.keys = [old!];
  });

  test('AUTHN-7: are no longer trusted once withdrawn', async () => {
    const server = await startReady('--oidc-signing-algs=RS256,ES256');
    const [first] = provider.keys;
    const second = await signingPair('ES256', 'withdrawn');
    provider.keys = [first!, second];
    clock.skip(6000);
    expect(await statusOf(server, await provider.token({ sub: 'x' }, { by: second }))).toBe(201);
    provider.keys = [first!];
    clock.skip(400_000);
    await eventually(async () => {
      const exp = inSeconds(3000);
      const token = await provider.token(
        { sub: 'x', exp, jti: `${Math.random()}` },
        { by: second },
      );
      return (await statusOf(server, token)) === 401;
    }, 'the key to be forgotten');
    const token = await provider.token({ sub: 'x', exp: inSeconds(3000) });
    expect(await statusOf(server, token)).toBe(201);
  });
});

describe('AUTHN-7: a provider', () => {
  test('AUTHN-7: that is down does not stop the start and is picked up later', async () => {
    const gone = await startProvider();
    const { port } = new URL(gone.url);
    const keys = gone.keys;
    await gone.stop();
    const caFile = temporaryFile('ca.crt', gone.caPem);
    const server = await start([], { from: { url: gone.url, caFile } });
    const token = await gone.token({ sub: 'x', exp: inSeconds(3000) });
    expect(await statusOf(server, token)).toBe(401);
    expect((await server.get('/readyz')).status).toBe(200);
    const back = await startProvider({ port: Number(port), keys, certificateOf: gone });
    expect((await userOfToken(server, token)).username).toBe(`${gone.url}#x`);
    await back.stop();
    const later = await gone.token({ sub: 'later', exp: inSeconds(3000) });
    expect(await statusOf(server, later)).toBe(201);
  });

  test('AUTHN-7: that is silent delays only its own tokens', async () => {
    const server = await startReady('--oidc-signing-algs=RS256,ES256');
    provider.handler = () => true;
    clock.skip(6000);
    const stranger = await signingPair('ES256', 'never seen');
    const waiting = statusOf(server, await provider.token({ sub: 'x' }, { by: stranger }));
    const exp = inSeconds(3000);
    expect(await statusOf(server, await provider.token({ sub: 'known', exp }))).toBe(201);
    expect((await server.get('/api/v1/namespaces')).status).toBe(200);
    expect(await waiting).toBe(401);
    provider.handler = undefined;
  });

  test.each([
    ['names another issuer', { issuer: 'https://other.example', jwks_uri: '{url}/keys' }],
    ['names no keys', { issuer: '{url}' }],
    ['has its keys not behind https', { issuer: '{url}', jwks_uri: 'http://127.0.0.1/keys' }],
    ['is no object', []],
    ['is not JSON', 'secret text'],
    ['is too large', { issuer: '{url}', jwks_uri: '{url}/keys', more: 'x'.repeat(2 ** 20) }],
  ])('AUTHN-7: whose discovery document %s is not used', async (_, document) => {
    const lines: string[] = [];
    const odd = await untilEnd(startProvider());
    const text = typeof document === 'string' ? document : JSON.stringify(document);
    odd.handler = (request, response) => {
      if (request.url !== '/.well-known/openid-configuration') return false;
      response.end(text.replaceAll('{url}', odd.url));
      return true;
    };
    const caFile = temporaryFile('ca.crt', odd.caPem);
    const from = { url: odd.url, caFile };
    const server = await start([], { from, logger: collecting(lines) });
    await eventually(async () => lines.some((line) => line.includes('initializing plugin')));
    expect(await statusOf(server, await odd.token({ sub: 'x' }))).toBe(401);
    expect(odd.requests).not.toContain('/keys');
    expect(lines.join()).not.toContain('secret text');
  });

  test('AUTHN-7: with a certificate of another authority is not called', async () => {
    const lines: string[] = [];
    const before = provider.requests.length;
    const from = { url: provider.url, caFile: '' };
    const server = await start([], { from, logger: collecting(lines) });
    await eventually(async () => lines.some((line) => line.includes('initializing plugin')));
    expect(await statusOf(server, await provider.token({ sub: 'x' }))).toBe(401);
    expect(provider.requests.length).toBe(before);
  });
});

test('AUTHN-7: a file of the provider’s own certificate trusts it, without its authority', async () => {
  const leaf = temporaryFile('leaf.crt', provider.leafPem);
  const server = await start([], { from: { url: provider.url, caFile: leaf } });
  expect((await userOfToken(server, await provider.token({ sub: 'x' }))).groups).toEqual([
    authenticated,
  ]);
});

test('AUTHN-7: is verified with the system’s authorities unless a file is given', async () => {
  const before = process.env['SSL_CERT_FILE'];
  process.env['SSL_CERT_FILE'] = ca;
  try {
    const server = await start([], { from: { url: provider.url, caFile: '' } });
    expect((await userOfToken(server, await provider.token({ sub: 'x' }))).groups).toEqual([
      authenticated,
    ]);
  } finally {
    if (before === undefined) delete process.env['SSL_CERT_FILE'];
    else process.env['SSL_CERT_FILE'] = before;
  }
});

test('AUTHN-7, TRUST-5: a provider’s certificate with the name of its issuer is verified', async () => {
  const certificate = forgeNamesake();
  const named = await untilEnd(startProvider({ certificateOf: { certificate } }));
  const file = temporaryFile('ca.crt', certificate.caPem);
  const server = await start([], { from: { url: named.url, caFile: file } });
  expect((await userOfToken(server, await named.token({ sub: 'x' }))).groups).toEqual([
    authenticated,
  ]);
  const otherFile = temporaryFile('ca.crt', provider.caPem);
  const lines: string[] = [];
  const from = { url: named.url, caFile: otherFile };
  await start([], { from, logger: collecting(lines) });
  const untrusted = () => lines.some((line) => line.includes('is not trusted'));
  await eventually(async () => untrusted(), 'a refusal of the certificate');
});

test('AUTHN-7: neither tokens nor claims are logged', async () => {
  const lines: string[] = [];
  const flags = ['--oidc-required-claim=hd=example.com', '--oidc-groups-claim=groups'];
  const server = await start(flags, { logger: collecting(lines) });
  const marked = { secret: 'marked-claim', email: 'marked-claim' };
  const tokens = [
    await provider.token({ sub: 'x', hd: 'example.com', ...marked }),
    await provider.token({ sub: 'x', hd: 'marked-claim', ...marked }),
    await provider.token({ sub: 'x', aud: 'marked-claim', ...marked }),
    await provider.token({ sub: 'x', exp: 1234567890, ...marked }),
    await provider.token({ sub: 'x', groups: [{ a: 'marked-claim' }], ...marked }),
    await provider.token({ ...marked }),
  ];
  await userOfToken(server, tokens[0]!);
  for (const token of tokens) await whoAmI(server, token);
  const log = lines.join('\n');
  expect(log).toContain('a credential was refused');
  expect(log).toContain('required claim hd value does not match');
  expect(log).not.toMatch(/marked-claim|1234567890/);
  for (const token of tokens) for (const part of token.split('.')) expect(log).not.toContain(part);
});

test('AUTHN-7: metrics measure token verification', async () => {
  const server = await startReady();
  await whoAmI(server, await provider.token({ sub: 'x', aud: 'other' }));
  const { text } = await server.get('/metrics');
  const name = 'apiserver_authentication_jwt_authenticator_latency_seconds_count';
  const hash = /jwt_issuer_hash="sha256:[0-9a-f]{64}"/;
  const lines = text.split('\n').filter((line) => line.startsWith(name));
  expect(lines.some((line) => line.includes('result="success"') && hash.test(line))).toBe(true);
  expect(lines.some((line) => line.includes('result="failure"') && hash.test(line))).toBe(true);
});
