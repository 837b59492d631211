import { afterEach, expect, test, vi } from 'vitest';
import { longTime, zonedTime } from './pod-template.ts';

afterEach(() => vi.unstubAllEnvs());

test.each([
  ['UTC', '2026-07-01 12:00:00 +0000 UTC'],
  ['Europe/Berlin', '2026-07-01 14:00:00 +0200 CEST'],
  ['America/New_York', '2026-07-01 08:00:00 -0400 EDT'],
  ['Asia/Kolkata', '2026-07-01 17:30:00 +0530 IST'],
  ['America/Sao_Paulo', '2026-07-01 09:00:00 -0300 -03'],
])('a time in %s has the name of the zone', (zone, shown) => {
  vi.stubEnv('TZ', zone);
  expect(zonedTime('2026-07-01T12:00:00Z')).toBe(shown);
  expect(longTime('2026-07-01T12:00:00Z')).toContain(shown.slice(11, 25));
});
