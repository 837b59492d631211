import {
  createServer as createHttp2Server,
  type Http2Server,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { randomOf } from '@wheelhouse/machinery';
import { afterEach, describe, expect, test } from 'vitest';
import { ClientConnection, type ClientStream, requestHead } from './client-connection.ts';
import { writeHead } from './output.ts';
import { errorCode, flag, frameHeadBytes, frameType, preface, setting } from './protocol.ts';

const cleanups: (() => void)[] = [];
afterEach(() => {
  for (const clean of cleanups.splice(0).reverse()) clean();
});

async function portOf(server: Server | Http2Server): Promise<number> {
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve());
  });
  cleanups.push(() => void server.close());
  return (server.address() as AddressInfo).port;
}

function deferred<Value>(): {
  readonly promise: Promise<Value>;
  readonly resolve: (value: Value) => void;
} {
  let resolve: (value: Value) => void = () => {};
  const promise = new Promise<Value>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

interface Opened {
  readonly connection: ClientConnection;
  readonly ready: Promise<void>;
  readonly closed: Promise<Error>;
}

function open(port: number, windows = { stream: 100_000, connection: 300_000 }): Opened {
  const socket = connect(port, '127.0.0.1');
  const ready = deferred<void>();
  const closed = deferred<Error>();
  const host = { ready: ready.resolve, closed: closed.resolve };
  const connection = new ClientConnection({ socket, windows, host });
  cleanups.push(() => connection.destroy());
  return { connection, ready: ready.promise, closed: closed.promise };
}

/** The outcome of a request: fields, body, and how it ended. */
interface Outcome {
  readonly fields: Record<string, string>[];
  readonly body: Buffer;
  /** The code of a cut stream; undefined for a complete answer. */
  readonly code: number | undefined;
}

const headOf = (path: string) =>
  requestHead({ ':method': 'POST', ':scheme': 'http', ':path': path, ':authority': 'boats' });

function send(
  { connection }: Opened,
  { path = '/', body = Buffer.alloc(0), ends = true } = {},
): { readonly stream: ClientStream; readonly outcome: Promise<Outcome> } {
  const { promise, resolve } = deferred<Outcome>();
  const fields: Record<string, string>[] = [];
  const pieces: Buffer[] = [];
  const end = (code?: number) => resolve({ fields, body: Buffer.concat(pieces), code });
  const stream = connection.request(
    { head: headOf(path), body, ends },
    {
      fields: (values) => void fields.push(Object.fromEntries(values)),
      piece: (bytes) => void pieces.push(Buffer.from(bytes)),
      end: () => end(),
      cut: end,
    },
  );
  return { stream, outcome: promise };
}

/** A server that answers with the body of the request, and trailers. */
async function echoServer(
  settings: { maxConcurrentStreams?: number; initialWindowSize?: number; headerTableSize?: number },
  onStream: (stream: ServerHttp2Stream) => void = () => {},
): Promise<{
  readonly port: number;
  readonly sessions: readonly ServerHttp2Session[];
  readonly sockets: readonly Socket[];
}> {
  const server = createHttp2Server({ settings });
  const sessions: ServerHttp2Session[] = [];
  const sockets: Socket[] = [];
  server.on('connection', (socket: Socket) => sockets.push(socket));
  server.on('session', (session) => {
    sessions.push(session);
    cleanups.push(() => session.destroy());
  });
  server.on('stream', (stream, headers) => {
    onStream(stream);
    stream.on('error', () => {});
    stream.respond(
      { ':status': 200, 'x-path': String(headers[':path']) },
      { waitForTrailers: true },
    );
    stream.on('wantTrailers', () => stream.sendTrailers({ 'x-end': 'yes' }));
    stream.pipe(stream);
  });
  return { port: await portOf(server), sessions, sockets };
}

describe('with the server of Node', () => {
  test('many requests share one connection, within the windows of both sides', async () => {
    const { port, sessions } = await echoServer({ initialWindowSize: 3_000 });
    const client = open(port);
    await client.ready;
    const sizes = [0, 1, 2_999, 3_000, 3_001, 65_536, 200_000, 1_000_000];
    const requests = [...sizes, ...sizes].map((size, index) => ({
      path: `/${index}`,
      body: Buffer.alloc(size, index),
    }));
    const outcomes = await Promise.all(requests.map((request) => send(client, request).outcome));
    for (const [index, { fields, body, code }] of outcomes.entries()) {
      expect(code).toBeUndefined();
      expect(fields[0]).toMatchObject({ ':status': '200', 'x-path': `/${index}` });
      expect(fields[1]).toEqual({ 'x-end': 'yes' });
      expect(body.equals(requests[index]?.body ?? Buffer.alloc(0))).toBe(true);
    }
    expect(sessions).toHaveLength(1);
  });

  test('requests wait while the server accepts no more streams', async () => {
    let [active, most] = [0, 0];
    const { port } = await echoServer({ maxConcurrentStreams: 3 }, (stream) => {
      active += 1;
      most = Math.max(most, active);
      stream.on('close', () => {
        active -= 1;
      });
    });
    const client = open(port);
    await client.ready;
    const sent = Array.from({ length: 20 }, (_, index) => send(client, { path: `/${index}` }));
    sent[10]?.stream && client.connection.cancel(sent[10].stream);
    const outcomes = await Promise.all(sent.filter((_, n) => n !== 10).map((one) => one.outcome));
    expect(outcomes.every(({ code }) => code === undefined)).toBe(true);
    expect(most).toBe(3);
  });

  test('a canceled request is reset, and an answer to half a request ends it', async () => {
    const codes: number[] = [];
    const { port } = await echoServer({}, (stream) => {
      stream.on('close', () => codes.push(stream.rstCode));
      if (stream.id === 3) stream.on('data', () => stream.end());
    });
    const client = open(port);
    await client.ready;
    const body = Buffer.from('first');
    const { stream } = send(client, { body, ends: false });
    const half = await send(client, { body, ends: false }).outcome;
    expect(half.code).toBeUndefined();
    client.connection.cancel(stream);
    await expect.poll(() => codes.length).toBe(2);
    expect(codes).toContain(errorCode.cancel);
  });

  test('a retired connection takes no requests and closes after the last answer', async () => {
    const { port, sessions } = await echoServer({}, (stream) => {
      if (stream.id === 1) stream.session?.goaway(errorCode.noError, 1);
    });
    const client = open(port);
    await client.ready;
    const [first, second] = [send(client, { path: '/a' }), send(client, { path: '/b' })];
    expect((await first.outcome).code).toBeUndefined();
    expect((await second.outcome).code).toBe(errorCode.refusedStream);
    expect(client.connection.isUsable).toBe(false);
    expect(() => send(client)).toThrow('no more requests');
    await client.closed;
    expect(sessions).toHaveLength(1);
  });

  test('pings are answered in both directions', async () => {
    const { port, sessions } = await echoServer({});
    const client = open(port);
    await client.ready;
    await new Promise<void>((resolve) => client.connection.ping(resolve));
    await new Promise<void>((resolve) => {
      sessions[0]?.ping(() => resolve());
    });
  });

  test('a server without a table gets no reference to one', async () => {
    const { port } = await echoServer({ headerTableSize: 0 });
    const client = open(port);
    await client.ready;
    for (const path of ['/a', '/a', '/b']) {
      const { fields } = await send(client, { path }).outcome;
      expect(fields[0]).toMatchObject({ 'x-path': path });
    }
  });

  test('a lost connection cuts its requests', async () => {
    const { port, sockets } = await echoServer({}, () => sockets[0]?.destroy());
    const client = open(port);
    await client.ready;
    const { outcome } = send(client, { body: Buffer.from('x'), ends: false });
    expect((await outcome).code).toBe(errorCode.internalError);
    await client.closed;
  });
});

function frame(head: { type: number; flags?: number; stream?: number }, payload = ''): Buffer {
  const body = Buffer.from(payload, 'hex');
  const bytes = Buffer.alloc(frameHeadBytes + body.length);
  writeHead(bytes, 0, { flags: 0, stream: 0, ...head, bytes: body.length });
  body.copy(bytes, frameHeadBytes);
  return bytes;
}

/** A server that sends bytes once it has received a request, and may then close its side. */
async function rawServer(
  answer: readonly Buffer[],
  after: 'open' | 'closed' = 'open',
): Promise<number> {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => {});
    let received = Buffer.alloc(0);
    socket.write(frame({ type: frameType.settings }));
    socket.on('data', (chunk: Buffer) => {
      const before = received.includes('boats');
      received = Buffer.concat([received, chunk]);
      if (before || !received.includes('boats')) return;
      socket.write(Buffer.concat(answer));
      if (after === 'closed') socket.end();
    });
  });
  cleanups.push(() => {
    for (const socket of sockets) socket.destroy();
  });
  return portOf(server);
}

const { data, headers, continuation, settings, ping, goAway, windowUpdate } = frameType;
const status200 = '88';

describe('with a faulty server', () => {
  test.each<[string, readonly Buffer[], string]>([
    ['an HTTP/1.1 answer', [Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n')], 'frame of'],
    [
      'a frame within a header block',
      [frame({ type: headers, stream: 1 }, status200), frame({ type: ping }, '0000000000000000')],
      'within a header block',
    ],
    ['an unexpected CONTINUATION', [frame({ type: continuation, stream: 1 })], 'CONTINUATION'],
    [
      'headers on an idle stream',
      [frame({ type: headers, flags: flag.endHeaders, stream: 3 }, status200)],
      'idle stream',
    ],
    ['data on an idle stream', [frame({ type: data, stream: 5 }, '00')], 'idle stream'],
    [
      'an undefined table entry',
      [frame({ type: headers, flags: flag.endHeaders, stream: 1 }, 'ff00')],
      'table entry',
    ],
    ['a push', [frame({ type: frameType.pushPromise, stream: 1 }, '00000002')], 'PUSH_PROMISE'],
    ['a window update by 0', [frame({ type: windowUpdate }, '00000000')], 'by 0'],
    ['a window that is too large', [frame({ type: windowUpdate }, '7fffffff')], 'out of range'],
    ['a ping of a wrong size', [frame({ type: ping }, '00')], 'PING'],
    ['a short GOAWAY', [frame({ type: goAway }, '00')], 'GOAWAY'],
    ['settings of a wrong size', [frame({ type: settings }, '00')], 'SETTINGS'],
    [
      'more data than the window',
      [
        frame({ type: headers, flags: flag.endHeaders, stream: 1 }, status200),
        frame({ type: data, stream: 1 }, '00'.repeat(10_001)),
      ],
      'exceeds the window',
    ],
  ])('%s ends the connection', async (_name, answer, reason) => {
    const client = open(await rawServer(answer), { stream: 10_000, connection: 65_535 });
    await client.ready;
    const { outcome } = send(client);
    expect((await client.closed).message).toContain(reason);
    expect((await outcome).code).toBe(errorCode.internalError);
  });

  test('a request that is canceled while others are cut is not cut, too', async () => {
    const later = frame({ type: goAway }, '0000000000000000');
    const client = open(await rawServer([later]));
    await client.ready;
    const cuts: number[] = [];
    const streams: ClientStream[] = [];
    const request = { head: headOf('/'), body: Buffer.alloc(0), ends: true };
    for (const index of [0, 1]) {
      const cut = () => {
        cuts.push(index);
        for (const other of streams) client.connection.cancel(other);
      };
      const receiver = { fields: () => {}, piece: () => {}, end: () => {}, cut };
      streams.push(client.connection.request(request, receiver));
    }
    await client.closed;
    expect(cuts).toHaveLength(1);
  });

  test('a refused stream is reported as refused', async () => {
    const reset = frame({ type: frameType.resetStream, stream: 1 }, '00000007');
    const client = open(await rawServer([reset]));
    await client.ready;
    expect((await send(client).outcome).code).toBe(errorCode.refusedStream);
  });

  test('random changes of frames end the request and the connection, and nothing else', async () => {
    const seed = Number(process.env.SEED ?? Date.now() % 1e6);
    const { below: random } = randomOf(seed);
    const valid = [
      frame({ type: headers, flags: flag.endHeaders, stream: 1 }, status200),
      frame({ type: data, stream: 1 }, '0001020304'),
      frame({ type: settings }, '000400000005'),
      frame({ type: windowUpdate, stream: 1 }, '00000010'),
      frame({ type: ping }, '0102030405060708'),
      frame({ type: headers, flags: flag.endHeaders | flag.endStream, stream: 1 }, '400161016100'),
    ];
    for (let round = 0; round < 60; round += 1) {
      const frames = Array.from(
        { length: 8 },
        () => valid[random(valid.length)] ?? Buffer.alloc(0),
      );
      const bytes = Buffer.concat(frames);
      for (let change = random(4); change > 0; change -= 1) {
        bytes[random(bytes.length)] = random(256);
      }
      const client = open(await rawServer([bytes], 'closed'));
      await client.ready;
      const { outcome } = send(client);
      const ends = Promise.all([outcome, client.closed]);
      await expect(ends, `seed ${seed}, round ${round}`).resolves.toHaveLength(2);
    }
  });
});

test('the preface, settings, and the first request go out in order', async () => {
  const received: Buffer[] = [];
  const server = createServer((socket) => {
    socket.on('data', (chunk) => received.push(chunk));
    cleanups.push(() => socket.destroy());
  });
  const client = open(await portOf(server));
  void send(client, { body: Buffer.from('hello') });
  await expect.poll(() => Buffer.concat(received).includes('hello')).toBe(true);
  const bytes = Buffer.concat(received);
  expect(bytes.subarray(0, preface.length).equals(preface)).toBe(true);
  expect(bytes[preface.length + 3]).toBe(settings);
  expect(bytes.readUInt16BE(preface.length + frameHeadBytes)).toBe(setting.enablePush);
});

test('headers that HTTP/2 does not allow, and too many, are errors', () => {
  expect(() => requestHead({ connection: 'close' })).toThrow(TypeError);
  expect(() => requestHead({ a: 'b\n' })).toThrow(TypeError);
  expect(() => requestHead({ a: 'b'.repeat(17_000) })).toThrow(RangeError);
});
