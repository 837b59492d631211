import { connect } from 'node:http2';
import { text } from 'node:stream/consumers';
import { type Exchange, type Fault, MemoryBudget, observeFaults } from '@wheelhouse/machinery';
import { FakeClock } from '@wheelhouse/machinery/testing';
import { describe, expect, onTestFinished, test } from 'vitest';
import { untilEnd } from '../support/cleanup.ts';
import {
  block,
  code,
  type Fields,
  flags,
  frame,
  getFields,
  headers,
  postFields,
  prefaceBytes,
  type RawClient,
  type RawServer,
  settings,
  startRawServer,
  type,
  words,
} from './http2-raw.ts';

let raw: RawServer;

async function start(
  onExchange: (exchange: Exchange) => unknown,
  options?: Parameters<typeof startRawServer>[1],
): Promise<RawClient> {
  raw = await untilEnd(startRawServer(onExchange, options));
  return raw.connect();
}

function answerWith(body: Buffer | string): (exchange: Exchange) => void {
  return (exchange) => exchange.send({ status: 200, headers: {}, body: Buffer.from(body) });
}

function bodyOf(client: RawClient, stream: number): Buffer {
  const frames = client.received.filter(
    (received) => received.type === type.data && received.stream === stream,
  );
  return Buffer.concat(frames.map(({ payload }) => payload));
}

const isLast = (stream: number) => (received: { type: number; flags: number; stream: number }) =>
  received.stream === stream &&
  received.type === type.data &&
  (received.flags & flags.endStream) !== 0;

const initialWindow = 4;
const windowUpdate = (stream: number, by: number) => frame(type.window, 0, stream, words(by));
const hanging: Fields = [[':method', 'POST'], ...getFields.slice(1)];

describe('sending within the client’s windows', () => {
  test('nothing is sent at window 0, then as much as it opens', async () => {
    const client = await start(answerWith('hello'));
    client.send(prefaceBytes, settings([initialWindow, 0]), headers(1, getFields));
    await client.of(type.headers, 1);
    await client.ping();
    expect(bodyOf(client, 1).length).toBe(0);
    client.send(windowUpdate(1, 1));
    await client.until(() => bodyOf(client, 1).toString() === 'h');
    await client.ping();
    expect(bodyOf(client, 1).toString()).toBe('h');
    client.send(settings([initialWindow, 3]));
    await client.until(() => bodyOf(client, 1).toString() === 'hell');
    client.send(windowUpdate(1, 100));
    await client.frame(isLast(1));
    expect(bodyOf(client, 1).toString()).toBe('hello');
  });

  test('a negative window must be opened above zero', async () => {
    const client = await start(answerWith('x'.repeat(10)));
    client.send(prefaceBytes, settings([initialWindow, 5]), headers(1, getFields));
    await client.until(() => bodyOf(client, 1).length === 5);
    client.send(settings([initialWindow, 2]), windowUpdate(1, 3));
    await client.ping();
    expect(bodyOf(client, 1).length).toBe(5);
    client.send(windowUpdate(1, 2));
    await client.until(() => bodyOf(client, 1).length === 7);
    client.send(windowUpdate(1, 3));
    await client.frame(isLast(1));
  });

  test('an empty answer needs no window', async () => {
    const client = await start((exchange) => exchange.stream({ status: 200, headers: {} }).end());
    client.send(prefaceBytes, settings([initialWindow, 0]), headers(1, getFields));
    expect((await client.frame(isLast(1))).payload.length).toBe(0);
  });

  test('streams share the connection window in turns', async () => {
    const client = await start(answerWith(Buffer.alloc(100_000)));
    const wide = settings([initialWindow, 1_000_000]);
    client.send(prefaceBytes, wide, headers(1, getFields), headers(3, getFields));
    const lengths = () => [bodyOf(client, 1).length, bodyOf(client, 3).length];
    const total = () => lengths().reduce((sum, length) => sum + length);
    await client.until(() => total() === 65_535);
    await client.ping();
    expect(total()).toBe(65_535);
    while (total() < 200_000) {
      const before = total();
      client.send(windowUpdate(0, 10_000));
      await client.until(() => total() >= Math.min(before + 10_000, 200_000));
      if (total() > 76_000) expect(Math.min(...lengths())).toBeGreaterThan(9_000);
    }
    await client.frame(isLast(1));
    await client.frame(isLast(3));
  });

  test('frames respect the client’s maximum size', async () => {
    const client = await start(answerWith(Buffer.alloc(50_000)));
    const frameSize = 5;
    client.send(prefaceBytes, settings([frameSize, 20_000]), headers(1, getFields));
    await client.frame(isLast(1));
    const lengths = client.received
      .filter((received) => received.type === type.data)
      .map(({ payload }) => payload.length);
    expect(lengths).toEqual([20_000, 20_000, 10_000]);
  });

  test('long headers continue in CONTINUATION', async () => {
    const long = 'v'.repeat(40_000);
    const client = await start((exchange) =>
      exchange.send({ status: 200, headers: { 'x-long': long }, body: Buffer.from('b') }),
    );
    client.send(prefaceBytes, settings(), headers(1, getFields));
    await client.frame(isLast(1));
    const kinds = client.received
      .filter((received) => received.stream === 1)
      .map((received) => received.type);
    expect(kinds).toEqual([type.headers, type.continuation, type.continuation, type.data]);
    const blocks = client.received.filter(
      (received) => received.type === type.headers || received.type === type.continuation,
    );
    expect(blocks.map((received) => received.flags)).toEqual([0, 0, flags.endHeaders]);
    const whole = Buffer.concat(blocks.map(({ payload }) => payload));
    expect(whole.toString('latin1')).toContain(long);
  });

  test('a client that shrinks its table is notified once that it is unused', async () => {
    const client = await start(answerWith(''));
    client.send(prefaceBytes, settings([1, 0], [1, 4096]));
    client.send(headers(1, getFields), headers(3, getFields));
    expect((await client.of(type.headers, 1)).payload.subarray(0, 2)).toEqual(
      Buffer.from([0x20, 0x88]),
    );
    expect((await client.of(type.headers, 3)).payload[0]).toBe(0x88);
  });

  test('small writes of one turn share a frame', async () => {
    const client = await start((exchange) => {
      const stream = exchange.stream({ status: 200, headers: {} });
      for (const piece of ['a', 'b', 'c']) stream.write(Buffer.from(piece));
    });
    client.send(prefaceBytes, settings(), headers(1, getFields));
    expect((await client.of(type.data, 1)).payload.toString()).toBe('abc');
  });

  test('a writer gets back pressure and a drain', async () => {
    let written = 0;
    const client = await start((exchange) => {
      const stream = exchange.stream({ status: 200, headers: {} });
      const more = () => {
        while (written < 3_000_000) {
          written += 10_000;
          if (!stream.write(Buffer.alloc(10_000))) return;
        }
        stream.end();
      };
      stream.onDrain(more);
      more();
    });
    client.send(prefaceBytes, settings(), headers(1, getFields));
    await client.until(() => bodyOf(client, 1).length === 65_535);
    await client.ping();
    expect(written).toBeLessThan(250_000);
    client.send(windowUpdate(0, 10_000_000), windowUpdate(1, 10_000_000));
    await client.frame(isLast(1));
    expect(bodyOf(client, 1).length).toBe(3_000_000);
  });
});

describe('limits on what the client sends', () => {
  const bodyFrame = frame(type.data, 0, 1, Buffer.alloc(16_384));

  test('an unread stream buffers 256 KiB', async () => {
    const client = await start(() => {});
    client.greet();
    client.send(headers(1, hanging, flags.endHeaders), ...Array(16).fill(bodyFrame));
    await client.ping();
    expect(client.received.some((received) => received.type === type.reset)).toBe(false);
    client.send(frame(type.data, 0, 1, 'x'));
    expect((await client.of(type.reset, 1)).payload.readUInt32BE(0)).toBe(code.flowControl);
  });

  test('a connection with unread bodies buffers 256 KiB for each stream that it may open', async () => {
    const client = await start(() => {}, { limits: { streamsPerConnectionMax: 16 } });
    client.greet();
    for (let stream = 1; stream < 33; stream += 2) {
      const part = frame(type.data, 0, stream, Buffer.alloc(16_384));
      client.send(headers(stream, hanging, flags.endHeaders), ...Array(16).fill(part));
    }
    await client.ping();
    client.send(headers(33, hanging, flags.endHeaders), frame(type.data, 0, 33, 'x'));
    expect((await client.of(type.goAway, 0)).payload.readUInt32BE(4)).toBe(code.flowControl);
  });

  test('waiting bodies do not keep a body that is read from arriving', async () => {
    let last: Promise<unknown> = Promise.resolve();
    raw = await untilEnd(
      startRawServer((exchange) => {
        last = last.then(async () => {
          answerWith(String((await exchange.body(1_000_000)).length))(exchange);
        });
      }),
    );
    const ca = raw.caPem;
    const session = connect(`https://127.0.0.1:${raw.server.address.port}`, { ca });
    onTestFinished(() => session.destroy());
    const answers = Array.from({ length: 40 }, async () => {
      const stream = session.request({ ':method': 'POST' });
      stream.end(Buffer.alloc(200_000));
      return text(stream);
    });
    expect(new Set(await Promise.all(answers))).toEqual(new Set(['200000']));
  });

  test('TRUST-4: unread bodies beyond the memory budget end their requests only', async () => {
    const memory = new MemoryBudget({ limitBytes: 4 * 1024 * 1024 });
    raw = await untilEnd(startRawServer(() => {}, { memory }));
    const ca = raw.caPem;
    const session = connect(`https://127.0.0.1:${raw.server.address.port}`, { ca });
    onTestFinished(() => session.destroy());
    const statuses: (number | undefined)[] = [];
    for (let sent = 0; sent < 40; sent += 1) {
      const stream = session.request({ ':method': 'POST' });
      stream.on('response', (head) => statuses.push(head[':status']));
      stream.end(Buffer.alloc(200_000));
    }
    await expect.poll(() => statuses.length).toBeGreaterThanOrEqual(20);
    await expect.poll(() => raw.server.inFlight).toBe(40 - statuses.length);
    expect(memory.usedBytes).toBeLessThan(4 * 1024 * 1024);
    expect(session.destroyed).toBe(false);
    expect(new Set(statuses)).toEqual(new Set([429]));
  });

  test('unread data and padding are credited when a stream ends', async () => {
    const client = await start(() => {});
    client.greet();
    for (let stream = 1; stream < 200; stream += 2) {
      const part = frame(type.data, flags.padded, stream, `\xff${'x'.repeat(15_000)}`);
      client.send(headers(stream, hanging, flags.endHeaders), ...Array(15).fill(part));
      client.send(frame(type.reset, 0, stream, words(code.cancel)));
    }
    await client.ping();
    const given = client.received.filter(
      (received) => received.type === type.window && received.stream === 0,
    );
    const bytes = given.reduce((sum, { payload }) => sum + payload.readUInt32BE(0), 0);
    expect(bytes).toBeGreaterThan(100 * 15 * 15_001 - 2 * 1024 * 1024);
    await expect.poll(() => raw.server.inFlight).toBe(0);
  });

  test('a body that is read gets window updates, each for half of the window', async () => {
    const client = await start(async (exchange) => {
      answerWith(String((await exchange.body(10_000_000)).length))(exchange);
    });
    client.greet();
    client.send(headers(1, postFields, flags.endHeaders));
    for (let sent = 0; sent < 64; sent += 1) {
      client.send(bodyFrame);
      await client.ping();
    }
    client.send(frame(type.data, flags.endStream, 1, ''));
    await client.frame(isLast(1));
    expect(bodyOf(client, 1).toString()).toBe(String(64 * 16_384));
    const updates = client.received.filter(
      (received) => received.type === type.window && received.stream === 1,
    );
    expect(updates.map(({ payload }) => payload.readUInt32BE(0))).toEqual(Array(8).fill(131_072));
  });

  test('an overlong body is answered, then its stream is reset without an error', async () => {
    const client = await start(async (exchange) => {
      await exchange.body(1000).catch(() => {});
      exchange.send({ status: 413, headers: {}, body: Buffer.from('too long') });
    });
    client.greet();
    client.send(headers(1, postFields, flags.endHeaders), bodyFrame);
    expect((await client.of(type.reset, 1)).payload.readUInt32BE(0)).toBe(code.none);
    const order = client.received
      .filter(({ stream }) => stream === 1)
      .map((received) => received.type);
    expect(order).toEqual([type.headers, type.data, type.reset]);
    // Data that the client sent before it received the reset is accepted.
    client.send(bodyFrame, frame(type.data, flags.endStream, 1, 'x'));
    await client.ping();
  });

  test('100 Continue is sent when the body is wanted, and only if it was expected', async () => {
    const client = await start(async (exchange) => {
      const wanted = exchange.url === '/' ? await exchange.body(100) : 'unwanted';
      answerWith(wanted)(exchange);
    });
    client.send(prefaceBytes, settings([1, 0]));
    const waiting: Fields = [...postFields, ['expect', '100-continue']];
    client.send(headers(1, waiting, flags.endHeaders));
    const interim = await client.of(type.headers, 1);
    expect(interim).toMatchObject({ flags: flags.endHeaders });
    expect(interim.payload.toString('latin1')).toBe('\x20\x08\x03100');
    client.send(frame(type.data, flags.endStream, 1, 'body'));
    await client.frame(isLast(1));
    expect(bodyOf(client, 1).toString()).toBe('body');
    const unwanted = waiting.map(
      ([name, value]) => [name, name === ':path' ? '/no' : value] as const,
    );
    client.send(headers(3, unwanted, flags.endHeaders));
    expect((await client.of(type.headers, 3)).payload[0]).toBe(0x88);
  });
});

describe('requests as the application sees them', () => {
  test('cookies join with semicolons, lists with commas, others keep the first value', async () => {
    const seen: (string | undefined)[] = [];
    let lines: readonly string[] = [];
    const client = await start((exchange) => {
      for (const name of ['cookie', 'accept', 'authorization', 'host', 'none']) {
        seen.push(exchange.header(name));
      }
      lines = exchange.headerLines();
      answerWith('')(exchange);
    });
    client.greet();
    const fields: Fields = [
      ['cookie', 'a=1'],
      ['accept', 'x'],
      ['authorization', 'one'],
      ['accept', 'y'],
      ['cookie', 'b=2'],
      ['authorization', 'two'],
    ];
    client.send(headers(1, [...getFields, ...fields]));
    await client.of(type.headers, 1);
    expect(seen).toEqual(['a=1; b=2', 'x, y', 'one', 'a', undefined]);
    expect(lines).toEqual(fields.flat());
  });

  test.each([
    ['HEAD', 200, '5'],
    ['GET', 204, undefined],
    ['GET', 304, undefined],
  ])('%s answered %s has no body', async (method, status, length) => {
    const client = await start((exchange) =>
      exchange.send({ status, headers: {}, body: Buffer.from('hello') }),
    );
    client.greet();
    client.send(headers(1, [[':method', method], ...getFields.slice(1)]));
    const head = await client.of(type.headers, 1);
    expect(head.flags).toBe(flags.whole);
    const announced = block([['', length ?? '']])
      .subarray(2)
      .toString('latin1');
    if (length !== undefined) expect(head.payload.toString('latin1')).toContain(announced);
    else expect(head.payload.toString('latin1')).not.toContain('\x0f\x0d');
    await client.ping();
    expect(bodyOf(client, 1).length).toBe(0);
    await expect.poll(() => raw.server.inFlight).toBe(0);
  });

  test('an invalid response header fails only its request', async () => {
    const faults: Fault[] = [];
    const stopObserving = observeFaults((fault) => faults.push(fault));
    onTestFinished(stopObserving);
    const client = await start((exchange) => {
      if (exchange.url === '/')
        exchange.send({ status: 200, headers: { a: '\n' }, body: Buffer.of() });
      else answerWith('fine')(exchange);
    });
    client.greet();
    client.send(headers(1, getFields));
    expect((await client.of(type.reset, 1)).payload.readUInt32BE(0)).toBe(code.cancel);
    const otherFields = getFields.map(
      ([name, value]) => [name, name === ':path' ? '/b' : value] as const,
    );
    client.send(headers(3, otherFields));
    await client.frame(isLast(3));
    expect(bodyOf(client, 3).toString()).toBe('fine');
    expect(faults.map(({ error }) => String(error))).toEqual([
      'TypeError: a header value contains characters that HTTP/2 does not allow',
    ]);
  });
});

describe('closing', () => {
  test('GOAWAY twice: requests before the second are served, later ones are ignored', async () => {
    const waiting: Exchange[] = [];
    const client = await start((exchange) => waiting.push(exchange));
    client.greet();
    client.send(headers(1, getFields));
    await expect.poll(() => waiting.length).toBe(1);
    const drained = raw.server.drain({ timeoutMs: 10_000 });
    const first = await client.of(type.goAway, 0);
    expect(first.payload).toEqual(words(0x7fffffff, code.none));
    const ping = await client.frame(
      (received) => received.type === type.ping && received.flags === 0,
    );
    client.send(headers(3, getFields));
    await expect.poll(() => waiting.length).toBe(2);
    client.send(frame(type.ping, flags.ack, 0, ping.payload));
    const second = await client.frame(
      (received) => received.type === type.goAway && received !== first,
    );
    expect(second.payload).toEqual(words(3, code.none));
    client.send(
      headers(5, postFields, flags.endHeaders),
      frame(type.data, flags.none, 5, 'ignored'),
      frame(type.window, flags.none, 5, words(1)),
      frame(type.reset, flags.none, 5, words(code.cancel)),
    );
    await client.ping();
    expect(waiting.length).toBe(2);
    for (const exchange of waiting) answerWith('last')(exchange);
    await client.until(() => client.closed);
    expect(bodyOf(client, 1).toString()).toBe('last');
    expect(bodyOf(client, 3).toString()).toBe('last');
    expect(await drained).toEqual({ complete: true });
  });

  test('a client that does not answer the ping gets the second one as well', async () => {
    const clock = new FakeClock();
    const client = await start(answerWith(''), { clock });
    client.greet();
    client.send(headers(1, getFields));
    await client.of(type.headers, 1);
    await expect.poll(() => raw.server.inFlight).toBe(0);
    clock.advance(100_000);
    await client.frame(
      (received) =>
        received.type === type.goAway && received.payload.readUInt32BE(0) === 0x7fffffff,
    );
    clock.advance(1_000);
    await client.frame(
      (received) => received.type === type.goAway && received.payload.readUInt32BE(0) === 1,
    );
    await client.until(() => client.closed);
  });

  test('streams in flight are aborted when the client closes or errs', async () => {
    const aborted: string[] = [];
    const client = await start((exchange) => exchange.onAbort(() => aborted.push(exchange.url)));
    client.greet();
    client.send(headers(1, getFields), headers(3, getFields));
    await expect.poll(() => raw.server.inFlight).toBe(2);
    client.send(frame(type.window, 0, 0, words(0)));
    await client.until(() => client.closed);
    expect(aborted.length).toBe(2);
    const leaving = await raw.connect();
    leaving.greet();
    leaving.send(headers(1, getFields));
    await expect.poll(() => raw.server.inFlight).toBe(1);
    leaving.destroy();
    await expect.poll(() => aborted.length).toBe(3);
    expect(raw.server.inFlight).toBe(0);
  });
});
