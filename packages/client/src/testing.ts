/** What tests, benchmarks, and the siege need besides the public index. No promise of stability. */

export type { ExecHost } from './credentials/exec-source.ts';
