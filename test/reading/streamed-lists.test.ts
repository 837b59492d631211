import http2 from 'node:http2';
import { systemClock } from '@wheelhouse/machinery';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sample } from '../operations/metric-samples.ts';
import { longestTurnMs } from '../support/cpu-time.ts';
import {
  adminToken,
  configMap,
  eventually,
  startTestServer,
  type TestServer,
} from '../support/harness.ts';
import { skippingClock } from '../support/skipping-clock.ts';

const objects = 160;
const path = '/api/v1/namespaces/default/configmaps';
const meta = 'v=v1;g=meta.svc.io';
/**
 * Maximum CPU time of one turn, including the clients' share and pauses of the garbage collector:
 * about 15 ms on an idle machine, whereas four lists in one piece took 340 ms in YAML.
 */
const turnMaxMs = 200;

/** Each encoding, by the query and `Accept` that request it. */
const encodings = [
  ['JSON', '', 'application/json'],
  ['indented JSON', '?pretty=true', 'application/json'],
  ['YAML', '', 'application/yaml'],
  ['CBOR', '', 'application/cbor'],
  ['protobuf', '', 'application/vnd.svc.protobuf'],
  ['a table', '?includeObject=Object', `application/json;as=Table;${meta}`],
  ['a table in YAML', '?includeObject=Object', `application/yaml;as=Table;${meta}`],
] as const;

const clock = skippingClock();
let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({
    clock,
    // Connections use another clock, so that moving the clock ahead does not affect them.
    embedding: { connectionClock: systemClock },
    cborServed: true,
    compressResponses: true,
  });
  const lines = 'a: line of a file that is some 40 bytes\n'.repeat(25);
  const data = Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`key-${n}`, lines]));
  const names = Array.from({ length: objects }, (_, n) => `c${n}`);
  await Promise.all(names.map((name) => server.post(path, configMap(name, { data }))));
});
afterAll(() => {
  for (const session of open) session.destroy();
  return server.stop();
});

const open: http2.ClientHttp2Session[] = [];

/** A list on a separate connection, which is not read until requested. */
function list(query: string, headers: Record<string, string>) {
  const session = http2.connect(server.url, { rejectUnauthorized: false });
  session.on('error', () => {});
  const stream = session.request({
    ':path': `${path}${query}`,
    authorization: `Bearer ${adminToken}`,
    ...headers,
  });
  stream.on('error', () => {});
  const answered = new Promise<number>((resolve) => {
    stream.once('response', (head) => resolve(Number(head[':status'])));
  });
  const closed = new Promise<void>((resolve) => void stream.once('close', resolve));
  let bytes = 0;
  const read = async (): Promise<number> => {
    stream.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
    });
    await closed;
    session.destroy();
    return bytes;
  };
  open.push(session);
  return { answered, read, received: () => bytes, stream, leave: () => session.destroy() };
}

/** Creates `count` lists concurrently, and reads them once each has begun. */
async function readAll(count: number, make: () => ReturnType<typeof list>): Promise<void> {
  const lists = Array.from({ length: count }, make);
  const statuses = await Promise.all(lists.map(({ answered }) => answered));
  expect(new Set(statuses)).toEqual(new Set([200]));
  await Promise.all(lists.map(({ read }) => read()));
}

/** Number of requests that hold a seat, without this one. */
async function seatsTaken(): Promise<number> {
  const { text } = await server.get('/metrics');
  const labels = { request_kind: 'readOnly' };
  return sample(text, 'apiserver_current_inflight_requests', labels) - 1;
}

describe.each(encodings)('a list as %s', (_name, query, accept) => {
  test('TRUST-2: is encoded in slices, however many run at once', async () => {
    const headers = { accept };
    // Runs once, so that code is compiled and the encodings of objects are cached.
    await list(query, headers).read();
    const longestMs = await longestTurnMs(() => readAll(4, () => list(query, headers)));
    expect(longestMs).toBeLessThan(turnMaxMs);
  });

  test('TRUST-3: keeps its seat until it is flushed or its reader has disconnected', async () => {
    await eventually(async () => (await seatsTaken()) === 0, 'no seat to be taken');
    const [read, left] = [list(query, { accept }), list(query, { accept })];
    expect(await read.answered).toBe(200);
    expect(await left.answered).toBe(200);
    await eventually(async () => (await seatsTaken()) === 2, 'the lists to keep their seats');
    left.leave();
    await eventually(async () => (await seatsTaken()) === 1, 'the seat of who has left');
    expect(await read.read()).toBeGreaterThan(100_000);
    await eventually(async () => (await seatsTaken()) === 0, 'the seat of who has read');
  });
});

test('TRUST-2: a compressed list is encoded in slices', async () => {
  const headers = { accept: 'application/yaml', 'accept-encoding': 'gzip' };
  const longestMs = await longestTurnMs(() => readAll(4, () => list('', headers)));
  expect(longestMs).toBeLessThan(turnMaxMs);
});

const watchEncodings = encodings.filter(([name]) => ['CBOR', 'a table'].includes(name));
test.each(watchEncodings)(
  'TRUST-2: initial events of watches as %s are encoded in slices',
  async (_name, query, accept) => {
    const parameters = `${query === '' ? '?' : `${query}&`}watch=true`;
    const watches = Array.from({ length: 8 }, () => list(parameters, { accept }));
    for (const { read } of watches) void read();
    // Every object has about 19 KB.
    const hasAll = async () => watches.every(({ received }) => received() > objects * 18_000);
    const longestMs = await longestTurnMs(async () => {
      await eventually(hasAll, 'all initial events');
    });
    expect(longestMs).toBeLessThan(turnMaxMs);
    for (const { leave } of watches) leave();
  },
);

test('TRUST-3: an answer that misses its deadline is cut off and releases its seat', async () => {
  const slow = list('?timeout=20s', { accept: 'application/yaml' });
  expect(await slow.answered).toBe(200);
  expect(await seatsTaken()).toBe(1);
  clock.skip(20_000);
  await eventually(async () => (await seatsTaken()) === 0, 'the seat to be left');
  await slow.read();
  expect(slow.stream.rstCode).not.toBe(0);
});
