import { FakeClock } from '@wheelhouse/machinery/testing';
import { expect, test } from 'vitest';
import { type BatchSettings, batchingSink } from './batch-sink.ts';
import type { AuditEvent } from './event.ts';
import type { AuditSink } from './sink.ts';

const event = (auditID: string): AuditEvent => ({
  level: 'Metadata',
  auditID,
  stage: 'ResponseComplete',
  requestURI: '/',
  verb: 'get',
  sourceIPs: [],
  receivedMs: 0,
  stageMs: 0,
  annotations: new Map(),
});

function setUp(change: Partial<BatchSettings> = {}, answer?: () => Promise<boolean>) {
  const clock = new FakeClock();
  const batches: string[][] = [];
  const lost: string[] = [];
  let closed = 0;
  const inner: AuditSink = {
    process(events) {
      batches.push(events.map(({ auditID }) => auditID));
      return answer === undefined ? true : answer();
    },
    close: async () => {
      closed += 1;
    },
  };
  const settings = { bufferSize: 5, batchSizeMax: 2, waitMs: 1000, throttle: undefined, ...change };
  const sink = batchingSink(inner, {
    settings,
    clock,
    reportLoss: ({ plugin, error, events }) =>
      lost.push(...events.map(({ auditID }) => `${plugin}: ${String(error)}: ${auditID}`)),
  });
  const take = (...ids: string[]) => sink.process(ids.map(event));
  return { clock, batches, lost, sink, take, closed: () => closed };
}

test('OPS-2: full batches are sent at once, partial ones after a wait, never within the call', () => {
  const { clock, batches, take } = setUp();
  expect(take('a', 'b', 'c')).toBe(true);
  expect(batches).toEqual([]);
  clock.advance(0);
  expect(batches).toEqual([['a', 'b']]);
  clock.advance(999);
  expect(batches).toHaveLength(1);
  clock.advance(1);
  expect(batches).toEqual([['a', 'b'], ['c']]);
});

test('OPS-2: events beyond the buffer are dropped and reported', () => {
  const { clock, batches, lost, take } = setUp();
  take('a', 'b', 'c', 'd', 'e', 'f', 'g');
  expect(lost).toEqual([
    'buffered: Error: audit buffer queue blocked: f',
    'buffered: Error: audit buffer queue blocked: g',
  ]);
  clock.advance(2000);
  expect(batches.flat()).toEqual(['a', 'b', 'c', 'd', 'e']);
});

test('OPS-2: batches are throttled to a rate after an initial burst', () => {
  const throttle = { perSecond: 2, burst: 2 };
  const { clock, batches, take } = setUp({ bufferSize: 20, batchSizeMax: 1, throttle });
  take('a', 'b', 'c', 'd', 'e');
  clock.advance(0);
  expect(batches.flat()).toEqual(['a', 'b']);
  clock.advance(500);
  expect(batches.flat()).toEqual(['a', 'b', 'c']);
  clock.advance(1000);
  expect(batches.flat()).toEqual(['a', 'b', 'c', 'd', 'e']);
});

test('OPS-2: the number of batches in flight to an unresponsive service is bounded', async () => {
  const waiting: ((taken: boolean) => void)[] = [];
  const stalls = () => new Promise<boolean>((resolve) => waiting.push(resolve));
  const { clock, batches, lost, take } = setUp({ bufferSize: 3, batchSizeMax: 1 }, stalls);
  for (let index = 0; index < 30; index += 1) {
    take(`e${index}`);
    clock.advance(1);
  }
  expect(batches).toHaveLength(16);
  expect(lost).toHaveLength(30 - 16 - 3);
  waiting[0]?.(true);
  await new Promise(setImmediate);
  clock.advance(1);
  expect(batches).toHaveLength(17);
});

test('OPS-2: closing flushes everything and accepts no more', async () => {
  const { batches, lost, sink, take, closed } = setUp();
  take('a', 'b', 'c');
  await sink.close();
  expect(batches).toEqual([['a', 'b'], ['c']]);
  expect(closed()).toBe(1);
  take('d');
  expect(lost).toEqual(['buffered: Error: audit backend shut down: d']);
});
