import { join } from 'node:path';
import type { TokenRequest, TokenReview } from '@wheelhouse/kinds/types/authentication/v1';
import { type Clock, silentLogger, systemClock } from '@wheelhouse/machinery';
import type { JSONWebKeySet } from 'jose';
import { beforeEach, describe, expect, test } from 'vitest';
import { temporaryFolder, untilEnd } from '../support/cleanup.ts';
import { countingClock } from '../support/counting-clock.ts';
import type { ConfigChange, ResponseOf } from '../support/harness.ts';
import { signerKey, startTokenSigner } from '../support/token-signer.ts';
import { withServer } from '../support/with-server.ts';

type Signer = Awaited<ReturnType<typeof startTokenSigner>>;
let directory: string;
let socket: string;
let signer: Signer;
const issuer = 'https://issuer.example.com';
const account = '/api/v1/namespaces/default/serviceaccounts/reader';

beforeEach(async () => {
  directory = temporaryFolder();
  socket = join(directory, 'signer.sock');
  signer = await untilEnd(startTokenSigner(socket));
});

/** A clock that shortens some waits, selected by their length in milliseconds. */
function shortened(waits: Readonly<Record<number, number>>): Clock {
  const after: Clock['after'] = (delayMs, task) =>
    systemClock.after(waits[delayMs] ?? delayMs, task);
  return { ...systemClock, after };
}

/** A server whose tokens the signer signs, with an account and a pod. */
async function started(change: ConfigChange = {}) {
  const serviceAccounts = { signingEndpoint: socket, issuer };
  const running = await withServer({ dialect: 'kubernetes', serviceAccounts, ...change });
  const metadata = { name: 'reader', namespace: 'default' };
  const accounts = '/api/v1/namespaces/default/serviceaccounts';
  await running.post(accounts, { apiVersion: 'v1', kind: 'ServiceAccount', metadata });
  await running.post('/api/v1/namespaces/default/pods', {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p', namespace: 'default' },
    spec: { serviceAccountName: 'reader', containers: [{ name: 'c', image: 'i' }] },
  });
  const ask = (spec: object = {}) =>
    running.post<ResponseOf<TokenRequest>>(`${account}/token`, {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec,
    });
  const review = async (token: string) => {
    const { body } = await running.post<ResponseOf<TokenReview>>(
      '/apis/authentication.k8s.io/v1/tokenreviews',
      { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token } },
    );
    return body.status;
  };
  return { running, ask, review };
}

function claimsIn(token: string): { exp: number; iat: number } {
  return JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());
}

describe('tokens of an external signer', () => {
  test('AUTHN-6: the signer signs a token, the server accepts it and publishes the key', async () => {
    const { running, ask, review } = await started();
    const { status, body } = await ask();
    expect(status).toBe(201);
    const { token } = body.status;
    expect(await review(token)).toMatchObject({
      authenticated: true,
      user: { username: 'system:serviceaccount:default:reader' },
    });
    const own = await running.get('/api', { token });
    expect(own.status).toBe(200);
    const jwks = await running.get('/openid/v1/jwks');
    expect(jwks.body.keys).toMatchObject([{ kid: 'first', alg: 'RS256', use: 'sig' }]);
    expect(jwks.headers['cache-control']).toMatch(/^public, max-age=3[56]\d\d$/);
    const known = await running.get('/.well-known/openid-configuration');
    expect(known.body).toMatchObject({ issuer, id_token_signing_alg_values_supported: ['RS256'] });
    for (const { path, body: expected } of [
      { path: '/openid/v1/jwks/', body: jwks.body },
      { path: '/.well-known/openid-configuration/', body: known.body },
    ]) {
      expect((await running.get(path)).body, path).toEqual(expected);
    }
  });

  test.each(['P-384', 'P-521'] as const)('AUTHN-6: a key of %s signs', async (curve) => {
    const key = signerKey('curved', curve);
    Object.assign(signer.state, { keys: [key], signing: key });
    const { ask, review } = await started();
    expect((await review((await ask()).body.status.token)).authenticated).toBe(true);
  });

  test('AUTHN-6: the lifetime is capped at the signer’s maximum', async () => {
    const lines: string[] = [];
    const logger = { ...silentLogger, warn: (message: string) => void lines.push(message) };
    const { ask } = await started({ logger });
    const asked = await ask({ expirationSeconds: 10_000 });
    expect(asked.warnings).toEqual([
      'requested expiration of 10000 seconds shortened to 7200 seconds',
    ]);
    const boundObjectRef = { kind: 'Pod', apiVersion: 'v1', name: 'p' };
    const { body } = await ask({ expirationSeconds: 3607, boundObjectRef });
    const { exp, iat } = claimsIn(body.status.token);
    expect(exp - iat).toBe(7200);
    expect(lines).toContain(
      'service-account-extend-token-expiration is true, tokens validity will be caped at the smaller of 31536000 seconds and maximum token lifetime supported by external-jwt-signer (2h0m0s)',
    );
  });

  test('AUTHN-6: an unknown key id makes the server fetch keys before it refuses', async () => {
    const { running, ask, review } = await started();
    const next = signerKey('next');
    Object.assign(signer.state, { keys: [...signer.state.keys, next], signing: next });
    const { token } = (await ask()).body.status;
    expect((await running.get('/api', { token })).status).toBe(200);
    const { keys } = (await running.get<JSONWebKeySet>('/openid/v1/jwks')).body;
    expect(keys.map(({ kid }) => kid)).toEqual(['first', 'next']);
    signer.state.signing = signerKey('stranger');
    const strange = (await ask()).body.status.token;
    expect((await running.get('/api', { token: strange })).status).toBe(401);
    expect(await review(strange)).not.toHaveProperty('authenticated', true);
    // The signer does not receive a token of another issuer.
    const before = signer.calls.length;
    const [head, , tail] = token.split('.');
    const claims = Buffer.from(JSON.stringify({ iss: 'https://other' })).toString('base64url');
    await running.get('/api', { token: `${head}.${claims}.${tail}` });
    expect(signer.calls).toHaveLength(before);
  });

  test('AUTHN-6: a withdrawn key is no longer accepted', async () => {
    const clock = shortened({ 61000: 50 });
    signer.state.refreshSeconds = 61;
    const { running, ask } = await started({ clock });
    const { token } = (await ask()).body.status;
    expect((await running.get('/api', { token })).status).toBe(200);
    signer.state.keys = [signerKey('second')];
    await expect.poll(async () => (await running.get('/api', { token })).status).toBe(401);
  });

  test('AUTHN-6: a key excluded from discovery verifies but must not sign', async () => {
    const old = { ...signerKey('old'), excluded: true };
    const { signing } = signer.state;
    Object.assign(signer.state, { keys: [signing, old] });
    const { running, ask } = await started();
    const { keys } = (await running.get<JSONWebKeySet>('/openid/v1/jwks')).body;
    expect(keys.map(({ kid }) => kid)).toEqual(['first']);
    signer.state.signing = old;
    const refused = await ask();
    expect([refused.status, refused.body.message]).toEqual([
      500,
      'Internal error occurred: failed to generate token: while validating header: key used for signing JWT (kid: old) is excluded from OIDC discovery docs',
    ]);
  });

  test.each<[string, object]>([
    ['bad type', { header: { typ: 'at+jwt' } }],
    ['key id missing', { header: { kid: '' } }],
    ['key id longer than 1 kb', { header: { kid: 'k'.repeat(1025) } }],
    ['bad signing algorithm "none"', { header: { alg: 'none' } }],
    ['unknown field "x5u"', { header: { x5u: 'https://example.com' } }],
    ['empty signature returned', { signature: 'empty' }],
  ])('AUTHN-6: an answer with the fault %s makes no token', async (fault, change) => {
    const { ask } = await started();
    Object.assign(signer.state, change);
    const { status, body } = await ask();
    expect([status, body.reason]).toEqual([500, 'InternalError']);
    expect(body.message).toContain(fault);
  });

  test('AUTHN-6: a failing signer affects only token requests', async () => {
    const { running, ask } = await started({ clock: shortened({ 30000: 3000 }) });
    signer.state.failures.set('Sign', 7);
    const refused = await ask();
    expect(refused.body.message).toBe(
      'Internal error occurred: failed to generate token: while signing jwt: rpc error: code = PermissionDenied',
    );
    signer.state.failures.clear();
    await signer.stop();
    expect((await ask()).body.message).toMatch(/rpc error: code = (Unavailable|DeadlineExceeded)$/);
    expect((await running.get('/readyz')).status).toBe(200);
    signer = await startTokenSigner(socket);
    expect((await ask()).status).toBe(201);
    const { text } = await running.get('/metrics');
    expect(text).toContain('apiserver_externaljwt_sign_request_total{code="PermissionDenied"} 1');
    expect(text).toContain('apiserver_externaljwt_sign_request_total{code="OK"} 1');
    expect(text).toMatch(/apiserver_externaljwt_fetch_keys_request_total\{code="OK"\} \d/);
    expect(text).toMatch(/apiserver_externaljwt_fetch_keys_success_timestamp \d/);
  });

  test.each<[string, Partial<Signer['state']>]>([
    [
      'max token life supported by external-jwt-signer (599s) is less than acceptable (min 600s)',
      { maxSeconds: 599 },
    ],
    ['found invalid refresh hint (0s)', { refreshSeconds: 0 }],
    ['found no keys', { keys: [] }],
    ['invalid data timestamp', { timestamp: 'absent' }],
    ['found invalid public key id ""', { keys: [signerKey('')] }],
    ['while fetching keys: rpc error: code = Internal', { failures: new Map([['FetchKeys', 13]]) }],
    [
      'while fetching metadata: rpc error: code = Unimplemented',
      { failures: new Map([['Metadata', 12]]) },
    ],
  ])('AUTHN-6: the start fails: %s', async (fault, change) => {
    Object.assign(signer.state, change);
    await expect(started()).rejects.toThrow(fault);
  });

  test('AUTHN-6: a signer that never appears stops the start', async () => {
    await signer.stop();
    const serviceAccounts = { signingEndpoint: join(directory, 'absent.sock') };
    await expect(started({ serviceAccounts, clock: shortened({ 60000: 500 }) })).rejects.toThrow(
      'while setting up external-jwt-signer: ',
    );
  });

  test('TRUST-2: many keys are decoded in steps', async () => {
    const { publicKey, privateKey } = signerKey('P', 'P-384');
    const clock = countingClock();
    const serviceAccounts = { signingEndpoint: socket, issuer };
    const { ask } = await started({ clock, serviceAccounts });
    signer.state.keys = Array.from({ length: 500 }, (_, index) => ({
      ...{ id: `k${index}`, publicKey, privateKey },
    }));
    signer.state.signing = signerKey('k499', 'P-384');
    const readings = await clock.readingsOf(async () => {
      expect((await ask()).status).toBe(201);
    });
    expect(readings).toBeGreaterThan(500);
  });

  test('AUTHN-6: a socket may have an abstract name', async () => {
    const name = `wheelhouse-${process.pid}`;
    await untilEnd(startTokenSigner(`\0${name}`));
    const serviceAccounts = { signingEndpoint: `@${name}`, issuer };
    const { ask } = await started({ serviceAccounts });
    expect((await ask()).status).toBe(201);
  });
});
