import { FakeClock } from '@wheelhouse/machinery/testing';
import { expect, test } from 'vitest';
import { RetryAfter } from './fair-flow-control.ts';

/**
 * Rejects `perSecond` requests in each of the seconds, and returns the last Retry-After of each
 * second.
 */
function advisedSeconds(
  retryAfter: RetryAfter,
  clock: FakeClock,
  seconds: number,
  perSecond: number,
): number[] {
  return Array.from({ length: seconds }, () => {
    let last = 0;
    for (let refused = 0; refused < perSecond; refused += 1)
      last = retryAfter.countRejection('level');
    clock.advance(1000);
    return last;
  });
}

test('OPS-3: Retry-After grows while rejections continue', () => {
  const clock = new FakeClock();
  const retryAfter = new RetryAfter(clock);
  expect(advisedSeconds(retryAfter, clock, 1, 50)).toEqual([1]);
  const later = advisedSeconds(retryAfter, clock, 70, 50);
  expect(later[0]).toBe(2);
  expect(later.every((advised, at) => at === 0 || advised >= (later[at - 1] ?? 0))).toBe(true);
  expect(later.at(-1)).toBe(32);
});

test('OPS-3: Retry-After decreases by a second at a time afterwards', () => {
  const clock = new FakeClock();
  const retryAfter = new RetryAfter(clock);
  advisedSeconds(retryAfter, clock, 5, 50);
  const high = retryAfter.countRejection('level');
  expect(high).toBeGreaterThan(1);
  clock.advance(60_000);
  expect(retryAfter.countRejection('level')).toBe(high - 1);
  clock.advance(60_000);
  expect(retryAfter.countRejection('level')).toBe(Math.max(1, high - 2));
});

test('OPS-3: Retry-After stays at one second for occasional rejections, at each level', () => {
  const clock = new FakeClock();
  const retryAfter = new RetryAfter(clock);
  expect(advisedSeconds(retryAfter, clock, 20, 2)).toEqual(Array.from({ length: 20 }, () => 1));
  advisedSeconds(retryAfter, clock, 5, 50);
  expect(retryAfter.countRejection('other')).toBe(1);
  retryAfter.retain(new Set(['other']));
  expect(retryAfter.countRejection('level')).toBe(1);
});
