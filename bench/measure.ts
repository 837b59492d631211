import { readFileSync } from 'node:fs';

const warmUpSecondsMin = 3;

/** The result of one scenario. */
export interface Figure {
  readonly name: string;
  readonly protocol: string;
  readonly clients: number;
  readonly operations: number;
  readonly seconds: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** The server's CPU time per operation in milliseconds; undefined if no pid is known. */
  readonly cpuMsPerOperation: number | undefined;
  readonly megabytesPerSecond: number | undefined;
  readonly rssMegabytes: number | undefined;
  readonly note?: string;
}

const ticksPerSecond = 100;

/** User and system CPU time of processes in seconds (Linux); undefined if there are none. */
export function cpuSeconds(pids: readonly number[]): number | undefined {
  return sumOver(pids, (pid) => {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
  });
}

/** Resident memory of processes in megabytes (Linux); undefined if there are none. */
export function rssMegabytes(pids: readonly number[]): number | undefined {
  return sumOver(pids, (pid) => {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    return Math.round(Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) / 1024);
  });
}

/** The CPU time per operation since an earlier reading of `cpuSeconds`, in milliseconds. */
export function cpuMsPerOperation(
  pids: readonly number[],
  since: { readonly seconds: number | undefined; readonly operations: number },
): number | undefined {
  const now = cpuSeconds(pids);
  if (now === undefined || since.seconds === undefined) return undefined;
  return ((now - since.seconds) * 1000) / since.operations;
}

function sumOver(pids: readonly number[], figure: (pid: number) => number): number | undefined {
  if (pids.length === 0) return undefined;
  return pids.reduce((sum, pid) => sum + figure(pid), 0);
}

/** Runs `operation` in `clients` concurrent loops until the time or the count is used up. */
export async function measure(options: {
  readonly name: string;
  readonly protocol: string;
  readonly clients: number;
  /** The server's processes. */
  readonly pids: readonly number[];
  readonly seconds: number;
  readonly operationsMax?: number;
  /**
   * Warm-up time in seconds, during which operations are not counted, so that figures are those of
   * compiled code: V8 compiles on other threads for some seconds, which count as the server's CPU.
   * Three seconds or a fifth of `seconds`, whichever is longer; none if operations are bounded.
   */
  readonly warmUpSeconds?: number;
  /** Performs the n-th operation; returns the number of bytes received. */
  readonly operation: (n: number, client: number) => Promise<number>;
}): Promise<Figure> {
  const { clients, pids, operation } = options;
  let latencies: number[] = [];
  let next = 0;
  let bytes = 0;
  const max = options.operationsMax ?? Number.POSITIVE_INFINITY;
  const loop = async (client: number, end: number) => {
    while (next < max && performance.now() < end) {
      const before = performance.now();
      const received = await operation(next++, client);
      bytes += received;
      latencies.push(performance.now() - before);
    }
  };
  const run = (forSeconds: number) => {
    const end = performance.now() + forSeconds * 1000;
    return Promise.all(Array.from({ length: clients }, (_, client) => loop(client, end)));
  };
  const warmUp = Number.isFinite(max) ? 0 : Math.max(warmUpSecondsMin, options.seconds / 5);
  await run(options.warmUpSeconds ?? warmUp);
  latencies = [];
  bytes = 0;
  const cpuBefore = cpuSeconds(pids);
  const start = performance.now();
  await run(options.seconds);
  const seconds = (performance.now() - start) / 1000;
  const count = latencies.length;
  const cpu = cpuMsPerOperation(pids, { seconds: cpuBefore, operations: count });
  const sorted = Float64Array.from(latencies).sort();
  return {
    name: options.name,
    protocol: options.protocol,
    clients,
    operations: count,
    seconds,
    perSecond: count / seconds,
    p50Ms: quantile(sorted, 0.5),
    p99Ms: quantile(sorted, 0.99),
    cpuMsPerOperation: cpu,
    megabytesPerSecond: bytes / seconds / 1e6,
    rssMegabytes: rssMegabytes(pids),
  };
}

/** The q-quantile of sorted values; 0 if there are none. */
export function quantile(sorted: Float64Array, q: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? 0;
}
