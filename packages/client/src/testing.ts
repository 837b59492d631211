/** Internals for tests, benchmarks, and the siege; no stability promise. */

export type { ExecHost } from './credentials/exec-source.ts';
