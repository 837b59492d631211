import { once } from 'node:events';
import http2 from 'node:http2';
import https from 'node:https';
import { connect as connectTcp } from 'node:net';
import { join } from 'node:path';
import { Duplex } from 'node:stream';
import { connect as connectTls } from 'node:tls';
import { systemClock } from '@wheelhouse/machinery';
import {
  ensureCa,
  type IssuedCertificate,
  issueCertificate,
  issueClientCertificate,
} from '@wheelhouse/server/testing';
import { describe, expect, test } from 'vitest';
import { temporaryFile, temporaryFolder, untilEnd } from '../support/cleanup.ts';
import { type Answer, startTestServer } from '../support/harness.ts';
import { buildPrograms, run } from '../support/program.ts';
import { withServer } from '../support/with-server.ts';
import { as } from './token-users.ts';

const unauthorized = {
  kind: 'Status',
  apiVersion: 'v1',
  metadata: {},
  status: 'Failure',
  message: 'Unauthorized',
  reason: 'Unauthorized',
  code: 401,
};

/** The user that the server assigned to the request, from the text of its refusal. */
function userIn(answer: Pick<Answer, 'body'>): string | undefined {
  return /User "([^"]*)"/.exec(answer.body.message)?.[1];
}

const probe = '/api/v1/nodes';

describe('anonymous', async () => {
  const server = await withServer();

  test('AUTHN-1: a request without a credential is system:anonymous', async () => {
    const answer = await server.get(probe, { token: undefined });
    expect(answer.status).toBe(403);
    expect(userIn(answer)).toBe('system:anonymous');
  });

  test('AUTHN-1: system:unauthenticated may read only health and version', async () => {
    const status = async (path: string) => (await server.get(path, { token: undefined })).status;
    expect(await status('/healthz')).toBe(200);
    expect(await status('/livez')).toBe(200);
    expect(await status('/readyz')).toBe(200);
    expect(await status('/version')).toBe(200);
    expect(await status('/livez/ping')).toBe(403);
    expect(await status('/api')).toBe(403);
    expect(await status('/apis')).toBe(403);
    expect(await status('/metrics')).toBe(403);
  });

  test.each([
    ['an unknown token', 'Bearer nobody'],
    ['a token with spaces', 'Bearer a b'],
    ['a JWT that nobody signed', 'Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJyb290In0.'],
  ])('AUTHN-1: %s is 401, never anonymous', async (_, authorization) => {
    const answer = await server.get('/healthz', { token: undefined, headers: { authorization } });
    expect(answer.status).toBe(401);
    expect(answer.body).toEqual(unauthorized);
  });

  test.each(['Basic cm9vdDpyb290', 'Bearer ', 'Bearer'])(
    'AUTHN-1: %j is not a credential for this server',
    async (authorization) => {
      const headers = { authorization };
      const answer = await server.get(probe, { token: undefined, headers });
      expect(answer.status).toBe(403);
      expect(userIn(answer)).toBe('system:anonymous');
    },
  );

  test('AUTHN-1: a token after two spaces is ignored with a warning', async () => {
    const headers = { authorization: 'Bearer  abc' };
    const answer = await server.get(probe, { token: undefined, headers });
    expect(userIn(answer)).toBe('system:anonymous');
    expect(answer.warnings).toEqual([
      'the provided Authorization header contains extra space before the bearer token, and is ignored',
    ]);
    for (const path of ['/version', '/healthz']) {
      expect((await server.get(path, { token: undefined, headers })).warnings).toHaveLength(1);
      expect((await server.get(path, { token: undefined })).warnings).toEqual([]);
    }
  });

  test('AUTHN-1: every operation answers an invalid credential with 401', async () => {
    const at = '/apis/rbac.authorization.svc.io/v1/namespaces/default/rolebindings';
    for (const [method, path] of [
      ['GET', at],
      ['GET', `${at}/x`],
      ['POST', at],
      ['PUT', `${at}/x`],
      ['PATCH', `${at}/x`],
      ['DELETE', `${at}/x`],
      ['DELETE', at],
      ['GET', '/apis/rbac.authorization.svc.io/v1/rolebindings'],
      ['GET', '/nothing/here'],
    ] as const) {
      const answer = await server.request(method, path, as('wrong'));
      expect(answer.status, `${method} ${path}`).toBe(401);
      expect(answer.body).toEqual(unauthorized);
    }
  });

  test('AUTHN-1: with anonymous requests off, no credential is 401, also for health', async () => {
    const closed = await withServer({ authentication: { anonymous: false } });
    for (const path of [probe, '/healthz', '/version']) {
      const answer = await closed.get(path, { token: undefined });
      expect(answer.status).toBe(401);
      expect(answer.body).toEqual(unauthorized);
    }
    expect((await closed.get('/healthz')).status).toBe(200);
  });
});

describe('token file', () => {
  const start = (text: string) =>
    withServer({ authentication: { tokenFile: temporaryFile('tokens.csv', text) } });

  test('AUTHN-3: the file gives user, uid, and quoted groups', async () => {
    const server = await start(
      't1,jane,u1,"system:masters,dev"\n' +
        '"t,2","o""hara",u2\n' +
        '\n' +
        't3,joe,u3,system:masters\r\n',
    );
    expect((await server.get(probe, as('t1'))).status).toBe(200);
    const quoted = await server.get(probe, as('t,2'));
    expect(quoted.status).toBe(403);
    expect(quoted.body.message).toContain('User "o\\"hara" cannot');
    expect((await server.get(probe, as('t3'))).status).toBe(200);
    expect((await server.get(probe, as('t4'))).status).toBe(401);
  });

  test('AUTHN-12: its users are in system:authenticated, which may use discovery', async () => {
    const server = await start('t,jane,u\n');
    expect((await server.get('/apis', as('t'))).status).toBe(200);
    expect((await server.get('/api/v1', as('t'))).status).toBe(200);
    expect((await server.get('/apis', { token: undefined })).status).toBe(403);
  });

  test('AUTHN-3: the last line of a repeated token counts, and an empty token is ignored', async () => {
    const server = await start('t,first,1\n,nobody,2\nt,last,3\n');
    expect(userIn(await server.get(probe, as('t')))).toBe('last');
  });

  test.each([
    ['a,b,c\nd,e\n', /line 2.*at least 3 columns.*found 2/],
    ['a,b,c\n"d,e,f\n', /line/],
    ['a,b,c\n\nd,e"f,g\n', /line 3/],
    ['a\n', /line 1/],
  ])('AUTHN-3: %j stops the start, naming the line', async (text, message) => {
    await expect(start(text)).rejects.toThrow(message);
  });

  test('AUTHN-3: the program prints the error and exits', async () => {
    const programs = await untilEnd(buildPrograms());
    const path = temporaryFile('tokens.csv', 'a,b,c\nsecret-token,e\n');
    const data = temporaryFolder();
    const ended = await run(programs.wheelhouse, [
      'serve',
      `--data-dir=${data}`,
      '--secure-port=0',
      `--token-auth-file=${path}`,
    ]);
    expect(ended.code).toBe(1);
    expect(ended.stderr).toMatch(/^error: token file .*tokens\.csv' line 2 must have/m);
    expect(ended.stderr).not.toContain('secret-token');
  });

  test('AUTHN-3: the error never contains a token', async () => {
    const error = await start('secret-token,b\n').catch((reason: unknown) => reason);
    expect(String(error)).not.toContain('secret-token');
  });

  test('AUTHN-3: a missing file stops the start', async () => {
    const started = startTestServer({ authentication: { tokenFile: '/nowhere/tokens.csv' } });
    await expect(started).rejects.toThrow(/ENOENT.*\/nowhere\/tokens.csv/);
  });
});

describe('client certificates', async () => {
  const dayMs = 86_400_000;
  const directory = temporaryFolder();
  const ca = (name: string) => ensureCa(join(directory, name), systemClock.now());
  const [first, second, stranger] = [ca('first'), ca('second'), ca('stranger')];
  const life = { notBefore: systemClock.now() - dayMs, notAfter: systemClock.now() + dayMs };
  const named = issueCertificate({ commonName: 'authority of clients', usage: 'ca', ...life });
  const pems = [first, second, named].map(({ certificatePem }) => certificatePem);
  const bundle = temporaryFile('ca.crt', pems.join('\n'));
  const tokens = temporaryFile('tokens.csv', 'jane-token,jane,u\n');
  const server = await withServer({ authentication: { clientCaFile: bundle, tokenFile: tokens } });

  /** Sends a GET on a separate connection that presents the certificate. */
  const get = (
    path: string,
    options: { certificate?: IssuedCertificate; headers?: Record<string, string> },
  ) =>
    new Promise<{ status: number; body: Answer['body'] }>((resolve, reject) => {
      const { certificate, headers = {} } = options;
      const request = https.request(`${server.url}${path}`, {
        rejectUnauthorized: false,
        agent: false,
        headers,
        ...(certificate === undefined
          ? {}
          : { cert: certificate.certificatePem, key: certificate.keyPem }),
      });
      request.on('error', reject);
      request.on('response', (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString('utf8');
          const isJson = text.startsWith('{');
          resolve({ status: response.statusCode ?? 0, body: isJson ? JSON.parse(text) : text });
        });
      });
      request.end();
    });

  const issue = (ca: IssuedCertificate, user: string, groups: readonly string[] = []) =>
    issueClientCertificate({ ca, user, groups, clock: systemClock });

  test('AUTHN-2: the common name is the user and each organization a group, for any CA', async () => {
    for (const ca of [first, second]) {
      const plain = await get(probe, { certificate: issue(ca, 'jane doe') });
      expect(plain.status).toBe(403);
      expect(userIn(plain)).toBe('jane doe');
      const master = issue(ca, 'root', ['dev', 'system:masters']);
      expect((await get(probe, { certificate: master })).status).toBe(200);
    }
  });

  test('AUTHN-2: the handshake names the accepted authorities', async () => {
    const port = Number(new URL(server.url).port);
    const tcp = connectTcp(port, '127.0.0.1');
    const heard: Buffer[] = [];
    const wire = new Duplex({
      read: () => {},
      write: (chunk: Buffer, _, done) => tcp.write(chunk, () => done()),
    });
    tcp.on('data', (chunk: Buffer) => {
      heard.push(chunk);
      wire.push(chunk);
    });
    // Before TLS 1.3, the request for a certificate is sent unencrypted.
    const client = connectTls({ socket: wire, rejectUnauthorized: false, maxVersion: 'TLSv1.2' });
    await once(client, 'secureConnect');
    client.destroy();
    tcp.destroy();
    expect(Buffer.concat(heard).includes('authority of clients')).toBe(true);
  });

  test('AUTHN-2: over HTTP/2 it applies to every request of the connection', async () => {
    const { certificatePem: cert, keyPem: key } = issue(second, 'jane', ['system:masters']);
    const session = http2.connect(server.url, { rejectUnauthorized: false, cert, key });
    const statuses = [1, 2, 3].map(
      () =>
        new Promise((resolve, reject) => {
          const stream = session.request({ ':path': probe });
          stream.on('response', (headers) => resolve(headers[':status']));
          stream.on('error', reject);
          stream.resume();
        }),
    );
    expect(await Promise.all(statuses)).toEqual([200, 200, 200]);
    session.destroy();
  });

  test('AUTHN-2, AUTHN-12: its user is in system:authenticated', async () => {
    expect((await get('/apis', { certificate: issue(first, 'jane') })).status).toBe(200);
    expect((await get('/apis', {})).status).toBe(403);
  });

  test('AUTHN-2: a certificate of an unknown CA is refused', async () => {
    const answer = await get('/healthz', { certificate: issue(stranger, 'root') });
    expect(answer.status).toBe(401);
    expect(answer.body).toEqual(unauthorized);
  });

  const made = (change: Partial<Parameters<typeof issueCertificate>[0]>) => {
    const now = systemClock.now();
    return issueCertificate({
      commonName: 'root',
      organizations: ['system:masters'],
      usage: 'client',
      notBefore: now - dayMs,
      notAfter: now + dayMs,
      issuer: first,
      ...change,
    });
  };

  test.each([
    ['an expired one', () => made({ notAfter: systemClock.now() - 60_000 })],
    ['one that is not valid yet', () => made({ notBefore: systemClock.now() + 60_000 })],
    ['a serving certificate', () => made({ usage: 'server', hosts: ['localhost'] })],
  ])('AUTHN-2: %s is refused', async (_, certificate) => {
    const answer = await get(probe, { certificate: certificate() });
    expect(answer.status).toBe(401);
    expect(answer.body).toEqual(unauthorized);
  });

  test('AUTHN-2: a self-signed certificate proves nothing', async () => {
    const own = ensureCa(join(directory, 'own'), systemClock.now());
    expect((await get(probe, { certificate: own })).status).toBe(401);
  });

  test('AUTHN-12: authenticators are tried until one succeeds', async () => {
    const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
    const good = issue(first, 'certified');
    const bad = issue(stranger, 'root');
    const user = async (options: Parameters<typeof get>[1]) => userIn(await get(probe, options));
    expect(await user({ certificate: good, headers: bearer('jane-token') })).toBe('certified');
    expect(await user({ certificate: good, headers: bearer('wrong') })).toBe('certified');
    expect(await user({ certificate: bad, headers: bearer('jane-token') })).toBe('jane');
    const neither = await get(probe, { certificate: bad, headers: bearer('wrong') });
    expect(neither.status).toBe(401);
  });

  test('AUTHN-2: a bundle without certificates stops the start', async () => {
    const empty = temporaryFile('ca.crt', 'nothing here\n');
    const started = startTestServer({ authentication: { clientCaFile: empty } });
    await expect(started).rejects.toThrow(/no certificate/);
  });
});

test("the administrator's token is a member of system:masters", async () => {
  const server = await withServer({ authorizationModes: ['AlwaysDeny'] });
  expect((await server.get(probe)).status).toBe(200);
});
