/** Additional exports for tests, benchmarks, and the siege. Not stable. */

export { FakeClock } from './base/clock.ts';
export { type Host, replaceHost } from './base/host.ts';
