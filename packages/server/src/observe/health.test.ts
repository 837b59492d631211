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

async function ask(url: string): Promise<HealthAnswer | undefined> {
  const { pathname, searchParams } = new URL(url, 'http://a');
  return await health.answer(pathname, searchParams);
}

describe('all checks', () => {
  test('plain and verbose', async () => {
    expect(await ask('/healthz')).toMatchObject({ status: 200, body: 'ok' });
    expect((await ask('/readyz?verbose'))?.body).toBe(
      '[+]ping ok\n[+]log ok\n[+]store ok\nreadyz check passed\n',
    );
    expect((await ask('/livez?verbose=false'))?.body).toContain('livez check passed\n');
  });

  test('excluded and unknown checks', async () => {
    const body = (await ask('/livez?verbose&exclude=log&exclude=zz&exclude=aa'))?.body;
    expect(body).toBe(
      '[+]ping ok\n[+]log excluded: ok\n[+]store ok\n' +
        'warn: some health checks cannot be excluded: no matches for "aa","zz"\n' +
        'livez check passed\n',
    );
  });

  test('a failure is verbose, hides its reason, and can be excluded', async () => {
    storeError = new Error('secret');
    expect(await ask('/livez')).toEqual({
      status: 500,
      headers: {
        'content-type': 'text/plain; charset=utf-8',
        'x-content-type-options': 'nosniff',
      },
      body: '[+]ping ok\n[+]log ok\n[-]store failed: reason withheld\nlivez check failed\n',
    });
    expect((await ask('/livez?exclude=store'))?.status).toBe(200);
  });
});

test('a check has its own path, with its reason', async () => {
  expect(await ask('/livez/ping')).toMatchObject({ status: 200, body: 'ok' });
  storeError = new Error('gone');
  expect(await ask('/readyz/store')).toMatchObject({
    status: 500,
    body: 'internal server error: gone\n',
  });
  expect(await ask('/livez/none')).toBeUndefined();
  expect(await ask('/other')).toBeUndefined();
});

test('boot checks fail livez only after the grace period, readyz at once', async () => {
  health.add(
    { name: 'poststarthook/x', run: () => Promise.reject(new Error('not yet')) },
    {
      boot: true,
    },
  );
  expect((await ask('/livez'))?.status).toBe(200);
  expect((await ask('/readyz'))?.status).toBe(500);
  clock.advance(1001);
  expect((await ask('/livez'))?.status).toBe(500);
});

test('only readyz checks shutdown', async () => {
  health.addReadyz({ name: 'shutdown', run: () => Promise.reject(new Error('going')) });
  expect((await ask('/readyz'))?.status).toBe(500);
  expect((await ask('/livez'))?.status).toBe(200);
});

test('a check of livez is on no other path', async () => {
  health.addLivez({ name: 'loop', run: () => Promise.reject(new Error('blocked')) });
  expect((await ask('/livez'))?.status).toBe(500);
  expect((await ask('/livez/loop'))?.body).toContain('blocked');
  for (const endpoint of ['readyz', 'healthz']) {
    expect((await ask(`/${endpoint}`))?.status).toBe(200);
    expect(await ask(`/${endpoint}/loop`)).toBeUndefined();
  }
});
