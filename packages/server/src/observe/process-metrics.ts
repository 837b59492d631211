import { readdir, readFile } from 'node:fs/promises';
import {
  type Clock,
  type Counter,
  type Gauge,
  type Logger,
  type MetricRegistry,
  redactSecrets,
} from '@wheelhouse/machinery';
import { apiRelease, versionDocument } from '../documents/version.ts';

/** Registers metrics from Linux's `/proc`; returns a function that updates them. */
function addHostMetrics(registry: MetricRegistry): () => Promise<void> {
  const families = createFamilies(registry);
  const received = counterSetter(() => families.received.of());
  const sent = counterSetter(() => families.sent.of());
  const gauge = (family: { of(): Gauge }, value: number | undefined): void => {
    if (value !== undefined && Number.isFinite(value)) family.of().set(value);
  };
  return async () => {
    const [descriptors, limits, stat, network] = await Promise.all([
      readdir('/proc/self/fd').catch(() => undefined),
      textOf('/proc/self/limits'),
      textOf('/proc/self/stat'),
      textOf('/proc/self/net/dev'),
    ]);
    // One of the descriptors is that of the directory being read.
    gauge(families.openFiles, descriptors === undefined ? undefined : descriptors.length - 1);
    gauge(families.filesMax, limitOf(limits, 'Max open files'));
    gauge(families.virtual, virtualBytes(stat));
    gauge(families.virtualMax, limitOf(limits, 'Max address space'));
    const traffic = trafficOf(network);
    if (traffic === undefined) return;
    received(traffic.received);
    sent(traffic.sent);
  };
}

/** These metrics are those of Prometheus client libraries, which declare no stability. */
const unmarked = { stability: 'ALPHA', shownStability: 'omitted' } as const;

/** The value of an absent limit, as in Prometheus client libraries. */
const unlimited = 2 ** 64;

function createFamilies(registry: MetricRegistry) {
  const of = (name: string, help: string) =>
    ({ name: `process_${name}`, help, ...unmarked, labels: [] }) as const;
  return {
    openFiles: registry.gauge(of('open_fds', 'Number of open file descriptors.')),
    filesMax: registry.gauge(of('max_fds', 'Maximum number of open file descriptors.')),
    virtual: registry.gauge(of('virtual_memory_bytes', 'Virtual memory size in bytes.')),
    virtualMax: registry.gauge(
      of('virtual_memory_max_bytes', 'Maximum amount of virtual memory available in bytes.'),
    ),
    received: registry.counter(
      of(
        'network_receive_bytes_total',
        'Number of bytes received by the process over the network.',
      ),
    ),
    sent: registry.counter(
      of('network_transmit_bytes_total', 'Number of bytes sent by the process over the network.'),
    ),
  };
}

/** Creates a function that counts the growth of a total, which falls when an interface is removed. */
function counterSetter(counter: () => Counter): (total: number) => void {
  let counted = 0;
  return (total) => {
    counter().add(Math.max(0, total - counted));
    counted = total;
  };
}

/** The text of a file; undefined if it cannot be read. */
async function textOf(file: string): Promise<string | undefined> {
  return readFile(file, 'utf8').catch(() => undefined);
}

/** The soft limit of a line such as `Max open files  1024  4096  files`. */
export function limitOf(text: string | undefined, name: string): number | undefined {
  const line = text?.split('\n').find((candidate) => candidate.startsWith(name));
  const soft = line?.slice(name.length).trim().split(/\s+/, 1)[0];
  if (soft === undefined) return undefined;
  return soft === 'unlimited' ? unlimited : Number(soft);
}

/** The size is the 23rd field; the 2nd is a name in parentheses that may contain spaces. */
function virtualBytes(stat: string | undefined): number | undefined {
  const rest = stat?.slice(stat.lastIndexOf(')') + 2).split(' ');
  return rest?.[20] === undefined ? undefined : Number(rest[20]);
}

/** Sums over all interfaces: the first number of a line is received, the ninth transmitted. */
function trafficOf(text: string | undefined): { received: number; sent: number } | undefined {
  if (text === undefined) return undefined;
  const sums = { received: 0, sent: 0 };
  for (const line of text.split('\n').slice(2)) {
    const numbers = line.split(':')[1]?.trim().split(/\s+/).map(Number) ?? [];
    sums.received += numbers[0] ?? 0;
    sums.sent += numbers[8] ?? 0;
  }
  return sums;
}

/** Registers metrics of the process; returns a function that updates them. */
export function addProcessMetrics(registry: MetricRegistry, clock: Clock): () => Promise<void> {
  const cpu = registry
    .counter({
      name: 'process_cpu_seconds_total',
      help: 'Total user and system CPU time spent in seconds.',
      ...unmarked,
      labels: [],
    })
    .of();
  const resident = registry
    .gauge({
      name: 'process_resident_memory_bytes',
      help: 'Resident memory size in bytes.',
      ...unmarked,
      labels: [],
    })
    .of();
  const heap = registry
    .gauge({
      name: 'nodejs_heap_size_used_bytes',
      help: 'Used size of the heap in bytes.',
      stability: 'ALPHA',
      labels: [],
    })
    .of();
  addStartTime(registry, clock);
  const updateHostMetrics = addHostMetrics(registry);
  const build = buildInfo();
  registry
    .gauge({
      name: 'kubernetes_build_info',
      help: "A metric with a constant '1' value labeled by major, minor and git version of the API served.",
      stability: 'ALPHA',
      labels: buildLabels,
    })
    .of(...buildLabels.map((label) => build[label]))
    .set(1);
  let counted = 0;
  return () => {
    const { user, system } = process.cpuUsage();
    const seconds = (user + system) / 1_000_000;
    cpu.add(seconds - counted);
    counted = seconds;
    const { rss, heapUsed } = process.memoryUsage();
    resident.set(rss);
    heap.set(heapUsed);
    return updateHostMetrics();
  };
}

const buildLabels = [
  'build_date',
  'compiler',
  'git_commit',
  'git_tree_state',
  'git_version',
  'go_version',
  'major',
  'minor',
  'platform',
] as const;

/** The content of `/version` as labels. */
function buildInfo(): Readonly<Record<(typeof buildLabels)[number], string>> {
  const { major, minor, patch } = apiRelease;
  const document = versionDocument();
  const text = (member: string) => String(document[member] ?? '');
  return {
    build_date: text('buildDate'),
    compiler: text('compiler'),
    git_commit: text('gitCommit'),
    git_tree_state: text('gitTreeState'),
    git_version: `v${major}.${minor}.${patch}`,
    go_version: text('goVersion'),
    major,
    minor,
    platform: text('platform'),
  };
}

/** Registers the metric of the process's start time. */
export function addStartTime(registry: MetricRegistry, clock: Clock): void {
  registry
    .gauge({
      name: 'process_start_time_seconds',
      help: 'Start time of the process since unix epoch in seconds.',
      ...unmarked,
      labels: [],
    })
    .of()
    .set(clock.now() / 1000 - process.uptime());
}

/** Sampling interval of the event loop in milliseconds; shorter blocks may go unnoticed. */
const periodMs = 50;
/** A lag above this many milliseconds is logged if the process was busy for as long. */
const reportedLagMs = 100;
/** A lag above this many milliseconds fails the health check. */
const unhealthyLagMs = 10_000;
/** Milliseconds after a lag for which the check fails, because none runs during the lag. */
const unhealthyForMs = 30_000;

const bucketsSeconds = [0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** Measures the delay of the event loop (TRUST-2). */
interface LoopWatchdog {
  /** A health check that throws when the loop was recently blocked for more than 10 s. */
  check(): void;
  stop(): void;
}

/** The request that occupied the thread longest, and for how many milliseconds. */
interface Occupation {
  readonly occupant: { readonly url: string; readonly userName?: string | undefined };
  readonly occupiedMs: number;
}

/**
 * Watches the event loop with a timer: the delay of its callback is the lag. Records each lag in a
 * histogram, and logs a long one with the request that occupied the thread longest.
 * @param options.clock the host's clock, since the thread itself is measured
 */
export function watchEventLoop(options: {
  readonly clock: Pick<Clock, 'monotonic' | 'every'>;
  readonly occupancy: { takeLongest(): Occupation | undefined };
  readonly registry: MetricRegistry;
  readonly logger: Logger;
  /** CPU time used by the process, in milliseconds. */
  readonly usedCpuMs?: () => number;
}): LoopWatchdog {
  const { clock, occupancy, logger } = options;
  const histogram = lagHistogram(options.registry);
  let dueMs = clock.monotonic() + periodMs;
  const { usedCpuMs = processCpuMs } = options;
  let cpuBeforeMs = usedCpuMs();
  let worst = { lagMs: 0, atMs: 0 };
  const tick = () => {
    const nowMs = clock.monotonic();
    const lagMs = Math.max(0, nowMs - dueMs);
    dueMs = nowMs + periodMs;
    histogram.observe(lagMs / 1000);
    if (lagMs >= worst.lagMs || nowMs - worst.atMs > unhealthyForMs) {
      worst = { lagMs, atMs: nowMs };
    }
    const longest = occupancy.takeLongest();
    const cpuMs = usedCpuMs();
    const workedMs = cpuMs - cpuBeforeMs;
    cpuBeforeMs = cpuMs;
    // A host that does not schedule the process causes the same delay, without a request at fault.
    if (lagMs <= reportedLagMs || workedMs <= reportedLagMs || longest === undefined) return;
    logger.warn('the event loop was blocked', { lagMs: Math.round(lagMs), ...describe(longest) });
  };
  const timer = clock.every(periodMs, tick);
  /** The longest lag of the last half minute, in milliseconds. */
  const worstLagMs = () => {
    const nowMs = clock.monotonic();
    const before = nowMs - worst.atMs > unhealthyForMs ? 0 : worst.lagMs;
    // A callback that is due at the same time may run before the timer.
    return Math.max(before, nowMs - dueMs);
  };
  return {
    check() {
      const lagMs = worstLagMs();
      if (lagMs <= unhealthyLagMs) return;
      throw new Error(`the event loop was blocked for ${(lagMs / 1000).toFixed(1)} s`);
    },
    stop: () => timer.stop(),
  };
}

function processCpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

function lagHistogram(registry: MetricRegistry) {
  return registry
    .histogram({
      name: 'apiserver_event_loop_lag_seconds',
      help: 'Delay of a timer that fires every 50 ms, in seconds.',
      stability: 'ALPHA',
      labels: [],
      buckets: bucketsSeconds,
    })
    .of();
}

function describe({ occupant, occupiedMs }: Occupation) {
  const { url, userName } = occupant;
  return { requestMs: Math.round(occupiedMs), uri: redactSecrets(url), user: userName ?? '' };
}
