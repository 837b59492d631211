import http2 from 'node:http2';
import { join } from 'node:path';
import { systemClock } from '@wheelhouse/machinery';
import {
  ensureCa,
  type IssuedCertificate,
  issueClientCertificate,
} from '@wheelhouse/server/testing';
import { describe, expect, test } from 'vitest';
import { temporaryFile, temporaryFolder } from '../support/cleanup.ts';
import type { Answer } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

const directory = temporaryFolder();
const proxies = ensureCa(join(directory, 'proxies'), systemClock.now());
const clients = ensureCa(join(directory, 'clients'), systemClock.now());
const proxyFile = temporaryFile('ca.crt', proxies.certificatePem);
const clientFile = temporaryFile('ca.crt', clients.certificatePem);
const server = await withServer({
  authentication: {
    clientCaFile: clientFile,
    requestHeader: {
      clientCaFile: proxyFile,
      allowedNames: ['front'],
      usernameHeaders: ['X-Remote-User', 'X-User'],
      groupHeaders: ['X-Remote-Group'],
      extraHeaderPrefixes: ['X-Remote-Extra-'],
    },
  },
});

const issue = (ca: IssuedCertificate, user: string) =>
  issueClientCertificate({ ca, user, groups: [], clock: systemClock });

/** Returns the user of a request over a connection that presents the certificate. */
function whoAmI(
  certificate: IssuedCertificate | undefined,
  headers: Record<string, string | string[]>,
  { url } = server,
): Promise<{ status: number; user: Answer['body'] }> {
  const shown =
    certificate === undefined ? {} : { cert: certificate.certificatePem, key: certificate.keyPem };
  const session = http2.connect(url, { rejectUnauthorized: false, ...shown });
  const group = 'authentication.svc.io/v1';
  return new Promise((resolve, reject) => {
    const stream = session.request({
      ':method': 'POST',
      ':path': `/apis/${group}/selfsubjectreviews`,
      'content-type': 'application/json',
      ...headers,
    });
    let status = 0;
    let text = '';
    stream.on('response', (head) => {
      status = Number(head[':status']);
    });
    stream.on('data', (chunk: Buffer) => {
      text += chunk.toString();
    });
    stream.on('error', reject);
    stream.on('end', () => {
      session.destroy();
      resolve({ status, user: JSON.parse(text).status?.userInfo });
    });
    stream.end(JSON.stringify({ apiVersion: group, kind: 'SelfSubjectReview' }));
  });
}

describe('authenticating proxy', () => {
  test('AUTHN-9: its headers give user, groups, and extra', async () => {
    const { status, user } = await whoAmI(issue(proxies, 'front'), {
      'x-remote-user': 'jane',
      'x-remote-group': ['dev, ops', 'other'],
      'x-remote-extra-scopes': ['view', 'edit'],
      'x-remote-extra-example.com%2fa': 'b',
    });
    expect(status).toBe(201);
    expect(user).toEqual({
      username: 'jane',
      groups: ['dev, ops', 'other', 'system:authenticated'],
      extra: { scopes: ['view', 'edit'], 'example.com/a': ['b'] },
    });
  });

  test('AUTHN-9: the first header with a user counts', async () => {
    const front = issue(proxies, 'front');
    const both = await whoAmI(front, { 'x-user': 'second', 'x-remote-user': 'first' });
    expect(both.user.username).toBe('first');
    const fallback = await whoAmI(front, { 'x-user': 'second', 'x-remote-user': '' });
    expect(fallback.user.username).toBe('second');
  });

  test('AUTHN-9: headers that the proxy forwards from a browser change nothing', async () => {
    const browser = { 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'cors' };
    const forwarded = await whoAmI(issue(proxies, 'front'), {
      'x-remote-user': 'jane',
      ...browser,
    });
    expect(forwarded.user).toMatchObject({ username: 'jane' });
  });

  test('AUTHN-9: without a user the request is anonymous', async () => {
    const { status } = await whoAmI(issue(proxies, 'front'), { 'x-remote-group': 'dev' });
    expect(status).toBe(401);
  });

  test('AUTHN-9: a certificate of another name is refused', async () => {
    const { status } = await whoAmI(issue(proxies, 'back'), { 'x-remote-user': 'jane' });
    expect(status).toBe(401);
  });

  test('AUTHN-9: a certificate without a name is in no list of names', async () => {
    const unnamed = issue(proxies, '');
    const settings = {
      clientCaFile: proxyFile,
      usernameHeaders: ['X-Remote-User'],
      groupHeaders: [],
      extraHeaderPrefixes: [],
    };
    const listed = await withServer({
      authentication: {
        clientCaFile: proxyFile,
        requestHeader: { ...settings, allowedNames: ['front'] },
      },
    });
    const headers = { 'x-remote-user': 'jane' };
    expect((await whoAmI(unnamed, headers, listed)).status).toBe(401);
    expect((await whoAmI(unnamed, {}, listed)).status).toBe(401);
    const open = await withServer({
      authentication: { requestHeader: { ...settings, allowedNames: [] } },
    });
    expect((await whoAmI(unnamed, headers, open)).user).toMatchObject({ username: 'jane' });
  });

  test('AUTHN-9: other clients cannot set the headers', async () => {
    const headers = { 'x-remote-user': 'root', 'x-remote-group': 'system:masters' };
    expect((await whoAmI(undefined, headers)).status).toBe(403);
    const client = await whoAmI(issue(clients, 'front'), headers);
    expect(client.user).toMatchObject({ username: 'front', groups: ['system:authenticated'] });
    const admin = await whoAmI(undefined, { ...headers, authorization: 'Bearer test-admin-token' });
    expect(admin.user.username).toBe('system:admin');
  });

  test('AUTHN-9: the proxy’s certificate alone is not a client certificate', async () => {
    const { status } = await whoAmI(issue(proxies, 'front'), {});
    expect(status).toBe(401);
  });
});
