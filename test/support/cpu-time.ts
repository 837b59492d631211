import { openSync, readSync } from 'node:fs';

/** Returns the CPU time of this process since its start, in milliseconds. */
export function processCpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

/** Measures the CPU time of this process during some work, in milliseconds. */
export async function cpuMsOf(work: () => Promise<void>): Promise<number> {
  const startMs = processCpuMs();
  await work();
  return processCpuMs() - startMs;
}

/** The file whose first number is the CPU time of the main thread in nanoseconds, once opened. */
let statistics: number | undefined;
const buffer = Buffer.alloc(64);

/**
 * Returns the CPU time of the main thread, in milliseconds. Unlike that of the process, it does not
 * include the garbage collector's threads, which proceed while a busy machine does not run the main
 * thread.
 */
export function threadCpuMs(): number {
  if (process.platform !== 'linux') return processCpuMs();
  statistics ??= openSync(`/proc/self/task/${process.pid}/schedstat`, 'r');
  // Reading the time of the process updates the time of the running thread.
  process.cpuUsage();
  const length = readSync(statistics, buffer, 0, buffer.length, 0);
  return Number.parseInt(buffer.toString('latin1', 0, length), 10) / 1e6;
}

/**
 * Measures the CPU time of the main thread in the longest turn of the event loop during some work,
 * in milliseconds.
 */
export async function longestTurnMs(work: () => Promise<void>): Promise<number> {
  let longestMs = 0;
  let startMs = threadCpuMs();
  let isOver = false;
  const turn = () => {
    const nowMs = threadCpuMs();
    longestMs = Math.max(longestMs, nowMs - startMs);
    startMs = nowMs;
    if (!isOver) setImmediate(turn);
  };
  setImmediate(turn);
  await work().finally(() => {
    isOver = true;
  });
  return longestMs;
}
