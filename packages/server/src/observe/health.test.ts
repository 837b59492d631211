import { silentLogger } from '@wheelhouse/machinery';
import { FakeClock } from '@wheelhouse/machinery/testing';
import { beforeEach, describe, expect, test } from 'vitest';
import { createHealth, type Health, type HealthAnswer } from './health.ts';

let clock: FakeClock;
let health: Health;
let storeError: Error | undefined;

beforeEach(() => {
  clock = new FakeClock();
  storeError = undefined;
  health = createHealth({ clock, logger: silentLogger, livezGracePeriodMs: 1000 });
  health.add({
    name: 'store',
    run: () => {
      if (storeError !== undefined) throw storeError;
    },
  });
});

async function get(url: string): Promise<HealthAnswer | undefined> {
  const { pathname, searchParams } = new URL(url, 'http://a');
  return await health.answer(pathname, searchParams);
}

describe('all checks', () => {
  test('the answer is plain or verbose', async () => {
    expect(await get('/healthz')).toMatchObject({ status: 200, body: 'ok' });
    expect((await get('/readyz?verbose'))?.body).toBe(
      '[+]ping ok\n[+]log ok\n[+]store ok\nreadyz check passed\n',
    );
    expect((await get('/livez?verbose=false'))?.body).toContain('livez check passed\n');
  });

  test('a check can be excluded, and an unknown name causes a warning', async () => {
    const body = (await get('/livez?verbose&exclude=log&exclude=zz&exclude=aa'))?.body;
    expect(body).toBe(
      '[+]ping ok\n[+]log excluded: ok\n[+]store ok\n' +
        'warn: some health checks cannot be excluded: no matches for "aa","zz"\n' +
        'livez check passed\n',
    );
  });

  test('a failure is verbose, withholds its reason, and can be excluded', async () => {
    storeError = new Error('secret');
    expect(await get('/livez')).toEqual({
      status: 500,
      headers: { 'content-type': 'text/plain; charset=utf-8', 'x-content-type-options': 'nosniff' },
      body: '[+]ping ok\n[+]log ok\n[-]store failed: reason withheld\nlivez check failed\n',
    });
    expect((await get('/livez?exclude=store'))?.status).toBe(200);
  });
});

test('a check has its own path, which reports the reason of a failure', async () => {
  expect(await get('/livez/ping')).toMatchObject({ status: 200, body: 'ok' });
  storeError = new Error('gone');
  expect(await get('/readyz/store')).toMatchObject({
    status: 500,
    body: 'internal server error: gone\n',
  });
  expect(await get('/livez/none')).toBeUndefined();
  expect(await get('/other')).toBeUndefined();
});

test('boot checks fail readyz at once, and livez only after the grace period', async () => {
  health.add(
    { name: 'poststarthook/x', run: () => Promise.reject(new Error('not yet')) },
    { boot: true },
  );
  expect((await get('/livez'))?.status).toBe(200);
  expect((await get('/readyz'))?.status).toBe(500);
  clock.advance(1001);
  expect((await get('/livez'))?.status).toBe(500);
});

test('a readyz check does not affect livez', async () => {
  health.addReadyz({ name: 'shutdown', run: () => Promise.reject(new Error('going')) });
  expect((await get('/readyz'))?.status).toBe(500);
  expect((await get('/livez'))?.status).toBe(200);
});

test('a livez check does not affect the other endpoints', async () => {
  health.addLivez({ name: 'loop', run: () => Promise.reject(new Error('blocked')) });
  expect((await get('/livez'))?.status).toBe(500);
  expect((await get('/livez/loop'))?.body).toContain('blocked');
  for (const endpoint of ['readyz', 'healthz']) {
    expect((await get(`/${endpoint}`))?.status).toBe(200);
    expect(await get(`/${endpoint}/loop`)).toBeUndefined();
  }
});
