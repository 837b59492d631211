import { readFileSync } from 'node:fs';
import { limitOf } from '../observability/process-metrics.ts';

/** Files kept for the store, logs, certificates, and connections to others. */
const reserveMin = 64;
const reserveMax = 1024;
const reservePart = 1 / 8;
const connectionsMin = 16;

/**
 * How many connections fit into the process's limit on open files, with a reserve for its own
 * (TRUST-4); infinite where the limit cannot be read or there is none.
 */
export function connectionsWithin(limitsText = limitsOfProcess()): number {
  const files = limitOf(limitsText, 'Max open files') ?? Number.POSITIVE_INFINITY;
  const reserve = Math.min(reserveMax, Math.max(reserveMin, Math.ceil(files * reservePart)));
  return Math.max(connectionsMin, files - reserve);
}

function limitsOfProcess(): string | undefined {
  try {
    return readFileSync('/proc/self/limits', 'utf8');
  } catch {
    return undefined;
  }
}
