import {
  type Clock,
  type Logger,
  type LoopOccupancy,
  type MetricRegistry,
  withoutSecrets,
} from '@wheelhouse/machinery';

/** How often the loop is looked at. What blocks it for less may go unnoticed. */
const periodMs = 50;
/** A lag above this is logged where the process was at work for as long. */
const reportedLagMs = 100;
/** A lag above this fails the health check ... */
const unhealthyLagMs = 10_000;
/** ... for so long after it, as nobody can ask while the loop is blocked. */
const unhealthyForMs = 30_000;

const bucketsSeconds = [0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** Measures how late the event loop gets to what is due (TRUST-2). */
export interface LoopWatchdog {
  /** The longest lag of the last half minute, milliseconds. */
  readonly worstLagMs: number;
  /** A health check: throws when the loop was blocked for more than 10 s lately. */
  check(): void;
  stop(): void;
}

/**
 * Watches the event loop by a timer: how late it fires is the lag. Counts each lag in a histogram, and
 * logs one that a request has caused: the one that had the thread longest meanwhile.
 *
 * @param options.clock of the host: it is the thread itself that is measured
 */
export function watchEventLoop(options: {
  readonly clock: Pick<Clock, 'monotonic' | 'every'>;
  readonly occupancy: LoopOccupancy;
  readonly registry: MetricRegistry;
  readonly logger: Logger;
  /** CPU time that the process has used, in milliseconds. */
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
    // A host that gives the process no time delays it just the same, and no request is to blame.
    if (lagMs <= reportedLagMs || workedMs <= reportedLagMs || longest === undefined) return;
    logger.warn('the event loop was blocked', {
      lagMs: Math.round(lagMs),
      ...describe(longest),
    });
  };
  const timer = clock.every(periodMs, tick);
  const worstLagMs = () => {
    const nowMs = clock.monotonic();
    const before = nowMs - worst.atMs > unhealthyForMs ? 0 : worst.lagMs;
    // Work that came with the timer's time may be done ahead of it.
    return Math.max(before, nowMs - dueMs);
  };
  return {
    get worstLagMs() {
      return worstLagMs();
    },
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
      help: 'How late the event loop got to a timer that fires every 50 ms.',
      stability: 'ALPHA',
      labels: [],
      buckets: bucketsSeconds,
    })
    .of();
}

function describe({ occupant, heldMs }: NonNullable<ReturnType<LoopOccupancy['takeLongest']>>) {
  const { url, userName } = occupant;
  return { requestMs: Math.round(heldMs), uri: withoutSecrets(url), user: userName ?? '' };
}
