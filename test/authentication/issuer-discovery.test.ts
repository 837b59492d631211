import type { TokenRequest } from '@wheelhouse/kinds/types/authentication/v1';
import { createLocalJWKSet, type JSONWebKeySet, jwtVerify } from 'jose';
import { expect, test } from 'vitest';
import { temporaryFile } from '../support/cleanup.ts';
import { freshNamespace, type ResponseOf } from '../support/harness.ts';
import { rsaKeyPair } from '../support/rsa-keys.ts';
import { withServer } from '../support/with-server.ts';

const { privateKey } = rsaKeyPair();
const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();

const issuer = 'https://accounts.example.com';
const jwksUri = 'https://keys.example.com/jwks';
const configurationPath = '/.well-known/openid-configuration';
const keysPath = '/openid/v1/jwks';
const older = temporaryFile('older.pem', pem);

const serviceAccounts = { issuer, jwksUri, keyFiles: [older] };
const server = await withServer({ serviceAccounts, authorizationModes: ['RBAC'] });

async function accountToken(): Promise<string> {
  const namespace = await freshNamespace(server);
  const accounts = `/api/v1/namespaces/${namespace}/serviceaccounts`;
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'reader' } };
  expect((await server.post(accounts, account)).status).toBe(201);
  const request = { apiVersion: 'authentication.svc.io/v1', kind: 'TokenRequest', spec: {} };
  const answer = await server.post<ResponseOf<TokenRequest>>(`${accounts}/reader/token`, request);
  expect(answer.status).toBe(201);
  return answer.body.status.token;
}

test('AUTHN-6: service accounts can read issuer discovery, and others verify tokens', async () => {
  const token = await accountToken();
  const configuration = await server.get(configurationPath, { token });
  expect(configuration.status).toBe(200);
  expect(configuration.headers['cache-control']).toBe('public, max-age=3600');
  expect(configuration.headers['content-type']).toBe('application/json');
  expect(configuration.body).toEqual({
    issuer,
    jwks_uri: jwksUri,
    response_types_supported: ['id_token'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['ES256', 'RS256'],
  });
  const keys = await server.get<JSONWebKeySet>(keysPath, { token });
  expect(keys.headers['content-type']).toBe('application/jwk-set+json');
  expect(keys.body.keys.map(({ kty }) => kty)).toEqual(['EC', 'RSA']);
  const secret = ['d', 'p', 'q', 'dp', 'dq', 'qi'];
  for (const key of keys.body.keys) for (const name of secret) expect(key).not.toHaveProperty(name);
  const verified = await jwtVerify(token, createLocalJWKSet(keys.body), { issuer });
  expect(verified.payload.sub).toMatch(/^system:serviceaccount:.*:reader$/);
});

test('AUTHN-6: reading the documents requires a permission, and they cannot be written', async () => {
  for (const path of [configurationPath, keysPath]) {
    const anonymous = await server.get(path, { token: undefined });
    expect(anonymous.status).toBe(403);
    expect(anonymous.body.message).toContain(`User "system:anonymous" cannot get path "${path}"`);
    expect((await server.post(path, {})).status).toBe(405);
  }
});

test('AUTHN-6: an issuer that is not an https URL has no discovery document', async () => {
  const plain = await withServer({ serviceAccounts: { issuer: 'accounts' } });
  for (const path of [configurationPath, keysPath]) {
    expect((await plain.get(path)).status).toBe(404);
  }
});

test('API-11: / lists the paths to users who may read it', async () => {
  const { status, body, text } = await server.get<{ paths: string[] }>('/');
  expect(status).toBe(200);
  expect(text).toBe(JSON.stringify(body, null, 2));
  expect(body.paths).toEqual([...body.paths].sort());
  const some = ['/api', '/api/v1', '/apis', '/apis/apps', '/apis/apps/v1', '/healthz/ping'];
  const more = [
    '/livez',
    '/metrics',
    '/openapi/v2',
    '/openapi/v3',
    keysPath,
    '/readyz',
    '/version',
  ];
  expect(body.paths).toEqual(expect.arrayContaining([...some, ...more]));
  for (const path of body.paths) expect((await server.get(path)).status, path).toBe(200);
  expect((await server.get('/', { token: undefined })).status).toBe(403);
  expect((await server.post('/', {})).status).toBe(405);
});

test('AUTHN-6: the key URL has the port that the server listens on', async () => {
  const own = await withServer({ serviceAccounts: { issuer } });
  const { body } = await own.get(configurationPath);
  expect(body.jwks_uri).toBe(`https://${new URL(own.url).host}${keysPath}`);
});
