import https from 'node:https';
import { join } from 'node:path';
import { createSession, type Fetch } from '@wheelhouse/console/testing';
import { systemClock } from '@wheelhouse/machinery';
import { ensureCa, issueClientCertificate } from '@wheelhouse/server/testing';
import { expect, test } from 'vitest';
import { temporaryFile, temporaryFolder } from '../support/cleanup.ts';
import { adminToken, configMap } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';
import { parseYaml } from './console.ts';

const directory = temporaryFolder();
const ca = ensureCa(join(directory, 'ca'), systemClock.now());
const of = { ca, user: 'jane', groups: ['system:masters'], clock: systemClock };
const { certificatePem: cert, keyPem: key } = issueClientCertificate(of);
const clientCertificate = { cert, key };
const bundle = temporaryFile('ca.crt', ca.certificatePem);
const server = await withServer({
  authentication: { clientCaFile: bundle },
  traffic: {
    watchGraceMs: 0,
    whileStopping: 'close',
    allowsOrigin: (origin) => origin === 'https://console.example.com',
  },
});

/** Acts as a browser with the certificate; pages cannot set these `headers`. */
const fetchAs =
  (headers: Record<string, string>): Fetch =>
  (url, request) =>
    new Promise((resolve, reject) => {
      const options = { method: request.method, headers: { ...request.headers, ...headers } };
      const sent = https.request(
        url,
        { ...options, ...clientCertificate, rejectUnauthorized: false, agent: false },
        (answer) => {
          const pieces: Buffer[] = [];
          answer.on('data', (piece: Buffer) => pieces.push(piece));
          answer.on('end', () => {
            const { statusCode: status = 0, headers: responseHeaders } = answer;
            const type = { 'content-type': responseHeaders['content-type'] ?? '' };
            resolve(new Response(Buffer.concat(pieces), { status, headers: type }));
          });
        },
      );
      sent.on('error', reject);
      sent.end(request.body);
    });

test('CLIENT-4: the browser’s certificate signs in without a token', async () => {
  const stored: (string | undefined)[] = [];
  const session = createSession({
    fetch: fetchAs({ 'sec-fetch-site': 'same-origin', 'sec-fetch-mode': 'cors' }),
    base: server.url,
    tokens: { read: () => undefined, write: (token) => stored.push(token) },
    parseYaml,
    onChange: () => {},
  });
  await session.resume();
  expect(session.state).toMatchObject({ phase: 'signed in', subject: { user: 'jane' } });
  expect(stored).toEqual([undefined]);
});

test('CLIENT-4: a page of another site cannot act with the browser’s certificate', async () => {
  const path = '/api/v1/namespaces/default/configmaps';
  const statusOf = async (method: string, name: string, headers: Record<string, string>) => {
    const body = method === 'POST' ? JSON.stringify(configMap(name)) : undefined;
    const plain = { cache: 'no-store', credentials: 'same-origin', redirect: 'error' } as const;
    const more = body === undefined ? {} : { body };
    const of = { method, headers: { accept: 'application/json' }, ...more, ...plain };
    return (await fetchAs(headers)(`${server.url}${path}`, of)).status;
  };
  // Such a page can send a body without a content type without a preflight.
  for (const site of ['cross-site', 'same-site']) {
    const forged = { 'sec-fetch-site': site, 'sec-fetch-mode': 'no-cors' };
    expect(await statusOf('POST', `forged-${site}`, forged), site).toBe(403);
    expect(await statusOf('GET', '', forged), site).toBe(403);
    const submitted = { 'sec-fetch-site': site, 'sec-fetch-mode': 'navigate' };
    expect(await statusOf('POST', `submitted-${site}`, submitted), site).toBe(403);
    // Following a link reads as the user.
    expect(await statusOf('GET', '', submitted), site).toBe(200);
  }
  for (const site of ['same-origin', 'none']) {
    expect(await statusOf('POST', `own-${site}`, { 'sec-fetch-site': site }), site).toBe(201);
  }
  expect(await statusOf('POST', 'no-browser', {})).toBe(201);
  // Old browsers state only the origin.
  const { hostname, host } = new URL(server.url);
  for (const origin of ['https://evil.example', 'null', `https://${hostname}`, `http://${host}`]) {
    expect(await statusOf('POST', 'forged-old', { origin }), origin).toBe(403);
    expect(await statusOf('GET', '', { origin }), origin).toBe(403);
  }
  expect(await statusOf('POST', 'own-old', { origin: server.url })).toBe(201);
  const { body } = await server.get(path);
  const names = body.items.map((item: { metadata: { name: string } }) => item.metadata.name);
  expect(names.filter((name: string) => /^(forged|submitted)/.test(name))).toEqual([]);
});

/** The handshake status of a WebSocket watch by certificate with additional `headers`. */
function handshake(headers: Record<string, string>): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = https.request(`${server.url}/api/v1/secrets?watch=1`, {
      ...clientCertificate,
      rejectUnauthorized: false,
      agent: false,
      headers: {
        connection: 'Upgrade',
        upgrade: 'websocket',
        'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==',
        'sec-websocket-version': '13',
        ...headers,
      },
    });
    const resolveWith = ({ statusCode = 0 }: { statusCode?: number | undefined }) => {
      sent.destroy();
      resolve(statusCode);
    };
    sent.on('response', resolveWith).on('upgrade', resolveWith).on('error', reject).end();
  });
}

test.each([
  'https://evil.example.com',
  'https://console.example.com.evil.example',
  'http://console.example.com',
  'null',
  'file://',
])('TRUST-6: a page of %s cannot watch over a WebSocket with the certificate', async (origin) => {
  expect(await handshake({ origin })).toBe(403);
  // Another site may be on the same host.
  expect(await handshake({ origin, 'sec-fetch-site': 'same-site' })).toBe(403);
});

test('TRUST-6: a page of the same host with another port or scheme cannot either', async () => {
  const { hostname, host } = new URL(server.url);
  expect(await handshake({ origin: `https://${hostname}` })).toBe(403);
  expect(await handshake({ origin: `http://${host}` })).toBe(403);
});

test('TRUST-6: pages of the server and of allowed origins watch with the certificate', async () => {
  expect(await handshake({ origin: server.url })).toBe(101);
  expect(await handshake({ origin: 'https://console.example.com' })).toBe(101);
});

test('TRUST-6: a token opens a WebSocket from any origin, as other sites have none', async () => {
  const authorization = `Bearer ${adminToken}`;
  expect(await handshake({ origin: 'https://evil.example.com', authorization })).toBe(101);
});
