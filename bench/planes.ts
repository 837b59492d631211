import type { Figure } from './measure.ts';

/** The part of the library that the benchmark uses, loaded as users load it. */
interface Library {
  startControlPlane(options?: object): Promise<Plane>;
}

interface Plane {
  apply(...objects: readonly object[]): Promise<readonly object[]>;
  snapshot(): Promise<object>;
  restore(snapshot: object): Promise<{ readonly changes: number }>;
  stop(): Promise<void>;
}

const planes = 20;
const objects = 1000;
const rounds = 20;

/**
 * Measures planes in this process (PLANE-3, PLANE-7): starting and stopping 20 concurrently, the
 * memory of one, and snapshots and restores of 1,000 different objects.
 */
export async function measurePlanes(report: (figure: Figure) => void): Promise<void> {
  const path = '../../dist/library.js';
  const library = (await import(path)) as Library;
  const first = await timed(() => library.startControlPlane());
  report(figureOf('a plane in this process: the first start', [first.ms]));
  await first.value.stop();
  const before = process.memoryUsage().rss;
  const running: Plane[] = [];
  const starts: number[] = [];
  for (let at = 0; at < planes; at += 1) {
    const { value, ms } = await timed(() => library.startControlPlane());
    running.push(value);
    starts.push(ms);
  }
  const megabytes = (process.memoryUsage().rss - before) / planes / 1024 / 1024;
  const start = figureOf(`start, one of ${planes} planes`, starts);
  report({ ...start, rssMegabytes: megabytes, note: 'RSS of each' });
  const stop = await timed(() => Promise.all(running.map((plane) => plane.stop())));
  report(figureOf(`stop ${planes} planes together`, [stop.ms]));
  await measureRestores(library, report);
}

async function measureRestores(library: Library, report: (figure: Figure) => void): Promise<void> {
  const plane = await library.startControlPlane();
  try {
    const empty = await plane.snapshot();
    for (let at = 0; at < objects; at += 1) {
      const metadata = { name: `object-${at}`, namespace: 'default' };
      await plane.apply({ apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { at: `${at}` } });
    }
    const snapshots: number[] = [];
    const restores: number[] = [];
    for (let round = 0; round < rounds; round += 1) {
      const full = await timed(() => plane.snapshot());
      snapshots.push(full.ms);
      restores.push((await timed(() => plane.restore(empty))).ms);
      restores.push((await timed(() => plane.restore(full.value))).ms);
    }
    report(figureOf(`snapshot of ${objects} objects`, snapshots));
    report(figureOf(`restore of ${objects} objects`, restores));
  } finally {
    await plane.stop();
  }
}

async function timed<T>(run: () => Promise<T>): Promise<{ value: T; ms: number }> {
  const startMs = performance.now();
  const value = await run();
  return { value, ms: performance.now() - startMs };
}

function figureOf(name: string, times: readonly number[]): Figure {
  const sorted = [...times].sort((a, b) => a - b);
  const at = (share: number) => sorted[Math.floor((sorted.length - 1) * share)] ?? 0;
  return {
    name,
    protocol: '-',
    clients: 1,
    operations: times.length,
    seconds: times.reduce((sum, ms) => sum + ms, 0) / 1000,
    perSecond: 0,
    p50Ms: at(0.5),
    p99Ms: at(0.99),
    cpuMsPerOperation: undefined,
    megabytesPerSecond: undefined,
    rssMegabytes: undefined,
  };
}
