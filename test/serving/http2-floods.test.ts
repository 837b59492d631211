import type { Exchange } from '@wheelhouse/machinery';
import { FakeClock } from '@wheelhouse/machinery/testing';
import { describe, expect, test } from 'vitest';
import { untilEnd } from '../support/cleanup.ts';
import {
  code,
  flags,
  frame,
  getFields,
  headers,
  type RawClient,
  type RawServer,
  settings,
  startRawServer,
  type,
  words,
} from './http2-raw.ts';

/** Bounds the cost of one client: floods of individually valid frames, and slow clients. */

let raw: RawServer;

/** The clock does not advance, so that no budget is refilled during a test. */
async function start(
  onExchange: (exchange: Exchange) => unknown,
  limits: Parameters<typeof startRawServer>[1] = {},
): Promise<RawClient> {
  raw = await untilEnd(startRawServer(onExchange, { clock: new FakeClock(), ...limits }));
  const client = await raw.connect();
  client.greet();
  return client;
}

async function calmed(client: RawClient): Promise<void> {
  const goAway = await client.of(type.goAway, 0);
  expect(goAway.payload.readUInt32BE(4)).toBe(code.calm);
  await client.until(() => client.closed);
}

function times(count: number, frameAt: (index: number) => Buffer): Buffer {
  return Buffer.concat(Array.from({ length: count }, (_, index) => frameAt(index)));
}

const answer = (exchange: Exchange) =>
  exchange.send({ status: 200, headers: {}, body: Buffer.from('x') });
const opened = (index: number) => headers(2 * index + 1, getFields);

describe('floods end the connection', () => {
  test('streams that are opened and reset at once', async () => {
    let begun = 0;
    const client = await start(() => {
      begun += 1;
    });
    const pair = (index: number) =>
      Buffer.concat([opened(index), frame(type.reset, 0, 2 * index + 1, words(code.cancel))]);
    client.send(times(2000, pair));
    await client.ping();
    client.send(times(2, (index) => pair(2000 + index)));
    await calmed(client);
    expect(begun).toBeLessThanOrEqual(2001);
    await expect.poll(() => raw.server.inFlight).toBe(0);
  });

  test('streams that the client provokes the server to reset', async () => {
    const client = await start(() => {});
    const pair = (index: number) =>
      Buffer.concat([opened(index), frame(type.window, 0, 2 * index + 1, words(0))]);
    client.send(times(2001, pair));
    await calmed(client);
  });

  test('malformed requests', async () => {
    const client = await start(() => {});
    client.send(times(2001, (index) => headers(2 * index + 1, [['A', 'b']])));
    await calmed(client);
  });

  test('streams beyond the limit', async () => {
    const limits = { streamsPerConnectionMax: 2 };
    const client = await start(() => {}, { limits });
    client.send(times(2003, opened));
    await calmed(client);
    const refused = client.received.filter((received) => received.type === type.reset);
    expect(refused[0]?.stream).toBe(5);
    expect(refused[0]?.payload).toEqual(words(code.refused));
  });

  test.each<[string, (index: number) => Buffer]>([
    ['PING', () => frame(type.ping, 0, 0, 'ABCDEFGH')],
    ['SETTINGS', () => settings()],
    ['acknowledgements', () => frame(type.settings, flags.ack, 0)],
    ['PRIORITY', (index) => frame(type.priority, 0, 2 * index + 1, Buffer.alloc(5))],
    ['WINDOW_UPDATE', () => frame(type.window, 0, 0, words(1))],
    ['frames of no known type', () => frame(200, 0, 0)],
    ['GOAWAY', () => frame(type.goAway, 0, 0, words(0, 0))],
  ])('%s', async (_what, frameAt) => {
    const client = await start(answer);
    client.send(times(5001, frameAt));
    await calmed(client);
  });

  test('TRUST-2: windows of many streams that change again and again', async () => {
    const client = await start(() => {});
    client.send(times(1000, opened));
    const initialWindow = (index: number) => settings([4, 1000 + index]);
    client.send(times(300, initialWindow));
    await client.ping();
    client.send(times(20, initialWindow));
    await calmed(client);
  });

  test('DATA frames without data', async () => {
    const client = await start(() => {});
    client.send(headers(1, getFields, flags.endHeaders));
    client.send(times(5001, () => frame(type.data, 0, 1)));
    await calmed(client);
  });

  test('an endless header block in large or empty frames', async () => {
    const client = await start(answer);
    client.send(
      frame(type.headers, 0, 1, ''),
      times(64, () => frame(type.continuation, 0, 1)),
    );
    await calmed(client);
    const second = await raw.connect();
    second.greet();
    const part = Buffer.alloc(16_384, 0x82);
    second.send(frame(type.headers, 0, 1, part));
    second.send(times(8, () => frame(type.continuation, 0, 1, part)));
    await calmed(second);
  });

  test('a client that sends requests and reads nothing', async () => {
    const clock = new FakeClock();
    const client = await start(
      (exchange) =>
        exchange.send({ status: 200, headers: { 'x-a': 'a'.repeat(2000) }, body: Buffer.of() }),
      { clock },
    );
    client.pause();
    const chunk = (from: number) => times(500, (index) => opened(from + index));
    const before = process.memoryUsage().rss;
    for (let sent = 0; sent < 30_000 && !client.closed; sent += 500) {
      client.send(chunk(sent));
      await new Promise((resolve) => setImmediate(resolve));
    }
    clock.advance(2_000);
    await expect.poll(() => raw.server.inFlight).toBe(0);
    expect(process.memoryUsage().rss - before).toBeLessThan(200e6);
  });
});

describe('legitimate use refunds the budget', () => {
  test('answered streams offset reset ones', async () => {
    const client = await start((exchange) => {
      if (exchange.method === 'GET') answer(exchange);
    });
    const post = [[':method', 'POST'], ...getFields.slice(1)] as const;
    for (let round = 0; round < 30; round += 1) {
      const first = 400 * round + 1;
      client.send(
        times(100, (index) => {
          const stream = first + 4 * index;
          return Buffer.concat([
            headers(stream, post),
            frame(type.reset, 0, stream, words(code.cancel)),
            headers(stream + 2, getFields),
          ]);
        }),
      );
      await client.ping();
    }
    expect(client.received.some((received) => received.type === type.goAway)).toBe(false);
  });

  test('received data pays for its window updates', async () => {
    const client = await start((exchange) =>
      exchange.send({ status: 200, headers: {}, body: Buffer.alloc(16_000) }),
    );
    for (let round = 0; round < 60; round += 1) {
      client.send(times(100, (index) => opened(100 * round + index)));
      const last = 2 * (100 * round + 99) + 1;
      client.send(times(100, () => frame(type.window, 0, 0, words(16_000))));
      await client.frame(
        (received) => received.stream === last && received.flags === flags.endStream,
      );
    }
  });

  test('bodies in flight of a refused request cost nothing', async () => {
    const client = await start((exchange) =>
      exchange.send({ status: 429, headers: {}, body: Buffer.from('later') }),
    );
    const post = [[':method', 'POST'], ...getFields.slice(1)] as const;
    for (let round = 0; round < 20; round += 1) {
      const first = 1000 * round + 1;
      client.send(times(500, (index) => headers(first + 2 * index, post, flags.endHeaders)));
      await client.of(type.reset, first + 998);
      client.send(
        times(1500, (index) => frame(type.data, 0, first + 2 * (index % 500), 'a part of it')),
      );
      await client.ping();
    }
    expect(client.received.some((received) => received.type === type.goAway)).toBe(false);
  });

  test('the budget refills with time', async () => {
    const clock = new FakeClock();
    const client = await start(answer, { clock });
    for (let second = 0; second < 6; second += 1) {
      client.send(times(second === 0 ? 4990 : 990, () => frame(type.ping, 0, 0, 'ABCDEFGH')));
      await client.ping();
      clock.advance(1000);
    }
    expect(client.received.some((received) => received.type === type.goAway)).toBe(false);
  });
});

describe('slow clients', () => {
  test('headers that never end', async () => {
    const clock = new FakeClock();
    const client = await start(() => {}, { clock });
    // A request in flight prevents the connection from being idle.
    client.send(Buffer.concat([opened(0), frame(type.headers, 0, 3, 'abc')]));
    // Both frames arrive in one chunk, so that the second is read with the first.
    await expect.poll(() => raw.server.inFlight).toBe(1);
    clock.advance(35_000);
    await calmed(client);
  });

  test('a silent client is idle', async () => {
    const clock = new FakeClock();
    raw = await untilEnd(startRawServer(answer, { clock }));
    const client = await raw.connect();
    await client.of(type.settings, 0);
    clock.advance(100_000);
    await client.of(type.goAway, 0);
    clock.advance(2_000);
    await client.until(() => client.closed);
  });

  test('a client that stays after GOAWAY is cut off', async () => {
    const clock = new FakeClock();
    const client = await start(() => {}, { clock });
    client.send(frame(type.window, 0, 0, words(0)));
    await client.of(type.goAway, 0);
    clock.advance(2_000);
    await client.until(() => client.closed);
  });
});
