/** What tests, benchmarks, and the siege need besides the public index. No promise of stability. */

export { FakeClock } from './base/clock.ts';
export { type Host, replaceHost } from './base/host.ts';
export { listedBytesMax } from './meta/answer-bounds.ts';
