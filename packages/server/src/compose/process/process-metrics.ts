import type { Clock, MetricRegistry } from '@wheelhouse/machinery';
import { apiRelease, versionDocument } from '../health/version.ts';
import { addHostMetrics } from './host-metrics.ts';

/** Adds the process's own numbers to the registry; the function brings them up to date. */
export function addProcessMetrics(registry: MetricRegistry, clock: Clock): () => Promise<void> {
  const gauge = (name: string, help: string) =>
    registry.gauge({ name, help, stability: 'ALPHA', labels: [] }).of();
  const cpu = registry
    .counter({
      name: 'process_cpu_seconds_total',
      help: 'Total user and system CPU time spent in seconds.',
      stability: 'ALPHA',
      labels: [],
    })
    .of();
  const resident = gauge('process_resident_memory_bytes', 'Resident memory size in bytes.');
  const heap = gauge('nodejs_heap_size_used_bytes', 'Used size of the heap in bytes.');
  addStartTime(registry, clock);
  const lookAtHost = addHostMetrics(registry);
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
    return lookAtHost();
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

/** What `/version` says, as labels. */
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

/** Adds when the process began. */
export function addStartTime(registry: MetricRegistry, clock: Clock): void {
  registry
    .gauge({
      name: 'process_start_time_seconds',
      help: 'Start time of the process since unix epoch in seconds.',
      stability: 'ALPHA',
      labels: [],
    })
    .of()
    .set(clock.now() / 1000 - process.uptime());
}
