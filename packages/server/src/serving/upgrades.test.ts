import net from 'node:net';
import { type Exchange, silentLogger, systemClock } from '@wheelhouse/machinery';
import { afterEach, expect, test } from 'vitest';
import { type HttpServer, startHttpServer } from './server.ts';

let server: HttpServer | undefined;
afterEach(() => server?.close());

/**
 * Returns everything that a server sends in response to some bytes until it closes. All but the
 * first bytes are sent after the server has received the request; `sent` resolves when the last
 * ones have been.
 */
async function said(options: {
  readonly answer: (exchange: Exchange, sent: Promise<void>) => void;
  readonly bytes: readonly string[];
}): Promise<string> {
  const received = signal();
  const sent = signal();
  server = await startHttpServer({
    listen: { host: '127.0.0.1', port: 0, tls: 'plaintext' },
    clock: systemClock,
    logger: silentLogger,
    onExchange(exchange) {
      options.answer(exchange, sent.fired);
      received.fire();
    },
  });
  const socket = net.connect(server.address.port, '127.0.0.1');
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  const closed = new Promise((resolve) => socket.on('close', resolve));
  const [first = '', ...later] = options.bytes;
  socket.write(first);
  await Promise.race([received.fired, closed]);
  for (const bytes of later) await new Promise((resolve) => socket.write(bytes, resolve));
  sent.fire();
  await closed;
  return Buffer.concat(chunks).toString();
}

function signal(): { readonly fired: Promise<void>; fire(): void } {
  let fire = () => {};
  const fired = new Promise<void>((resolve) => {
    fire = resolve;
  });
  return { fired, fire: () => fire() };
}

const echo = (exchange: Exchange) => {
  void exchange.body(1000).then((body) => {
    exchange.send({ status: 200, headers: { connection: 'close' }, body });
  });
};
const wish = (more: string) =>
  `POST / HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: h2c\r\n${more}\r\n`;

test('an ignored upgrade keeps its body', async () => {
  const bytes = [`${wish('content-length: 10\r\n')}12345`, '67890'];
  const text = await said({ answer: echo, bytes });
  expect(text).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
  expect(text).toMatch(/\r\n\r\n1234567890$/);
});

test('the chunked body of an upgrade request cannot be read', async () => {
  const bytes = [`${wish('transfer-encoding: chunked\r\n')}0\r\n\r\n`];
  const text = await said({ answer: echo, bytes });
  expect(text).toMatch(/^HTTP\/1\.1 411 Length Required\r\n/);
});

test('taking over a connection includes the bytes that have already arrived', async () => {
  const text = await said({
    answer(exchange) {
      const taken = exchange.takeOver();
      expect(exchange.takeOver()).toBeUndefined();
      taken?.socket.end(`mine: ${taken.head}`);
    },
    bytes: [`${wish('')}early`],
  });
  expect(text).toBe('mine: early');
});

test('bytes that arrive before the takeover wait', async () => {
  const text = await said({
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

test('a request without an upgrade cannot be taken over', async () => {
  const text = await said({
    answer(exchange) {
      const body = Buffer.from(String(exchange.takeOver()));
      exchange.send({ status: 200, headers: { connection: 'close' }, body });
    },
    bytes: ['GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n'],
  });
  expect(text).toMatch(/undefined$/);
});

const plain = 'GET / HTTP/1.1\r\nhost: x\r\n\r\n';
const chunkedAnswer = (exchange: Exchange) => {
  const stream = exchange.stream({ status: 200, headers: {} });
  stream.write(Buffer.from('first'));
  setImmediate(() => stream.end());
};

test('TRUST-1: an upgrade after an unanswered request waits for its turn', async () => {
  let count = 0;
  const text = await said({
    answer(exchange) {
      count += 1;
      if (count === 1) return chunkedAnswer(exchange);
      const taken = exchange.takeOver();
      taken?.socket.end(`mine: ${taken.head}`);
    },
    bytes: [`${plain}${wish('')}early`],
  });
  expect(text).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
  expect(text).toMatch(/5\r\nfirst\r\n0\r\n\r\nmine: early$/);
});

test('TRUST-1: an upgrade after an answer that closes the connection is not served', async () => {
  let count = 0;
  const text = await said({
    answer(exchange) {
      count += 1;
      const body = Buffer.from('last');
      setImmediate(() => exchange.send({ status: 200, headers: { connection: 'close' }, body }));
    },
    bytes: [`${plain}${wish('')}early`],
  });
  expect(text).toMatch(/\r\n\r\nlast$/);
  expect(count).toBe(1);
});

test('TRUST-1: a large answer is complete although an upgrade waits behind it', async () => {
  const size = 8 * 1024 * 1024;
  let count = 0;
  const text = await said({
    answer(exchange) {
      count += 1;
      if (count === 2) exchange.takeOver()?.socket.end('mine');
      else exchange.send({ status: 200, headers: {}, body: Buffer.alloc(size, 0x61) });
    },
    bytes: [plain + wish('')],
  });
  expect(text.length).toBeGreaterThan(size);
  expect(text.endsWith('amine')).toBe(true);
});

test.each([
  ['a request without Host', 'GET / HTTP/1.1\r\n\r\n', /^HTTP\/1\.1 400 /],
  ['an expectation', 'GET / HTTP/1.1\r\nhost: x\r\nexpect: more\r\n\r\n', /^HTTP\/1\.1 417 /],
])('TRUST-1: an upgrade after %s is not served', async (_what, first, expected) => {
  const text = await said({
    answer: (exchange) => void exchange.takeOver()?.socket.end('mine'),
    bytes: [first + wish('')],
  });
  expect(text).toMatch(expected);
  expect(text).not.toMatch(/mine/);
});

test('TRUST-1: pipelined requests are answered in order, the malformed one last', async () => {
  const paths: string[] = [];
  const text = await said({
    answer(exchange) {
      paths.push(exchange.url);
      expect(server?.inFlight).toBe(1);
      setImmediate(() =>
        exchange.send({ status: 200, headers: {}, body: Buffer.from(exchange.url) }),
      );
    },
    bytes: [`${[1, 2, 3].map((n) => `GET /${n} HTTP/1.1\r\nhost: x\r\n\r\n`).join('')}\0\r\n\r\n`],
  });
  expect(paths).toEqual(['/1', '/2', '/3']);
  expect(text.match(/HTTP\/1\.1 \d+/g)).toEqual([...Array(3).fill('HTTP/1.1 200'), 'HTTP/1.1 400']);
});

test('TRUST-1: pending requests end with their connection', async () => {
  const text = await said({
    answer: (exchange) => exchange.stream({ status: 200, headers: {} }).destroy(),
    bytes: [plain + plain + wish('')],
  });
  expect(text.match(/HTTP/g)?.length ?? 0).toBeLessThan(2);
  expect(server?.inFlight).toBe(0);
});
