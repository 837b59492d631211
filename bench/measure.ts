import { readFileSync } from 'node:fs';

const warmUpSecondsMin = 3;

/** What one scenario came to. */
export interface Figure {
  readonly name: string;
  readonly protocol: string;
  readonly clients: number;
  readonly operations: number;
  readonly seconds: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** The server's CPU time for one operation, milliseconds; undefined when its pid is not known. */
  readonly cpuMsPerOperation: number | undefined;
  readonly megabytesPerSecond: number | undefined;
  readonly rssMegabytes: number | undefined;
  readonly note?: string;
}

const ticksPerSecond = 100;

/** User and system CPU time a process has used, seconds (Linux). */
export function cpuSeconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
}

/** Resident memory of a process, megabytes (Linux). */
export function rssMegabytes(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Math.round(Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) / 1024);
}

/** Runs `operation` from `clients` loops until the time or the count is used up. */
export async function measure(options: {
  readonly name: string;
  readonly protocol: string;
  readonly clients: number;
  readonly pid: number | undefined;
  readonly seconds: number;
  readonly operationsMax?: number;
  /**
   * Time before the measured one in which the same is done uncounted, so that figures are those of
   * compiled code: V8 compiles on other threads for some seconds, which count as the server's CPU.
   * Three seconds or a fifth of `seconds`, whichever is more; none where operations are bounded.
   */
  readonly warmUpSeconds?: number;
  /** Does the n-th operation; gives the bytes it received. */
  readonly operation: (n: number, client: number) => Promise<number>;
}): Promise<Figure> {
  const { clients, pid, operation } = options;
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
  const cpuBefore = pid === undefined ? 0 : cpuSeconds(pid);
  const start = performance.now();
  await run(options.seconds);
  const seconds = (performance.now() - start) / 1000;
  const count = latencies.length;
  const cpu = pid === undefined ? undefined : (cpuSeconds(pid) - cpuBefore) * 1000;
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
    cpuMsPerOperation: cpu === undefined ? undefined : cpu / count,
    megabytesPerSecond: bytes / seconds / 1e6,
    rssMegabytes: pid === undefined ? undefined : rssMegabytes(pid),
  };
}

/** The q-quantile of sorted values; 0 when there are none. */
export function quantile(sorted: Float64Array, q: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? 0;
}
