import { expect, test } from 'vitest';
import { FakeClock } from '../testing.ts';
import { pause } from './clock.ts';

const where = 'webhook';

test('a pause ends after its time', async () => {
  const clock = new FakeClock();
  const waited = pause(clock, { ms: 100, signal: undefined, where });
  clock.advance(100);
  await waited;
});

test('a pause rejects with its signal’s reason, before and during it', async () => {
  const clock = new FakeClock();
  const reason = new Error('the server stops');
  const controller = new AbortController();
  const waited = pause(clock, { ms: 100, signal: controller.signal, where });
  controller.abort(reason);
  await expect(waited).rejects.toBe(reason);
  await expect(pause(clock, { ms: 100, signal: controller.signal, where })).rejects.toBe(reason);
});

test('a long-lived signal retains no listener of a pause', async () => {
  const clock = new FakeClock();
  const { signal } = new AbortController();
  const listeners = new Set<unknown>();
  signal.addEventListener = (_: string, listener: unknown) => void listeners.add(listener);
  signal.removeEventListener = (_: string, listener: unknown) => void listeners.delete(listener);
  const waited = pause(clock, { ms: 100, signal, where });
  expect(listeners.size).toBe(1);
  clock.advance(100);
  await waited;
  expect(listeners.size).toBe(0);
});
