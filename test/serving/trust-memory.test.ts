import { once } from 'node:events';
import http2 from 'node:http2';
import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { beforeEach, describe, expect, test } from 'vitest';

import { sample } from '../operations/metric-samples.ts';

import { adminToken, configMap, connect, eventually, freshNamespace } from '../support/harness.ts';
import { withUsers } from '../support/with-server.ts';

/** Clients that make the server hold memory, on a server whose limit for all clients is 8 MiB. */

const mebibyte = 1024 * 1024;
const groups = ['system:masters'];
const closing: (() => void)[] = [];

const users = [
  { name: 'heavy', groups },
  { name: 'light', groups },
];
const server = await withUsers(users, { limits: { memoryBytes: 8 * mebibyte } });
const maps = `/api/v1/namespaces/${await freshNamespace(server)}/configmaps`;
for (let at = 0; at < 8; at += 1) {
  const large = configMap(`large-${at}`, { data: { text: 'x'.repeat(400_000) } });
  expect((await server.post(maps, large)).status).toBe(201);
}

beforeEach(async () => {
  for (const close of closing.splice(0)) close();
  await eventually(async () => (await used()) < mebibyte, 'memory given back');
});

/** Charged bytes, for one use or for all. */
async function used(use?: string): Promise<number> {
  const { text } = await server.get('/metrics');
  const uses = ['connections', 'requests', 'bodies', 'answers', 'watches', 'selectors'];
  const of = (name: string) => sample(text, 'wheelhouse_memory_budget_used_bytes', { use: name });
  return use === undefined ? uses.reduce((sum, name) => sum + of(name), 0) : of(use);
}

async function counted(name: 'refused' | 'shed'): Promise<number> {
  const { text } = await server.get('/metrics');
  return sample(text, `wheelhouse_memory_budget_${name}_total`);
}

/** A separate connection, closed before the next test. */
function client() {
  const connection = connect(server.url);
  closing.push(connection.close);
  return connection.calls;
}

function session(settings: http2.Settings = {}): http2.ClientHttp2Session {
  const http2Session = http2.connect(server.url, { rejectUnauthorized: false, settings });
  http2Session.on('error', () => {});
  closing.push(() => http2Session.destroy());
  return http2Session;
}

const bearer = (name: string) => ({ authorization: `Bearer ${name}` });

/** Opens watches with different large selectors until one is rejected. */
async function watchUntilRefused(http2Session: http2.ClientHttp2Session) {
  for (let opened = 0; opened < 2000; opened += 1) {
    const values = Array.from({ length: 500 }, (_, at) => `value-${opened}-${at}`);
    const selector = new URLSearchParams({ labelSelector: `x in (${values.join(',')})` });
    const stream = http2Session.request({
      ':path': `${maps}?watch=true&${selector}`,
      ...bearer('heavy'),
    });
    stream.on('error', () => {});
    const [head] = (await once(stream, 'response')) as [http2.IncomingHttpHeaders];
    if (Number(head[':status']) !== 200) return { opened, refusal: head };
  }
  throw new Error('no watch was refused');
}

async function expectServed(token: string): Promise<void> {
  const own = connect(server.url);
  closing.push(own.close);
  const made = await own.calls.post(maps, configMap(`made-${Math.random()}`), { token });
  expect(made.status).toBe(201);
  expect((await own.calls.get(`${maps}/large-0`, { token })).status).toBe(200);
}

describe('TRUST-4: memory held for clients', () => {
  test('equal selectors of many watches are charged once', async () => {
    const values = Array.from({ length: 900 }, (_, at) => `value-${at}`);
    const selector = new URLSearchParams({ labelSelector: `x in (${values.join(',')})` });
    const { watch } = client();
    const path = `${maps}?watch=true&${selector}`;
    await watch(path, { token: 'heavy' });
    const charged = await used('selectors');
    expect(charged).toBeGreaterThan(50_000);
    for (let at = 0; at < 20; at += 1) await watch(path, { token: 'heavy' });
    expect(await used('selectors')).toBe(charged);
    expect(await used('watches')).toBeGreaterThan(20 * 4000);
    for (const close of closing.splice(0)) close();
    await eventually(async () => (await used('selectors')) === 0, 'the selector given back');
  });

  test('a user with too many watches gets 429, and others are served', async () => {
    const refusedBefore = await counted('refused');
    const { opened, refusal } = await watchUntilRefused(session());
    expect(Number(refusal[':status'])).toBe(429);
    expect(refusal['retry-after']).toBe('1');
    expect(opened).toBeGreaterThan(20);
    expect(await counted('refused')).toBeGreaterThan(refusedBefore);
    await expectServed('light');
  });

  test('unread answers are cut off, the heaviest reader first', async () => {
    const shedBefore = await counted('shed');
    const light = client();
    const watched = await light.watch(`${maps}?watch=true`, { token: 'light' });
    const idle: http2.ClientHttp2Session[] = [];
    for (let at = 0; at < 24; at += 1) {
      const http2Session = session({ initialWindowSize: 0 });
      idle.push(http2Session);
      for (let stream = 0; stream < 4; stream += 1) {
        http2Session.request({ ':path': maps, ...bearer('heavy') }).on('error', () => {});
      }
    }
    await eventually(async () => (await counted('shed')) > shedBefore, 'a reader cut off');
    await eventually(async () => (await used()) < 8 * mebibyte, 'memory below the limit');
    await expectServed('light');
    await watched.until((events) => events.length > 0, 'an event on the watch of another user');
  });

  test('endless bodies are refused or cut off', async () => {
    const sockets: Socket[] = [];
    const { hostname, port } = new URL(server.url);
    const answers: string[] = [];
    let closed = 0;
    for (let at = 0; at < 12; at += 1) {
      const socket = connectTls({ host: hostname, port: Number(port), rejectUnauthorized: false });
      socket.on('error', () => {});
      socket.on('data', (bytes: Buffer) => answers.push(bytes.toString('latin1')));
      socket.on('close', () => {
        closed += 1;
      });
      socket.write(
        `POST ${maps} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer heavy\r\n` +
          'Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n',
      );
      const piece = Buffer.alloc(64 * 1024, ' ');
      for (let sent = 0; sent < 2 * mebibyte; sent += piece.length) {
        socket.write('10000\r\n');
        socket.write(piece);
        socket.write('\r\n');
      }
      sockets.push(socket);
      closing.push(() => socket.destroy());
    }
    const refused = () => answers.filter((text) => text.startsWith('HTTP/1.1 429')).length;
    await eventually(
      async () => refused() + closed > 5,
      () => `${refused()} ${closed}`,
    );
    await eventually(async () => (await used()) < 8 * mebibyte, 'memory below the limit');
    await expectServed('light');
  });

  test('silent connections are charged to their address', async () => {
    const { hostname, port } = new URL(server.url);
    const before = await used('connections');
    for (let at = 0; at < 10; at += 1) {
      session();
      const socket = connectTcp({ host: hostname, port: Number(port) });
      socket.on('error', () => {});
      closing.push(() => socket.destroy());
    }
    await eventually(async () => (await used('connections')) >= before + 10 * 60_000);
    await expectServed('light');
  });

  test('health and metrics still answer a client that is refused everything else', async () => {
    const calls = client();
    await watchUntilRefused(session());
    const get = async (path: string) => (await calls.get(path, { token: adminToken })).status;
    expect(await get('/readyz')).toBe(200);
    expect(await get('/metrics')).toBe(200);
  });
});
