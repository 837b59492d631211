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

/** Number of bytes that hold the three numbers of `schedstat`. */
const statisticsBytes = 64;

/**
 * Returns a function that reads the CPU time of the main thread in milliseconds. Unlike that of the
 * process, it does not include the garbage collector's threads, which proceed while a busy machine
 * does not run the main thread.
 */
export function threadCpuClock(): () => number {
  if (process.platform !== 'linux') return processCpuMs;
  const descriptor = openSync(`/proc/self/task/${process.pid}/schedstat`, 'r');
  const buffer = Buffer.alloc(statisticsBytes);
  return () => {
    // Reading the time of the process updates the time of the running thread.
    process.cpuUsage();
    const length = readSync(descriptor, buffer, 0, statisticsBytes, 0);
    return Number.parseInt(buffer.toString('latin1', 0, length), 10) / 1e6;
  };
}

/**
 * Measures the CPU time of the main thread in the longest turn of the event loop during some work,
 * in milliseconds.
 */
export async function longestTurnMs(work: () => Promise<void>): Promise<number> {
  const readMs = threadCpuClock();
  let longestMs = 0;
  let startMs = readMs();
  let isOver = false;
  const turn = () => {
    const nowMs = readMs();
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
