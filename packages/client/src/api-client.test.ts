import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Clock, systemClock } from '@wheelhouse/machinery';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type ApiClient, createApiClient } from './api-client.ts';

type Answer = readonly [status: number, retryAfter?: string | undefined, text?: string];

const overloaded: Answer = [429, '2', 'Too many requests, please try again later.\n'];
const success: Answer = [200, undefined, '{"kind":"X"}'];
/** The responses in order; the last one repeats. */
let answers: Answer[] = [];
let bodies: string[] = [];
let waits: number[] = [];
let statuses: number[] = [];
let server: http.Server;
let url: string;

beforeAll(async () => {
  server = http.createServer((request, response) => {
    let text = '';
    request.on('data', (piece) => {
      text += piece;
    });
    request.on('end', () => {
      bodies.push(text);
      const [status, retryAfter, body = ''] = (
        answers.length > 1 ? answers.shift() : answers[0]
      ) as Answer;
      response.writeHead(status, retryAfter === undefined ? {} : { 'retry-after': retryAfter });
      response.end(body);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => new Promise((resolve) => server.close(resolve)));
beforeEach(() => {
  bodies = [];
  waits = [];
  statuses = [];
});

/** A clock that records delays and fires them immediately. */
const impatientClock: Clock = {
  ...systemClock,
  after(delayMs, task) {
    waits.push(delayMs);
    return systemClock.after(0, task);
  },
};

async function withClient<T>(use: (client: ApiClient) => Promise<T>): Promise<T> {
  const observer = { request: ({ status }: { status: number }) => void statuses.push(status) };
  const client = createApiClient({ server: url }, { clock: impatientClock, observer });
  try {
    return await use(client);
  } finally {
    client.close();
  }
}

describe('a server that asks for a delay', () => {
  test('receives the same request again after the delay', async () => {
    answers = [overloaded, [503, '0'], [500, '7'], success];
    const answer = await withClient((client) =>
      client.send({ method: 'POST', path: '/x', body: { a: 1 } }),
    );
    expect(answer).toEqual({ status: 200, object: { kind: 'X' } });
    expect(waits).toEqual([2000, 0, 7000]);
    expect(statuses).toEqual([429, 503, 500, 200]);
    expect(bodies.map((body) => JSON.parse(body))).toEqual(Array(4).fill({ a: 1 }));
  });

  test('receives ten retries before the failure is reported', async () => {
    answers = [overloaded];
    const failing = withClient((client) => client.get('/x'));
    await expect(failing).rejects.toMatchObject({ code: 429, reason: 'TooManyRequests' });
    expect(bodies).toHaveLength(11);
    expect(waits).toEqual(Array(10).fill(2000));
  });

  test.each([
    ['no time', [429]],
    ['a date', [429, 'Wed, 21 Oct 2030 07:28:00 GMT']],
    ['a negative time', [503, '-1']],
    ['a permanent failure', [409, '1']],
    ['a success', [200, '1', '{}']],
  ] as [string, Answer][])('there is no retry for %s', async (_, answer) => {
    answers = [answer];
    await withClient((client) => client.get('/x')).catch(() => {});
    expect(bodies).toHaveLength(1);
  });

  test('receives retries of texts and streams as well', async () => {
    answers = [overloaded, [200, undefined, 'ok']];
    expect(await withClient((client) => client.raw('/readyz'))).toBe('ok');
    answers = [overloaded, overloaded, success];
    await withClient(async (client) => {
      const { status, body } = await client.stream({ path: '/x' });
      body.resume();
      expect(status).toBe(200);
    });
    expect(waits).toEqual([2000, 2000, 2000]);
  });

  test('receives no retry after the user interrupts', async () => {
    answers = [[429, '1000']];
    const controller = new AbortController();
    const client = createApiClient({ server: url }, { clock: systemClock });
    const failing = client.send({ path: '/x', signal: controller.signal });
    const outcome = expect(failing).rejects.toMatchObject({ name: 'AbortError' });
    while (bodies.length === 0) await new Promise((resolve) => setImmediate(resolve));
    controller.abort();
    await outcome;
    expect(bodies).toHaveLength(1);
    client.close();
  });
});
