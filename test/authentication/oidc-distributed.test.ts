import { beforeEach, describe, expect, test } from 'vitest';
import { temporaryFile, untilEnd } from '../support/cleanup.ts';
import { eventually } from '../support/harness.ts';
import { quickClock } from '../support/quick-clock.ts';
import { withServer } from '../support/with-server.ts';
import { clientId, inSeconds, signingPair, startProvider } from './oidc-provider.ts';
import { whoAmI } from './who-am-i.ts';

/** The answer of the source of the groups, and the credential that it received. */
let answer: () => Promise<string>;
let status = 200;
let asked: (string | undefined)[] = [];

const provider = await untilEnd(startProvider());
provider.handler = (request, response) => {
  if (request.url !== '/groups') return false;
  asked.push(request.headers.authorization);
  response.statusCode = status;
  void answer().then((text) => response.end(text));
  return true;
};
const issuer = { url: provider.url, certificateAuthority: provider.caPem, audiences: [clientId] };
const prefixed = (claim: string, prefix: string) => ({ claim, prefix });
const byExpression = {
  ...issuer,
  url: 'https://cel.example',
  discoveryURL: `${provider.url}/cel`,
};
const jwt = [
  { issuer, claimMappings: { username: prefixed('sub', ''), groups: prefixed('groups', 'g:') } },
  {
    issuer: byExpression,
    claimMappings: {
      username: prefixed('sub', ''),
      groups: { expression: 'claims.?groups.orValue([])' },
    },
  },
];
const next = provider.handler;
provider.handler = (request, response) => {
  if (request.url !== '/cel') return next(request, response);
  response.end(JSON.stringify({ issuer: byExpression.url, jwks_uri: `${provider.url}/keys` }));
  return true;
};
const file = temporaryFile(
  'authentication.json',
  JSON.stringify({
    apiVersion: 'apiserver.config.svc.io/v1beta1',
    kind: 'AuthenticationConfiguration',
    jwt,
  }),
);
const server = await withServer({
  clock: quickClock(10),
  authentication: { configFile: { path: file, anonymousFlag: 'absent' } },
});
beforeEach(() => {
  status = 200;
  asked = [];
  answer = () => provider.token({ groups: ['a', 'b'] });
});

/** A new token that names the source for its groups. */
const pointing = (claims: Record<string, unknown> = {}) =>
  provider.token({
    sub: 'jane',
    jti: String(Math.random()),
    _claim_names: { groups: 'source' },
    _claim_sources: { source: { endpoint: `${provider.url}/groups`, access_token: 'shown' } },
    ...claims,
  });

async function groupsOf(claims?: Record<string, unknown>): Promise<string[]> {
  const got = await eventually(async () => {
    const reply = await whoAmI(server, await pointing(claims));
    return reply.status === 201 ? reply : undefined;
  }, 'the token to be accepted');
  return got.body.status.userInfo.groups;
}

const statusOf = async (claims?: Record<string, unknown>) =>
  (await whoAmI(server, await pointing(claims))).status;

describe('AUTHN-7: distributed group claims', () => {
  test('AUTHN-7: are fetched with their access token and prefixed', async () => {
    expect(await groupsOf()).toEqual(['g:a', 'g:b', 'system:authenticated']);
    expect(new Set(asked)).toEqual(new Set(['Bearer shown']));
    asked = [];
    const source = { endpoint: `${provider.url}/groups` };
    answer = () => provider.token({ groups: 'one' });
    expect(await groupsOf({ _claim_sources: { source } })).toEqual([
      'g:one',
      'system:authenticated',
    ]);
    expect(asked).toEqual([undefined]);
  });

  test('AUTHN-7: are not fetched when the token has groups or the claim points elsewhere', async () => {
    await groupsOf();
    asked = [];
    const none = ['system:authenticated'];
    expect(await groupsOf({ groups: ['own'] })).toEqual(['g:own', ...none]);
    expect(await groupsOf({ _claim_names: { roles: 'source' } })).toEqual(none);
    expect(await groupsOf({ _claim_names: undefined })).toEqual(none);
    expect(await groupsOf({ _claim_sources: { source: { JWT: 'aggregated' } } })).toEqual(none);
    expect(asked).toEqual([]);
  });

  test('AUTHN-7: are fetched once for concurrent uses of a token', async () => {
    await groupsOf();
    asked = [];
    const token = await pointing();
    const all = await Promise.all(Array.from({ length: 10 }, () => whoAmI(server, token)));
    expect(all.map((reply) => reply.status)).toEqual(all.map(() => 201));
    expect(asked.length).toBe(1);
  });

  test.each<[string, Record<string, unknown>]>([
    ['names that are none', { _claim_names: 'groups' }],
    ['no sources', { _claim_sources: undefined }],
    ['sources that are none', { _claim_sources: [] }],
    ['a source that is not there', { _claim_sources: {} }],
    ['a source that is inherited', { _claim_names: { groups: 'constructor' } }],
    [
      'a source that is not https',
      { _claim_sources: { source: { endpoint: 'http://127.0.0.1/' } } },
    ],
    [
      'a source nobody answers at',
      { _claim_sources: { source: { endpoint: 'https://127.0.0.1:1/' } } },
    ],
  ])('AUTHN-7: with %s are a bad credential', async (_, claims) => {
    await groupsOf();
    expect(await statusOf(claims)).toBe(401);
  });

  test.each<[string, () => Promise<string>]>([
    ['nothing', async () => ''],
    ['no token', async () => 'groups'],
    ['a token without the claim', () => provider.token({ roles: ['a'] })],
    ['a token for others', () => provider.token({ groups: ['a'], aud: 'others' })],
    ['a token that has expired', () => provider.token({ groups: ['a'], exp: inSeconds(-5) })],
    ['a token of no provider', () => provider.token({ groups: ['a'], iss: 'https://127.0.0.1:1' })],
    [
      'a token of a strange key',
      async () => provider.token({ groups: ['a'] }, { by: await signingPair('ES256', 'first') }),
    ],
    ['more than it may', async () => 'x'.repeat(2 ** 21)],
  ])('AUTHN-7: whose source answers %s are a bad credential', async (_, bad) => {
    await groupsOf();
    answer = bad;
    expect(await statusOf()).toBe(401);
  });

  test('AUTHN-7: make the credential invalid when their source fails', async () => {
    await groupsOf();
    status = 403;
    expect(await statusOf()).toBe(401);
  });

  test('AUTHN-7: may be of another issuer, which is discovered on demand', async () => {
    // The authorities of one provider are valid for the other.
    const secondProvider = await untilEnd(startProvider({ certificateOf: provider }));
    answer = () => secondProvider.token({ groups: ['theirs'] });
    expect(await groupsOf()).toEqual(['g:theirs', 'system:authenticated']);
  });

  test('AUTHN-8: are invisible to expressions', async () => {
    const iss = 'https://cel.example';
    expect(await groupsOf({ iss, groups: ['own'] })).toEqual(['own', 'system:authenticated']);
    expect(await groupsOf({ iss })).toEqual(['system:authenticated']);
    expect(asked).toEqual([]);
  });
});
