import { setTimeout as wait } from 'node:timers/promises';
import type { TLSSocket } from 'node:tls';
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
import { openSocket, type Target } from './protocol-sessions.ts';

/** A published attack. `run` rejects when the server does not defend itself. */
export interface NamedAttack {
  readonly name: string;
  run(target: Target): Promise<void>;
}

const patienceMs = 20_000;

function whenClosed(socket: TLSSocket): Promise<void> {
  return new Promise((resolve) => {
    if (socket.destroyed) resolve();
    else socket.once('close', () => resolve());
  });
}

/** Sends bytes until the server closes the connection; rejects when it does not. */
async function untilCut(socket: TLSSocket, next: (round: number) => Buffer): Promise<void> {
  const until = performance.now() + patienceMs;
  socket.resume();
  const closed = whenClosed(socket);
  for (let round = 0; !socket.destroyed && socket.writable; round += 1) {
    if (performance.now() > until) {
      socket.destroy();
      throw new Error('the server never closes the connection');
    }
    if (socket.write(next(round))) await new Promise<void>((resolve) => setImmediate(resolve));
    else await Promise.race([closed, new Promise((resolve) => socket.once('drain', resolve))]);
  }
  await Promise.race([closed, wait(patienceMs, undefined, { ref: false })]);
  socket.destroy();
}

/** Floods an HTTP/2 connection until the server closes it. */
const flood = (name: string, next: (round: number) => Buffer): NamedAttack => ({
  name,
  run(target) {
    const socket = openSocket(target, 'h2');
    socket.write(Buffer.concat([prefaceBytes, settings()]));
    return untilCut(socket, next);
  },
});

/**
 * Sends a fixed number of rounds that the server may refuse one stream at a time. The part checks
 * that other clients are served and that memory stays bounded.
 */
const pressure = (name: string, rounds: number, next: (round: number) => Buffer): NamedAttack => ({
  name,
  async run(target) {
    const socket = openSocket(target, 'h2');
    const closed = whenClosed(socket);
    socket.resume();
    socket.write(Buffer.concat([prefaceBytes, settings()]));
    for (let round = 0; round < rounds && !socket.destroyed; round += 1) {
      if (socket.write(next(round))) continue;
      await Promise.race([closed, new Promise((resolve) => socket.once('drain', resolve))]);
    }
    socket.destroy();
  },
});

const repeated = (bytes: Buffer, times: number): Buffer =>
  Buffer.concat(Array.from({ length: times }, () => bytes));

const get = (stream: number, flag: number = flags.whole) =>
  frame(type.headers, flag, stream, block(getFields));

/** Sends bytes that must be answered once, with `answer`, on a connection that then closes. */
const refused = (name: string, request: string, answer: RegExp): NamedAttack => ({
  name,
  async run(target) {
    const socket = openSocket(target);
    let text = '';
    socket.setEncoding('latin1').on('data', (chunk) => {
      text += chunk;
    });
    socket.write(request, 'latin1');
    await Promise.race([whenClosed(socket), wait(patienceMs, undefined, { ref: false })]);
    const isClosed = socket.destroyed;
    socket.destroy();
    if (!isClosed) throw new Error('the connection stays open');
    if (!answer.test(text)) throw new Error(`answered ${JSON.stringify(text.slice(0, 300))}`);
    const answers = text.match(/^HTTP\/1\.1 /gm) ?? [];
    if (answers.length > 1) throw new Error('the server found a second request in the first');
  },
});

/** Keeps many connections for a moment in a state that must cost other clients nothing. */
const parked = (
  name: string,
  options: {
    readonly protocol?: 'h2';
    readonly bytes: (target: Target) => Buffer;
    readonly reads: 'all' | 'nothing';
  },
): NamedAttack => ({
  name,
  async run(target) {
    const sockets = Array.from({ length: 50 }, () => openSocket(target, options.protocol));
    for (const socket of sockets) {
      if (options.reads === 'all') socket.resume();
      socket.write(options.bytes(target));
    }
    await wait(300);
    for (const socket of sockets) socket.destroy();
  },
});

const smuggled = 'GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n';
const empty = (kind: number, flag: number, stream: number) => frame(kind, flag, stream);
const streamsOf = (round: number, count: number) =>
  Array.from({ length: count }, (_, index) => 2 * (round * count + index) + 1);
/** A literal that enters the dynamic table, then references that each expand to 4 KB. */
const bomb = Buffer.concat([
  Buffer.from([0x40, 1, 0x61, 0x7f, 0x81, 0x1e]),
  Buffer.alloc(4000, 0x62),
  Buffer.alloc(12_000, 0xbe),
]);

export const namedAttacks: readonly NamedAttack[] = [
  flood('rapid reset', (round) =>
    Buffer.concat(
      streamsOf(round, 100).flatMap((id) => [get(id), frame(type.reset, 0, id, words(8))]),
    ),
  ),
  flood('reset by the server, provoked by windows of zero', (round) =>
    Buffer.concat(
      streamsOf(round, 100).flatMap((id) => [
        get(id, flags.endHeaders),
        frame(type.window, 0, id, words(0)),
      ]),
    ),
  ),
  flood('CONTINUATION flood', (round) =>
    round === 0
      ? frame(type.headers, flags.endStream, 1, block(getFields))
      : repeated(frame(type.continuation, 0, 1, block([['x', 'y']])), 50),
  ),
  flood('empty CONTINUATION flood', (round) =>
    round === 0
      ? frame(type.headers, flags.endStream, 1, block(getFields))
      : repeated(empty(type.continuation, 0, 1), 50),
  ),
  flood('SETTINGS flood', () => repeated(settings(), 500)),
  flood('PING flood', () => repeated(frame(type.ping, 0, 0, Buffer.alloc(8)), 500)),
  flood('PRIORITY churn and cycles', (round) =>
    Buffer.concat(
      streamsOf(round, 250).flatMap((id) => [
        frame(type.priority, 0, id, Buffer.concat([words(id + 2), Buffer.from([1])])),
        frame(type.priority, 0, id + 2, Buffer.concat([words(id), Buffer.from([255])])),
      ]),
    ),
  ),
  flood('empty DATA flood', (round) =>
    Buffer.concat([
      ...(round === 0 ? [frame(type.headers, flags.endHeaders, 1, block(getFields))] : []),
      repeated(empty(type.data, 0, 1), 500),
    ]),
  ),
  flood('WINDOW_UPDATE flood', (round) =>
    Buffer.concat([
      ...(round === 0 ? [get(1)] : []),
      repeated(frame(type.window, 0, 0, words(1)), 500),
    ]),
  ),
  flood('flood of frames of unknown types', () =>
    repeated(frame(0xbb, 0, 0, Buffer.alloc(16)), 500),
  ),
  pressure('HPACK bomb', 200, (round) =>
    Buffer.concat(streamsOf(round, 1).map((id) => frame(type.headers, flags.whole, id, bomb))),
  ),
  pressure('dynamic table resizes', 200, (round) =>
    frame(
      type.headers,
      flags.whole,
      2 * round + 1,
      Buffer.concat([repeated(Buffer.from([0x20]), 2000), block(getFields)]),
    ),
  ),
  parked('zero window stall', {
    protocol: 'h2',
    reads: 'all',
    bytes: ({ token }) =>
      Buffer.concat([
        prefaceBytes,
        settings([4, 0]),
        ...streamsOf(0, 100).map((id) =>
          frame(
            type.headers,
            flags.whole,
            id,
            block([
              ...getFields.slice(0, 2),
              [':path', '/openapi/v2'],
              [':authority', 'a'],
              ['authorization', `Bearer ${token}`],
            ]),
          ),
        ),
      ]),
  }),
  parked('answers that the client never reads', {
    protocol: 'h2',
    reads: 'nothing',
    bytes: () =>
      Buffer.concat([prefaceBytes, settings(), ...streamsOf(0, 100).map((id) => get(id))]),
  }),
  parked('slowloris', {
    reads: 'all',
    bytes: () => Buffer.from('GET / HTTP/1.1\r\nHost: x\r\nX-A: '),
  }),
  parked('slow body', {
    reads: 'all',
    bytes: ({ token }) =>
      Buffer.from(
        'POST /api/v1/namespaces HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n' +
          `Authorization: Bearer ${token}\r\nContent-Type: application/json\r\n\r\n{`,
      ),
  }),
  parked('watches pipelined behind watches', {
    reads: 'nothing',
    bytes: ({ token }) =>
      Buffer.from(
        `GET /api/v1/pods?watch=1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`.repeat(
          200,
        ),
      ),
  }),
  refused(
    'smuggling by CL.TE',
    `POST /version HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${smuggled}`,
    /^HTTP\/1\.1 400 /,
  ),
  refused(
    'smuggling by two lengths',
    `POST /version HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nContent-Length: ${smuggled.length}\r\n\r\n${smuggled}`,
    /^HTTP\/1\.1 400 /,
  ),
  refused(
    'smuggling by an unknown transfer coding',
    `POST /version HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n${smuggled}`,
    /^HTTP\/1\.1 4\d\d /,
  ),
  refused(
    'smuggling by a bare line feed',
    `GET /version HTTP/1.1\nHost: x\nX: y\n\n${smuggled}`,
    /^HTTP\/1\.1 400 /,
  ),
  refused(
    'smuggling by white space before the colon',
    `POST /version HTTP/1.1\r\nHost: x\r\nContent-Length : ${smuggled.length}\r\n\r\n${smuggled}`,
    /^HTTP\/1\.1 400 /,
  ),
  refused(
    'headers without end',
    `GET / HTTP/1.1\r\nHost: x\r\n${`X-A: ${'a'.repeat(1000)}\r\n`.repeat(400)}`,
    // The reset that unread bytes cause may overtake the answer.
    /^(HTTP\/1\.1 431 |$)/,
  ),
  refused(
    'a chunk extension without end',
    `POST /api/v1/namespaces HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1;${'a'.repeat(400_000)}`,
    /^(HTTP\/1\.1 4\d\d |$)/,
  ),
  {
    name: 'pipelining without reading',
    run(target) {
      const bytes = Buffer.from('GET /version HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(1000));
      const socket = openSocket(target);
      socket.pause();
      // The server stops reading, or cuts the connection; what it must not do is take it all.
      let sent = 0;
      return new Promise<void>((resolve, reject) => {
        const stop = (error?: Error) => {
          clearTimeout(timer);
          socket.destroy();
          if (error === undefined) resolve();
          else reject(error);
        };
        const timer = setTimeout(() => stop(), 500);
        socket.on('close', () => stop());
        const write = () => {
          while (!socket.destroyed) {
            sent += bytes.length;
            if (sent > 256 * 1024 * 1024) return stop(new Error('the server reads without end'));
            if (!socket.write(bytes)) break;
          }
        };
        socket.on('drain', write);
        write();
      });
    },
  },
  {
    name: 'WebSocket ping flood without reading',
    async run(target) {
      const socket = openSocket(target);
      socket.write(
        `GET /api/v1/namespaces?watch=1&timeoutSeconds=2 HTTP/1.1\r\nHost: x\r\nOrigin: https://x\r\n` +
          `Authorization: Bearer ${target.token}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
          'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n',
      );
      const ping = Buffer.concat([Buffer.from([0x89, 0xfd, 0, 0, 0, 0]), Buffer.alloc(125)]);
      for (let round = 0; round < 50 && !socket.destroyed; round += 1) {
        socket.write(repeated(ping, 500));
        await new Promise<void>((resolve) => setImmediate(resolve));
      }
      socket.destroy();
    },
  },
];
