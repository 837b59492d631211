import { X509Certificate } from 'node:crypto';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import https from 'node:https';
import net from 'node:net';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { systemClock } from '@wheelhouse/machinery';
import { readOptions } from '@wheelhouse/server/testing';
import { beforeEach, describe, expect, test } from 'vitest';
import { sample } from '../operations/metric-samples.ts';
import { temporaryFolder, untilEnd } from '../support/cleanup.ts';
import {
  adminToken,
  type ConfigChange,
  eventually,
  startTestServer,
  type TestServer,
} from '../support/harness.ts';
import { type PlayedKubelet, startKubelet } from '../support/kubelet.ts';
import { listenLocally } from '../support/local-server.ts';
import { skippingClock } from '../support/skipping-clock.ts';
import { withServer } from '../support/with-server.ts';

const directory = temporaryFolder();

const [kubelet, stranger] = await Promise.all([untilEnd(startKubelet()), untilEnd(startKubelet())]);
beforeEach(() => {
  kubelet.requests.length = 0;
  kubelet.answer = (_, response) => void response.end('a line\n');
});

function file(name: string, text: string): string {
  const path = join(directory, name);
  // A server that follows the file must never see an incomplete one.
  writeFileSync(`${path}.new`, text);
  renameSync(`${path}.new`, path);
  return path;
}

const pods = '/api/v1/namespaces/default/pods';

/**
 * Starts a server with a Pod `p` of two containers on a node whose kubelet has the given address.
 */
async function withPod(
  change: ConfigChange = {},
  node: { readonly port?: number; readonly addresses?: object[] } = {},
): Promise<TestServer> {
  const server = await withServer(change);
  const { port = kubelet.port } = node;
  const { addresses = [{ type: 'InternalIP', address: '127.0.0.1' }] } = node;
  const daemonEndpoints = { kubeletEndpoint: { Port: port } };
  const made = [
    await server.post('/api/v1/nodes', {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: 'n' },
      status: { addresses, daemonEndpoints },
    }),
    await server.post(pods, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'p' },
      spec: { nodeName: 'n', containers: ['a', 'b'].map((name) => ({ name, image: 'x:1' })) },
    }),
  ];
  expect(made.map(({ status }) => status)).toEqual([201, 201]);
  return server;
}

/** A request over HTTP/1.1. */
function http1(server: TestServer, path: string, headers: Readonly<Record<string, string>> = {}) {
  const all = { authorization: `Bearer ${adminToken}`, ...headers };
  const request = https.request(new URL(path, server.url), {
    headers: all,
    rejectUnauthorized: false,
  });
  request.on('error', () => {});
  return request;
}

/** Requests an upgrade to another protocol; returns the socket, or the answer that rejects it. */
function upgraded(server: TestServer, path: string, protocol = 'SPDY/3.1') {
  const request = http1(server, path, { connection: 'Upgrade', upgrade: protocol });
  return new Promise<
    | { readonly socket: Duplex; readonly text: () => string }
    | { readonly status: number; readonly body: string }
  >((resolve, reject) => {
    request.on('upgrade', (answer, socket, head) => {
      expect(answer.headers.upgrade).toBe(protocol);
      let text = head.toString();
      socket.on('data', (piece: Buffer) => {
        text += piece;
      });
      resolve({ socket, text: () => text });
    });
    request.on('response', async (answer) => {
      let body = '';
      for await (const piece of answer) body += piece;
      resolve({ status: answer.statusCode ?? 0, body });
    });
    request.on('error', reject);
    request.end();
  });
}

/** Simulates a protocol that echoes all data. */
function echo(to: PlayedKubelet): void {
  to.upgrade = (request, socket, head) => {
    const lines = [
      'HTTP/1.1 101 Switching Protocols',
      'Connection: Upgrade',
      `Upgrade: ${request.headers.upgrade}`,
    ];
    socket.write(`${lines.join('\r\n')}\r\n\r\nhello;`);
    if (head.length > 0) socket.write(head);
    socket.on('data', (piece: Buffer) => socket.write(piece));
    socket.on('end', () => socket.end());
  };
}

/** The server of the tests that need no flags and do not stop it. */
const common = await withPod();

describe('logs', () => {
  test('API-1: a log streams from the node’s kubelet', async () => {
    const query =
      'container=a&follow=true&previous=false&timestamps=1&tailLines=5&limitBytes=9&sinceSeconds=60&pretty=true';
    let more = (_text: string) => {};
    let isGone = false;
    kubelet.answer = (request, response) => {
      response.writeHead(200, { 'content-type': 'application/x-log', 'x-kubelet': 'yes' });
      response.write('one\n');
      more = (text) => void response.write(text);
      request.on('close', () => {
        isGone = true;
      });
    };
    const request = http1(common, `${pods}/p/log?${query}`, { cookie: 'secret=1' });
    const answer = await new Promise<IncomingMessage>((resolve) => {
      request.on('response', resolve);
      request.end();
    });
    let text = '';
    answer.on('data', (piece: Buffer) => {
      text += piece;
    });
    answer.on('error', () => {});
    await eventually(async () => text === 'one\n', 'the first line');
    more('two\n');
    await eventually(async () => text === 'one\ntwo\n', 'the second line');
    expect(answer.statusCode).toBe(200);
    expect(answer.headers['content-type']).toBe('text/plain');
    expect(answer.headers['x-kubelet']).toBeUndefined();
    expect(kubelet.requests).toEqual([
      'GET /containerLogs/default/p/a?follow=true&limitBytes=9&sinceSeconds=60&tailLines=5&timestamps=true',
    ]);
    expect(kubelet.headers.authorization).toBeUndefined();
    expect(kubelet.headers.cookie).toBeUndefined();
    request.destroy();
    await eventually(async () => isGone, 'the end of the request at the kubelet');
  });

  test('OPS-1: streams are shown while they are open, and counted once when they end', async () => {
    const server = await withPod();
    const scrape = async () => (await server.get('/metrics')).text;
    const labels = (subresource: string, code: string) => ({ verb: 'CONNECT', subresource, code });
    const open = async (subresource: string) =>
      sample(await scrape(), 'apiserver_longrunning_requests', { verb: 'CONNECT', subresource });
    const total = async (subresource: string, code: string) =>
      sample(await scrape(), 'apiserver_request_total', labels(subresource, code)) || 0;

    let finish = () => {};
    kubelet.answer = (_, response) => {
      response.write('one\n');
      finish = () => void response.end();
    };
    const log = http1(server, `${pods}/p/log?container=a&follow=true`);
    const answer = await new Promise<IncomingMessage>((resolve) => {
      log.on('response', resolve);
      log.end();
    });
    answer.resume();
    expect([await open('log'), await total('log', '200')]).toEqual([1, 0]);
    finish();
    await eventually(async () => (await open('log')) === 0, 'the end of the log');
    expect(await total('log', '200')).toBe(1);

    echo(kubelet);
    const opened = await upgraded(server, `${pods}/p/attach?container=a`);
    if (!('socket' in opened)) throw new Error(JSON.stringify(opened));
    expect([await open('attach'), await total('attach', '101')]).toEqual([1, 0]);
    opened.socket.end();
    await eventually(async () => (await open('attach')) === 0, 'the end of the stream');
    expect(await total('attach', '101')).toBe(1);
  });

  test('API-1: a complete log ends, and an interrupted one is cut off', async () => {
    expect((await common.get(`${pods}/p/log?container=b`)).text).toBe('a line\n');
    kubelet.answer = (_, response) => {
      response.writeHead(200, { 'content-length': '100' });
      response.write('half', () => response.destroy());
    };
    const request = http1(common, `${pods}/p/log?container=b`);
    const cut = new Promise((resolve) => {
      request.on('response', (answer) => answer.on('error', resolve).resume());
      request.end();
    });
    expect(await cut).toMatchObject({ code: 'ECONNRESET' });
  });

  test.each<[number, string, string, string]>([
    [400, 'no container', 'BadRequest', 'no container'],
    [500, 'broken', 'InternalError', 'Internal error occurred: broken'],
    [
      401,
      'x',
      'Unauthorized',
      'the server has asked for the client to provide credentials ( pods/log p)',
    ],
    [403, 'not you', 'Forbidden', 'not you ( pods/log p)'],
    [404, 'x', 'NotFound', 'the server could not find the requested resource ( pods/log p)'],
    [
      405,
      'x',
      'MethodNotAllowed',
      'the server does not allow this method on the requested resource ( pods/log p)',
    ],
    [406, 'unlike', 'NotAcceptable', 'unlike ( pods/log p)'],
    [409, 'x', 'Conflict', 'the server reported a conflict ( pods/log p)'],
    [
      429,
      'x',
      'TooManyRequests',
      'the server has received too many requests and has asked us to try again later ( pods/log p)',
    ],
    [
      502,
      'x',
      'InternalError',
      'an error on the server ("x") has prevented the request from succeeding ( pods/log p)',
    ],
    [
      504,
      'x',
      'Timeout',
      'the server was unable to return a response in the time allotted, but may still be processing the request ( pods/log p)',
    ],
    [
      418,
      'x',
      '',
      'the server responded with the status code 418 but did not return more information ( pods/log p)',
    ],
  ])('API-1: the answer %i of a kubelet is reported', async (status, text, reason, message) => {
    kubelet.answer = (_, response) => void response.writeHead(status).end(text);
    const answer = await common.get(`${pods}/p/log?container=a`);
    expect([answer.status, answer.body.reason ?? '', answer.body.message]).toEqual([
      status,
      reason,
      message,
    ]);
  });

  test('API-1: kubelet redirects are not followed, and long errors are truncated', async () => {
    kubelet.answer = (_, response) => void response.writeHead(302, { location: '/else' }).end();
    const moved = await common.get(`${pods}/p/log?container=a`);
    expect(moved.status).toBe(500);
    expect(moved.body.message).toContain('redirects forbidden');
    expect(kubelet.requests).toHaveLength(1);
    kubelet.answer = (_, response) => void response.writeHead(400).end('x'.repeat(1_000_000));
    const long = await common.get(`${pods}/p/log?container=a`);
    expect(long.status).toBe(400);
    expect(long.text.length).toBeLessThan(60_000);
  });
});

describe('streams', () => {
  const cases = [
    [
      'exec',
      'command=sh&command=-c%20x&container=a&stdin=true&stdout=1&stderr=false&tty=true',
      'GET /exec/default/p/a?command=sh&command=-c+x&input=1&output=1&tty=1',
    ],
    ['attach', 'container=b&stderr=true', 'GET /attach/default/p/b?error=1'],
    ['portforward', 'ports=80&ports=443,8080', 'GET /portForward/default/p?port=80%2C443%2C8080'],
  ] as const;
  test.each(cases)(
    'API-1: %s is passed through byte by byte',
    async (operation, query, request) => {
      echo(kubelet);
      for (const protocol of ['SPDY/3.1', 'websocket']) {
        kubelet.requests.length = 0;
        const opened = await upgraded(common, `${pods}/p/${operation}?${query}`, protocol);
        if (!('socket' in opened)) throw new Error(JSON.stringify(opened));
        opened.socket.write('one;');
        await eventually(async () => opened.text() === 'hello;one;', 'the echo');
        expect(kubelet.requests).toEqual([request]);
        expect(kubelet.headers.authorization).toBeUndefined();
        expect(kubelet.headers['x-remote-user']).toBeUndefined();
        expect(kubelet.headers['x-forwarded-for']).toBe('127.0.0.1');
        const closed = new Promise((resolve) => opened.socket.on('close', resolve));
        opened.socket.end();
        await closed;
      }
    },
  );

  test.each([
    ['http', 'strconv.ParseUint: parsing "http": invalid syntax'],
    ['80,', 'strconv.ParseUint: parsing "": invalid syntax'],
    ['-1', 'strconv.ParseUint: parsing "-1": invalid syntax'],
    ['65536', 'strconv.ParseUint: parsing "65536": value out of range'],
  ])('API-1: an invalid port "%s" to forward is 400', async (port, why) => {
    const answer = await common.get(`${pods}/p/portforward?ports=${port}`);
    expect([answer.status, answer.body.message]).toEqual([
      400,
      `cannot convert to []int32: ${why}`,
    ]);
    expect(kubelet.requests).toEqual([]);
  });

  test('API-1: a request without an upgrade is 400', async () => {
    const answer = await common.get(`${pods}/p/exec?container=a&command=x`);
    expect([answer.status, answer.body.message]).toEqual([400, 'Upgrade request required']);
    expect(kubelet.requests).toEqual([]);
  });

  test('DRY-1: a dry run of a stream is 400', async () => {
    const answer = await common.get(`${pods}/p/exec?container=a&dryRun=All`);
    expect([answer.status, answer.body.message]).toEqual([400, 'dryRun is not supported']);
  });

  test('API-1: a kubelet’s refusal is returned, and another answer is 500', async () => {
    kubelet.upgrade = (_, socket) =>
      void socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno');
    expect(await upgraded(common, `${pods}/p/exec?container=a`)).toEqual({
      status: 403,
      body: 'no',
    });
    kubelet.upgrade = (_, socket) =>
      void socket.end('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
    expect(await upgraded(common, `${pods}/p/exec?container=a`)).toMatchObject({
      status: 500,
      body: expect.stringContaining('invalid upgrade response: status code 200'),
    });
  });

  test.runIf(process.platform === 'linux')(
    'API-1: TCP probes a node that a stream is open to',
    async () => {
      // Other servers may have connections to the shared kubelet.
      const own = await untilEnd(startKubelet());
      const server = await withPod({}, { port: own.port });
      echo(own);
      const opened = await upgraded(server, `${pods}/p/attach?container=a`);
      if (!('socket' in opened)) throw new Error(JSON.stringify(opened));
      const peer = own.port.toString(16).toUpperCase().padStart(4, '0');
      // The columns are: number, local and remote address, state, queues, kind of timer and its time.
      const toKubelet = new RegExp(`^ *\\d+: \\S+ \\S+:${peer} 01 \\S+ (\\d\\d):`, 'gm');
      const timers = [...readFileSync('/proc/net/tcp', 'utf8').matchAll(toKubelet)];
      const keepAlive = '02';
      expect(timers.map(([, kind]) => kind)).toEqual([keepAlive]);
      opened.socket.destroy();
    },
  );

  test('API-1: a stopping server ends its streams', async () => {
    const server = await withPod();
    echo(kubelet);
    const opened = await upgraded(server, `${pods}/p/attach?container=a`);
    if (!('socket' in opened)) throw new Error(JSON.stringify(opened));
    const closed = new Promise((resolve) => opened.socket.on('close', resolve));
    await server.stop();
    await closed;
  });
});

describe('the connection to a node', () => {
  test('API-1: an unreachable kubelet is reported', async () => {
    const gone = await startKubelet();
    await gone.stop();
    const server = await withPod({}, { port: gone.port });
    const refused = `dial tcp 127.0.0.1:${gone.port}: connect: connection refused`;
    const log = await server.get(`${pods}/p/log?container=a`);
    expect(log.status).toBe(500);
    expect(log.body.message).toBe(
      `Get "https://127.0.0.1:${gone.port}/containerLogs/default/p/a": ${refused}`,
    );
    expect(await upgraded(server, `${pods}/p/exec?container=a`)).toMatchObject({
      status: 500,
      body: expect.stringContaining(`error dialing backend: ${refused}`),
    });
    kubelet.upgrade = (_, socket) => void socket.destroy();
    expect(await upgraded(common, `${pods}/p/exec?container=a`)).toMatchObject({
      status: 500,
      body: expect.stringContaining('"message":"unexpected EOF"'),
    });
  });

  test('API-1: a kubelet that does not complete the handshake is reported', async () => {
    const silent = net.createServer((socket) => void sockets.push(socket));
    const sockets: net.Socket[] = [];
    const port = await listenLocally(silent);
    const clock = skippingClock();
    const server = await withPod({ clock, embedding: { connectionClock: systemClock } }, { port });
    const timeOut = async <T>(pending: Promise<T>): Promise<T> => {
      const before = sockets.length;
      await eventually(async () => sockets.length > before, 'the connection');
      clock.skip(30_000);
      return pending;
    };
    const log = await timeOut(server.get(`${pods}/p/log?container=a`));
    expect([log.status, log.body.message]).toEqual([
      500,
      `Get "https://127.0.0.1:${port}/containerLogs/default/p/a": net/http: TLS handshake timeout`,
    ]);
    expect(await timeOut(upgraded(server, `${pods}/p/exec?container=a`))).toMatchObject({
      status: 500,
      body: expect.stringContaining('error dialing backend: net/http: TLS handshake timeout'),
    });
    for (const socket of sockets) socket.destroy();
    silent.close();
  });

  test('API-1: the preferred address type and the default port are used', async () => {
    const addresses = [
      { type: 'ExternalIP', address: '192.0.2.1' },
      { type: 'InternalIP', address: '127.0.0.1' },
    ];
    const kubelets = { addressTypes: ['InternalIP', 'ExternalIP'], port: kubelet.port };
    const server = await withPod({ kubelets }, { port: 0, addresses });
    expect((await server.get(`${pods}/p/log?container=a`)).text).toBe('a line\n');
  });

  test('API-1: certificates are verified with the configured authorities', async () => {
    const caFile = file('ca.pem', stranger.caPem);
    const server = await withPod({ kubelets: { caFile } });
    const log = (query = '') => server.get(`${pods}/p/log?container=a${query}`);
    const refused = await log();
    expect(refused.status).toBe(500);
    expect(refused.body.message).toContain('x509: certificate signed by unknown authority');
    expect((await log('&insecureSkipTLSVerifyBackend=true')).text).toBe('a line\n');
    file('ca.pem', kubelet.caPem);
    await eventually(async () => (await log()).status === 200, 'the new authority');
    echo(kubelet);
    expect(await upgraded(server, `${pods}/p/exec?container=a`)).toHaveProperty('socket');
  });

  test('API-1: the client certificate is sent, and reloaded when it changes', async () => {
    const fingerprint = ({ pair }: PlayedKubelet) =>
      new X509Certificate(pair.certificatePem).fingerprint256;
    const certFile = file('client.pem', kubelet.pair.certificatePem);
    const keyFile = file('client.key', kubelet.pair.keyPem);
    const server = await withPod({ kubelets: { certificate: { certFile, keyFile } } });
    const log = () => server.get(`${pods}/p/log?container=a`);
    expect((await log()).status).toBe(200);
    expect(kubelet.clientFingerprint).toBe(fingerprint(kubelet));
    file('client.key', stranger.pair.keyPem);
    file('client.pem', stranger.pair.certificatePem);
    await eventually(async () => {
      expect((await log()).status).toBe(200);
      return kubelet.clientFingerprint === fingerprint(stranger);
    }, 'the new certificate');
    const without = await withPod();
    await without.get(`${pods}/p/log?container=a`);
    expect(kubelet.clientFingerprint).toBe('');
  });

  test('API-1: unusable files stop the start', async () => {
    const certFile = file('bad.pem', 'none');
    const certificate = { certFile, keyFile: certFile };
    await expect(startTestServer({ kubelets: { certificate } })).rejects.toThrow(certFile);
    const caFile = join(directory, 'absent.pem');
    await expect(startTestServer({ kubelets: { caFile } })).rejects.toThrow(caFile);
  });

  test('API-1: flags set certificates, addresses, and the port', () => {
    const read = (...args: string[]) => {
      const outcome = readOptions(args);
      return outcome.kind === 'options' ? outcome.options.config.kubelets : undefined;
    };
    expect(
      read(
        '--kubelet-client-certificate=c.pem',
        '--kubelet-client-key=k.pem',
        '--kubelet-certificate-authority=ca.pem',
        '--kubelet-preferred-address-types=InternalIP',
        '--kubelet-port=1',
      ),
    ).toEqual({
      addressTypes: ['InternalIP'],
      port: 1,
      certificate: { certFile: 'c.pem', keyFile: 'k.pem' },
      caFile: 'ca.pem',
    });
    expect(() => read('--kubelet-client-key=k.pem')).toThrow('must be given together');
  });
});
