import { createMetricRegistry, type LogFields, silentLogger } from '@wheelhouse/machinery';
import { FakeClock } from '@wheelhouse/machinery/testing';
import { expect, test } from 'vitest';
import { LoopOccupancy } from '../serving/server-core.ts';
import { watchEventLoop } from './process-metrics.ts';

/** A watchdog whose timer fires when the test calls `after`, however late. */
function setUp() {
  const time = new FakeClock();
  let tick = () => {};
  let isStopped = false;
  const clock = {
    monotonic: () => time.monotonic(),
    every: (_periodMs: number, task: () => void) => {
      tick = task;
      return {
        stop: () => {
          isStopped = true;
        },
      };
    },
  };
  const lines: LogFields[] = [];
  const logger = {
    ...silentLogger,
    warn: (message: string, fields: LogFields = {}) => lines.push({ message, ...fields }),
  };
  const occupancy = new LoopOccupancy(clock);
  const registry = createMetricRegistry({ release: '1.34', hidden: 'hidden' });
  let idleMs = 0;
  const usedCpuMs = () => time.monotonic() - idleMs;
  const watchdog = watchEventLoop({ clock, occupancy, registry, logger, usedCpuMs });
  const after = (ms: number) => {
    time.advance(ms);
    tick();
  };
  const sleep = (ms: number) => {
    idleMs += ms;
    time.advance(ms);
  };
  return { sleep, time, after, lines, occupancy, registry, watchdog, stopped: () => isStopped };
}

test('TRUST-2: a lag above 100 ms is logged with the request that held the thread longest', () => {
  const { sleep, time, after, lines, occupancy } = setUp();
  after(50);
  occupancy.enter({ url: '/api/v1/pods', userName: 'brief' });
  time.advance(20);
  occupancy.enter({ url: '/apis/x?access_token=secret&limit=1', userName: 'alice' });
  time.advance(160);
  occupancy.enter({ url: '/readyz' });
  after(15);
  const message = 'the event loop was blocked';
  const uri = '/apis/x?access_token=REDACTED&limit=1';
  expect(lines).toEqual([{ message, lagMs: 145, requestMs: 160, uri, user: 'alice' }]);
  after(60);
  after(149);
  expect(lines, 'lags of 10 and 99 ms are not reported').toHaveLength(1);
  after(151);
  expect(lines, 'no request occupied the thread').toHaveLength(1);
  occupancy.enter({ url: '/api', userName: 'alice' });
  sleep(500);
  after(10);
  expect(lines, 'the host did not schedule the process').toHaveLength(1);
});

test('TRUST-2: lags are counted in a histogram', () => {
  const { after, registry } = setUp();
  for (const ms of [50, 52, 80, 350, 4000]) after(ms);
  const text = registry.render();
  expect(text).toContain('apiserver_event_loop_lag_seconds_bucket{le="0.005"} 2\n');
  expect(text).toContain('apiserver_event_loop_lag_seconds_bucket{le="0.05"} 3\n');
  expect(text).toContain('apiserver_event_loop_lag_seconds_bucket{le="2.5"} 4\n');
  expect(text).toContain('apiserver_event_loop_lag_seconds_count 5\n');
});

test('TRUST-2: the health check fails for a while after a lag above 10 s', () => {
  const { time, after, watchdog, stopped } = setUp();
  after(10_050);
  expect(() => watchdog.check()).not.toThrow();
  time.advance(10_051);
  expect(() => watchdog.check(), 'even before the timer fires').toThrow();
  after(0);
  expect(() => watchdog.check()).toThrow('the event loop was blocked for 10.0 s');
  for (let ms = 0; ms < 30_000; ms += 50) after(50);
  expect(() => watchdog.check()).toThrow();
  after(50);
  expect(() => watchdog.check()).not.toThrow();
  watchdog.stop();
  expect(stopped()).toBe(true);
});
