import { silentLogger } from '@wheelhouse/machinery';
import { FakeClock } from '@wheelhouse/machinery/testing';
import { describe, expect, test } from 'vitest';
import { createWorkQueue } from './work-queue.ts';

const settle = () => new Promise((resolve) => setImmediate(resolve));

/** A queue whose tasks run until the test ends them. */
function setUp(workers = 2) {
  const clock = new FakeClock();
  const begun: string[] = [];
  const running = new Map<string, { end(): void; fail(): void }>();
  const run = (key: string) =>
    new Promise<void>((resolve, reject) => {
      begun.push(key);
      running.set(key, { end: resolve, fail: () => reject(new Error(key)) });
    });
  const options = { name: 'test', clock, logger: silentLogger, run, workers };
  const queue = createWorkQueue(options);
  const end = async (key: string, how: 'end' | 'fail' = 'end') => {
    running.get(key)?.[how]();
    await settle();
  };
  return { clock, queue, begun, end };
}

describe('a work queue', () => {
  test('runs each key once, and at most `workers` keys concurrently', async () => {
    const { queue, begun, end } = setUp(2);
    for (const key of ['a', 'b', 'c', 'c']) queue.add(key);
    expect(begun).toEqual(['a', 'b']);
    await end('a');
    expect(begun).toEqual(['a', 'b', 'c']);
  });

  test('runs a key that is added while it runs again, but not concurrently', async () => {
    const { queue, begun, end } = setUp(2);
    queue.add('a');
    queue.add('a');
    queue.add('a');
    expect(begun).toEqual(['a']);
    await end('a');
    expect(begun).toEqual(['a', 'a']);
    await end('a');
    expect(begun).toEqual(['a', 'a']);
  });

  test('retries a failed key with exponential backoff', async () => {
    const { clock, queue, begun, end } = setUp();
    queue.add('a');
    for (const delayMs of [5, 10, 20]) {
      const count = begun.length;
      await end('a', 'fail');
      clock.advance(delayMs - 1);
      expect(begun).toHaveLength(count);
      clock.advance(1);
      expect(begun).toHaveLength(count + 1);
    }
    await end('a');
    queue.add('a');
    await end('a', 'fail');
    clock.advance(5);
    expect(begun).toHaveLength(6);
  });

  test('retries a failed key after at most a minute', async () => {
    const { clock, queue, begun, end } = setUp();
    queue.add('a');
    for (let failures = 0; failures < 20; failures += 1) {
      await end('a', 'fail');
      clock.advance(60_000);
    }
    expect(begun).toHaveLength(21);
  });

  test('runs a delayed key at its time, or sooner when it is added', async () => {
    const { clock, queue, begun } = setUp();
    queue.addAfter('late', 100);
    queue.addAfter('now', 100);
    queue.add('now');
    expect(begun).toEqual(['now']);
    clock.advance(100);
    expect(begun).toEqual(['now', 'late']);
  });

  test('starts no task once closed, and closes when the last task ends', async () => {
    const { clock, queue, begun, end } = setUp(1);
    queue.add('a');
    queue.add('b');
    queue.addAfter('c', 10);
    let isClosed = false;
    const closing = queue.close().then(() => {
      isClosed = true;
    });
    queue.add('d');
    clock.advance(10);
    await settle();
    expect(isClosed).toBe(false);
    await end('a');
    await closing;
    expect(begun).toEqual(['a']);
  });
});
