import { afterEach, describe, expect, test, vi } from 'vitest';
import { FakeClock } from '../testing.ts';
import { programClock, systemClock, wallClock } from './clock.ts';

describe('the wall clock', () => {
  test('TRUST-9: follows changes of the system clock, with a finer resolution', () => {
    const host = { wallMs: 1_000_000, monotonicMs: 50.25 };
    const now = wallClock({
      wall: () => Math.floor(host.wallMs),
      monotonic: () => host.monotonicMs,
    });
    const advance = (ms: number) => {
      host.wallMs += ms;
      host.monotonicMs += ms;
    };
    expect(now()).toBe(1_000_000);
    advance(0.125);
    expect(now()).toBe(1_000_000.125);
    host.wallMs += 864_000_000;
    expect(now()).toBe(865_000_000);
    advance(0.5);
    expect(now()).toBe(865_000_000.5);
    host.wallMs -= 3_600_000;
    expect(now()).toBe(861_400_000);
  });

  test('TRUST-9: is never behind the system clock, and at most a few milliseconds ahead', () => {
    const host = { wallMs: 0, monotonicMs: 0 };
    const now = wallClock({
      wall: () => Math.floor(host.wallMs),
      monotonic: () => host.monotonicMs,
    });
    let last = 0;
    for (let step = 0; step < 10_000; step += 1) {
      host.monotonicMs += 0.7;
      host.wallMs += 0.7 * (step < 5000 ? 1.001 : 0.999);
      const time = now();
      expect(time).toBeGreaterThanOrEqual(Math.floor(host.wallMs));
      expect(time - host.wallMs).toBeLessThanOrEqual(5);
      expect(time).toBeGreaterThan(last - 5);
      last = time;
    }
  });
});

test('TRUST-9: a step of the fake wall clock fires no timer', () => {
  const clock = new FakeClock(0);
  let runs = 0;
  clock.after(100, () => {
    runs += 1;
  });
  clock.stepWall(1000);
  expect([clock.now(), clock.monotonic(), runs]).toEqual([1000, 0, 0]);
  clock.advance(100);
  expect([clock.now(), clock.monotonic(), runs]).toEqual([1100, 100, 1]);
});

describe('a system timer that is longer than those of Node.js', () => {
  const dayMs = 24 * 60 * 60 * 1000;

  afterEach(() => {
    vi.useRealTimers();
  });

  test.each([systemClock, programClock])('TRUST-9: fires after its delay', (clock) => {
    vi.useFakeTimers();
    const fired: string[] = [];
    clock.after(60 * dayMs, () => fired.push('60 days'));
    const stopped = clock.after(60 * dayMs, () => fired.push('stopped'));
    clock.after(Number.POSITIVE_INFINITY, () => fired.push('never'));
    vi.advanceTimersByTime(30 * dayMs);
    stopped.stop();
    vi.advanceTimersByTime(30 * dayMs - 1);
    expect(fired).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(fired).toEqual(['60 days']);
    vi.advanceTimersByTime(100 * dayMs);
    expect(fired).toEqual(['60 days']);
  });

  test('TRUST-9: fires every period until it is stopped, also by its task', () => {
    vi.useFakeTimers();
    let runs = 0;
    const timer = systemClock.every(30 * dayMs, () => {
      runs += 1;
      if (runs === 2) timer.stop();
    });
    vi.advanceTimersByTime(30 * dayMs - 1);
    expect(runs).toBe(0);
    vi.advanceTimersByTime(1);
    expect(runs).toBe(1);
    vi.advanceTimersByTime(300 * dayMs);
    expect(runs).toBe(2);
  });
});
