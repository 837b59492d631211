import { X509Certificate } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import { request as httpsRequest } from 'node:https';
import { join } from 'node:path';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { isDeepStrictEqual } from 'node:util';
import { silentLogger } from '@wheelhouse/machinery';
import { type IssuedCertificate, issueCertificate } from '@wheelhouse/server/testing';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../support/cleanup.ts';
import { eventually } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

const dayMs = 24 * 60 * 60 * 1000;
const directory = temporaryFolder();
const at = (name: string) => join(directory, name);

function issued(commonName: string, more: Partial<Parameters<typeof issueCertificate>[0]> = {}) {
  const validity = { notBefore: Date.now() - dayMs, notAfter: Date.now() + dayMs };
  return issueCertificate({ commonName, usage: 'ca', ...validity, ...more });
}

const authorities = [issued('first-clients'), issued('second-clients')] as const;
const proxies = [issued('first-proxies'), issued('second-proxies')] as const;

function writePair(name: string, { certificatePem, keyPem }: IssuedCertificate): void {
  writeFileSync(at(`${name}.crt`), certificatePem);
  writeFileSync(at(`${name}.key`), keyPem);
}

const serving = issued('serving', { usage: 'server', hosts: ['127.0.0.1'] });
const named = issued('by-name', { usage: 'server', hosts: ['api.example'] });
const said: string[] = [];

writePair('serving', serving);
writePair('named', named);
writeFileSync(at('clients.crt'), authorities[0].certificatePem);
writeFileSync(at('proxies.crt'), proxies[0].certificatePem);
const pair = { certFile: at('named.crt'), keyFile: at('named.key'), names: ['api.example'] };
const server = await withServer({
  listen: {
    host: '127.0.0.1',
    port: 0,
    tls: { certFile: at('serving.crt'), keyFile: at('serving.key') },
    secure: { http2: 'on', named: [pair] },
  },
  authentication: {
    clientCaFile: at('clients.crt'),
    requestHeader: {
      clientCaFile: at('proxies.crt'),
      allowedNames: [],
      usernameHeaders: ['x-remote-user'],
      groupHeaders: ['x-remote-group'],
      extraHeaderPrefixes: [],
    },
  },
  logger: { ...silentLogger, warn: (text) => void said.push(text) },
});

const port = () => Number(new URL(server.url).port);

/** Opens a connection and returns what `read` extracts from its handshake. */
function handshake<T>(read: (socket: TLSSocket) => T, servername?: string): Promise<T> {
  const name = servername === undefined ? {} : { servername };
  const options = { host: '127.0.0.1', port: port(), rejectUnauthorized: false, ...name };
  return new Promise((resolve, reject) => {
    const socket = connectTls(options, () => {
      const found = read(socket);
      socket.destroy();
      resolve(found);
    });
    socket.on('error', reject);
  });
}

const fingerprintOf = ({ certificatePem }: IssuedCertificate) =>
  new X509Certificate(certificatePem).fingerprint256;
const served = (servername?: string) =>
  handshake((socket) => socket.getPeerX509Certificate()?.fingerprint256, servername);

/** The user that the server derives from a certificate, or the status if it rejects it. */
function userOf(holder: IssuedCertificate, headers = {}): Promise<string | number> {
  const path = `/apis/authentication.svc.io/v1/selfsubjectreviews`;
  const body = JSON.stringify({
    apiVersion: 'authentication.svc.io/v1',
    kind: 'SelfSubjectReview',
  });
  const { certificatePem: cert, keyPem: key } = holder;
  return new Promise((resolve, reject) => {
    const sent = httpsRequest(`${server.url}${path}`, {
      method: 'POST',
      cert,
      key,
      rejectUnauthorized: false,
      agent: false,
      headers: { 'content-type': 'application/json', 'content-length': body.length, ...headers },
    });
    sent.on('error', reject);
    sent.on('response', (answer) => {
      let text = '';
      answer.setEncoding('utf8').on('data', (part) => {
        text += part;
      });
      answer.on('end', () =>
        resolve(
          answer.statusCode === 201
            ? JSON.parse(text).status.userInfo.username
            : (answer.statusCode ?? 0),
        ),
      );
    });
    sent.end(body);
  });
}

test('AUTHN-2: a renewed serving certificate is served without a restart', async () => {
  expect(await served()).toBe(fingerprintOf(serving));
  const renewed = issued('serving', { usage: 'server', hosts: ['127.0.0.1'] });
  writeFileSync(at('serving.crt'), renewed.certificatePem);
  await eventually(async () => said.length > 0, 'the half-written pair is reported');
  expect(await served()).toBe(fingerprintOf(serving));
  writeFileSync(at('serving.key'), renewed.keyPem);
  await eventually(async () => (await served()) === fingerprintOf(renewed), 'the new certificate');
});

test('AUTHN-2: a renewed certificate for a name is served without a restart', async () => {
  expect(await served('api.example')).toBe(fingerprintOf(named));
  const renewed = issued('by-name', { usage: 'server', hosts: ['api.example'] });
  writePair('named', renewed);
  await eventually(
    async () => (await served('api.example')) === fingerprintOf(renewed),
    'the new certificate of the name',
  );
});

test('AUTHN-2: replaced client authorities apply without a restart', async () => {
  const [first, second] = authorities.map((issuer) =>
    issued('jane', { usage: 'client', issuer }),
  ) as [IssuedCertificate, IssuedCertificate];
  expect([await userOf(first), await userOf(second)]).toEqual(['jane', 401]);
  writeFileSync(at('clients.crt'), authorities[1].certificatePem);
  await eventually(async () => (await userOf(second)) === 'jane', 'the new authority');
  expect(await userOf(first)).toBe(401);
  writeFileSync(at('clients.crt'), 'no certificate');
  said.length = 0;
  await eventually(async () => said.length > 0, 'the wrong file is reported');
  expect(await userOf(second)).toBe('jane');
});

test('AUTHN-9: replaced front-proxy authorities apply, and are published', async () => {
  const headers = { 'x-remote-user': 'kim' };
  const [first, second] = proxies.map((issuer) => issued('proxy', { usage: 'client', issuer })) as [
    IssuedCertificate,
    IssuedCertificate,
  ];
  expect([await userOf(first, headers), await userOf(second, headers)]).toEqual(['kim', 401]);
  writeFileSync(at('proxies.crt'), proxies[1].certificatePem);
  await eventually(async () => (await userOf(second, headers)) === 'kim', 'the new authority');
  expect(await userOf(first, headers)).toBe(401);
  const path = '/api/v1/namespaces/svc-system/configmaps/extension-apiserver-authentication';
  await eventually(async () => {
    const published = (await server.get(path)).body.data['requestheader-client-ca-file'];
    return proxies.every(({ certificatePem }) => published?.includes(certificatePem.trim()));
  }, 'the published authorities');
  const { data } = (await server.get(path)).body;
  await server.patch(
    path,
    { data: { 'requestheader-username-headers': null, more: 'x' } },
    'merge',
  );
  const isBack = async () => isDeepStrictEqual((await server.get(path)).body.data, data);
  await eventually(isBack, 'the restored content');
  expect((await server.remove(path)).status).toBe(200);
  await eventually(async () => (await server.get(path)).status === 200, 'the recreated object');
});

test('AUTHN-2: a certificate is renewed while other files are broken', async () => {
  writeFileSync(at('clients.crt'), '');
  rmSync(at('named.key'));
  const renewed = issued('serving', { usage: 'server', hosts: ['127.0.0.1'] });
  const byName = await served('api.example');
  writePair('serving', renewed);
  await eventually(async () => (await served()) === fingerprintOf(renewed), 'the new certificate');
  expect(await served('api.example')).toBe(byName);
});
