import { randomBytes } from 'node:crypto';
import http2 from 'node:http2';
import { gunzipSync } from 'node:zlib';
import { beforeAll, expect, test } from 'vitest';
import { establish } from '../custom-kinds/custom-kinds.ts';
import { sample } from '../operations/metric-samples.ts';
import { adminToken, configMap, freshNamespace, type TestServer } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

let namespace: string;
const path = () => `/api/v1/namespaces/${namespace}/configmaps`;
const filler = (kib: number) => 'some text that packs well. '.repeat(Math.ceil((kib * 1024) / 27));

async function fill(target: TestServer): Promise<void> {
  namespace = await freshNamespace(target);
  const sizes: readonly [string, number][] = [
    ['big', 400],
    ['medium', 100],
    ['medium2', 100],
    ['small', 1],
  ];
  for (const [name, kib] of sizes) {
    const made = await target.post(path(), configMap(name, { data: { text: filler(kib) } }));
    if (made.status !== 201) throw new Error(made.text);
  }
}

const server = await withServer();

beforeAll(async () => {
  await fill(server);
});

interface RawAnswer {
  readonly headers: http2.IncomingHttpHeaders;
  readonly bytes: Buffer;
}

/** The bytes of the answer, as received. */
function fetchRaw(
  url: string,
  headers: Readonly<Record<string, string>>,
  target = server,
): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    const session = http2.connect(target.url, { rejectUnauthorized: false });
    session.on('error', reject);
    const authorization = `Bearer ${adminToken}`;
    const stream = session.request({ ':path': url, authorization, ...headers });
    const chunks: Buffer[] = [];
    let head: http2.IncomingHttpHeaders = {};
    stream.on('response', (received) => {
      head = received;
    });
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    stream.on('end', () => {
      session.close();
      resolve({ headers: head, bytes: Buffer.concat(chunks) });
    });
    stream.on('error', reject);
    stream.end();
  });
}

test.each(['gzip', 'gzip, deflate', 'br;q=1.0, gzip;q=0.8', 'identity,GZIP'])(
  'CODEC-7: long gets and lists are compressed for Accept-Encoding: %s',
  async (accepted) => {
    for (const url of [`${path()}/big`, path(), `${path()}?limit=2`]) {
      const plain = await server.get(url);
      const packed = await fetchRaw(url, { 'accept-encoding': accepted });
      expect(packed.headers['content-encoding']).toBe('gzip');
      expect(packed.headers['vary']).toBe('Accept-Encoding');
      expect(packed.headers['content-type']).toBe('application/json');
      expect(packed.bytes.length).toBeLessThan(plain.text.length / 10);
      const text = gunzipSync(packed.bytes).toString('utf8');
      expect(text === plain.text).toBe(true);
    }
  },
);

test('CODEC-7: pretty and YAML answers are compressed, too', async () => {
  for (const [url, accept] of [
    [`${path()}?pretty=true`, 'application/json'],
    [path(), 'application/yaml'],
  ] as const) {
    const plain = await server.get(url, { accept });
    const packed = await fetchRaw(url, { accept, 'accept-encoding': 'gzip' });
    expect(packed.headers['content-encoding']).toBe('gzip');
    expect(gunzipSync(packed.bytes).toString('utf8') === plain.text).toBe(true);
  }
});

test('CODEC-7: long aggregated discovery is compressed', async () => {
  const own = await withServer();
  const categories = Array.from({ length: 2500 }, (_, n) => `category-${n}-${'x'.repeat(45)}`);
  const names = { plural: 'tabs', kind: 'Tab', names: { categories } };
  await establish(own, { group: 'stable.example.com', ...names });
  const form = 'g=apidiscovery.svc.io;v=v2;as=APIGroupDiscoveryList';
  for (const type of ['application/json', 'application/yaml']) {
    const accept = `${type};${form}`;
    const plain = await own.get('/apis', { accept });
    expect(plain.headers).not.toHaveProperty('content-encoding');
    const packed = await fetchRaw('/apis', { accept, 'accept-encoding': 'gzip' }, own);
    expect(packed.headers).toMatchObject({
      'content-encoding': 'gzip',
      'content-type': accept,
      etag: plain.headers['etag'],
      vary: 'Accept, Accept-Encoding',
    });
    expect(gunzipSync(packed.bytes).toString('utf8') === plain.text).toBe(true);
  }
  const core = await fetchRaw(
    '/api',
    { accept: `application/json;${form}`, 'accept-encoding': 'gzip' },
    own,
  );
  expect(core.headers).not.toHaveProperty('content-encoding');
});

test('CODEC-7: short answers, other clients, writes, and watches are not compressed', async () => {
  const selector = 'fieldSelector=metadata.name%3Dmedium';
  const cases: readonly [string, Readonly<Record<string, string>>][] = [
    [`${path()}/medium`, { 'accept-encoding': 'gzip' }],
    [`${path()}/small`, { 'accept-encoding': 'gzip' }],
    [`${path()}?${selector}`, { 'accept-encoding': 'gzip' }],
    [`${path()}/big`, {}],
    [`${path()}/big`, { 'accept-encoding': 'deflate' }],
    [`${path()}/big`, { 'accept-encoding': 'gzip;q=0' }],
    [`${path()}?watch=true&timeoutSeconds=1`, { 'accept-encoding': 'gzip' }],
  ];
  for (const [url, headers] of cases) {
    const answer = await fetchRaw(url, headers);
    expect(answer.headers).not.toHaveProperty('content-encoding');
    expect(answer.bytes[0]).toBe('{'.charCodeAt(0));
  }
  const patched = await server.patch(`${path()}/big`, { data: { n: '1' } }, 'merge', {
    headers: { 'accept-encoding': 'gzip' },
  });
  expect(patched.headers).not.toHaveProperty('content-encoding');
  expect(patched.body.data.n).toBe('1');
});

test('CODEC-7: HEAD has no body', async () => {
  const answer = await fetchRaw(path(), { ':method': 'HEAD', 'accept-encoding': 'gzip' });
  expect(answer.headers[':status']).toBe(200);
  expect(answer.bytes).toHaveLength(0);
});

test('CODEC-7: nothing is compressed when the gate is off', async () => {
  const plain = await withServer({ compressResponses: false });
  await fill(plain);
  for (const url of [path(), `${path()}/big`]) {
    const answer = await fetchRaw(url, { 'accept-encoding': 'gzip' }, plain);
    expect(answer.headers).not.toHaveProperty('content-encoding');
    expect(answer.bytes.length).toBeGreaterThan(400 * 1024);
  }
});

test('CODEC-7: an unread compressed answer ends at its deadline', async () => {
  namespace = await freshNamespace(server);
  const noise = randomBytes(600 * 1024).toString('base64');
  expect((await server.post(path(), configMap('noise', { data: { noise } }))).status).toBe(201);
  const session = http2.connect(server.url, { rejectUnauthorized: false });
  const stream = session.request({
    ':path': `${path()}/noise?timeout=300ms`,
    authorization: `Bearer ${adminToken}`,
    'accept-encoding': 'gzip',
  });
  stream.pause();
  const code = await new Promise((resolve) => {
    stream.on('error', () => {});
    stream.on('close', () => resolve(stream.rstCode));
  });
  expect(code).not.toBe(http2.constants.NGHTTP2_NO_ERROR);
  session.destroy();
  const { text } = await server.get('/metrics');
  const labels = { verb: 'GET', resource: 'configmaps', version: 'v1', scope: 'resource' };
  expect(sample(text, 'apiserver_request_aborts_total', labels)).toBe(1);
});

test('OPS-1: metrics are compressed for scrapers that accept gzip', async () => {
  for (const url of ['/metrics', '/metrics/slis']) {
    const packed = await fetchRaw(url, { 'accept-encoding': 'gzip' });
    expect(packed.headers['content-encoding']).toBe('gzip');
    expect(packed.headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8');
    expect(gunzipSync(packed.bytes).toString('utf8')).toMatch(/^# HELP /);
    const plain = await fetchRaw(url, {});
    expect(plain.headers).not.toHaveProperty('content-encoding');
    expect(plain.bytes.toString('utf8')).toMatch(/^# HELP /);
  }
});
