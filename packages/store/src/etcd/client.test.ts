import { constants, createServer, type Http2Server, type ServerHttp2Stream } from 'node:http2';
import {
  type AddressInfo,
  connect,
  createServer as createPlainServer,
  type Socket,
} from 'node:net';
import { systemClock } from '@wheelhouse/machinery';
import { FakeClock } from '@wheelhouse/machinery/testing';
import { afterEach, describe, expect, test } from 'vitest';
import { EtcdClient } from './client.ts';
import type { CallError } from './errors.ts';
import { openEtcdStore } from './etcd-store.ts';
import { GrpcChannel, MessageReader, messageFrame } from './grpc-channel.ts';
import { methods } from './protocol.ts';

const cleanups: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean();
});

/**
 * A gRPC server that answers each call with the next answer of a script, and repeats the last one.
 */
async function scripted(...script: ((stream: ServerHttp2Stream) => void)[]) {
  const paths: string[] = [];
  const sockets = new Set<Socket>();
  const server: Http2Server = createServer();
  server.on('connection', (socket: Socket) => sockets.add(socket));
  server.on('stream', (stream, headers) => {
    stream.on('error', () => {});
    stream.resume();
    const step = script[Math.min(paths.length, script.length - 1)];
    paths.push(String(headers[':path']));
    step?.(stream);
  });
  const port = await listening(server);
  cleanups.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { url: `http://127.0.0.1:${port}`, paths, sockets };
}

/** A proxy that forwards nothing once it is frozen. */
async function freezable(url: string): Promise<{ readonly url: string; freeze(): void }> {
  const sockets: Socket[] = [];
  let isFrozen = false;
  const server = createPlainServer((near) => {
    const far = connect(Number(new URL(url).port), '127.0.0.1');
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.push(from);
      from.on('error', () => {});
      from.on('data', (chunk: Buffer) => {
        if (!isFrozen) to.write(chunk);
      });
    }
  });
  const port = await listening(server);
  cleanups.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return {
    url: `http://127.0.0.1:${port}`,
    freeze: () => {
      isFrozen = true;
    },
  };
}

async function listening(server: { listen(...args: [number, string, () => void]): unknown }) {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server as unknown as { address(): AddressInfo }).address().port;
}

const head = { ':status': 200, 'content-type': 'application/grpc' };
const failWith = (code: number, message: string) => (stream: ServerHttp2Stream) => {
  const status = { 'grpc-status': String(code), 'grpc-message': encodeURIComponent(message) };
  stream.respond({ ...head, ...status }, { endStream: true });
};
/** Answers with revision 7 in two chunks. */
const respond = (stream: ServerHttp2Stream) => {
  stream.respond(head, { waitForTrailers: true });
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
  const frame = messageFrame(methods.compact.response.encode({ header: { revision: 7 } }));
  stream.write(frame.subarray(0, 3));
  stream.end(frame.subarray(3));
};

function clientOf(servers: readonly string[], clock = systemClock): EtcdClient {
  const client = new EtcdClient({ connection: { servers }, clock, callTimeoutMs: 5000 });
  cleanups.push(() => client.close());
  return client;
}

const compact = (client: EtcdClient, repeatable: boolean) =>
  client.call(methods.compact, { revision: 1 }, { repeatable });

/** Advances the clock in steps, so that network events are processed in between. */
async function advance(clock: FakeClock, ms: number, isOver: () => boolean): Promise<void> {
  for (let step = 0; step < 500 && !isOver(); step++) {
    clock.advance(ms / 50);
    await new Promise<void>((resolve) => systemClock.after(2, resolve));
  }
}

describe('calls', () => {
  test('are answered sequentially on one connection', async () => {
    const { url, paths, sockets } = await scripted(respond);
    const client = clientOf([url]);
    const answers = await Promise.all([
      compact(client, false),
      compact(client, true),
      compact(client, true),
    ]);
    expect(answers).toEqual(answers.map(() => ({ header: { revision: 7 } })));
    expect(paths).toEqual(answers.map(() => '/etcdserverpb.KV/Compact'));
    expect(sockets.size).toBe(1);
  });

  test('a change of leader fails writes and repeats reads', async () => {
    const changed = failWith(14, 'etcdserver: leader changed');
    const { url, paths } = await scripted(changed, changed, respond);
    const client = clientOf([url]);
    const refused = { code: 'refused', message: 'etcdserver: leader changed' };
    await expect(compact(client, false)).rejects.toMatchObject(refused);
    expect(paths).toHaveLength(1);
    expect(await compact(client, true)).toEqual({ header: { revision: 7 } });
    expect(paths).toHaveLength(3);
  });

  test('calls are repeated while no leader is elected, for a limited time', async () => {
    const missing = failWith(14, 'etcdserver: no leader');
    for (const repeatable of [true, false]) {
      const { url, paths } = await scripted(...Array.from({ length: 9 }, () => missing), respond);
      expect(await compact(clientOf([url, url]), repeatable)).toEqual({ header: { revision: 7 } });
      expect(paths).toHaveLength(10);
    }
    const clock = new FakeClock();
    const never = await scripted(missing);
    const client = clientOf([never.url], clock);
    let outcome: unknown;
    compact(client, true).catch((error: unknown) => {
      outcome = error;
    });
    await advance(clock, 2500, () => outcome !== undefined);
    const refused = { code: 'refused', message: 'etcdserver: no leader' };
    expect(outcome).toMatchObject(refused);
    const sent = never.paths.length;
    expect(sent).toBeGreaterThan(2);
    await expect(compact(client, true)).rejects.toMatchObject(refused);
    expect(never.paths.length, 'a longer failure is reported at once').toBe(sent + 2);
  });

  test.each([
    [8, 'etcdserver: mvcc: database space exceeded', 'no-space'],
    [8, 'grpc: received message larger than max (4 vs. 2)', 'too-large'],
    [14, 'etcdserver: no leader', 'refused'],
    [11, 'etcdserver: mvcc: required revision has been compacted', 'compacted'],
    [4, 'context deadline exceeded', 'timed-out'],
    [2, 'ünknown 100%', 'unavailable'],
  ])('a status %i, %s, is %s', async (code, message, kind) => {
    const { url } = await scripted(failWith(code, message));
    await expect(compact(clientOf([url]), false)).rejects.toMatchObject({ code: kind });
    if (kind === 'unavailable') {
      const words = expect.stringContaining(message);
      await expect(compact(clientOf([url]), false)).rejects.toMatchObject({ message: words });
    }
  });

  test('a call that no server has received is sent to the next one, even a write', async () => {
    const refusing = await scripted((stream) => stream.close(constants.NGHTTP2_REFUSED_STREAM));
    const good = await scripted(respond);
    const dropServer = createPlainServer((socket) => socket.destroy());
    const dropped = `http://127.0.0.1:${await listening(dropServer)}`;
    cleanups.push(() => void dropServer.close());
    const client = clientOf(['http://127.0.0.1:1', dropped, refusing.url, good.url]);
    expect(await compact(client, false)).toEqual({ header: { revision: 7 } });
    expect(refusing.paths).toHaveLength(1);
  });

  test('an interrupted write is not repeated', async () => {
    const cuttingServer = await scripted((stream) => stream.session?.destroy());
    const good = await scripted(respond);
    const client = clientOf([cuttingServer.url, good.url]);
    await expect(compact(client, false)).rejects.toMatchObject({ code: 'unavailable' });
    expect(good.paths).toEqual([]);
    expect(await compact(client, false)).toEqual({ header: { revision: 7 } });
  });

  test('malformed responses are errors', async () => {
    const http = await scripted((stream) =>
      stream.respond({ ':status': 503 }, { endStream: true }),
    );
    await expect(compact(clientOf([http.url]), false)).rejects.toThrow('HTTP status 503');
    const silent = await scripted(failWith(0, ''));
    await expect(compact(clientOf([silent.url]), false)).rejects.toThrow('empty response');
    const compressed = await scripted((stream) => {
      stream.respond(head);
      stream.end(Buffer.from([1, 0, 0, 0, 0]));
    });
    await expect(compact(clientOf([compressed.url]), false)).rejects.toThrow('compressed');
  });
});

describe('suspended servers', () => {
  const neverRespond = () => {};

  test('are abandoned when a call times out, along with their streams', async () => {
    const clock = new FakeClock();
    const still = await scripted(neverRespond);
    const good = await scripted(respond);
    const client = clientOf([still.url, good.url], clock);
    let lost = '';
    client.stream(
      methods.watch,
      {},
      { onResponse: () => {}, onEnd: (error) => (lost = error?.message ?? 'ended') },
    );
    let outcome: unknown;
    compact(client, false).catch((error: unknown) => {
      outcome = error;
    });
    await advance(clock, 6000, () => outcome !== undefined && lost !== '');
    expect(outcome).toMatchObject({ code: 'timed-out' });
    expect(lost).toBe('etcd cannot be reached: the connection was lost');
    expect(await compact(client, false)).toEqual({ header: { revision: 7 } });
  });

  test('are detected by keepalives when there are no calls', async () => {
    const clock = new FakeClock();
    const still = await scripted(neverRespond);
    const proxy = await freezable(still.url);
    const channel = new GrpcChannel({ origin: proxy.url, tls: {}, clock });
    cleanups.push(() => channel.close());
    let error: CallError | undefined;
    const handlers = {
      onMessage: () => {},
      onEnd: (failure: CallError | undefined) => {
        error = failure;
      },
    };
    channel.call('/watch', { message: Buffer.alloc(0), more: 'open' }, handlers);
    await advance(clock, 0, () => still.paths.length === 1);
    await advance(clock, 10_000, () => clock.monotonic() > 65_000);
    expect(error).toBeUndefined();
    proxy.freeze();
    await advance(clock, 10_000, () => error !== undefined);
    expect(error).toMatchObject({ code: 14, details: 'the connection was lost', reach: 'sent' });
  });

  test('that never respond do not count as connected', async () => {
    const clock = new FakeClock();
    const mute = createPlainServer((socket) => socket.on('error', () => {}));
    const url = `http://127.0.0.1:${await listening(mute)}`;
    const channel = new GrpcChannel({ origin: url, tls: {}, clock });
    cleanups.push(() => {
      channel.close();
      mute.close();
    });
    let error: CallError | undefined;
    const onEnd = (failure: CallError | undefined) => {
      error = failure;
    };
    const start = () =>
      channel.call(
        '/a',
        { message: Buffer.alloc(0), more: 'none' },
        { onMessage: () => {}, onEnd },
      );
    start();
    await advance(clock, 11_000, () => error !== undefined);
    expect(error).toMatchObject({ code: 14, reach: 'unsent' });
    expect(error?.details).toContain('the server does not respond');
    error = undefined;
    start();
    await advance(clock, 0, () => error !== undefined);
    expect((error as CallError | undefined)?.details).toContain(
      'the last connection attempt failed',
    );
  });

  test('closing a client releases everything', async () => {
    const still = await scripted(neverRespond);
    const client = clientOf([still.url]);
    const waiting = compact(client, true);
    const ends: unknown[] = [];
    const handlers = { onResponse: () => {}, onEnd: (error: unknown) => ends.push(error) };
    client.stream(methods.watch, {}, handlers).close();
    client.stream(methods.watch, {}, handlers);
    client.close();
    await expect(waiting).rejects.toMatchObject({ code: 'closed' });
    expect(ends).toMatchObject([{ code: 'closed' }]);
    await expect(compact(client, true)).rejects.toMatchObject({ code: 'closed' });
  });
});

describe('startup', () => {
  const open = (url: string, startTimeoutMs: number) =>
    openEtcdStore({
      connection: { servers: [url] },
      clock: systemClock,
      callTimeoutMs: 10_000,
      startTimeoutMs,
    });

  test.each([
    [14, 'etcdserver: leader changed'],
    [14, 'etcdserver: no leader'],
    [8, 'etcdserver: too many requests'],
  ])('STORE-2: waits while etcd answers with status %i, %s', async (code, message) => {
    const refusing = failWith(code, message);
    const { url, paths } = await scripted(refusing, refusing, refusing, respond);
    const store = await open(url, 10_000);
    cleanups.push(() => store.close());
    expect(paths).toHaveLength(4);
    expect(await store.currentRevision()).toBe(7);
  });

  test('STORE-2: fails if no leader is elected in time', async () => {
    const { url, paths } = await scripted(failWith(14, 'etcdserver: leader changed'));
    const message = `etcd at ${url} is not available: etcdserver: leader changed`;
    await expect(open(url, 300)).rejects.toMatchObject({ code: 'unavailable', message });
    expect(paths.length).toBeGreaterThanOrEqual(2);
  });

  test('STORE-2: fails immediately if etcd refuses permanently', async () => {
    const { url, paths } = await scripted(failWith(7, 'etcdserver: permission denied'));
    const message = `etcd at ${url} is not available: etcdserver: permission denied`;
    await expect(open(url, 10_000)).rejects.toMatchObject({ code: 'unavailable', message });
    expect(paths).toHaveLength(1);
  });
});

test('messages are reassembled from pieces of any size', () => {
  const texts = ['', 'a', 'b'.repeat(300), '', 'c'.repeat(70_000)];
  const whole = Buffer.concat(texts.map((text) => messageFrame(Buffer.from(text))));
  for (const size of [1, 2, 4, 5, 6, 7, 299, 4096, whole.length]) {
    const reader = new MessageReader();
    const found: string[] = [];
    for (let at = 0; at < whole.length; at += size) {
      found.push(...reader.push(whole.subarray(at, at + size)).map(String));
    }
    expect(found).toEqual(texts);
  }
});

test('TRUST-4: a message that is too large ends its call before it has arrived', async () => {
  const { url } = await scripted((stream) => {
    stream.respond({ ':status': 200 });
    stream.write(messageFrame(Buffer.alloc(262_145)).subarray(0, 5));
  });
  const channel = new GrpcChannel({ origin: url, tls: {}, clock: systemClock });
  cleanups.push(() => channel.close());
  const message = Buffer.alloc(0);
  const error = await new Promise<CallError | undefined>((resolve) => {
    channel.call('/a', { message, more: 'none' }, { onMessage: () => {}, onEnd: resolve });
  });
  const details = 'grpc: received message larger than max (262145 vs. 262144)';
  expect(error).toMatchObject({ code: 8, details });
});
