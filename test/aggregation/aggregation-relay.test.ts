import http from 'node:http';
import http2 from 'node:http2';
import https from 'node:https';
import net from 'node:net';
import type { Duplex } from 'node:stream';
import { rootCertificates } from 'node:tls';
import type { APIService } from '@wheelhouse/kinds/types/apiregistration/v1';
import { systemClock } from '@wheelhouse/machinery';
import { beforeEach, expect, test } from 'vitest';
import { atEnd } from '../support/cleanup.ts';
import { adminToken, eventually, type ResponseOf } from '../support/harness.ts';
import { skippingClock } from '../support/skipping-clock.ts';
import {
  apiServices,
  type Got,
  handOver,
  json,
  leadHere,
  startExtensionServer,
  withExtension,
} from './extension-server.ts';

const group = 'metrics.example.com';
const things = `/apis/${group}/v1/namespaces/default/things`;

/** The time limit of requests that are not long-running. */
const requestTimeoutMs = 60_000;
const clock = skippingClock();

const { server, extension } = await withExtension({
  clock,
  // Connections use another clock, so that moving the clock ahead does not affect them.
  embedding: { connectionClock: systemClock },
  limits: { requestTimeoutMs },
});
await handOver(server, extension, { group });
beforeEach(extension.reset);

const plain = { 'content-type': 'text/plain; charset=utf-8' };

/** A request over HTTP/1.1, because `http2` hides how bodies are cut off. */
function http1(
  path: string,
  options: { readonly method?: string; readonly headers?: Record<string, string> } = {},
) {
  const request = https.request(server.url + path, {
    rejectUnauthorized: false,
    agent: false,
    method: options.method ?? 'GET',
    headers: { authorization: `Bearer ${adminToken}`, ...options.headers },
  });
  request.on('error', () => {});
  return request;
}

/** Sends the rest of a request; returns the head of its answer. */
function answerTo(request: http.ClientRequest, body?: string): Promise<http.IncomingMessage> {
  return new Promise((resolve) => {
    request.on('response', resolve);
    request.end(body);
  });
}

test('ADM-4: a watch streams piece by piece and ends when the client disconnects', async () => {
  let stream: Got['response'] | undefined;
  let gone = false;
  extension.answer = ({ response }) => {
    stream = response;
    response.writeHead(200, { 'content-type': 'application/json' });
    response.write('{"type":"ADDED","object":{}}\n');
    response.on('close', () => {
      gone = true;
    });
  };
  const watch = await server.watch(`${things}?watch=true`);
  await watch.until((events) => events.length === 1);
  stream?.write('{"type":"MODIFIED","object":{}}\n');
  await watch.until((events) => events.length === 2);
  expect(extension.got[0]?.query.get('watch')).toBe('true');
  watch.close();
  await eventually(async () => gone, 'the other server to see that nobody watches');
});

test('ADM-4: a watch outlives the request timeout and ends with its server', async () => {
  let end = () => {};
  extension.answer = ({ response }) => {
    if (extension.got.length > 1) return;
    response.writeHead(200);
    response.write('{"type":"ADDED","object":{}}\n');
    end = () => response.end('{"type":"DELETED","object":{}}\n');
  };
  const watch = await server.watch(`${things}?watch=1`);
  await watch.until((events) => events.length === 1);
  const relayed = server.get(`${things}/other`);
  await eventually(async () => extension.got.length === 2, 'a request beside the watch');
  clock.skip(requestTimeoutMs);
  expect((await relayed).status).toBe(504);
  end();
  await watch.ended;
  expect(watch.events.map(({ type }) => type)).toEqual(['ADDED', 'DELETED']);
});

/** Waits until a byte count has started to grow and then stopped growing. */
async function stalled(count: () => number): Promise<void> {
  let last = 0;
  let stillFor = 0;
  await eventually(async () => {
    stillFor = count() > 0 && count() === last ? stillFor + 1 : 0;
    last = count();
    return stillFor >= 10;
  }, 'the sender to stall');
}

test('ADM-4: a slow client applies back pressure and receives everything', async () => {
  const bytes = 64 * 1024 * 1024;
  let written = 0;
  extension.answer = ({ response }) => {
    const piece = Buffer.alloc(64 * 1024, 'x');
    const more = (): void => {
      while (written < bytes) {
        written += piece.length;
        if (!response.write(piece)) {
          response.once('drain', more);
          return;
        }
      }
      response.end();
    };
    more();
  };
  const request = http1(`${things}/big/log`);
  const answer = await answerTo(request);
  answer.pause();
  await stalled(() => written);
  expect(written).toBeLessThan(bytes);
  let read = 0;
  for await (const piece of answer) read += (piece as Buffer).length;
  expect(read).toBe(bytes);
});

test.each(['1.1', '2'])(
  'ADM-4: a server that reads slowly applies back pressure to the client (HTTP/%s)',
  async (version) => {
    const bytes = 64 * 1024 * 1024;
    let release = () => {};
    let received = 0;
    extension.answer = ({ request, response }) => {
      release = () => {
        request.on('data', (piece: Buffer) => {
          received += piece.length;
        });
        request.on('end', () => json(response, { received }));
      };
    };
    const path = `${things}/big/proxy`;
    const session = http2.connect(server.url, { rejectUnauthorized: false });
    const headers = { authorization: `Bearer ${adminToken}`, ':method': 'POST', ':path': path };
    const request = version === '2' ? session.request(headers) : http1(path, { method: 'POST' });
    let sent = 0;
    const send = (): void => {
      while (sent < bytes) {
        sent += 64 * 1024;
        if (!request.write(Buffer.alloc(64 * 1024))) {
          request.once('drain', send);
          return;
        }
      }
      request.end();
    };
    const answered = new Promise<string>((resolve) => {
      const read = (stream: NodeJS.ReadableStream) => {
        let text = '';
        stream.on('data', (piece: Buffer) => {
          text += piece;
        });
        stream.on('end', () => resolve(text));
      };
      if (request instanceof http.ClientRequest) request.on('response', read);
      else read(request);
    });
    send();
    await stalled(() => sent);
    expect(sent).toBeLessThan(bytes);
    release();
    expect(JSON.parse(await answered)).toEqual({ received: bytes });
    session.destroy();
  },
);

test('ADM-4: a request without an answer in time is 504', async () => {
  extension.answer = () => true;
  const pending = server.get(things);
  await eventually(async () => extension.got.length === 1, 'the request to be passed on');
  clock.skip(requestTimeoutMs);
  const answer = await pending;
  expect(answer.status).toBe(504);
  expect(answer.body).toMatchObject({
    kind: 'Status',
    reason: 'Timeout',
    message: 'Timeout: request did not complete within the allotted timeout',
  });
});

test('ADM-4: an answer that begins at the deadline does not outlive it', async () => {
  extension.answer = ({ response }) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.write('{"items":[');
  };
  for (let count = 0; count < 10; count += 1) {
    const request = http1(`${things}?timeout=1ms`);
    const outcome = await new Promise<string>((resolve) => {
      request.on('response', (answer) => {
        answer.on('end', () => resolve(String(answer.statusCode)));
        answer.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? ''));
        answer.resume();
      });
      request.end();
    });
    expect(['504', 'ECONNRESET']).toContain(outcome);
  }
});

test('ADM-4: an interrupted answer is cut off rather than completed', async () => {
  for (const stop of ['reset', 'stall'] as const) {
    let cut = () => {};
    extension.answer = ({ response }) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.write('{"items":[');
      cut = () => response.destroy();
    };
    const request = http1(things);
    const outcome = await new Promise<string>((resolve) => {
      request.on('response', (answer) => {
        answer.once('data', () => (stop === 'reset' ? cut() : clock.skip(requestTimeoutMs)));
        answer.on('end', () => resolve('whole'));
        answer.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? ''));
      });
      request.end();
    });
    expect(outcome).toBe('ECONNRESET');
  }
});

test.each([
  ['no answer', (socket: Duplex) => socket.destroy(), 'EOF'],
  [
    'no HTTP',
    (socket: Duplex) => socket.write('hello\r\n\r\n'),
    'net/http: HTTP/1.x transport connection broken',
  ],
  [
    'a head without end',
    (socket: Duplex) => socket.write(`HTTP/1.1 200 OK\r\nx: ${'y'.repeat(200_000)}\r\n\r\n`),
    'net/http: server response headers exceeded the limit; aborted',
  ],
  [
    'another protocol that nobody asked for',
    (socket: Duplex) =>
      socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n'),
    undefined,
  ],
])('ADM-4: %s of the other server is reported as 503', async (_, act, why) => {
  extension.answer = ({ request }) => void act(request.socket);
  const answer = await server.get(things, { headers: {} });
  expect(answer.status).toBe(503);
  expect(answer.headers).toMatchObject(plain);
  expect(answer.headers['x-content-type-options']).toBe('nosniff');
  expect(answer.text).toBe(
    why === undefined
      ? 'backend tried to switch protocol "x" when "" was requested\n'
      : `error trying to reach service: ${why}\n`,
  );
});

test('ADM-4: an answer that redirects is refused', async () => {
  extension.answer = ({ response }) => {
    response.writeHead(307, { location: 'https://127.0.0.1:1/', 'x-secret': 'a' });
    response.end('x');
  };
  const answer = await server.get(things);
  expect(answer.status).toBe(502);
  expect(answer.text).toBe(
    'the backend attempted to redirect this request, which is not permitted',
  );
  expect(answer.headers['location']).toBeUndefined();
  expect(answer.headers['x-secret']).toBeUndefined();
  extension.answer = ({ response }) => {
    response.writeHead(304, { etag: '"x"' });
    response.end();
  };
  expect(await server.get(things)).toMatchObject({ status: 304, text: '' });
});

test('ADM-4: statuses, HEAD, and empty answers pass unchanged', async () => {
  extension.answer = ({ response }) => {
    response.writeHead(204);
    response.end();
  };
  expect(await server.remove(`${things}/a`)).toMatchObject({ status: 204, text: '' });
  const body = JSON.stringify({ kind: 'Status', code: 418 });
  extension.answer = ({ response }) => {
    response.writeHead(418, { 'content-length': body.length });
    response.end(body);
  };
  expect(await server.get(things)).toMatchObject({ status: 418, text: body });
  const head = await server.request('HEAD', things);
  expect(head).toMatchObject({ status: 418, text: '' });
  expect(extension.got.at(-1)?.request.method).toBe('HEAD');
  const request = http1(things, { method: 'HEAD' });
  const answer = await answerTo(request);
  expect(answer.headers['content-length']).toBe(String(body.length));
});

test('ADM-4: hop-by-hop headers are not forwarded', async () => {
  extension.answer = ({ response }) => {
    response.writeHead(200, {
      'access-control-allow-origin': '*',
      'proxy-authenticate': 'x',
      trailer: 'x-later',
      'cache-control': 'max-age=5',
      'set-cookie': ['a=1', 'b=2'],
    });
    response.end();
  };
  const request = http1(things, {
    headers: {
      connection: 'close, x-hop, x-remote-user, x-remote-group, x-forwarded-for',
      'x-hop': '1',
      'keep-alive': 'timeout=5',
      'proxy-authorization': 'Basic x',
      te: 'trailers, deflate',
      'impersonate-user': '',
      'sec-websocket-protocol': 'v4, base64url.bearer.authorization.svc.io.eA',
      'x-forwarded-for': '10.0.0.1',
    },
  });
  const answer = await answerTo(request);
  answer.resume();
  expect(answer.headers['access-control-allow-origin']).toBeUndefined();
  expect(answer.headers['proxy-authenticate']).toBeUndefined();
  expect(answer.headers['trailer']).toBeUndefined();
  expect(answer.headers['cache-control']).toBe('max-age=5');
  expect(answer.headers['set-cookie']).toEqual(['a=1', 'b=2']);
  const { headers } = (extension.got[0] as Got).request;
  const gone = ['x-hop', 'proxy-authorization', 'impersonate-user', 'authorization'];
  for (const name of gone) expect(headers[name], name).toBeUndefined();
  expect(headers['x-remote-user']).toBe('system:admin');
  expect(headers['x-remote-group']).toContain('system:masters');
  expect(headers['te']).toBe('trailers');
  expect(headers['sec-websocket-protocol']).toBe('v4');
  expect(headers['x-forwarded-for']).toBe('127.0.0.1');
});

test('ADM-4: a body streams, and an early answer ends it', async () => {
  const pieces: string[] = [];
  extension.answer = ({ request, response }) => {
    request.on('data', (piece: Buffer) => {
      pieces.push(piece.toString());
      response.write(`got ${piece}\n`);
    });
    request.on('end', () => response.end());
  };
  const request = http1(`${things}/a/proxy`, { method: 'POST' });
  request.flushHeaders();
  request.write('one');
  const answer = await new Promise<http.IncomingMessage>((resolve) => {
    request.on('response', resolve);
  });
  let text = '';
  answer.on('data', (piece: Buffer) => {
    text += piece;
  });
  await eventually(async () => text === 'got one\n', 'the first piece');
  request.end('two');
  await eventually(async () => text === 'got one\ngot two\n', 'the second piece');
  extension.answer = ({ response }) => json(response, { early: true }, 413);
  const early = http1(things, { method: 'POST' });
  const refusal = new Promise<number | undefined>((resolve) => {
    early.on('response', ({ statusCode }) => resolve(statusCode));
  });
  early.end(Buffer.alloc(20 * 1024 * 1024));
  expect(await refusal).toBe(413);
});

test('ADM-4: a pooled connection that the other server closed is retried', async () => {
  extension.answer = ({ response, request }) => {
    json(response, {});
    setTimeout(() => request.socket.destroy(), 5);
  };
  for (let count = 0; count < 20; count += 1) {
    expect((await server.get(things)).status).toBe(200);
    await new Promise((resolve) => setTimeout(resolve, count % 10));
  }
});

test('ADM-4: an upgrade is tunneled both ways', async () => {
  extension.upgrade = (request, socket, head) => {
    expect(request.headers['x-remote-user']).toBe('system:admin');
    expect(request.headers['upgrade']).toBe('echo');
    expect(request.headers.authorization).toBeUndefined();
    socket.write(
      'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nhi;',
    );
    if (head.length > 0) socket.write(head);
    socket.on('data', (piece: Buffer) => socket.write(piece));
    socket.on('end', () => socket.end('bye'));
  };
  const request = http1(`${things}/a/exec?command=sh`, {
    method: 'POST',
    headers: { connection: 'Upgrade', upgrade: 'echo', 'content-length': '0' },
  });
  const opened = await new Promise<{ socket: Duplex; head: Buffer }>((resolve) => {
    request.on('upgrade', (answer, socket, head) => {
      expect(answer.headers['upgrade']).toBe('echo');
      resolve({ socket, head });
    });
    request.end();
  });
  const { socket } = opened;
  let text = opened.head.toString();
  socket.on('data', (piece: Buffer) => {
    text += piece;
  });
  socket.write('one;');
  await eventually(async () => text === 'hi;one;', 'the echo');
  const closed = new Promise((resolve) => socket.on('close', resolve));
  socket.end();
  await closed;
});

test('ADM-4: a refused upgrade is returned, other answers become 503', async () => {
  const ask = async () => {
    const headers = { connection: 'Upgrade', upgrade: 'websocket' };
    const request = http1(`${things}/a/exec`, { headers });
    const answer = await answerTo(request);
    let text = '';
    for await (const piece of answer) text += piece;
    return { status: answer.statusCode, text };
  };
  extension.upgrade = (_, socket) =>
    void socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno');
  expect(await ask()).toEqual({ status: 403, text: 'no' });
  extension.upgrade = (_, socket) =>
    void socket.end('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
  expect(await ask()).toEqual({ status: 503, text: 'invalid upgrade response: status code 200\n' });
});

test('ADM-4: unsupported upgrade requests are answered as plain requests', async () => {
  const request = http1('/api/v1/namespaces', {
    method: 'POST',
    headers: { connection: 'Upgrade', upgrade: 'h2c', 'content-type': 'application/json' },
  });
  const body = JSON.stringify({
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: 'wished' },
  });
  request.setHeader('content-length', body.length);
  const answer = await answerTo(request, body);
  let text = '';
  for await (const piece of answer) text += piece;
  expect(answer.statusCode, text).toBe(201);
});

test('ADM-4: identity headers go only to the server that the APIService trusts', async () => {
  const untrusted = { ...extension, caBundle: '' };
  await handOver(server, untrusted, {
    group: 'untrusted.example.com',
    spec: { caBundle: undefined },
  });
  const answer = await server.get('/apis/untrusted.example.com/v1/things');
  expect(answer.status).toBe(503);
  expect(answer.text).toContain('error trying to reach service: tls: failed to verify certificate');
  expect(extension.got).toEqual([]);
  const open = { caBundle: undefined, insecureSkipTLSVerify: true };
  await handOver(server, untrusted, { group: 'open.example.com', spec: open });
  expect((await server.get('/apis/open.example.com/v1')).status).toBe(200);
  const leaf = { ...extension, caBundle: extension.leafBundle };
  await handOver(server, leaf, { group: 'leaf.example.com' });
  expect((await server.get('/apis/leaf.example.com/v1')).status).toBe(200);
  const own = Buffer.from(extension.caBundle, 'base64').toString('latin1');
  const bundle = Buffer.from([...rootCertificates, own].join('\n')).toString('base64');
  const many = { ...extension, caBundle: bundle };
  await handOver(server, many, { group: 'many.example.com' });
  expect((await server.get('/apis/many.example.com/v1')).status).toBe(200);
  const caBundle = Buffer.from('no certificate').toString('base64');
  await handOver(server, extension, { group: 'garbage.example.com', spec: { caBundle } });
  const garbage = await server.get('/apis/garbage.example.com/v1/things');
  expect(garbage.status).toBe(500);
  expect(garbage.text).toBe(
    'unable to load root certificates: unable to parse bytes as PEM block\n',
  );
  await server.post('/api/v1/namespaces/default/services', {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'misnamed' },
    spec: { type: 'ExternalName', externalName: 'localhost' },
  });
  const service = { namespace: 'default', name: 'misnamed', port: extension.port };
  await handOver(server, extension, { group: 'misnamed.example.com', spec: { service } });
  const misnamed = await server.get('/apis/misnamed.example.com/v1/things');
  expect(misnamed.text).toContain(
    'x509: certificate is valid for ext.default.svc, not misnamed.default.svc',
  );
});

test('ADM-4: a request that returns to its proxy is not forwarded again', async () => {
  extension.answer = ({ response }) => json(response, {});
  expect((await server.get(things, { headers: { via: '1.1 else' } })).status).toBe(200);
  const via = String(extension.got[0]?.request.headers['via']);
  expect(via).toMatch(/^1\.1 else, 1\.1 wheelhouse-/);
  const answer = await server.get(things, { headers: { via: `${via}, 1.1 other` } });
  expect([answer.status, answer.text]).toEqual([508, 'the APIService leads back to this server\n']);
  expect(extension.got).toHaveLength(1);
});

test('ADM-4: a server that cannot be reached is reported, also to a watch and an upgrade', async () => {
  const gone = await startExtensionServer();
  await handOver(server, gone, { group: 'gone.example.com' });
  await gone.stop();
  const path = '/apis/gone.example.com/v1/things';
  const headers = { connection: 'Upgrade', upgrade: 'websocket' };
  const upgrade = await answerTo(http1(`${path}/a/exec`, { headers }));
  let text = '';
  for await (const piece of upgrade) text += piece;
  const refused = `dial tcp localhost:${gone.port}: connect: connection refused`;
  expect([upgrade.statusCode, text]).toEqual([503, `error dialing backend: ${refused}\n`]);
  let connections = 0;
  const silent = net.createServer((socket) => {
    connections += 1;
    socket.on('error', () => {});
    atEnd(() => socket.destroy());
  });
  await new Promise<void>((resolve) => silent.listen(gone.port, '127.0.0.1', resolve));
  atEnd(() => silent.close());
  const watch = server.get(`${path}?watch=true`);
  await eventually(async () => connections > 0, 'the connection');
  clock.skip(30_000);
  expect(await watch).toMatchObject({
    status: 503,
    text: 'error trying to reach service: net/http: TLS handshake timeout\n',
  });
});

test('ADM-4: a server whose Service was deleted is not called any more', async () => {
  const name = 'v1.metrics.example.com';
  const services = '/api/v1/namespaces/default/services';
  await server.remove(`${services}/ext`);
  await eventually(async () => {
    const answer = await server.get(things);
    return answer.status === 503 && answer.text === 'service unavailable\n';
  }, '503');
  const { body } = await server.get<ResponseOf<APIService>>(`${apiServices}/${name}`);
  expect(body.status.conditions[0].reason).toBe('ServiceNotFound');
  await leadHere(server, 'ext');
  await eventually(async () => (await server.get(`/apis/${group}/v1`)).status === 200, '200');
});
