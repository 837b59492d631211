import { FakeClock } from '@wheelhouse/machinery/testing';
import { expect, test } from 'vitest';
import { PluginCheck } from './kms-service.ts';

/** Starts a check whose reads fail again after each retry while `isLost`. */
function startCheck() {
  const clock = new FakeClock();
  const state = { isLost: true, isHealthy: true, retries: [] as number[] };
  const beganMs = clock.monotonic();
  const check = new PluginCheck({
    clock,
    run: async () => {
      if (!state.isHealthy) throw new Error('the vault is sealed');
    },
    onRecovered: () => {
      state.retries.push((clock.monotonic() - beganMs) / 1000);
      if (state.isLost) check.recordFailedRead();
    },
  });
  const checkFor = async (seconds: number) => {
    for (let passed = 0; passed < seconds; passed += 20) {
      await check.check().catch(() => {});
      clock.advance(20_000);
    }
  };
  return { check, state, checkFor };
}

test('STORE-3: a value that is never decrypted is retried at growing intervals', async () => {
  const { check, state, checkFor } = startCheck();
  check.recordFailedRead();
  await checkFor(3600);
  expect(state.retries).toEqual([0, 60, 180, 420, 900, 1500, 2100, 2700, 3300]);
});

test('STORE-3: failed values are retried immediately when a plugin recovers', async () => {
  const { check, state, checkFor } = startCheck();
  check.recordFailedRead();
  await checkFor(500);
  expect(state.retries).toEqual([0, 60, 180, 420]);
  state.isHealthy = false;
  await checkFor(20);
  state.isHealthy = true;
  await checkFor(100);
  expect(state.retries).toEqual([0, 60, 180, 420, 520, 580]);
});

test('STORE-3: a failed read is retried immediately if the last retry had no failures', async () => {
  const { check, state, checkFor } = startCheck();
  state.isLost = false;
  check.recordFailedRead();
  await checkFor(100);
  expect(state.retries).toEqual([0]);
  check.recordFailedRead();
  await checkFor(20);
  expect(state.retries).toEqual([0, 100]);
});
