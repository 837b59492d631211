import { generateKeyPairSync } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TokenRequest } from '@wheelhouse/kinds/types/authentication/v1';
import type { JsonObject } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import { temporaryFolder } from '../support/cleanup.ts';
import type { ResponseOf } from '../support/harness.ts';
import { flagRuns } from './flags-run.ts';

const { start, refuses } = await flagRuns();
const account = '/api/v1/namespaces/default/serviceaccounts/reader';

/** The claims of a bound token of a service account. */
interface Claims {
  readonly exp: number;
  readonly iat: number;
  readonly 'svc.io': { readonly warnafter?: number };
}

const claimsOf = (token: string): Claims =>
  JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());

/** Starts a server with an account and its pod; returns a function that requests a token. */
async function started(...flags: string[]) {
  const served = await start(...flags, '--disable-admission-plugins=ServiceAccount');
  const { post, as } = served;
  const namespace = 'default';
  const accounts = `/api/v1/namespaces/${namespace}/serviceaccounts`;
  const metadata = { name: 'reader', namespace };
  await post(accounts, { apiVersion: 'v1', kind: 'ServiceAccount', metadata }, as);
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p', namespace },
    spec: { serviceAccountName: 'reader', containers: [{ name: 'c', image: 'i' }] },
  };
  expect((await post(`/api/v1/namespaces/${namespace}/pods`, pod, as)).status).toBe(201);
  const ask = (spec: JsonObject) =>
    post<ResponseOf<TokenRequest>>(
      `${account}/token`,
      { apiVersion: 'authentication.svc.io/v1', kind: 'TokenRequest', spec },
      as,
    );
  return { ...served, ask };
}

const boundObjectRef = { kind: 'Pod', apiVersion: 'v1', name: 'p' };
const yearSeconds = 365 * 24 * 60 * 60;

describe('token lifetimes', () => {
  test('AUTHN-6: --service-account-max-token-expiration caps requests', async () => {
    const { ask, server } = await started('--service-account-max-token-expiration=2h');
    const { status, body, warnings } = await ask({ expirationSeconds: 10_000 });
    expect(status).toBe(201);
    expect(warnings).toEqual(['requested expiration of 10000 seconds shortened to 7200 seconds']);
    expect(body.spec.expirationSeconds).toBe(7200);
    const { exp, iat } = claimsOf(body.status.token);
    expect(exp - iat).toBe(7200);
    expect((await ask({ expirationSeconds: 7200 })).warnings).toEqual([]);
    const said =
      'service-account-extend-token-expiration is true, enabling tokens valid up to 31536000 seconds, which is longer than service-account-max-token-expiration set to 2h0m0s';
    expect(server.lines().map(({ msg }) => msg)).toContain(said);
  });

  test('AUTHN-6: tokens that admission adds to pods are valid for a year', async () => {
    const { ask } = await started('--service-account-max-token-expiration=2h');
    const { body } = await ask({ expirationSeconds: 3607, boundObjectRef });
    const { exp, iat, ...rest } = claimsOf(body.status.token);
    expect(exp - iat).toBe(yearSeconds);
    expect(Number(rest['svc.io'].warnafter) - iat).toBe(3607);
    expect(body.spec.expirationSeconds).toBe(3607);
    const said = Date.parse(body.status.expirationTimestamp) / 1000;
    expect(said - iat).toBe(3607);
    for (const request of [
      { expirationSeconds: 3606, boundObjectRef },
      { expirationSeconds: 3607 },
      { expirationSeconds: 3607, boundObjectRef, audiences: ['elsewhere'] },
    ]) {
      const claims = claimsOf((await ask(request)).body.status.token);
      expect(claims.exp - claims.iat).toBe(request.expirationSeconds);
      expect(claims['svc.io']).not.toHaveProperty('warnafter');
    }
  });

  test('AUTHN-6: without the extension they are valid for an hour', async () => {
    const { ask } = await started('--service-account-extend-token-expiration=false');
    const claims = claimsOf(
      (await ask({ expirationSeconds: 3607, boundObjectRef })).body.status.token,
    );
    expect(claims.exp - claims.iat).toBe(3607);
    expect(claims['svc.io']).not.toHaveProperty('warnafter');
  });

  test.each([
    [
      '--service-account-max-token-expiration=59m',
      'the service-account-max-token-expiration must be between 1 hour and 2^32 seconds',
    ],
    [
      '--service-account-max-token-expiration=1193047h',
      'the service-account-max-token-expiration must be between 1 hour and 2^32 seconds',
    ],
    ['--service-account-max-token-expiration=long', 'invalid duration "long"'],
    [
      '--service-account-signing-endpoint=/run/signer.sock',
      'setting `--service-account-signing-endpoint` requires enabling ExternalServiceAccountTokenSigner feature gate',
    ],
  ])('AUTHN-6: %s stops the start', (flag, message) => refuses(message, flag));

  test.each([
    [
      '/run/a.sock',
      '--service-account-signing-key-file=sa.key',
      "can't set `--service-account-signing-key-file` and/or `--service-account-key-file` with `--service-account-signing-endpoint` (They are mutually exclusive)",
    ],
    [
      '/run/a.sock',
      '--service-account-key-file=sa.key',
      "can't set `--service-account-signing-key-file` and/or `--service-account-key-file` with `--service-account-signing-endpoint` (They are mutually exclusive)",
    ],
    [
      '/run/a.sock',
      '--service-account-max-token-expiration=2h',
      'service-account-max-token-expiration and service-account-signing-endpoint are mutually exclusive and cannot be set at the same time',
    ],
    [
      'run/a.sock',
      '--service-account-lookup=true',
      'invalid value "run/a.sock" passed for `--service-account-signing-endpoint`, should be a valid location on the filesystem or must be prefixed with @ to name UDS in abstract namespace',
    ],
  ])('AUTHN-6: a signer at %s with %s stops the start', (endpoint, flag, message) =>
    refuses(
      message,
      '--feature-gates=ExternalServiceAccountTokenSigner=true',
      `--service-account-signing-endpoint=${endpoint}`,
      flag,
    ),
  );
});

describe('the key of the certificate directory', () => {
  const ed25519 = generateKeyPairSync('ed25519').privateKey.export({
    type: 'pkcs8',
    format: 'pem',
  });

  test.each([
    ['a key that cannot sign tokens', String(ed25519), 'must be RSA or ECDSA'],
    ['something else', 'not a key\n', 'is left alone'],
  ])('AUTHN-6: a file that contains %s ends the start, unchanged', async (_, text, message) => {
    const certDir = temporaryFolder();
    const file = join(certDir, 'sa.key');
    writeFileSync(file, text);
    await refuses(`${file} does not contain a key that can sign tokens`, `--cert-dir=${certDir}`);
    await refuses(message, `--cert-dir=${certDir}`);
    expect(readFileSync(file, 'utf8')).toBe(text);
  });

  test('AUTHN-6: a file that cannot be read ends the start', async () => {
    const certDir = temporaryFolder();
    mkdirSync(join(certDir, 'sa.key'));
    await refuses(`${join(certDir, 'sa.key')} is not a regular file`, `--cert-dir=${certDir}`);
  });

  test('AUTHN-6: a file that a power failure emptied is replaced', async () => {
    const certDir = temporaryFolder();
    writeFileSync(join(certDir, 'sa.key'), '');
    await start(`--cert-dir=${certDir}`);
    expect(readFileSync(join(certDir, 'sa.key'), 'utf8')).toContain('PRIVATE KEY');
  });
});
