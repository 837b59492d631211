import {
  badRequest,
  Deadlines,
  dialectOf,
  type Exchange,
  silentLogger,
  type WholeResponse,
} from '@wheelhouse/machinery';
import { FakeClock } from '@wheelhouse/machinery/testing';
import { beforeEach, expect, test } from 'vitest';
import { createEncodings } from '../answer/encodings.ts';
import { parseRequest } from '../request/parse-request.ts';
import type { EndpointContext } from './call.ts';
import { Flight } from './flight.ts';

let clock: FakeClock;
let sent: [status: number, message: string][];
let told: string[];

beforeEach(() => {
  clock = new FakeClock();
  sent = [];
  told = [];
});

/** A request under way on a server that gives each 2 minutes. */
function flightOf(method: string, url: string) {
  const send = ({ status, body }: WholeResponse) => {
    const { message } = JSON.parse(String(body));
    sent.push([status, message]);
    state.answeredStatus = status;
  };
  const state = {
    method,
    url,
    aborted: false,
    answeredStatus: undefined as number | undefined,
    header: () => undefined,
    send,
    supersede() {
      if (state.aborted || state.answeredStatus !== undefined) return undefined;
      state.aborted = true;
      return send;
    },
  };
  const metrics = {
    passed: () => {},
    finished: () => void told.push('finished'),
    terminated: () => void told.push('terminated'),
    afterTimeout: (of: string, came: string) => void told.push(`${of} ${came}`),
  };
  const context = {
    clock,
    metrics,
    logger: silentLogger,
    limits: { requestTimeoutMs: 120_000 },
    deadlines: new Deadlines(clock),
    encodings: createEncodings({ dialect: dialectOf('svc'), cbor: 'off' }),
  } as unknown as EndpointContext;
  const exchange = state as unknown as Exchange;
  const flight = new Flight({ exchange, context, audit: undefined });
  flight.begin(parseRequest(method, url));
  return { flight, exchange };
}

const settle = () => new Promise((resolve) => setImmediate(resolve));
const maps = '/api/v1/namespaces/default/configmaps';
const late = {
  write: 'Timeout: request did not complete within requested timeout - context deadline exceeded',
  request: 'Timeout: request did not complete within the allotted timeout',
};

test('a write has 34 s, however long its request may take', async () => {
  const { flight } = flightOf('POST', `${maps}?timeout=100s`);
  clock.advance(1000);
  flight.beginWrite();
  clock.advance(33_950);
  await settle();
  expect(sent).toEqual([]);
  clock.advance(100);
  await settle();
  expect(sent).toEqual([[504, late.write]]);
  expect(told).toEqual(['terminated', 'finished']);
  expect(() => flight.goOn()).toThrow(late.write);
});

test('a read has the time of its request, and no more than the server gives', async () => {
  flightOf('GET', `${maps}?timeout=1h`);
  clock.advance(119_900);
  expect(sent).toEqual([]);
  clock.advance(200);
  await settle();
  expect(sent).toEqual([[504, late.request]]);
});

test('a watch has no end here', async () => {
  const { flight } = flightOf('GET', `${maps}?watch=true&timeout=1s`);
  clock.advance(1e9);
  await settle();
  expect(sent).toEqual([]);
  expect(flight.dueMs).toBe(Number.POSITIVE_INFINITY);
});

test('what was answered is not answered again', async () => {
  const { exchange } = flightOf('GET', `${maps}?timeout=1s`);
  exchange.send({ status: 200, headers: {}, body: Buffer.from('{"message":"fine"}') });
  clock.advance(10_000);
  await settle();
  expect(sent).toEqual([[200, 'fine']]);
  expect(told).toEqual([]);
});

test('what fails as its time ends is told as that', async () => {
  const { flight } = flightOf('GET', `${maps}?timeout=1s`);
  clock.advance(999);
  await flight.failed(badRequest('the webhook was cut off'));
  await flight.end();
  await settle();
  expect(sent).toEqual([[504, late.request]]);
  expect(told).toEqual(['request error', 'terminated', 'finished']);
});

test('what fails before is told as what it is', async () => {
  const { flight } = flightOf('GET', `${maps}?timeout=1s`);
  clock.advance(900);
  await flight.failed(badRequest('odd'));
  await flight.end();
  clock.advance(10_000);
  await settle();
  expect(sent).toEqual([[400, 'odd']]);
  expect(told).toEqual(['finished']);
});

test('how what went on has ended is counted once: soon, or as stuck after minutes', async () => {
  const soon = flightOf('POST', `${maps}?timeout=1s`);
  soon.flight.beginWrite();
  clock.advance(2000);
  await settle();
  await soon.flight.failed(new Error('unforeseen'));
  await soon.flight.end();
  expect(told.splice(0)).toEqual(['terminated', 'finished', 'write panic']);
  const stuck = flightOf('GET', `${maps}?timeout=1s`);
  clock.advance(1100);
  await settle();
  clock.advance(299_000);
  expect(told.splice(0)).toEqual(['terminated', 'finished']);
  clock.advance(2000);
  expect(told.splice(0)).toEqual(['request pending']);
  await stuck.flight.end();
  clock.advance(1e6);
  expect(told).toEqual([]);
});
