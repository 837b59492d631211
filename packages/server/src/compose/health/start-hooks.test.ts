import { FakeClock } from '@wheelhouse/machinery/testing';
import { expect, test } from 'vitest';
import { headStart } from './start-hooks.ts';

async function isOpen(port: Promise<void>): Promise<boolean> {
  let open = false;
  void port.then(() => {
    open = true;
  });
  await new Promise((resolve) => setImmediate(resolve));
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
