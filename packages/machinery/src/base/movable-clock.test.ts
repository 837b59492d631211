import { expect, test } from 'vitest';
import { FakeClock } from '../testing.ts';
import { MovableClock } from './clock.ts';

const dayMs = 86_400_000;

function movable() {
  const host = new FakeClock();
  const clock = new MovableClock(host);
  const ran: string[] = [];
  return { host, clock, ran, note: (name: string) => () => void ran.push(name) };
}

test('follows its host, and both kinds of time advance together', async () => {
  const { host, clock } = movable();
  host.advance(10);
  expect([clock.now(), clock.monotonic()]).toEqual([host.now(), host.monotonic()]);
  await clock.advance(dayMs);
  expect(clock.now() - host.now()).toBe(dayMs);
  expect(clock.monotonic() - host.monotonic()).toBe(dayMs);
});

test('tasks that become due run once, in order of time; stopped ones do not', async () => {
  const { clock, ran, note } = movable();
  clock.after(300, note('third'));
  clock.after(100, () => {
    note('first')();
    stopped.stop();
  });
  const stopped = clock.after(200, note('stopped'));
  clock.after(2000, note('later'));
  await clock.advance(500);
  expect(ran).toEqual(['first', 'third']);
  await clock.advance(1500);
  expect(ran).toEqual(['first', 'third', 'later']);
});

test('timers from before an advance fire earlier on the host', async () => {
  const { host, clock, ran, note } = movable();
  clock.after(1000, note('one'));
  clock.every(400, note('period'));
  await clock.advance(300);
  host.advance(99);
  expect(ran).toEqual([]);
  host.advance(1);
  expect(ran).toEqual(['period']);
  host.advance(600);
  expect(ran).toEqual(['period', 'period', 'one']);
});

test('a periodic task runs once per step, so a day does not take a million calls', async () => {
  const { clock, ran, note } = movable();
  const timer = clock.every(50, note('tick'));
  await clock.advance(dayMs);
  expect(ran.length).toBe(100);
  timer.stop();
  await clock.advance(dayMs);
  expect(ran.length).toBe(100);
});

test('a timer that is renewed in time does not expire during a long advance', async () => {
  const { clock } = movable();
  let renewedMs = clock.monotonic();
  let longestMs = 0;
  const renew = () => {
    longestMs = Math.max(longestMs, clock.monotonic() - renewedMs);
    renewedMs = clock.monotonic();
    clock.after(10_000, renew);
  };
  clock.after(10_000, renew);
  await clock.advance(3_600_000);
  expect(longestMs).toBeLessThanOrEqual(2 * 36_000);
});

test('a delay beyond the maximum of timers is split', () => {
  const { host, clock, ran, note } = movable();
  clock.after(60 * dayMs, note('late'));
  host.advance(59 * dayMs);
  expect(ran).toEqual([]);
  host.advance(dayMs);
  expect(ran).toEqual(['late']);
});

test('rejects invalid and excessive advances', async () => {
  const { clock } = movable();
  for (const wrong of [-1, Number.NaN, Number.POSITIVE_INFINITY]) {
    await expect(clock.advance(wrong)).rejects.toThrow(RangeError);
  }
  const before = clock.now();
  await expect(clock.advance(1e16)).rejects.toThrow('beyond the year 9999');
  expect(clock.now()).toBe(before);
});
