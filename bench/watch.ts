import type { LoadClient } from './client.ts';
import { cpuMsPerOperation, cpuSeconds, type Figure, quantile, rssMegabytes } from './measure.ts';
import { type Bench, configMap } from './scenarios.ts';

/** Polls `done` every few milliseconds until it holds or the timeout passes. */
async function until(done: () => boolean, timeoutMs: number): Promise<void> {
  const end = performance.now() + timeoutMs;
  while (!done()) {
    if (performance.now() > end) throw new Error(`not done in ${timeoutMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

const newline = 10;

function countLines(chunk: Buffer): number {
  let count = 0;
  for (let at = chunk.indexOf(newline); at >= 0; at = chunk.indexOf(newline, at + 1)) count += 1;
  return count;
}

/**
 * Measures watch fan-out with `watchers` streams and writers at full speed: events delivered per
 * second, and the server's CPU per event.
 */
export async function fanOut(
  bench: Bench,
  options: { watchers: number; writers: number; run: string; connections: number },
): Promise<Figure> {
  const { watchers, writers, run } = options;
  let received = 0;
  const streams = await openWatchers(bench, options, (chunk) => {
    received += countLines(chunk);
  });
  const clients = bench.clientsOf(writers);
  const before = cpuSeconds(bench.pids);
  const start = performance.now();
  const end = start + bench.seconds * 1000;
  let written = 0;
  const writer = async (client: LoadClient, index: number) => {
    for (let n = 0; performance.now() < end; n += 1) {
      const name = `fan-${run}-${index}`;
      const method = n === 0 ? 'POST' : 'PUT';
      const path = n === 0 ? bench.path : `${bench.path}/${name}`;
      await client.request({ method, path, body: configMap(name, { n: String(n) }) });
      written += 1;
    }
  };
  await Promise.all(clients.map(writer));
  await until(() => received >= written * watchers, 120_000);
  const seconds = (performance.now() - start) / 1000;
  const cpu = cpuMsPerOperation(bench.pids, { seconds: before, operations: received });
  for (const stream of streams) stream.close();
  return {
    name: `watch, ${watchers} watchers, full speed`,
    protocol: bench.protocol,
    clients: writers,
    operations: received,
    seconds,
    perSecond: received / seconds,
    p50Ms: 0,
    p99Ms: 0,
    cpuMsPerOperation: cpu,
    megabytesPerSecond: undefined,
    rssMegabytes: rssMegabytes(bench.pids),
    note: `${written} writes`,
  };
}

async function openWatchers(
  bench: Bench,
  options: { watchers: number; connections: number },
  onChunk: (chunk: Buffer, watcher: number) => void,
): Promise<{ close(): void }[]> {
  const list = await bench
    .clientsOf(1)[0]!
    .request({ method: 'GET', path: `${bench.path}?limit=1` });
  const version = /"resourceVersion":"(\d+)"/.exec(list.body.toString('utf8'))?.[1] ?? '0';
  const clients = bench.clientsOf(options.connections);
  const path = `${bench.path}?watch=true&resourceVersion=${version}`;
  const open = (_: unknown, watcher: number) =>
    clients[watcher % clients.length]!.stream(path, (chunk) => onChunk(chunk, watcher));
  return Promise.all(Array.from({ length: options.watchers }, open));
}

/**
 * Measures the latency from a write's answer to its event at the last of many watchers, at a low
 * write rate.
 */
export async function fanOutLatency(
  bench: Bench,
  options: { watchers: number; writesPerSecond: number; run: string; connections: number },
): Promise<Figure> {
  const { watchers, run, writesPerSecond } = options;
  let received = 0;
  const streams = await openWatchers(bench, options, (chunk) => {
    received += countLines(chunk);
  });
  const [client] = bench.clientsOf(1);
  const writes = Math.max(10, Math.round(bench.seconds * writesPerSecond));
  const latencies = new Float64Array(writes);
  const name = `pace-${run}`;
  const start = performance.now();
  for (let n = 0; n < writes; n += 1) {
    const due = start + (n * 1000) / writesPerSecond;
    await until(() => performance.now() >= due, 60_000);
    const method = n === 0 ? 'POST' : 'PUT';
    const path = n === 0 ? bench.path : `${bench.path}/${name}`;
    await client!.request({ method, path, body: configMap(name, { n: String(n) }) });
    const answered = performance.now();
    await arrival(() => received >= (n + 1) * watchers);
    latencies[n] = performance.now() - answered;
  }
  const seconds = (performance.now() - start) / 1000;
  for (const stream of streams) stream.close();
  const sorted = latencies.sort();
  return {
    name: `watch, ${watchers} watchers, ${writesPerSecond} writes/s, answer to last watcher`,
    protocol: bench.protocol,
    clients: 1,
    operations: received,
    seconds,
    perSecond: received / seconds,
    p50Ms: quantile(sorted, 0.5),
    p99Ms: quantile(sorted, 0.99),
    cpuMsPerOperation: undefined,
    megabytesPerSecond: undefined,
    rssMegabytes: undefined,
  };
}

/** Polls in every turn of the event loop, so that waiting adds no latency. */
async function arrival(done: () => boolean): Promise<void> {
  const end = performance.now() + 30_000;
  while (!done()) {
    if (performance.now() > end) throw new Error('an event did not arrive in 30 s');
    await new Promise((resolve) => setImmediate(resolve));
  }
}
