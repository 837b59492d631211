import { generateKeyPairSync, sign } from 'node:crypto';
import type { SelfSubjectReview, TokenRequest } from '@wheelhouse/kinds/types/authentication/v1';
import type { JsonObject } from '@wheelhouse/machinery';
import { readSigningKey } from '@wheelhouse/server/testing';
import { beforeAll, describe, expect, test } from 'vitest';
import { temporaryFile } from '../support/cleanup.ts';
import type { ResponseOf } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';
import { mustCreate } from './token-users.ts';

const whoAmI = '/apis/authentication.svc.io/v1/selfsubjectreviews';
const review = { apiVersion: 'authentication.svc.io/v1', kind: 'SelfSubjectReview' };
const account = '/api/v1/namespaces/default/serviceaccounts/robot';
const userName = 'system:serviceaccount:default:robot';

let bound: string;
let legacy: string;
const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
const signing = readSigningKey(pem);
const keyFile = temporaryFile('sa.key', pem);
const server = await withServer({
  serviceAccounts: { signingKeyFile: keyFile },
  controllers: ['*'],
});
beforeAll(async () => {
  const named = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'robot' } };
  await mustCreate(server, '/api/v1/namespaces/default/serviceaccounts', named);
  bound = await issueToken();
  legacy = await legacyToken();
});

async function issueToken(): Promise<string> {
  const request = { apiVersion: 'authentication.svc.io/v1', kind: 'TokenRequest', spec: {} };
  const answer = await server.post<ResponseOf<TokenRequest>>(`${account}/token`, request);
  expect(answer.status, answer.text).toBe(201);
  return answer.body.status.token;
}

async function legacyToken(): Promise<string> {
  const path = '/api/v1/namespaces/default/secrets';
  const annotations = { 'svc.io/service-account.name': 'robot' };
  const metadata = { name: 'robot-token', annotations };
  const type = 'svc.io/service-account-token';
  await mustCreate(server, path, { apiVersion: 'v1', kind: 'Secret', metadata, type });
  const watch = await server.watch(`${path}?watch=true`);
  const tokenOf = (events: typeof watch.events) =>
    events.findLast(({ object }) => object.data?.['token'] !== undefined)?.object.data['token'];
  await watch.until((events) => tokenOf(events) !== undefined);
  watch.close();
  return Buffer.from(tokenOf(watch.events) ?? '', 'base64').toString();
}

const withToken = (token: string) =>
  server.post<ResponseOf<SelfSubjectReview>>(whoAmI, review, { token });

/** A token with one part replaced. */
function changed(token: string, at: 0 | 1 | 2, change: (part: string) => string): string {
  const parts = token.split('.');
  parts[at] = change(parts[at] ?? '');
  return parts.join('.');
}

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

/** Sets an unused bit: 64 bytes in base64url end with four of them. */
function withSpareBit(part: string): string {
  const last = alphabet.indexOf(part.at(-1) ?? '');
  return part.slice(0, -1) + alphabet[last | 1];
}

const mutations: readonly (readonly [string, (token: string) => string])[] = [
  ['padding', (token) => `${token}==`],
  ['half of the padding', (token) => `${token}=`],
  ['a bit that stands for nothing', (token) => changed(token, 2, withSpareBit)],
  ['junk behind the signature', (token) => `${token}!`],
  [
    'junk inside the signature',
    (token) => changed(token, 2, (part) => `${part.slice(0, 9)}!${part.slice(9)}`),
  ],
  [
    'a tab inside the signature',
    (token) => changed(token, 2, (part) => `${part.slice(0, 9)}\t${part.slice(9)}`),
  ],
  [
    'base64 in place of base64url',
    (token) => changed(token, 2, (part) => `${part.replaceAll('-', '+').replaceAll('_', '/')}==`),
  ],
  ['one character more', (token) => `${token}A`],
  ['a fourth part', (token) => `${token}.e30`],
  ['an empty fourth part', (token) => `${token}.`],
  ['padding of the claims', (token) => changed(token, 1, (part) => `${part}=`)],
  ['padding of the header', (token) => changed(token, 0, (part) => `${part}=`)],
  ['a blank of another encoding', (token) => `${token}\u00a0`],
];

describe('TRUST-5: a token has exactly one encoding', () => {
  test('TRUST-5: the unchanged tokens are valid', async () => {
    for (const token of [bound, legacy]) {
      const answer = await withToken(token);
      expect(answer.status, answer.text).toBe(201);
      expect(answer.body.status.userInfo.username).toBe(userName);
    }
  });

  test.each(mutations)('TRUST-5: with %s it is refused', async (_, mutate) => {
    for (const token of [bound, legacy]) {
      expect((await withToken(mutate(token))).status).toBe(401);
      const spec = { token: mutate(token) };
      const asked = { ...review, kind: 'TokenReview', spec };
      const answer = await server.post('/apis/authentication.svc.io/v1/tokenreviews', asked);
      expect(answer.body.status.authenticated ?? false).toBe(false);
    }
  });
});

describe('TRUST-5: the claims of a token have one reading', () => {
  const claimsOf = (token: string): JsonObject =>
    JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());
  const encode = (text: string) => Buffer.from(text).toString('base64url');

  /** Signs texts that no JSON encoder would produce. */
  function signTexts(header: string, claims: string): string {
    const signed = `${encode(header)}.${encode(claims)}`;
    const key = { key: signing.privateKey, dsaEncoding: 'ieee-p1363' as const };
    return `${signed}.${sign('sha256', Buffer.from(signed), key).toString('base64url')}`;
  }
  const header = () => JSON.stringify({ alg: 'ES256', kid: signing.id });
  const claims = () => JSON.stringify(claimsOf(bound));

  test('TRUST-5: unusual texts are accepted when they are signed as they are', async () => {
    const answer = await withToken(signTexts(header(), ` ${claims()} `));
    expect(answer.status, answer.text).toBe(201);
  });

  test.each<[string, () => string]>([
    ['a claim twice', () => signTexts(header(), claims().replace('{', '{"sub":"x",'))],
    [
      'a claim twice, spelt in two ways',
      () => signTexts(header(), claims().replace('{', '{"\\u0073ub":"x",')),
    ],
    [
      'a claim twice inside another',
      () => signTexts(header(), claims().replace('"namespace":', '"namespace":"x","namespace":')),
    ],
    ['an algorithm twice', () => signTexts(header().replace('{', '{"alg":"none",'), claims())],
    [
      'a header that must be understood',
      () => signTexts(header().replace('{', '{"crit":["x"],'), claims()),
    ],
    [
      'a payload that is not encoded',
      () => signTexts(header().replace('{', '{"b64":true,'), claims()),
    ],
    ['a byte-order mark', () => signTexts(header(), `\ufeff${claims()}`)],
    ['no algorithm', () => signTexts(header().replace('ES256', 'none'), claims())],
    ['another algorithm', () => signTexts(header().replace('ES256', 'HS256'), claims())],
  ])('TRUST-5: a token with %s is refused', async (_, make) => {
    expect((await withToken(make())).status).toBe(401);
  });
});
