import { once } from 'node:events';
import https from 'node:https';
import { createServer } from 'node:net';
import {
  type ApiClient,
  type ClientConfig,
  createApiClient,
  createHttpClient,
  watchEvents,
} from '@wheelhouse/client';
import { systemClock } from '@wheelhouse/machinery';
import { ensureCa, issueCertificate } from '@wheelhouse/server/testing';
import { afterEach, expect, test } from 'vitest';
import { temporaryFolder, untilEnd } from '../support/cleanup.ts';
import { adminToken, configMap } from '../support/harness.ts';
import { listenLocally, servedCertificate, trackConnections } from '../support/local-server.ts';
import { startTunnelProxy } from '../support/tunnel-proxy.ts';
import { withServer } from '../support/with-server.ts';

let client: ApiClient | undefined;

const server = await withServer();
afterEach(() => client?.close());

function clientOf(change: Partial<ClientConfig>): ApiClient {
  client = createApiClient({
    server: server.url,
    caPem: server.server.caPem,
    token: () => adminToken,
    ...change,
  });
  return client;
}

test('a proxy-url tunnels TLS from the client to the server', async () => {
  const { address, requests } = await untilEnd(startTunnelProxy());
  const through = clientOf({ proxyUrl: `http://jane:p%40ss@${address}` });
  expect(await through.get('/version')).toHaveProperty('gitVersion');
  const path = '/api/v1/namespaces/default/configmaps';
  await through.send({ method: 'POST', path, body: configMap('tunnelled') });
  const { body } = await through.stream({ path, query: { watch: 'true' } });
  for await (const event of watchEvents(body)) {
    expect(event.type).toBe('ADDED');
    break;
  }
  const basic = `Basic ${Buffer.from('jane:p@ss').toString('base64')}`;
  expect(requests[0]).toEqual([new URL(server.url).host, basic]);
});

test('a server is trusted by its own certificate, without its authority', async () => {
  const caPem = (await servedCertificate(Number(new URL(server.url).port))).toString();
  expect(server.server.caPem).not.toContain(caPem);
  expect(await clientOf({ caPem }).get('/version')).toHaveProperty('gitVersion');
});

test('a TLS proxy is trusted by the same authorities as the server', async () => {
  const ca = ensureCa(temporaryFolder(), systemClock.now());
  const now = systemClock.now();
  const { certificatePem: cert, keyPem: key } = issueCertificate({
    commonName: 'proxy',
    notBefore: now - 60_000,
    notAfter: now + 3_600_000,
    usage: 'server',
    hosts: ['127.0.0.1'],
    issuer: ca,
  });
  const proxy = startTunnelProxy({ server: https.createServer({ cert, key }) });
  const { address } = await untilEnd(proxy);
  const proxyUrl = `https://${address}`;
  await expect(clientOf({ proxyUrl }).get('/version')).rejects.toThrow(/certificate/);
  const caPem = `${server.server.caPem}\n${ca.certificatePem}`;
  expect(await clientOf({ proxyUrl, caPem }).get('/version')).toHaveProperty('gitVersion');
});

test('a proxy that refuses or is unreachable causes a connection error', async () => {
  const { address, requests } = await untilEnd(startTunnelProxy({ status: 407 }));
  await expect(clientOf({ proxyUrl: `http://${address}` }).get('/version')).rejects.toMatchObject({
    name: 'ConnectionError',
    message: 'the proxy answered 407 to CONNECT',
  });
  expect(requests[0]?.[1]).toBeUndefined();
  const nowhere = clientOf({ proxyUrl: 'http://127.0.0.1:1' });
  await expect(nowhere.get('/version')).rejects.toMatchObject({ code: 'ECONNREFUSED' });
});

const afterFirstBytes = (answer: string) =>
  createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => socket.write(answer));
  });

test.each([
  ['a proxy that does not answer', ''],
  ['a server behind a proxy that does not answer', 'HTTP/1.1 200 OK\r\n\r\n'],
])('TRUST-1: a call through %s can be canceled', async (_, answer) => {
  const proxy = afterFirstBytes(answer);
  const port = await listenLocally(proxy);
  const connections = untilEnd(trackConnections(proxy, ['connection']));
  const canceled = new AbortController();
  const http = createHttpClient({ server: server.url, proxyUrl: `http://127.0.0.1:${port}` });
  const call = http.request({ method: 'GET', path: '/version', signal: canceled.signal });
  await once(proxy, 'connection');
  canceled.abort();
  await expect(call).rejects.toMatchObject({ name: 'AbortError' });
  await expect.poll(() => connections.count).toBe(0);
});

test('TRUST-1: an answer that switches protocols fails the request', async () => {
  const peer = afterFirstBytes(
    'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: other\r\n\r\n',
  );
  const port = await listenLocally(peer);
  untilEnd(trackConnections(peer, ['connection']));
  const switched = clientOf({ server: `http://127.0.0.1:${port}` });
  await expect(switched.get('/version')).rejects.toMatchObject({
    name: 'ConnectionError',
    message: 'the server switched protocols',
  });
});

test('tls-server-name is verified against names and addresses', async () => {
  expect(await clientOf({ tlsServerName: 'localhost' }).get('/version')).toHaveProperty('major');
  client?.close();
  expect(await clientOf({ tlsServerName: '127.0.0.1' }).get('/version')).toHaveProperty('major');
  client?.close();
  for (const tlsServerName of ['other.example', '10.1.2.3']) {
    await expect(clientOf({ tlsServerName }).get('/version')).rejects.toMatchObject({
      code: 'ERR_TLS_CERT_ALTNAME_INVALID',
    });
    client?.close();
  }
});
