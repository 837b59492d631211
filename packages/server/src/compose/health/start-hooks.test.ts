import { serviceUnavailable, silentLogger } from '@wheelhouse/machinery';
import { FakeClock } from '@wheelhouse/machinery/testing';
import { StoreError } from '@wheelhouse/store';
import { describe, expect, test, vi } from 'vitest';
import { headStart, untilStored } from './start-hooks.ts';

const turn = () => new Promise((resolve) => setImmediate(resolve));

async function isOpen(port: Promise<void>): Promise<boolean> {
  let open = false;
  void port.then(() => {
    open = true;
  });
  await turn();
  return open;
}

test('the port waits for slow hooks, but at most half a second', async () => {
  const clock = new FakeClock();
  const port = headStart(new Promise(() => {}), clock);
  clock.advance(499);
  expect(await isOpen(port)).toBe(false);
  clock.advance(1);
  expect(await isOpen(port)).toBe(true);
});

test('the port waits no longer than the hooks take', async () => {
  expect(await isOpen(headStart(Promise.resolve(), new FakeClock()))).toBe(true);
});

test('the port opens even when a hook fails', async () => {
  const failed = Promise.reject(new Error('no store'));
  expect(await isOpen(headStart(failed, new FakeClock()))).toBe(true);
});

describe('work on an unavailable store', () => {
  const options = (clock: FakeClock, isShuttingDown = () => false) => ({
    clock,
    logger: silentLogger,
    isShuttingDown,
  });
  const outage = () => Promise.reject(serviceUnavailable('the store is unavailable'));

  test('is repeated each second until it succeeds', async () => {
    const clock = new FakeClock();
    let attempts = 0;
    const done = untilStored(async () => {
      attempts += 1;
      if (attempts < 4) await outage();
    }, options(clock));
    for (let expected = 1; expected < 4; expected += 1) {
      await turn();
      clock.advance(999);
      await turn();
      expect(attempts).toBe(expected);
      clock.advance(1);
    }
    await done;
    expect(attempts).toBe(4);
  });

  test('is repeated after errors of the store itself', async () => {
    const clock = new FakeClock();
    let attempts = 0;
    const done = untilStored(async () => {
      attempts += 1;
      if (attempts === 1) throw new StoreError({ code: 'unavailable', message: 'no leader' });
    }, options(clock));
    await turn();
    clock.advance(1000);
    await done;
    expect(attempts).toBe(2);
  });

  test('fails after half a minute with the last error', async () => {
    const clock = new FakeClock();
    const run = vi.fn(async () => {
      clock.advance(30_000);
      await outage();
    });
    await expect(untilStored(run, options(clock))).rejects.toThrow('the store is unavailable');
    expect(run).toHaveBeenCalledTimes(1);
  });

  test('fails at once with any other error, and during a shutdown', async () => {
    const broken = () => Promise.reject(new TypeError('broken'));
    await expect(untilStored(broken, options(new FakeClock()))).rejects.toThrow('broken');
    const ending = options(new FakeClock(), () => true);
    await expect(untilStored(outage, ending)).rejects.toThrow('the store is unavailable');
  });
});
