import { writeFileSync } from 'node:fs';
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import https from 'node:https';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { deflateRawSync, deflateSync, gunzipSync, gzipSync, inflateRawSync } from 'node:zlib';
import { systemClock } from '@wheelhouse/machinery';
import { ensureCa, issueClientCertificate } from '@wheelhouse/server/testing';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { temporaryFolder } from '../support/cleanup.ts';
import { adminToken, startTestServer, type TestServer } from '../support/harness.ts';
import { type PlayedKubelet, startKubelet } from '../support/kubelet.ts';
import { listenLocally } from '../support/local-server.ts';

const at = '/api/v1/namespaces/default';
const directory = temporaryFolder();
const clientCaFile = join(directory, 'clients.crt');
const podAddress = '10.9.8.7';
let server: TestServer;
let kubelet: PlayedKubelet;
let backend: http.Server;
let port = 0;
let requests: { method: string; url: string; headers: IncomingMessage['headers']; body: string }[] =
  [];
/** The client certificate of a user. */
let shown: { readonly cert: string; readonly key: string };
/** The addresses to which the server would have connected. */
let hosts: string[] = [];
let answer: (request: IncomingMessage, response: ServerResponse) => void;

beforeAll(async () => {
  kubelet = await startKubelet();
  backend = http.createServer((request, response) => {
    let body = '';
    request.on('data', (piece: Buffer) => {
      body += piece;
    });
    request.on('end', () => {
      const { method = '', url = '', headers } = request;
      requests.push({ method, url, headers, body });
      answer(request, response);
    });
  });
  backend.on('upgrade', (request: IncomingMessage, socket: Duplex) => {
    socket.on('error', () => {});
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n');
    socket.end(`${request.url} ${request.headers['x-forwarded-for']}`);
  });
  port = await listenLocally(backend);
  const connectTo = (host: string) => {
    hosts.push(host);
    return '127.0.0.1';
  };
  const ca = ensureCa(directory, systemClock.now());
  const of = { ca, user: 'jane', groups: ['system:masters'], clock: systemClock };
  const { certificatePem: cert, keyPem: key } = issueClientCertificate(of);
  shown = { cert, key };
  writeFileSync(clientCaFile, ca.certificatePem);
  const authentication = { clientCaFile };
  server = await startTestServer({ kubelets: { connectTo }, authentication });
  await prepare();
});
beforeEach(() => {
  requests = [];
  hosts = [];
  answer = (_, response) => void response.end('fine');
  kubelet.requests.length = 0;
});
afterAll(async () => {
  await server.stop();
  await kubelet.stop();
  backend.closeAllConnections();
  await new Promise((resolve) => backend.close(resolve));
});

async function prepare(): Promise<void> {
  const pod = (name: string, ip: string) => ({
    metadata: { name },
    spec: { containers: [{ name: 'c', image: 'x:1', ports: [{ containerPort: port }] }] },
    status: { podIP: ip, podIPs: [{ ip }] },
  });
  const node = (name: string, address: string) => ({
    metadata: { name },
    status: {
      addresses: [{ type: 'InternalIP', address }],
      daemonEndpoints: { kubeletEndpoint: { Port: kubelet.port } },
    },
  });
  const service = (name: string) => ({
    metadata: { name },
    spec: {
      ports: [
        { name: 'web', port: 80 },
        { name: 'other', port: 81 },
      ],
    },
  });
  const targetRef = { kind: 'Pod', namespace: 'default', name: 'p' };
  const endpoints = (name: string, addresses: object[]) => ({
    metadata: { name },
    subsets: addresses.length === 0 ? [] : [{ addresses, ports: [{ name: 'web', port }] }],
  });
  const objects: (readonly [string, object])[] = [
    [`${at}/pods`, pod('p', podAddress)],
    [`${at}/pods`, pod('own', '127.0.0.1')],
    [`${at}/pods`, pod('octal', '0177.0.0.1')],
    [`${at}/pods`, pod('everybody', '0255.255.255.255')],
    [`${at}/pods`, pod('group', '0225.1.1.1')],
    ['/api/v1/nodes', node('n', '10.9.8.6')],
    ['/api/v1/nodes', node('own', '127.0.0.1')],
    [`${at}/services`, service('s')],
    [`${at}/services`, service('foreign')],
    [`${at}/services`, service('lonely')],
    [`${at}/services`, service('octal')],
    [
      `${at}/endpoints`,
      endpoints('octal', [{ ip: '0177.0.0.1', targetRef: { ...targetRef, name: 'octal' } }]),
    ],
    [`${at}/endpoints`, endpoints('s', [{ ip: podAddress, targetRef }, { ip: '10.9.8.5' }])],
    [`${at}/endpoints`, endpoints('foreign', [{ ip: '10.9.8.4', targetRef }, { ip: podAddress }])],
  ];
  for (const [path, object] of objects) {
    const created = await server.post(path, object);
    expect(created.status, created.text).toBe(201);
    const { name } = created.body.metadata;
    if (!('status' in object)) continue;
    const merge = { 'content-type': 'application/merge-patch+json' };
    const { status } = object;
    const patched = await server.request('PATCH', `${path}/${name}/status`, {
      body: { status },
      headers: merge,
    });
    expect(patched.status, patched.text).toBe(200);
  }
}

interface RawAnswer {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
}

/**
 * Sends a request over HTTP/1.1 with an unnormalized path; resolves with the socket's text on 101.
 */
function send(
  path: string,
  options: {
    method?: string;
    headers?: Record<string, string>;
    body?: string;
    as?: 'browser with a certificate';
  } = {},
): Promise<RawAnswer> {
  const { method = 'GET', headers = {}, body } = options;
  const credential =
    options.as === undefined
      ? { headers: { authorization: `Bearer ${adminToken}`, ...headers } }
      : { headers, ...shown, agent: false };
  const { hostname, port: ownPort } = new URL(server.url);
  return new Promise((resolve, reject) => {
    const request = https.request({
      hostname,
      port: ownPort,
      path,
      method,
      ...credential,
      rejectUnauthorized: false,
    });
    const collect = (from: NodeJS.ReadableStream, message: IncomingMessage, head?: Buffer) => {
      const pieces: Buffer[] = head === undefined ? [] : [head];
      from.on('data', (piece: Buffer) => pieces.push(piece));
      from.on('end', () =>
        resolve({
          status: message.statusCode ?? 0,
          headers: message.headers,
          body: Buffer.concat(pieces),
        }),
      );
      from.on('error', reject);
    };
    request.on('response', (message) => collect(message, message));
    request.on('upgrade', (message, socket, head) => collect(socket, message, head));
    request.on('error', reject);
    request.end(body);
  });
}

const message = ({ body }: RawAnswer): unknown => JSON.parse(body.toString()).message;

describe('proxy', () => {
  test('API-1: a request reaches the Pod with its path, query, headers, and body', async () => {
    const path = `${at}/pods/p/proxy/a//b/c%20d;e/?x=%41&y=b+c;d`;
    const headers = {
      cookie: 'a=b',
      'x-forwarded-for': '1.1.1.1',
      'x-forwarded-uri': '/forged',
      'x-remote-user': 'joe',
      'x-own': '1',
    };
    answer = (_, response) => {
      response.writeHead(418, { 'x-backend': 'yes', 'access-control-allow-origin': '*' });
      response.end('tea');
    };
    const answered = await send(path, { method: 'POST', headers, body: 'hello' });
    expect([answered.status, answered.body.toString()]).toEqual([418, 'tea']);
    expect(answered.headers['x-backend']).toBe('yes');
    expect(answered.headers['access-control-allow-origin']).toBeUndefined();
    const [request] = requests;
    expect(request).toMatchObject({
      method: 'POST',
      url: '/a/b/c%20d;e/?x=%41&y=b+c;d',
      body: 'hello',
      headers: {
        cookie: 'a=b',
        host: new URL(server.url).host,
        'x-forwarded-for': '1.1.1.1, 127.0.0.1',
        'x-forwarded-uri': `${at}/pods/p/proxy/a/b/c%20d;e/`,
        'x-own': '1',
      },
    });
    expect(request?.headers.authorization).toBeUndefined();
    expect(request?.headers['x-remote-user']).toBeUndefined();
  });

  test('API-1: a path that ends in proxy redirects to one with a slash', async () => {
    const [get, head] = await Promise.all([
      send(`${at}/pods/p/proxy?a=1&b`),
      send(`${at}/pods/p/proxy`, { method: 'HEAD' }),
    ]);
    expect([get.status, get.headers.location]).toEqual([301, `${at}/pods/p/proxy/?a=1&b`]);
    expect([head.status, head.headers.location]).toEqual([301, `${at}/pods/p/proxy/`]);
    expect(requests).toEqual([]);
    expect((await send(`${at}/pods/p/proxy`, { method: 'POST' })).status).toBe(200);
    expect(requests[0]?.url).toBe('/');
  });

  test('API-1: every method is passed on', async () => {
    const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];
    for (const method of methods) {
      expect((await send(`${at}/pods/p/proxy/x`, { method })).status, method).toBe(200);
    }
    expect(requests.map(({ method }) => method)).toEqual(methods);
  });

  test('ADM-4: an answer without a body has no length', async () => {
    const head = 'HTTP/1.1 204 No Content\r\ncontent-length: 5\r\nx-a: b\r\n\r\n';
    answer = (_, { socket }) => void socket?.end(head);
    const { status, headers } = await server.request('GET', `${at}/pods/p/proxy/x`);
    expect(status).toBe(204);
    expect(headers).toMatchObject({ 'x-a': 'b' });
    expect(headers).not.toHaveProperty('content-length');
  });

  test.each(['s:web', 's:80', 'http:s:web', 'http:s:80'])(
    'API-1: the Service %s leads to one of its Pods',
    async (name) => {
      expect((await send(`${at}/services/${name}/proxy/x`)).body.toString()).toBe('fine');
    },
  );

  test.each(['p', 'http:p:', 'p:PORT', 'http:p:PORT'])('API-1: the Pod %s', async (name) => {
    const path = `${at}/pods/${name.replace('PORT', String(port))}/proxy/x`;
    expect((await send(path)).body.toString()).toBe('fine');
  });

  test('API-1: a Node leads to its kubelet or another of its ports', async () => {
    expect((await send('/api/v1/nodes/n/proxy/pods?x=1')).body.toString()).toBe('a line\n');
    expect((await send(`/api/v1/nodes/n:${kubelet.port}/proxy/`)).status).toBe(200);
    expect(kubelet.requests).toEqual(['GET /pods?x=1', 'GET /']);
    expect((await send(`/api/v1/nodes/n:${port}/proxy/x`)).body.toString()).toBe('fine');
  });

  test('API-1: HTTPS accepts any certificate', async () => {
    const path = `${at}/pods/https:p:${kubelet.port}/proxy/x`;
    expect((await send(path)).body.toString()).toBe('a line\n');
  });

  test('API-1: an upgraded connection is joined to the Pod', async () => {
    const headers = { connection: 'Upgrade', upgrade: 'x' };
    const answered = await send(`${at}/pods/p/proxy/ws?a=1`, { headers });
    expect([answered.status, answered.body.toString()]).toEqual([101, '/ws?a=1 127.0.0.1']);
    const refused = await send(`${at}/pods/p:1/proxy/ws`, { headers });
    expect([refused.status, message(refused)]).toEqual([
      500,
      'error dialing backend: dial tcp 127.0.0.1:1: connect: connection refused',
    ]);
  });

  test.each([
    [400, 'pods/own', 'address not allowed'],
    [400, 'pods/everybody', 'address not allowed'],
    [400, 'pods/group', 'address not allowed'],
    [400, 'pods/ftp:p:80', 'invalid pod request "ftp:p:80"'],
    [400, 'pods/a:b:c:d', 'invalid pod request "a:b:c:d"'],
    [404, 'pods/none', 'pods "none" not found'],
    [503, 'pods/p:web', 'error trying to reach service: dial tcp: lookup tcp/web: unknown port'],
    [503, 'pods/p:99999', 'error trying to reach service: dial tcp: address 99999: invalid port'],
    [
      503,
      'pods/p:1',
      'error trying to reach service: dial tcp 127.0.0.1:1: connect: connection refused',
    ],
    [503, 'services/s', 'no endpoints available for service "s"'],
    [503, 'services/s:81', 'no endpoints available for service "s:81"'],
    [503, 'services/s:82', 'no service port 82 found for service "s"'],
    [503, 'services/foreign:web', 'no endpoints available for service "foreign:web"'],
    [404, 'services/lonely', 'services "lonely" not found'],
  ])('API-10: %i for %s', async (status, place, text) => {
    const refused = await send(`${at}/${place}/proxy/x`);
    expect([refused.status, message(refused)]).toEqual([status, text]);
    expect(requests).toEqual([]);
  });

  test.each(['pods/octal', 'services/octal:web'])(
    'API-10: the address of %s cannot mean another one to the host’s resolver',
    async (place) => {
      expect((await send(`${at}/${place}/proxy/x`)).status).toBe(200);
      expect(hosts).toEqual(['177.0.0.1']);
    },
  );

  test('API-10: addresses of this host, unknown nodes, and dry runs are refused', async () => {
    const own = await send('/api/v1/nodes/own/proxy/x');
    expect([own.status, message(own)]).toEqual([400, 'address not allowed']);
    expect((await send('/api/v1/nodes/none/proxy/x')).status).toBe(404);
    const dryRun = await send(`${at}/pods/p/proxy/x?dryRun=All`);
    expect([dryRun.status, message(dryRun)]).toEqual([400, 'dryRun is not supported']);
    expect(requests).toEqual([]);
  });
});

describe('links of proxied pages', () => {
  const prefix = `${at}/pods/p/proxy`;
  /** Parts of a page in the Pod's form and in the client's form. */
  const pieces = (host: string): (readonly [string, string?])[] => [
    ['<!doctype html><!-- <a href="/c"> -->'],
    ["<A HREF='/x?a=1&amp;b=2'>é</A>", `<A HREF="${prefix}/x?a=1&amp;b=2">é</A>`],
    ['<a href=/y class=c>y', `<a href="${prefix}/y" class=c>y`],
    ['<a href="rel"><a title="it\'s > /t" href="//h/x">'],
    [`<a href="http://${host}/abs#f">`, `<a href="${prefix}/abs#f">`],
    ['<a href="https://other/x"><a href="mailto:/x">'],
    ['<img alt=a=/b src="/i.png"/>', `<img alt=a=/b src="${prefix}/i.png"/>`],
    ['<script src="&#x2F;s.js">', `<script src="${prefix}/s.js">`],
    [`var a = "<a href='/q'>";</SCRIPT>`],
    ['<textarea><a href="/t"></textarea>1 < 2 '],
    ['<form action="/../up/">', `<form action="${prefix}/up/">`],
    [`<a title="${'x'.repeat(20_000)}" href="/long">`],
    [`<a href="${prefix}/in">`],
    ['<a href="/unfinished'],
  ];
  const page = pieces(`${podAddress}:PORT`);
  const rewritten = page.map(([from, to = from]) => to).join('');
  const pageOfPod = () => page.map(([from]) => from.replace('PORT', String(port))).join('');

  test('API-1: links lead through the proxy, however the page is chunked', async () => {
    const bytes = Buffer.from(pageOfPod());
    for (const step of [bytes.length, 7, 1]) {
      answer = (_, response) => {
        response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' });
        const write = (from: number) => {
          if (from >= bytes.length) return void response.end();
          response.write(bytes.subarray(from, from + step), () => write(from + step));
        };
        write(0);
      };
      expect((await send(`${prefix}/html`)).body.toString()).toBe(rewritten);
    }
  });

  test('API-1: a gzipped page stays gzipped, and other encodings and types are unchanged', async () => {
    const zipped = gzipSync(pageOfPod());
    const respond = (type: string, encoding: string, body: Buffer) => {
      answer = (_, response) => {
        response.writeHead(200, { 'content-type': type, 'content-encoding': encoding });
        response.end(body);
      };
    };
    respond('text/html', 'gzip', zipped);
    const answered = await send(`${prefix}/html`);
    expect(answered.headers['content-encoding']).toBe('gzip');
    expect(gunzipSync(answered.body).toString()).toBe(rewritten);
    respond('text/html', 'br', zipped);
    expect((await send(`${prefix}/html`)).body).toEqual(zipped);
    respond('application/xhtml+xml', 'gzip', zipped);
    expect((await send(`${prefix}/html`)).body).toEqual(zipped);
    respond('text/html', 'gzip', Buffer.from('no gzip'));
    await expect(send(`${prefix}/html`)).rejects.toThrow();
  });

  test('API-1: a deflated page stays deflated, with or without a zlib header', async () => {
    for (const body of [deflateSync(pageOfPod()), deflateRawSync(pageOfPod())]) {
      for (const first of [1, body.length]) {
        answer = (_, response) => {
          const headers = { 'content-type': 'text/html', 'content-encoding': 'deflate' };
          response.writeHead(200, headers);
          response.write(body.subarray(0, first), () => response.end(body.subarray(first)));
        };
        const answered = await send(`${prefix}/html`);
        expect(answered.headers['content-encoding']).toBe('deflate');
        expect(inflateRawSync(answered.body).toString()).toBe(rewritten);
      }
    }
    answer = (_, response) => {
      const headers = { 'content-type': 'text/html', 'content-encoding': 'deflate' };
      response.writeHead(200, headers).end(Buffer.from('no deflate'));
    };
    await expect(send(`${prefix}/html`)).rejects.toThrow();
  });

  test('TRUST-4: a page far larger than its compressed form is cut off', async () => {
    const paragraph = `<p>${'a'.repeat(1000)}</p>`;
    const page = (mib: number) => Buffer.alloc(mib * 1024 * 1024, paragraph);
    const forms = [
      ['gzip', gzipSync, gunzipSync],
      ['deflate', deflateSync, inflateRawSync],
    ] as const;
    for (const [encoding, packed, unpacked] of forms) {
      const respond = (mib: number) => {
        answer = (_, response) => {
          const headers = { 'content-type': 'text/html', 'content-encoding': encoding };
          response.writeHead(200, headers).end(packed(page(mib)));
        };
      };
      respond(32);
      await expect(send(`${prefix}/html`)).rejects.toThrow();
      respond(4);
      const answered = await send(`${prefix}/html`);
      expect(unpacked(answered.body).equals(page(4))).toBe(true);
    }
  });

  test('TRUST-6: a page cannot act here with the client certificate of its browser', async () => {
    const policyOf = async (
      headers: Record<string, string>,
      as?: 'browser with a certificate',
    ): Promise<string | undefined> => {
      const answered = await send(
        `${prefix}/html`,
        as === undefined ? { headers } : { headers, as },
      );
      expect(answered.status).toBe(200);
      return answered.headers['content-security-policy']?.toString();
    };
    const sandbox = /(^|, )sandbox (?!.*allow-same-origin)[a-z -]*allow-scripts[a-z -]*$/;
    const link = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' };
    for (const headers of [link, { ...link, 'sec-fetch-site': 'none' }]) {
      expect(await policyOf(headers, 'browser with a certificate')).toMatch(sandbox);
    }
    answer = (_, response) => {
      const policy = "script-src 'none'";
      response.writeHead(200, { 'content-security-policy': policy }).end('fine');
    };
    const both = await policyOf(link, 'browser with a certificate');
    expect(both).toMatch(/^script-src 'none', /);
    expect(both).toMatch(sandbox);
    // These users have no certificate that a page could use.
    expect(await policyOf(link)).toBe("script-src 'none'");
    expect(await policyOf({}, 'browser with a certificate')).toBe("script-src 'none'");
    const byKubectl = { ...link, 'x-forwarded-for': '127.0.0.1' };
    expect(await policyOf(byKubectl, 'browser with a certificate')).toBe("script-src 'none'");
  });

  test.each([
    ['/foo?x=1', `${prefix}/foo?x=1`],
    ['rel', 'rel'],
    ['https://other/x', 'https://other/x'],
  ])('API-1: a redirect to %s leads to %s', async (location, expected) => {
    answer = (_, response) => void response.writeHead(302, { location }).end();
    const answered = await send(`${prefix}/redirect`);
    expect([answered.status, answered.headers.location]).toEqual([302, expected]);
  });
});
