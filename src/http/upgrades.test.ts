import net from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { systemClock } from '../base/clock.ts';
import type { Exchange } from '../base/exchange.ts';
import { silentLogger } from '../base/log.ts';
import { type HttpServer, startHttpServer } from './server.ts';

let server: HttpServer | undefined;
afterEach(() => server?.close());

/**
 * What a server says to some bytes until it closes. All but the first come once it has been asked;
 * `sent` then tells that the last of them has.
 */
async function said(options: {
  readonly upgrades: 'taken' | 'ignored';
  readonly answer: (exchange: Exchange, sent: Promise<void>) => void;
  readonly bytes: readonly string[];
}): Promise<string> {
  const asked = signal();
  const sent = signal();
  const started = await startHttpServer({
    listen: { host: '127.0.0.1', port: 0, tls: 'plaintext' },
    clock: systemClock,
    logger: silentLogger,
    onExchange(exchange) {
      options.answer(exchange, sent.given);
      asked.give();
    },
  });
  server = started;
  if (options.upgrades === 'taken') started.takeUpgrades();
  const socket = net.connect(started.address.port, '127.0.0.1');
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  const closed = new Promise((resolve) => socket.on('close', resolve));
  const [first = '', ...later] = options.bytes;
  socket.write(first);
  await Promise.race([asked.given, closed]);
  for (const bytes of later) await new Promise((resolve) => socket.write(bytes, resolve));
  sent.give();
  await closed;
  return Buffer.concat(chunks).toString();
}

function signal(): { readonly given: Promise<void>; give(): void } {
  let give = () => {};
  const given = new Promise<void>((resolve) => {
    give = resolve;
  });
  return { given, give: () => give() };
}

const echo = (exchange: Exchange) => {
  void exchange.body(1000).then((body) => {
    exchange.send({ status: 200, headers: { connection: 'close' }, body });
  });
};
const wish = (more: string) =>
  `POST / HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: h2c\r\n${more}\r\n`;

test.each(['taken', 'ignored'] as const)(
  'a wish left aside keeps its body (%s)',
  async (upgrades) => {
    const bytes = [`${wish('content-length: 10\r\n')}12345`, '67890'];
    const text = await said({ upgrades, answer: echo, bytes });
    expect(text).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
    expect(text).toMatch(/\r\n\r\n1234567890$/);
  },
);

test('a body in chunks cannot be read where upgrades are taken', async () => {
  const bytes = [`${wish('transfer-encoding: chunked\r\n')}0\r\n\r\n`];
  const text = await said({ upgrades: 'taken', answer: echo, bytes });
  expect(text).toMatch(/^HTTP\/1\.1 411 Length Required\r\n/);
});

test('whoever takes a connection over has it with what has come already', async () => {
  const text = await said({
    upgrades: 'taken',
    answer(exchange) {
      const taken = exchange.takeOver();
      expect(exchange.takeOver()).toBeUndefined();
      taken?.socket.end(`mine: ${taken.head}`);
    },
    bytes: [`${wish('')}early`],
  });
  expect(text).toBe('mine: early');
});

test('what comes while nobody has the connection yet waits', async () => {
  const text = await said({
    upgrades: 'taken',
    async answer(exchange, sent) {
      await sent;
      const { socket } = exchange.takeOver() ?? {};
      socket?.on('data', (bytes: Buffer) => socket.end(`late: ${bytes}`));
      socket?.resume();
    },
    bytes: [wish(''), 'early'],
  });
  expect(text).toBe('late: early');
});

test('a request that asks for nothing else cannot be taken over', async () => {
  const text = await said({
    upgrades: 'taken',
    answer(exchange) {
      const body = Buffer.from(String(exchange.takeOver()));
      exchange.send({ status: 200, headers: { connection: 'close' }, body });
    },
    bytes: ['GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n'],
  });
  expect(text).toMatch(/undefined$/);
});
