import { executionAsyncResource } from 'node:async_hooks';
import { constants } from 'node:os';
import {
  type Clock,
  type Fault,
  type Logger,
  type MetricRegistry,
  observeFaults,
  reportFault,
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

/** What of a handle, stream or parser leads to the connection that it belongs to. */
interface Resource {
  readonly socket?: unknown;
  readonly stream?: unknown;
  readonly destroy?: unknown;
}

/**
 * Keeps the process serving when an exception or a rejection reaches the event loop in spite of
 * `base/faults.ts`: code of a library, or a mistake of ours. The fault is reported as any other, and
 * the connection in whose event it arose is destroyed where that can be found out. For a program
 * that owns its process only: the handlers are process-wide.
 *
 * docs/decisions/faults.md says which faults end the process all the same.
 */
export function surviveFaults(): void {
  process.on('uncaughtException', (error: Error) => {
    if (isFatal(error)) {
      process.stderr.write(`fatal: ${error.stack ?? error.message}\n`);
      process.exit(fatalExitCode);
    }
    reportFault('process', error);
    connectionOf(executionAsyncResource())?.destroy();
  });
  process.on('unhandledRejection', (reason) => reportFault('process', reason));
}

const fatalExitCode = 70;

/** Faults after which nothing that the process says can be relied on. */
function isFatal(error: NodeJS.ErrnoException): boolean {
  return error.code === 'ERR_INTERNAL_ASSERTION' || error.errno === -constants.errno.ENOMEM;
}

function connectionOf(resource: Resource): { destroy(): void } | undefined {
  for (const candidate of [resource.socket, ownerOf(resource), resource.stream]) {
    const { destroy } = (candidate ?? {}) as Resource;
    if (typeof destroy === 'function') return candidate as { destroy(): void };
  }
  return undefined;
}

/** Node keeps the stream of a handle under a symbol of its own. */
function ownerOf(resource: object): unknown {
  const symbol = Object.getOwnPropertySymbols(resource).find(
    ({ description }) => description === 'owner_symbol',
  );
  return symbol === undefined ? undefined : (resource as Record<symbol, unknown>)[symbol];
}
