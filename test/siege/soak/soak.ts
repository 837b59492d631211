import { readFileSync } from 'node:fs';
import { type Random, randomOf } from '@wheelhouse/machinery';
import { buildPrograms, startProcess } from '../../support/program.ts';
import { onServer, type SiegePart } from '../part.ts';
import { SoakClient } from './client.ts';
import { followed, prepareMix, runActivity } from './mix.ts';

/** The memory use of the server's process at one moment, in MiB. */
interface MemorySample {
  readonly resident: number;
  /** Without memory that is mapped from files, such as the store's pages. */
  readonly anonymous: number;
  readonly heap: number;
}

export interface SoakSettings {
  readonly url: string;
  readonly token: string;
  readonly seed: number;
  /** Number of samples, one every `sampleMs`. */
  readonly samples: number;
  readonly sampleMs: number;
  /** Number of activities started per second; each sends one to ten requests. */
  readonly rate: number;
  readonly informers: number;
  readonly sample: () => Promise<MemorySample>;
  readonly onSample: (line: string) => void;
}

export interface SoakReport {
  readonly samples: readonly MemorySample[];
  readonly activities: number;
  readonly watchBytes: number;
  readonly connections: number;
  readonly statuses: ReadonlyMap<number, number>;
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Runs the mix of clients and samples the server's memory. */
export async function soak(settings: SoakSettings): Promise<SoakReport> {
  const { url, token, rate, samples: count, sampleMs } = settings;
  const client = new SoakClient({ url, token, size: 8 });
  const random = randomOf(settings.seed);
  const statuses = new Map<number, number>();
  const totals = { activities: 0, watchBytes: 0 };
  const samples: MemorySample[] = [];
  let isOver = false;
  const worker = async (first: number, workers: number) => {
    for (let turn = 0; !isOver; turn++) {
      const due = pause((1000 * workers) / rate);
      const serial = first + turn * workers;
      const { status } = await runActivity({ client, random, serial });
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      totals.activities += 1;
      if (serial % (rate * 5) === 0) client.replaceOldest();
      await due;
    }
  };
  await prepareMix(client);
  const isRunning = () => !isOver;
  const onBytes = (bytes: number) => {
    totals.watchBytes += bytes;
  };
  const informers = Array.from({ length: settings.informers }, (_, i) => {
    const path = followed[i % followed.length] as string;
    return informer({ client, random, path, isRunning, onBytes });
  });
  const workers = Array.from({ length: 16 }, (_, i) => worker(i, 16));
  const began = performance.now();
  while (samples.length < count) {
    await pause(began + (samples.length + 1) * sampleMs - performance.now());
    const sample = await settings.sample();
    samples.push(sample);
    settings.onSample(sampleLine(sample, { number: samples.length, ...totals, sampleMs }));
  }
  isOver = true;
  await Promise.all(workers);
  client.close();
  await Promise.all(informers);
  return { samples, statuses, connections: client.connections, ...totals };
}

function sampleLine(
  sample: MemorySample,
  at: { readonly number: number; readonly sampleMs: number; readonly activities: number },
): string {
  const seconds = Math.round((at.number * at.sampleMs) / 1000);
  return (
    `${seconds} s: ${sample.resident} MiB resident, ${sample.anonymous} MiB anonymous, ` +
    `${sample.heap} MiB heap, ${at.activities} activities`
  );
}

/** Lists, watches from there, loses its connection after some seconds, and starts over. */
async function informer(options: {
  readonly client: SoakClient;
  readonly random: Random;
  readonly path: string;
  readonly isRunning: () => boolean;
  readonly onBytes: (bytes: number) => void;
}): Promise<void> {
  const { client, random, path, isRunning, onBytes } = options;
  while (isRunning()) {
    const list = await client.send({ method: 'GET', path: `${path}?resourceVersion=0` });
    const metadata = list.body?.['metadata'] as { resourceVersion?: string } | undefined;
    if (metadata?.resourceVersion === undefined) {
      await pause(1000);
      continue;
    }
    const query = `?watch=true&allowWatchBookmarks=true&resourceVersion=${metadata.resourceVersion}`;
    const watch = client.watch(path + query, onBytes);
    const timer = setTimeout(() => watch.close(), 2000 + random.below(60_000));
    await watch.ended;
    clearTimeout(timer);
  }
}

/** Median of a field over some samples. */
export function medianOf(values: readonly number[]): number {
  const sorted = [...values].sort((left, right) => left - right);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}

/**
 * Growth of a series since `warmUp` samples in percent: the median of the last sixth of the
 * remainder against the median of its first sixth, so that a single garbage collection does not
 * decide the result.
 */
export function growthPercent(series: readonly number[], warmUp: number): number {
  const measured = series.slice(warmUp);
  const window = Math.max(1, Math.floor(measured.length / 6));
  const before = medianOf(measured.slice(0, window));
  const after = medianOf(measured.slice(-window));
  return before === 0 ? 0 : Math.round(((after - before) / before) * 1000) / 10;
}

function statusFile(pid: number): Omit<MemorySample, 'heap'> {
  const text = readFileSync(`/proc/${pid}/status`, 'utf8');
  const mib = (name: string) =>
    Math.round(Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(text)?.[1] ?? 0) / 1024);
  return { resident: mib('VmRSS'), anonymous: mib('RssAnon') };
}

async function heapMib(url: string, token: string): Promise<number> {
  const client = new SoakClient({ url, token, size: 1 });
  const text = await client.text('/metrics');
  client.close();
  const found = /^nodejs_heap_size_used_bytes (\S+)$/m.exec(text);
  return Math.round(Number(found?.[1] ?? 0) / 1024 / 1024);
}

const sampleMs = 10_000;
const warmUpSamples = 60;
const growthMaxPercent = 10;

/**
 * A round is one sample of ten seconds; the first ten minutes, or half of a short run, are the
 * warm-up.
 */
export const soakPart: SiegePart = {
  name: 'soak',
  summary: 'A realistic mix of clients; memory must not grow (a round takes 10 seconds).',
  defaultRounds: 360,
  async run({ seed, log, ...limits }) {
    const { seconds } = limits;
    const longest = seconds === undefined ? limits.rounds : Math.ceil((seconds * 1000) / sampleMs);
    const rounds = Math.min(limits.rounds, longest);
    const programs = await buildPrograms();
    const flags = ['--event-ttl=5m'];
    const server = await startProcess(programs, { flags });
    try {
      const { url, token } = server;
      const pid = server.child.pid as number;
      const sample = async () => ({ ...statusFile(pid), heap: await heapMib(url, token) });
      const settings = { url, token, seed, samples: rounds, sampleMs, rate: 60, informers: 24 };
      const report = await onServer({ name: `seed ${seed}`, server }, () =>
        soak({ ...settings, sample, onSample: log }),
      );
      return figuresOf(report, { seed, rounds });
    } finally {
      await server.remove();
      programs.remove();
    }
  },
};

function figuresOf(report: SoakReport, run: { readonly seed: number; readonly rounds: number }) {
  const warmUp = Math.min(warmUpSamples, Math.floor(run.rounds / 2));
  const growth = (field: keyof MemorySample) =>
    growthPercent(
      report.samples.map((sample) => sample[field]),
      warmUp,
    );
  const residentGrowth = growth('resident');
  const last = report.samples.at(-1);
  const figures = {
    minutes: Math.round((run.rounds * sampleMs) / 6000) / 10,
    activities: report.activities,
    connections: report.connections,
    watchMib: Math.round(report.watchBytes / 1024 / 1024),
    residentMib: last?.resident ?? 0,
    heapMib: last?.heap ?? 0,
    residentGrowthPercent: residentGrowth,
    anonymousGrowthPercent: growth('anonymous'),
    heapGrowthPercent: growth('heap'),
    statuses: [...report.statuses].map(([status, count]) => `${status}: ${count}`).join(', '),
  };
  if (residentGrowth > growthMaxPercent) {
    throw new Error(
      `seed ${run.seed}: memory grows by ${residentGrowth} % in ${run.rounds} rounds: ` +
        JSON.stringify(figures),
    );
  }
  return figures;
}
