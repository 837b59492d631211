import net from 'node:net';
import tls from 'node:tls';
import type { Random } from '@wheelhouse/machinery';
import {
  block,
  flags,
  frame,
  getFields,
  prefaceBytes,
  settings,
  type,
  words,
} from '../serving/http2-raw.ts';

/** The server that a session attacks. */
export interface Target {
  readonly url: string;
  /** Of an administrator: a hostile client may well have a credential. */
  readonly token: string;
}

/** How long a session waits for the server to close after its last byte. */
const lingerMs = 400;

export function openSocket(target: Target, protocol?: 'h2'): tls.TLSSocket {
  const { hostname, port } = new URL(target.url);
  const socket = tls.connect({
    host: hostname,
    port: Number(port),
    rejectUnauthorized: false,
    ...(protocol === undefined ? {} : { ALPNProtocols: [protocol] }),
  });
  socket.on('error', () => {});
  return socket;
}

function bytesFrom(random: Random, length: number): Buffer {
  return Buffer.from(Array.from({ length }, () => random.below(256)));
}

/** Sends the bytes in random pieces, perhaps not all of them, and leaves in a random way. */
async function play(socket: net.Socket, bytes: Buffer, random: Random): Promise<Buffer> {
  const received: Buffer[] = [];
  let isClosed = false;
  socket.on('error', () => {});
  socket.on('close', () => {
    isClosed = true;
  });
  if (random.chance(0.85)) socket.on('data', (chunk: Buffer) => received.push(chunk));
  const end = random.chance(0.2) ? random.below(bytes.length + 1) : bytes.length;
  for (let at = 0; at < end && !isClosed; ) {
    const size = random.chance(0.3) ? 1 + random.below(8) : 1 + random.below(16 * 1024);
    socket.write(bytes.subarray(at, Math.min(end, at + size)));
    at += size;
    if (random.chance(0.5)) await new Promise<void>((resolve) => setImmediate(resolve));
  }
  if (random.chance(0.25)) socket.destroy();
  else if (random.chance(0.3)) socket.end();
  if (!isClosed) {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, lingerMs);
      socket.once('close', () => {
        clearTimeout(timer);
        resolve();
      });
    });
  }
  socket.destroy();
  return Buffer.concat(received);
}

/** Sends TLS records that are truncated, mutated, or not TLS at all. */
export async function tlsSession(target: Target, random: Random): Promise<void> {
  const { hostname, port } = new URL(target.url);
  const socket = net.connect(Number(port), hostname);
  const hello = Buffer.concat([
    Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03]),
    bytesFrom(random, random.below(600)),
  ]);
  const plain = Buffer.from('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
  const alert = Buffer.from([0x15, 0x03, 0x03, 0x00, 0x02, 0x02, random.below(256)]);
  const record = Buffer.from([random.pick([20, 21, 22, 23, 24]), 3, random.below(5), 0xff, 0xff]);
  const bytes = Array.from({ length: 1 + random.below(4) }, () =>
    random.pick([hello, plain, alert, record, bytesFrom(random, random.below(300))]),
  );
  await play(socket, Buffer.concat(bytes), random);
}

const line = (text: string) => `${text} HTTP/1.1\r\nhost: x\r\n`;

/** One message over HTTP/1.1, well-formed or not. */
function http1Message(target: Target, random: Random): string {
  const auth = random.chance(0.5) ? `authorization: Bearer ${target.token}\r\n` : '';
  const path = random.pick(['/version', '/api', '/readyz', '/api/v1/namespaces', '/nowhere']);
  const watch = '/api/v1/namespaces?watch=1&timeoutSeconds=1';
  const upgrade = 'connection: upgrade\r\nupgrade: websocket\r\norigin: https://x\r\n';
  const key = 'sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n';
  return random.pick([
    `${line(`GET ${path}`)}${auth}\r\n`,
    `${line(`GET ${path}`)}${auth}\r\n`,
    `${line(`GET ${watch}`)}${auth}\r\n`,
    `${line(`GET ${watch}`)}${auth}${upgrade}${key}\r\n`,
    `${line(`GET ${path}`)}${auth}${upgrade}\r\n`,
    `${line(`POST ${path}`)}${auth}${upgrade}content-length: 5\r\n\r\n12345`,
    `${line(`POST ${path}`)}${auth}${upgrade}transfer-encoding: chunked\r\n\r\n0\r\n\r\n`,
    `${line(`GET ${path}`)}connection: upgrade, http2-settings\r\nupgrade: h2c\r\n\r\n`,
    `${line(`POST /api/v1/namespaces`)}${auth}content-length: 2\r\n\r\n{}`,
    `${line(`POST /api/v1/namespaces`)}${auth}transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`,
    `${line(`POST /api/v1/namespaces`)}${auth}expect: 100-continue\r\ncontent-length: 2\r\n\r\n{}`,
    `${line(`POST /api/v1/namespaces`)}${auth}content-length: 900\r\n\r\n{`,
    `${line(`GET ${path}`)}expect: the-unexpected\r\n\r\n`,
    `${line(`GET ${path}`)}connection: close\r\n\r\n`,
    `${line(`GET ${path}`)}content-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`,
    `${line(`GET ${path}`)}content-length: 3\r\ncontent-length: 4\r\n\r\nabcd`,
    `${line(`POST ${path}`)}transfer-encoding: chunked\r\n\r\nffffffffffffffffff\r\n`,
    `GET ${path} HTTP/1.1\r\n\r\n`,
    `GET ${path} HTTP/1.0\r\n\r\n`,
    `CONNECT x:443 HTTP/1.1\r\nhost: x\r\n\r\n`,
    `OPTIONS * HTTP/1.1\r\nhost: x\r\n\r\n`,
    `${line(`GET ${path}`)}x: ${'a'.repeat(random.below(200_000))}\r\n\r\n`,
    `GET /${'%'.repeat(random.below(100))} HTTP/1.1\r\nhost: x\r\n folded: y\r\n\r\n`,
    bytesFrom(random, random.below(60)).toString('latin1'),
    '\r\n',
  ]);
}

/** Pipelines messages. Rejects when more answers arrive than messages were sent. */
export async function http1Session(target: Target, random: Random): Promise<void> {
  const messages = Array.from({ length: 1 + random.below(10) }, () => http1Message(target, random));
  const bytes = Buffer.from(messages.join(''), 'latin1');
  const text = (await play(openSocket(target), bytes, random)).toString('latin1');
  if (text !== '' && !text.startsWith('HTTP/1.1 ')) {
    throw new Error(`HTTP/1.1 begins with ${JSON.stringify(text.slice(0, 60))}`);
  }
  const statuses = text.match(/^HTTP\/1\.1 \d{3} /gm) ?? [];
  const final = statuses.filter((status) => !status.includes(' 100 '));
  if (final.length > messages.length + 1) {
    throw new Error(`${final.length} answers to ${messages.length} messages`);
  }
}

/** Sends frames in random order, some of them mutated. */
export async function http2Session(target: Target, random: Random): Promise<void> {
  const parts: Buffer[] = random.chance(0.95) ? [prefaceBytes, settings()] : [];
  const fields = [...getFields, ['authorization', `Bearer ${target.token}`] as const];
  for (let count = 1 + random.below(40), stream = 1; count > 0; count -= 1) {
    if (random.chance(0.5)) stream += 2;
    const id = random.chance(0.9) ? stream : random.below(2 ** 31);
    const kind = random.chance(0.9) ? random.below(10) : random.below(256);
    const flag = random.pick([0, 1, 4, 5, 8, 0x20, random.below(256)]);
    const payload = random.pick([
      block(fields),
      words(random.below(2 ** 31)),
      words(random.below(2 ** 31), random.below(2 ** 31)),
      bytesFrom(random, random.below(64)),
      Buffer.alloc(random.below(20_000)),
      Buffer.alloc(0),
    ]);
    parts.push(
      random.pick([
        frame(type.headers, flags.whole, stream, block(fields)),
        frame(kind, flag, id, payload),
        frame(kind, flag, random.pick([0, id]), payload),
      ]),
    );
  }
  const bytes = Buffer.concat(parts);
  for (let flips = random.below(4); flips > 0 && random.chance(0.3); flips -= 1) {
    bytes[random.below(bytes.length)] = random.below(256);
  }
  await play(openSocket(target, 'h2'), bytes, random);
}

/** A WebSocket frame, masked or not, with a correct or incorrect length. */
function webSocketFrame(random: Random): Buffer {
  const payload = bytesFrom(random, random.pick([0, 1, 125, 126, 300]));
  const first = random.pick([0x81, 0x82, 0x88, 0x89, 0x8a, 0x01, 0x00, random.below(256)]);
  const isMasked = random.chance(0.9) ? 0x80 : 0;
  const lengths = [
    payload.length < 126
      ? Buffer.from([first, isMasked | payload.length])
      : Buffer.from([first, isMasked | 126, payload.length >> 8, payload.length & 0xff]),
    Buffer.from([first, isMasked | 127, ...bytesFrom(random, 8)]),
    Buffer.from([first, isMasked | random.below(128)]),
  ];
  const head = random.chance(0.8) ? (lengths[0] as Buffer) : random.pick(lengths);
  return Buffer.concat([head, bytesFrom(random, isMasked === 0 ? 0 : 4), payload]);
}

/** Opens a watch over a WebSocket, then sends random frames. */
export async function webSocketSession(target: Target, random: Random): Promise<void> {
  const head =
    `${line('GET /api/v1/namespaces?watch=1&timeoutSeconds=1')}connection: upgrade\r\n` +
    `upgrade: websocket\r\norigin: https://x\r\nauthorization: Bearer ${target.token}\r\n` +
    'sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n';
  const frames = Array.from({ length: random.below(20) }, () => webSocketFrame(random));
  await play(openSocket(target), Buffer.concat([Buffer.from(head), ...frames]), random);
}
