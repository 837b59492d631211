import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { Agent as AgentH1, request as requestH1 } from 'node:http';
import { type ClientHttp2Session, connect as connectH2, constants } from 'node:http2';
import { Agent as AgentHttps, request as requestHttps } from 'node:https';
import { connect as connectTcp } from 'node:net';
import { connect as connectTls } from 'node:tls';
import {
  BodyAborted,
  BodyTooLarge,
  type Clock,
  type Exchange,
  type OnExchange,
  observeFaults,
  silentLogger,
  systemClock,
} from '@wheelhouse/machinery';
import { FakeClock } from '@wheelhouse/machinery/testing';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { issueCertificate } from './generated-certificates.ts';
import type { HttpLimits } from './limits.ts';
import type { CertificatePair } from './node-servers.ts';
import { type HttpServer, startHttpServer } from './server.ts';

const yearMs = 365 * 24 * 60 * 60 * 1000;
const now = systemClock.now();
const life = { notBefore: now - yearMs, notAfter: now + yearMs };
const ca = issueCertificate({ commonName: 'test-ca', usage: 'ca', ...life });
const serving = issueCertificate({
  commonName: 'test',
  usage: 'server',
  hosts: ['localhost', '127.0.0.1'],
  issuer: ca,
  ...life,
});

type Protocol = 'h1-plain' | 'h1-tls' | 'h2';
let server: HttpServer;
const faults: string[] = [];
let stopObserving = () => {};
beforeEach(() => {
  faults.length = 0;
  stopObserving = observeFaults(({ where, error }) =>
    faults.push(`${where}: ${(error as Error).message}`),
  );
});
const sessions: ClientHttp2Session[] = [];
afterEach(async () => {
  for (const session of sessions.splice(0)) session.destroy();
  await server.close();
  stopObserving();
});

function deferred<T>(): { promise: Promise<T>; resolve: (value: T) => void } {
  let resolve: (value: T) => void = () => {};
  const promise = new Promise<T>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

async function serve(
  onExchange: OnExchange,
  options: {
    named?: ReadonlyMap<string, CertificatePair>;
    protocol?: Protocol;
    limits?: Partial<HttpLimits>;
    clock?: Clock;
  } = {},
): Promise<void> {
  server = await startHttpServer({
    listen: {
      host: '127.0.0.1',
      port: 0,
      tls:
        options.protocol === 'h1-plain'
          ? 'plaintext'
          : {
              certificate: serving.certificatePem,
              key: serving.keyPem,
              ...(options.named === undefined ? {} : { named: options.named }),
            },
    },
    onExchange,
    logger: silentLogger,
    clock: options.clock ?? systemClock,
    ...(options.limits === undefined ? {} : { limits: options.limits }),
  });
}

interface Answer {
  status: number;
  headers: Record<string, unknown>;
  body: Buffer;
}
interface Call {
  method?: string;
  path?: string;
  headers?: Record<string, string>;
  body?: Buffer;
}

function session(): ClientHttp2Session {
  const made = connectH2(`https://127.0.0.1:${server.address.port}`, { ca: ca.certificatePem });
  made.on('error', () => {});
  sessions.push(made);
  return made;
}

async function callH2(call: Call, over = session()): Promise<Answer> {
  const stream = over.request(
    { ':method': call.method ?? 'GET', ':path': call.path ?? '/', ...call.headers },
    { endStream: call.body === undefined },
  );
  const answered = once(stream, 'response');
  if (call.body !== undefined) stream.end(call.body);
  const [headers] = (await answered) as [Record<string, unknown>];
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  return { status: Number(headers[':status']), headers, body: Buffer.concat(chunks) };
}

function callH1(protocol: Protocol, call: Call, agent: AgentH1 | false = false): Promise<Answer> {
  const request = protocol === 'h1-tls' ? requestHttps : requestH1;
  return new Promise((resolve, reject) => {
    const sent = request(
      {
        host: '127.0.0.1',
        port: server.address.port,
        method: call.method ?? 'GET',
        path: call.path ?? '/',
        headers: { ...call.headers },
        ca: ca.certificatePem,
        agent,
      },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () =>
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            body: Buffer.concat(chunks),
          }),
        );
      },
    );
    sent.on('error', reject);
    sent.end(call.body);
  });
}

/** One connection for all requests of a client. */
function keptConnection(protocol: Protocol) {
  if (protocol === 'h2') {
    const kept = session();
    return { call: () => callH2({}, kept), closed: () => kept.closed, close: () => kept.destroy() };
  }
  const options = { keepAlive: true, maxSockets: 1 };
  const agent = protocol === 'h1-tls' ? new AgentHttps(options) : new AgentH1(options);
  const sockets = () => [...Object.values(agent.freeSockets), ...Object.values(agent.sockets)];
  return {
    call: () => callH1(protocol, {}, agent),
    closed: () => sockets().length === 0,
    close: () => agent.destroy(),
  };
}

function callBy(protocol: Protocol, call: Call): Promise<Answer> {
  return protocol === 'h2' ? callH2(call) : callH1(protocol, call);
}

function text(exchange: Exchange, body: string): void {
  const headers = { 'content-type': 'text/plain' };
  exchange.send({ status: 200, headers, body: Buffer.from(body) });
}

const protocols: Protocol[] = ['h1-plain', 'h1-tls', 'h2'];

describe.each(protocols)('%s', (protocol) => {
  test('answers whole, with method, URL, and headers as received', async () => {
    await serve(
      (exchange) => text(exchange, `${exchange.method} ${exchange.url} ${exchange.header('x-a')}`),
      { protocol },
    );
    const answer = await callBy(protocol, { path: '/a?b=%20', headers: { 'x-a': '1' } });
    expect(answer.body.toString()).toBe('GET /a?b=%20 1');
    expect(answer.headers['content-length']).toBe('14');
  });

  test('HEAD returns only headers', async () => {
    await serve((exchange) => text(exchange, 'hello'), { protocol });
    const answer = await callBy(protocol, { method: 'HEAD' });
    expect(answer.headers['content-length']).toBe('5');
    expect(answer.body.length).toBe(0);
  });

  test('reads a body up to the limit', async () => {
    await serve(async (exchange) => text(exchange, String((await exchange.body(100_000)).length)), {
      protocol,
    });
    const answer = await callBy(protocol, { method: 'POST', body: Buffer.alloc(100_000) });
    expect(answer.body.toString()).toBe('100000');
  });

  test.each([true, false])('refuses a larger body, announced: %s', async (announced) => {
    await serve(
      async (exchange) => {
        const error = await exchange.body(1000).catch((caught: unknown) => caught);
        expect(error).toBeInstanceOf(BodyTooLarge);
        exchange.send({ status: 413, headers: {}, body: Buffer.from('too large') });
      },
      { protocol },
    );
    const body = Buffer.alloc(3_000_000);
    const headers: Record<string, string> = announced
      ? { 'content-length': String(body.length) }
      : protocol === 'h2'
        ? {}
        : { 'transfer-encoding': 'chunked' };
    const answer = await callBy(protocol, { method: 'POST', body, headers });
    expect(answer.status).toBe(413);
    expect(answer.body.toString()).toBe('too large');
  });

  test('writes many pieces in order', async () => {
    const pieces: Buffer[] = [];
    for (let index = 0; index < 5000; index += 1) {
      pieces.push(Buffer.from(`{"n":${index}}`), Buffer.from(','));
      if (index % 500 === 0) pieces.push(Buffer.alloc(700_000, index % 251));
    }
    await serve((exchange) => exchange.send({ status: 200, headers: {}, body: pieces }), {
      protocol,
    });
    const answer = await callBy(protocol, {});
    expect(answer.body.equals(Buffer.concat(pieces))).toBe(true);
  });

  test('streams, and ends cleanly', async () => {
    await serve(
      (exchange) => {
        const stream = exchange.stream({ status: 200, headers: { 'x-list': ['a', 'b'] } });
        stream.write(Buffer.from('one\n'));
        stream.write(Buffer.from('two\n'));
        stream.end();
      },
      { protocol },
    );
    const answer = await callBy(protocol, {});
    expect(answer.body.toString()).toBe('one\ntwo\n');
    expect(answer.headers['x-list']).toBe('a, b');
  });

  test('streams have headers that are not ASCII', async () => {
    const text = Buffer.from('日é').toString('latin1');
    await serve((exchange) => exchange.stream({ status: 200, headers: { 'x-a': text } }).end(), {
      protocol,
    });
    const answer = await callBy(protocol, {});
    expect(answer.headers['x-a']).toBe(text);
  });

  test('a throwing handler is answered with 500 and affects no other request', async () => {
    await serve(
      (exchange) => {
        if (exchange.url === '/sync') throw new Error('bad');
        if (exchange.url === '/async') return Promise.reject(new Error('bad'));
        return text(exchange, 'fine');
      },
      { protocol },
    );
    expect((await callBy(protocol, { path: '/sync' })).status).toBe(500);
    expect((await callBy(protocol, { path: '/async' })).status).toBe(500);
    expect((await callBy(protocol, { path: '/' })).status).toBe(200);
    expect(faults).toEqual(['endpoint: bad', 'endpoint: bad']);
  });

  test('an overlong url is 414', async () => {
    await serve((exchange) => text(exchange, ''), { protocol, limits: { urlBytesMax: 100 } });
    expect((await callBy(protocol, { path: `/${'a'.repeat(100)}` })).status).toBe(414);
  });

  test('an answer to an unread body arrives', async () => {
    await serve((exchange) => text(exchange, 'no need'), { protocol });
    const answer = await callBy(protocol, { method: 'POST', body: Buffer.alloc(500_000) });
    expect(answer.body.toString()).toBe('no need');
  });
});

describe('a client that disconnects', () => {
  test('in the middle of a stream', async () => {
    const aborted = deferred<Exchange>();
    await serve((exchange) => {
      exchange.onAbort(() => aborted.resolve(exchange));
      exchange.stream({ status: 200, headers: {} }).write(Buffer.from('x'));
    });
    const stream = session().request({ ':path': '/' });
    await once(stream, 'response');
    stream.close(constants.NGHTTP2_CANCEL);
    const exchange = await aborted.promise;
    expect(exchange.aborted).toBe(true);
    await expect.poll(() => server.inFlight).toBe(0);
  });

  test('in the middle of an upload', async () => {
    const outcome = deferred<unknown>();
    await serve((exchange) => exchange.body(10_000).catch(outcome.resolve), {
      protocol: 'h1-plain',
    });
    const socket = connectTcp(server.address.port, '127.0.0.1');
    socket.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nabc');
    await expect.poll(() => server.inFlight).toBe(1);
    socket.destroy();
    expect(await outcome.promise).toBeInstanceOf(BodyAborted);
  });
});

describe('slow clients', () => {
  test('a body that never arrives is given up', async () => {
    const clock = new FakeClock();
    const outcome = deferred<unknown>();
    await serve((exchange) => exchange.body(10_000).catch(outcome.resolve), {
      protocol: 'h1-plain',
      clock,
    });
    const socket = connectTcp(server.address.port, '127.0.0.1');
    socket.on('error', () => {});
    socket.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nabc');
    await expect.poll(() => server.inFlight).toBe(1);
    clock.advance(70_000);
    expect(await outcome.promise).toBeInstanceOf(BodyAborted);
    socket.destroy();
  });

  test('headers that never arrive end the connection', async () => {
    await serve((exchange) => text(exchange, ''), {
      protocol: 'h1-plain',
      limits: { headersTimeoutMs: 100, sweepPeriodMs: 50 },
    });
    const socket = connectTcp(server.address.port, '127.0.0.1');
    socket.write('GET / HTTP/1.1\r\nHost: a\r\n');
    const chunks: Buffer[] = [];
    for await (const chunk of socket) chunks.push(chunk as Buffer);
    expect(Buffer.concat(chunks).toString()).toMatch(/^HTTP\/1.1 408 /);
  });

  test('an unread answer is cut off, and memory stays bounded', async () => {
    const clock = new FakeClock();
    const piece = Buffer.alloc(1024 * 1024);
    let taken = 0;
    function* pieces(): Generator<Buffer> {
      for (; taken < 200; taken += 1) yield piece;
    }
    await serve((exchange) => exchange.send({ status: 200, headers: {}, body: pieces() }), {
      clock,
    });
    const stream = session().request({ ':path': '/' });
    stream.on('error', () => {});
    await once(stream, 'response');
    expect(taken).toBeLessThan(20);
    clock.advance(70_000);
    await expect.poll(() => server.inFlight).toBe(0);
  });

  test('a 13 MB answer reaches a slow reader whole', async () => {
    const piece = Buffer.alloc(1300, 7);
    const pieces = Array.from({ length: 10_000 }, () => piece);
    await serve((exchange) => exchange.send({ status: 200, headers: {}, body: pieces }));
    const stream = session().request({ ':path': '/' });
    let total = 0;
    for await (const chunk of stream) {
      total += (chunk as Buffer).length;
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(total).toBe(13_000_000);
  });

  test('an idle connection is closed', async () => {
    const clock = new FakeClock();
    await serve((exchange) => text(exchange, ''), { clock });
    const client = session();
    await callH2({}, client);
    await expect.poll(() => server.inFlight).toBe(0);
    const closed = once(client, 'close');
    clock.advance(120_000);
    await closed;
  });

  test.each(['h1-plain', 'h1-tls', 'h2'] as const)(
    'a connection with short requests between sweeps is not idle, %s',
    async (protocol) => {
      const clock = new FakeClock();
      const seen = new Set<unknown>();
      await serve(
        (exchange) => {
          seen.add(exchange.connection);
          text(exchange, '');
        },
        { clock, protocol },
      );
      const client = keptConnection(protocol);
      for (let request = 0; request < 30; request += 1) {
        await client.call();
        await expect.poll(() => server.inFlight, { interval: 2 }).toBe(0);
        clock.advance(5000);
      }
      expect(client.closed()).toBe(false);
      expect(seen.size).toBe(1);
      clock.advance(120_000);
      await expect.poll(client.closed).toBe(true);
      client.close();
    },
  );
});

describe('malformed requests', () => {
  async function raw(sent: string | Buffer): Promise<string> {
    const socket = connectTcp(server.address.port, '127.0.0.1');
    socket.write(sent);
    const chunks: Buffer[] = [];
    for await (const chunk of socket) chunks.push(chunk as Buffer);
    return Buffer.concat(chunks).toString('latin1');
  }

  test.each([
    ['garbage', '\x00\x01\x02garbage\r\n\r\n'],
    [
      'two lengths',
      'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab',
    ],
    [
      'a length and chunks',
      'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    ],
    ['a bad header', 'GET / HTTP/1.1\r\nHost: a\r\nbad header\r\n\r\n'],
    ['no host', 'GET / HTTP/1.1\r\n\r\n'],
  ])('%s is 400', async (_what, sent) => {
    await serve((exchange) => text(exchange, 'fine'), { protocol: 'h1-plain' });
    expect(await raw(sent)).toMatch(/^HTTP\/1.1 400 /);
    expect((await callH1('h1-plain', {})).status).toBe(200);
  });

  test('headers over the limit are 431', async () => {
    await serve((exchange) => text(exchange, ''), { protocol: 'h1-plain' });
    const sent = `GET / HTTP/1.1\r\nHost: a\r\nX-A: ${'a'.repeat(200_000)}\r\n\r\n`;
    expect(await raw(sent)).toMatch(/^HTTP\/1.1 431 /);
  });

  test.each([
    ['a late head', 'GET / HTTP/1.1\r\n', 408],
    [
      'an upgrade with a chunked body',
      'POST / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: x\r\nTransfer-Encoding: chunked\r\n\r\n',
      411,
    ],
  ])('TRUST-4: %s does not let a client keep its connection', async (_what, sent, status) => {
    const clock = new FakeClock();
    const limits = { headersTimeoutMs: 50, sweepPeriodMs: 20, discardTimeoutMs: 2000 };
    await serve(() => {}, { protocol: 'h1-plain', clock, limits });
    const { port } = server.address;
    const socket = connectTcp({ port, host: '127.0.0.1', allowHalfOpen: true });
    let answer = '';
    socket.on('data', (bytes) => {
      answer += bytes;
    });
    socket.write(sent);
    await once(socket, 'end');
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    clock.advance(2000);
    socket.on('error', () => {});
    // The first bytes after the server has closed are answered with a reset, which fails the next.
    await expect.poll(() => socket.destroyed || !socket.write('x')).toBe(true);
  });

  test('the absolute form names a path', async () => {
    await serve((exchange) => text(exchange, exchange.url), { protocol: 'h1-plain' });
    const sent = 'GET http://a.b/c?d HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n';
    expect(await raw(sent)).toMatch(/\r\n\r\n\/c\?d$/);
  });

  test('garbage after a TLS handshake, as either protocol, ends that connection only', async () => {
    await serve((exchange) => text(exchange, 'fine'));
    for (const ALPNProtocols of [['h2'], ['http/1.1'], []]) {
      const socket = connectTls({
        host: '127.0.0.1',
        port: server.address.port,
        ca: ca.certificatePem,
        ALPNProtocols,
      });
      socket.on('error', () => {});
      await once(socket, 'secureConnect');
      socket.write(Buffer.alloc(5000, 0xfe));
      socket.resume();
      await once(socket, 'close');
    }
    const plain = connectTcp(server.address.port, '127.0.0.1');
    plain.on('error', () => {});
    plain.write('GET / HTTP/1.1\r\n\r\n');
    plain.resume();
    await once(plain, 'close');
    expect((await callH2({})).status).toBe(200);
  });

  test('100 Continue is sent only once the body is wanted', async () => {
    await serve(async (exchange) => text(exchange, (await exchange.body(1000)).toString()), {
      protocol: 'h1-plain',
    });
    const head = 'POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nConnection: close\r\n';
    const answer = await raw(`${head}Content-Length: 3\r\n\r\nabc`);
    expect(answer).toMatch(/^HTTP\/1.1 100 Continue\r\n\r\nHTTP\/1.1 200 /);
    const refused = await raw(`${head}Content-Length: 3000\r\n\r\n`);
    expect(refused).toMatch(/^HTTP\/1.1 500 /);
  });
});

describe('drain', () => {
  test.each(protocols)(
    '%s: requests in flight finish, then nobody is admitted',
    async (protocol) => {
      const waiting = deferred<Exchange>();
      await serve((exchange) => waiting.resolve(exchange), { protocol });
      const answer = callBy(protocol, {});
      const exchange = await waiting.promise;
      const drained = server.drain({ timeoutMs: 10_000 });
      text(exchange, 'last');
      expect((await answer).body.toString()).toBe('last');
      expect(await drained).toEqual({ complete: true });
      await expect(callH1(protocol, {})).rejects.toThrow();
    },
  );

  test('streams end through the callback', async () => {
    const streams: (() => void)[] = [];
    await serve((exchange) => {
      const stream = exchange.stream({ status: 200, headers: {} });
      stream.write(Buffer.from('a'));
      streams.push(() => stream.end());
    });
    const answer = callH2({});
    await expect.poll(() => streams.length).toBe(1);
    const endStreams = (): void => {
      for (const end of streams) end();
    };
    expect(await server.drain({ timeoutMs: 10_000, endStreams })).toEqual({ complete: true });
    expect((await answer).body.toString()).toBe('a');
  });

  test('requests that do not finish are cut off', async () => {
    const clock = new FakeClock();
    await serve(() => {}, { clock });
    const stream = session().request({ ':path': '/' });
    stream.on('error', () => {});
    await expect.poll(() => server.inFlight).toBe(1);
    const drained = server.drain({ timeoutMs: 1000 });
    clock.advance(2000);
    expect(await drained).toEqual({ complete: false });
  });

  test('an idle connection does not delay a stop', async () => {
    await serve(() => {});
    const { port } = server.address;
    const silent = connectTcp({ port, host: '127.0.0.1' });
    const idle = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false });
    for (const socket of [silent, idle]) socket.on('error', () => {});
    const gone = Promise.all([silent, idle].map((socket) => once(socket, 'close')));
    await Promise.all([once(silent, 'connect'), once(idle, 'secureConnect')]);
    for (const socket of [silent, idle]) socket.resume();
    expect(await server.drain({ timeoutMs: 10_000 })).toEqual({ complete: true });
    await gone;
  });
});

test('the client certificate is exposed, not verified', async () => {
  const client = issueCertificate({ commonName: 'jane', usage: 'client', ...life });
  const seen = deferred<readonly Buffer[]>();
  await serve((exchange) => {
    seen.resolve(exchange.connection.peerCertificates());
    text(exchange, '');
  });
  const made = connectH2(`https://127.0.0.1:${server.address.port}`, {
    ca: ca.certificatePem,
    cert: client.certificatePem,
    key: client.keyPem,
  });
  sessions.push(made);
  await callH2({}, made);
  const chain = await seen.promise;
  expect(chain.length).toBe(1);
  expect(client.certificatePem).toContain(chain[0]?.toString('base64').slice(0, 60));
});

test('TRUST-1: a fault in certificate selection ends only its handshake', async () => {
  const pair = { certificate: serving.certificatePem, key: serving.keyPem };
  await serve((exchange) => text(exchange, 'fine'), { named: new Map([['other.example', pair]]) });
  const { port } = server.address;
  const shakeHands = async (): Promise<string> => {
    const options = { port, host: '127.0.0.1', rejectUnauthorized: false };
    const socket = connectTls({ ...options, servername: 'localhost' });
    const outcome = await once(socket, 'secureConnect').then(
      () => 'connected',
      () => 'refused',
    );
    socket.destroy();
    return outcome;
  };
  vi.spyOn(X509Certificate.prototype, 'checkHost').mockImplementationOnce(() => {
    throw new Error('bad name');
  });
  expect(await shakeHands()).toBe('refused');
  expect(faults).toEqual(['tls: bad name']);
  expect(await shakeHands()).toBe('connected');
});
