import type { Clock, MetricRegistry } from '@wheelhouse/machinery';
import { apiRelease } from '../health/version.ts';
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
  const { major, minor, patch } = apiRelease;
  registry
    .gauge({
      name: 'kubernetes_build_info',
      help: "A metric with a constant '1' value labeled by major, minor and git version of the API served.",
      stability: 'ALPHA',
      labels: ['major', 'minor', 'git_version', 'platform'],
    })
    .of(major, minor, `v${major}.${minor}.${patch}`, `${process.platform}/${process.arch}`)
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
