import {
  type Clock,
  type Fault,
  type Logger,
  type MetricRegistry,
  observeFaults,
} from '@wheelhouse/machinery';

/** Log lines with a stack for one place in a period; further faults there are only counted. */
const linesMax = 20;
const periodMs = 10_000;

/**
 * Counts every fault that is contained in the process and logs it with its stack (TRUST-1), a
 * bounded number of lines for each place, so that a client cannot fill the log with one bug.
 * @returns stops both
 */
export function recordFaults(options: {
  readonly registry: MetricRegistry;
  readonly logger: Logger;
  readonly clock: Pick<Clock, 'monotonic'>;
}): () => void {
  const { logger, clock } = options;
  const counter = options.registry.counter({
    name: 'apiserver_contained_faults_total',
    help: 'Exceptions of callbacks that ended a connection, a request or a task and not the process.',
    stability: 'ALPHA',
    labels: ['where'],
  });
  const lines = new Map<string, { untilMs: number; left: number; dropped: number }>();
  return observeFaults(({ where, error }: Fault) => {
    counter.of(where).add(1);
    const nowMs = clock.monotonic();
    let quota = lines.get(where);
    if (quota === undefined || nowMs >= quota.untilMs) {
      const dropped = quota?.dropped ?? 0;
      if (dropped > 0)
        logger.error('faults were contained without a line each', { where, dropped });
      quota = { untilMs: nowMs + periodMs, left: linesMax, dropped: 0 };
      lines.set(where, quota);
    }
    if (quota.left > 0) logger.error('a fault was contained', { where, error });
    else quota.dropped += 1;
    quota.left -= 1;
  });
}
