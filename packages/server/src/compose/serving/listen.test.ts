import { FakeClock } from '@wheelhouse/machinery/testing';
import { expect, test } from 'vitest';
import type { ServerConfig } from '../config.ts';
import { createReportedAddress, createShutdownSignal } from './listen.ts';

function made(count: number, graceMs?: number) {
  const clock = new FakeClock();
  const signal = createShutdownSignal({ clock, graceMs });
  const ended: number[] = [];
  for (let i = 0; i < count; i += 1) {
    const subscription = signal.subscribe(() => {
      ended.push(i);
      subscription.close();
    });
  }
  return { clock, signal, ended };
}

test('without a grace period all streams end at once', () => {
  const { signal, ended } = made(500);
  signal.fire();
  expect(ended.length).toBe(500);
});

test('few streams end at 200 per second', () => {
  const { clock, signal, ended } = made(20, 60_000);
  signal.fire();
  expect(ended.length).toBe(5);
  clock.advance(25);
  expect(ended.length).toBe(10);
  clock.advance(50);
  expect(ended.length).toBe(20);
});

test('many streams spread over the grace period, and none outlives it', () => {
  const { clock, signal, ended } = made(10_000, 10_000);
  signal.fire();
  clock.advance(5000);
  expect(ended.length).toBeGreaterThan(4500);
  expect(ended.length).toBeLessThan(5600);
  clock.advance(5100);
  expect(ended.length).toBe(10_000);
});

test.each([undefined, 10_000])('a stream that begins after the signal ends soon', (graceMs) => {
  const { clock, signal, ended } = made(1, graceMs);
  signal.fire();
  const late = signal.subscribe(() => {
    ended.push(99);
    late.close();
  });
  signal.subscribe(() => ended.push(100)).close();
  expect(ended).toEqual([0]);
  clock.advance(25);
  expect(ended).toEqual([0, 99]);
  clock.advance(20_000);
  expect(ended).toEqual([0, 99]);
});

const reported = (host: string, advertiseAddress?: string) => {
  const listen = { host, port: 0, tls: 'plaintext' };
  const address = createReportedAddress({ listen, advertiseAddress } as unknown as ServerConfig);
  expect(address.text()).toMatch(/:0$/);
  address.listensOn(7443);
  return address.text();
};

test('clients get the advertised address, else the listening one, and its port', () => {
  expect(reported('127.0.0.1')).toBe('127.0.0.1:7443');
  expect(reported('::1')).toBe('[::1]:7443');
  expect(reported('0.0.0.0', '10.0.0.1')).toBe('10.0.0.1:7443');
  expect(reported('127.0.0.1', 'fd00::1')).toBe('[fd00::1]:7443');
});

test('an unspecified address is replaced by one that others can reach', () => {
  const shown = reported('0.0.0.0');
  expect(shown).toMatch(/^\d+\.\d+\.\d+\.\d+:7443$/);
  expect(shown.startsWith('127.')).toBe(false);
});
