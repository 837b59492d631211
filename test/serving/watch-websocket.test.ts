import { randomBytes } from 'node:crypto';
import https from 'node:https';
import type { Duplex } from 'node:stream';
import { decodeCbor } from '@wheelhouse/codec';
import { afterEach, expect, test } from 'vitest';
import { adminToken, configMap, eventually, freshNamespace } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

/** Watches over WebSockets, as browsers and some clients request them. */
const server = await withServer({ cborServed: true });
const sockets: Duplex[] = [];
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
});

interface Message {
  readonly opcode: number;
  readonly payload: Buffer;
}

/** The answer to a handshake; after 101, the received messages. */
async function open(path: string, headers: Record<string, string | undefined> = {}) {
  const key = randomBytes(16).toString('base64');
  const asked = {
    authorization: `Bearer ${adminToken}`,
    connection: 'Upgrade',
    upgrade: 'websocket',
    origin: 'https://example.com',
    'sec-websocket-key': key,
    'sec-websocket-version': '13',
    ...headers,
  };
  const given = Object.entries(asked).filter(([, value]) => value !== undefined);
  const request = https.request(`${server.url}${path}`, {
    rejectUnauthorized: false,
    headers: Object.fromEntries(given) as Record<string, string>,
    agent: false,
  });
  request.end();
  const messages: Message[] = [];
  return new Promise<{
    readonly status: number | undefined;
    readonly headers: NodeJS.Dict<string | string[]>;
    readonly body: string;
    readonly messages: readonly Message[];
    readonly socket: Duplex | undefined;
    readonly isClosed: () => boolean;
  }>((resolve, reject) => {
    request.on('error', reject);
    request.on('response', (answer) => {
      const chunks: Buffer[] = [];
      answer.on('data', (chunk: Buffer) => chunks.push(chunk));
      answer.on('end', () => {
        const body = Buffer.concat(chunks).toString();
        const { statusCode: status, headers } = answer;
        resolve({ status, headers, body, messages, socket: undefined, isClosed: () => true });
      });
    });
    request.on('upgrade', ({ statusCode: status, headers }, socket, head) => {
      sockets.push(socket);
      let isClosed = false;
      let rest: Buffer = head;
      const take = (bytes: Buffer) => {
        rest = Buffer.concat([rest, bytes]);
        for (let frame = frameOf(rest); frame !== undefined; frame = frameOf(rest)) {
          messages.push(frame.message);
          rest = rest.subarray(frame.end);
        }
      };
      take(Buffer.alloc(0));
      socket.on('data', take);
      socket.on('error', () => {});
      socket.on('close', () => {
        isClosed = true;
      });
      resolve({ status, headers, body: '', messages, socket, isClosed: () => isClosed });
    });
  });
}

/** Parses the first frame, which a server must not mask. */
function frameOf(bytes: Buffer): { readonly message: Message; readonly end: number } | undefined {
  const [first, second] = bytes;
  if (first === undefined || second === undefined) return undefined;
  expect([first & 0x80, second & 0x80]).toEqual([0x80, 0]);
  const more = second === 127 ? 8 : second === 126 ? 2 : 0;
  if (bytes.length < 2 + more) return undefined;
  const length =
    more === 8 ? Number(bytes.readBigUInt64BE(2)) : more === 2 ? bytes.readUInt16BE(2) : second;
  const end = 2 + more + length;
  if (bytes.length < end) return undefined;
  return { message: { opcode: first & 0x0f, payload: bytes.subarray(2 + more, end) }, end };
}

function clientFrame(opcode: number, payload: Buffer): Buffer {
  const mask = randomBytes(4);
  const masked = Buffer.from(payload.map((byte, at) => byte ^ (mask[at % 4] ?? 0)));
  const length =
    payload.length > 125
      ? [0x80 | 126, payload.length >> 8, payload.length & 0xff]
      : [0x80 | payload.length];
  return Buffer.concat([Buffer.from([0x80 | opcode, ...length]), mask, masked]);
}

const watchOf = (namespace: string, more = '') =>
  `/api/v1/namespaces/${namespace}/configmaps?watch=true&resourceVersion=0${more}`;

test('WATCH-1: over a WebSocket each event is a message', async () => {
  const namespace = await freshNamespace(server);
  const path = `/api/v1/namespaces/${namespace}/configmaps`;
  await server.post(path, configMap('a'));
  const watch = await open(watchOf(namespace), { 'sec-websocket-protocol': 'any.example.com' });
  expect(watch.status).toBe(101);
  expect(watch.headers['sec-websocket-protocol']).toBe('any.example.com');
  await server.post(path, configMap('b', { data: { long: 'x'.repeat(70_000) } }));
  await server.remove(`${path}/a`);
  await eventually(async () => watch.messages.length >= 3, 'three messages');
  const summaries = watch.messages.map(({ opcode, payload }) => {
    const event = JSON.parse(payload.toString());
    return [opcode, event.type, event.object.metadata.name];
  });
  expect(summaries).toEqual([
    [1, 'ADDED', 'a'],
    [1, 'ADDED', 'b'],
    [1, 'DELETED', 'a'],
  ]);
});

test('WATCH-1: a ping is answered, other messages are ignored, a close ends the watch', async () => {
  const namespace = await freshNamespace(server);
  const watch = await open(watchOf(namespace));
  const { socket } = watch;
  const running = async () => {
    const { text } = await server.get('/metrics');
    return text
      .split('\n')
      .filter((line) => line.startsWith('apiserver_longrunning_requests{'))
      .filter((line) => line.includes('resource="configmaps"'))
      .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0);
  };
  await eventually(async () => (await running()) === 1, 'the watch is counted');
  const frames = [
    clientFrame(1, Buffer.alloc(40_000, 'a')),
    clientFrame(1, Buffer.alloc(0)),
    clientFrame(9, Buffer.from('are you there?')),
  ];
  // Divides the bytes at arbitrary positions.
  const bytes = Buffer.concat(frames);
  for (let at = 0; at < bytes.length; at += 9_973) socket?.write(bytes.subarray(at, at + 9_973));
  await eventually(async () => watch.messages.length === 1, 'the pong');
  expect(watch.messages[0]?.opcode).toBe(10);
  expect(watch.messages[0]?.payload.toString()).toBe('are you there?');
  socket?.write(clientFrame(8, Buffer.from([0x03, 0xe8])));
  await eventually(async () => watch.isClosed(), 'the end');
  expect(watch.messages[1]).toEqual({ opcode: 8, payload: Buffer.from([0x03, 0xe8]) });
  await eventually(async () => (await running()) === 0, 'the watch is over');
});

test('WATCH-1: a client that does not mask its frames is closed', async () => {
  const namespace = await freshNamespace(server);
  const watch = await open(watchOf(namespace));
  watch.socket?.write(Buffer.from([0x81, 0x01, 0x61]));
  await eventually(async () => watch.isClosed(), 'the end');
  expect(watch.messages).toEqual([{ opcode: 8, payload: Buffer.from([0x03, 0xea]) }]);
});

test('WATCH-3: a timeout ends the watch with a close frame', async () => {
  const namespace = await freshNamespace(server);
  const watch = await open(watchOf(namespace, '&timeoutSeconds=1'));
  await eventually(async () => watch.isClosed(), 'the end');
  expect(watch.messages.at(-1)).toEqual({ opcode: 8, payload: Buffer.from([0x03, 0xe8]) });
});

test('WATCH-9: protobuf uses binary messages without a length prefix', async () => {
  const namespace = await freshNamespace(server);
  await server.post(`/api/v1/namespaces/${namespace}/configmaps`, configMap('a'));
  const accept = 'application/vnd.svc.protobuf;stream=watch';
  const watch = await open(watchOf(namespace), { accept });
  await eventually(async () => watch.messages.length === 1, 'the event');
  const [message] = watch.messages;
  expect(message?.opcode).toBe(2);
  // A WatchEvent starts with its type.
  expect(message?.payload.subarray(0, 7)).toEqual(Buffer.from('\n\x05ADDED'));
});

test('WATCH-9: CBOR uses binary messages, one item each, of any size', async () => {
  const namespace = await freshNamespace(server);
  const path = `/api/v1/namespaces/${namespace}/configmaps`;
  const data = Object.fromEntries(Array.from({ length: 1100 }, (_, at) => [`k${at}`, 'v']));
  await server.post(path, configMap('many', { data }));
  await server.post(path, configMap('one'));
  const watch = await open(watchOf(namespace), { accept: 'application/cbor' });
  await eventually(async () => watch.messages.length === 2, 'the events');
  expect(watch.messages.map(({ opcode }) => opcode)).toEqual([2, 2]);
  expect(watch.messages[0]?.payload.includes('k1099')).toBe(true);
  const last = decodeCbor(watch.messages[1]?.payload ?? Buffer.alloc(0));
  expect(last).toMatchObject({ type: 'ADDED', object: { metadata: { name: 'one' } } });
});

test('WATCH-7: a client that pings but does not read holds only its position', async () => {
  const namespace = await freshNamespace(server);
  const watch = await open(watchOf(namespace, '&timeoutSeconds=5'));
  watch.socket?.pause();
  const ping = Buffer.concat(Array.from({ length: 2000 }, () => clientFrame(9, Buffer.alloc(125))));
  for (let round = 0; round < 40; round += 1) {
    await new Promise((resolve) => watch.socket?.write(ping, resolve));
  }
  watch.socket?.resume();
  await eventually(async () => watch.isClosed(), 'the end');
  expect(watch.messages.length).toBeGreaterThan(0);
  expect(watch.messages.every(({ opcode }) => opcode === 10 || opcode === 8)).toBe(true);
});

test.each([
  [{ 'sec-websocket-key': undefined }, 400, 'mismatch challenge/response'],
  [{ 'sec-websocket-version': '8' }, 400, 'missing or bad WebSocket Version'],
  [{ origin: undefined }, 403, ''],
  [{ 'sec-websocket-protocol': 'a, b' }, 400, ''],
])('WATCH-1: a handshake with %j is refused with %i', async (headers, status, body) => {
  const namespace = await freshNamespace(server);
  const answer = await open(watchOf(namespace), headers);
  expect([answer.status, answer.body]).toEqual([status, body]);
});

test('WATCH-1: a forbidden watch is refused as usual', async () => {
  const answer = await open(watchOf('default'), { authorization: 'Bearer wrong' });
  expect(answer.status).toBe(401);
  expect(JSON.parse(answer.body)).toMatchObject({ kind: 'Status', code: 401 });
});

const asProtocol = (token: string) =>
  `base64url.bearer.authorization.svc.io.${Buffer.from(token).toString('base64url')}`;

test('AUTHN-3: a browser sends its token as a subprotocol, beside one that is echoed', async () => {
  const namespace = await freshNamespace(server);
  const openWith = (protocols: string) =>
    open(watchOf(namespace), { authorization: undefined, 'sec-websocket-protocol': protocols });
  const watch = await openWith(`${asProtocol(adminToken)}, mine.example.com`);
  expect(watch.status).toBe(101);
  expect(watch.headers['sec-websocket-protocol']).toBe('mine.example.com');
  const good = asProtocol(adminToken);
  for (const protocols of [
    good,
    `${asProtocol('wrong')}, mine.example.com`,
    `${good}, ${good}, mine.example.com`,
    'base64url.bearer.authorization.svc.io.=, mine.example.com',
    'base64url.bearer.authorization.svc.io._w, mine.example.com',
  ]) {
    const { status, body } = await openWith(protocols);
    expect([protocols, status]).toEqual([protocols, 401]);
    expect(body).not.toContain(adminToken);
  }
  expect((await openWith('mine.example.com')).status).toBe(403);
});

test('AUTHN-3: a token among subprotocols counts only in a WebSocket handshake', async () => {
  const protocols = `${asProtocol(adminToken)}, mine.example.com`;
  const headers = { 'sec-websocket-protocol': protocols };
  const path = '/api/v1/namespaces/default/configmaps';
  expect((await server.get(path, { token: undefined, headers })).status).toBe(403);
});
