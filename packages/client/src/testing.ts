/** Additional exports for tests, benchmarks, and the siege, without a promise of stability. */

export type { ExecHost } from './credentials/exec-source.ts';
