import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { type ClientHttp2Session, connect, type Settings } from 'node:http2';
import { type Exchange, randomOf } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import { atEnd, untilEnd } from '../support/cleanup.ts';
import { type RawServer, startRawServer } from './http2-raw.ts';

/** Tests the HTTP/2 server with third-party clients: nghttp2 in Node and in curl. */

const seed = Number(process.env['SEED'] ?? Date.now() % 1_000_000);

let raw: RawServer;

const digest = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');

async function start(onExchange: (exchange: Exchange) => unknown): Promise<string> {
  raw = await untilEnd(startRawServer(onExchange));
  return `https://127.0.0.1:${raw.server.address.port}`;
}

async function session(url: string, settings: Settings = {}): Promise<ClientHttp2Session> {
  const made = connect(url, { ca: raw.caPem, settings });
  atEnd(() => made.destroy());
  made.on('error', () => {});
  await once(made, 'remoteSettings');
  return made;
}

interface Call {
  readonly path?: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string | string[]>>;
  readonly body?: Buffer;
}

async function call(over: ClientHttp2Session, { path, method, headers, body }: Call) {
  const stream = over.request(
    { ':path': path ?? '/', ':method': method ?? 'GET', ...headers },
    { endStream: body === undefined },
  );
  const answered = once(stream, 'response');
  if (body !== undefined) stream.end(body);
  const [head] = (await answered) as [Record<string, unknown>];
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  return { status: Number(head[':status']), head, body: Buffer.concat(chunks) };
}

function sendJson(exchange: Exchange, value: unknown): void {
  const headers = { 'content-type': 'application/json' };
  exchange.send({ status: 200, headers, body: Buffer.from(JSON.stringify(value)) });
}

describe('node', () => {
  test.each([0, 100, 4096])(
    `headers of seed ${seed}, as the client's table allows %s`,
    async (size) => {
      const url = await start((exchange) => sendJson(exchange, exchange.headerLines()));
      const client = await session(url, { headerTableSize: size });
      const random = randomOf(seed);
      // All bytes that a value may contain, so that every code of HPACK's appendix B is used.
      const bytes = Array.from({ length: 256 }, (_, byte) => byte).filter(
        (byte) => byte > 0x20 && byte !== 0x7f,
      );
      const value = () =>
        String.fromCharCode(...Array.from({ length: random.below(60) }, () => random.pick(bytes)));
      const known = Array.from({ length: 30 }, value);
      for (let round = 0; round < 150; round += 1) {
        const headers: Record<string, string> = { 'x-all': String.fromCharCode(...bytes) };
        for (let count = random.below(8); count > 0; count -= 1) {
          headers[`x-${random.below(40)}`] = random.chance(0.5) ? random.pick(known) : value();
        }
        const answer = await call(client, { headers });
        expect(JSON.parse(answer.body.toString()), `round ${round}`).toEqual(
          Object.entries(headers).flat(),
        );
      }
    },
  );

  test('an answer of 5 MB with any windows and frame sizes', async () => {
    const body = Buffer.from(Array.from({ length: 5_000_000 }, (_, at) => (at * 7919) % 251));
    const pieces = Array.from({ length: 5000 }, (_, at) =>
      body.subarray(1000 * at, 1000 * at + 1000),
    );
    const url = await start((exchange) => {
      const how = exchange.url === '/whole' ? body : pieces;
      exchange.send({ status: 200, headers: {}, body: how });
    });
    for (const settings of [{}, { initialWindowSize: 100_000 }, { maxFrameSize: 1_000_000 }]) {
      const client = await session(url, settings);
      for (const path of ['/whole', '/pieces']) {
        const answer = await call(client, { path });
        expect(digest(answer.body)).toBe(digest(body));
      }
    }
  });

  test('a body of 20 MB', async () => {
    const url = await start(async (exchange) =>
      sendJson(exchange, digest(await exchange.body(1e8))),
    );
    const body = Buffer.alloc(20_000_000, 'abcdefg');
    const answer = await call(await session(url), { method: 'POST', body });
    expect(JSON.parse(answer.body.toString())).toBe(digest(body));
  });

  test('600 concurrent exchanges, each with its own body', async () => {
    const url = await start(async (exchange) => {
      const body = await exchange.body(1e6);
      await new Promise((resolve) => setImmediate(resolve));
      exchange.send({ status: 201, headers: { 'x-url': exchange.url }, body });
    });
    const client = await session(url);
    const calls = Array.from({ length: 600 }, async (_, index) => {
      const body = Buffer.alloc(100 * (index % 50), index);
      const path = `/${index}`;
      const answer = await call(client, { method: 'PUT', path, body });
      expect(answer.status).toBe(201);
      expect(answer.head['x-url']).toBe(path);
      expect(answer.body.equals(body)).toBe(true);
    });
    await Promise.all(calls);
    expect(raw.server.inFlight).toBe(0);
  });

  test('trailers, which are ignored, and pings', async () => {
    const url = await start(async (exchange) =>
      sendJson(exchange, String(await exchange.body(100))),
    );
    const client = await session(url);
    const stream = client.request(
      { ':method': 'POST' },
      { waitForTrailers: true, endStream: false },
    );
    stream.on('wantTrailers', () => stream.sendTrailers({ 'x-sum': '1' }));
    stream.end('body');
    await once(stream, 'response');
    stream.setEncoding('utf8');
    const [text] = await once(stream, 'data');
    expect(text).toBe('"body"');
    await new Promise<void>((resolve, reject) => {
      client.ping((error) => (error === null ? resolve() : reject(error)));
    });
  });

  test('an early answer stops the client’s upload', async () => {
    const url = await start((exchange) => sendJson(exchange, 'early'));
    const client = await session(url);
    const stream = client.request({ ':method': 'POST' }, { endStream: false });
    stream.on('error', () => {});
    stream.write('begun');
    await once(stream, 'response');
    stream.resume();
    await once(stream, 'close');
    expect(stream.rstCode).toBe(0);
    expect((await call(client, {})).body.toString()).toBe('"early"');
  });
});

const curlFeatures = spawnSync('curl', ['--version']).stdout?.toString() ?? '';

describe.skipIf(!curlFeatures.includes('HTTP2'))('curl', () => {
  async function curl(args: readonly string[], input = ''): Promise<string> {
    const child = spawn('curl', ['--http2', '--silent', '--show-error', '--insecure', ...args]);
    child.stdin.end(input);
    let text = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk) => {
        text += chunk;
      });
    }
    await once(child, 'close');
    return text;
  }

  test('gets, posts, and uploads with 100 Continue over one connection', async () => {
    const url = await start(async (exchange) => {
      const body = await exchange.body(1e7);
      sendJson(exchange, [exchange.method, exchange.httpVersion, body.length]);
    });
    expect(await curl([`${url}/a`, '--next', '--http2', '-k', '-s', `${url}/b`])).toBe(
      '["GET","2",0]["GET","2",0]',
    );
    expect(await curl(['--data', 'x=1', url])).toBe('["POST","2",3]');
    const upload = ['--header', 'Expect: 100-continue', '--upload-file', '-', `${url}/c`];
    expect(await curl(upload, 'y'.repeat(3_000_000))).toBe('["PUT","2",3000000]');
    const head = await curl(['--head', url]);
    expect(head).toMatch(
      /^HTTP\/2 200 \r\ncontent-type: application\/json\r\ncontent-length: \d+\r\ndate: /,
    );
  });
});
