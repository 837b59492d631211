/** Exports for tests, benchmarks, and the siege, in addition to the public index. Not stable. */

export { FakeClock } from './base/clock.ts';
export { type Host, replaceHost } from './base/host.ts';
export { listedBytesMax } from './meta/answer-bounds.ts';
