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

/** Maximum log lines with a stack for one place per period; further faults are only counted. */
const linesMax = 20;
const periodMs = 10_000;

/**
 * Counts every fault that the process contains, and logs it with its stack (TRUST-1). The number of
 * log lines per place is bounded, so that a client cannot fill the log with one bug.
 * @returns a function that stops counting and logging
 */
export function recordFaults(options: {
  readonly registry: MetricRegistry;
  readonly logger: Logger;
  readonly clock: Pick<Clock, 'monotonic'>;
}): () => void {
  const { logger, clock } = options;
  const counter = options.registry.counter({
    name: 'apiserver_contained_faults_total',
    help: 'Number of exceptions in callbacks that ended a connection, request, or task instead of the process.',
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
        logger.error('further faults were contained without being logged', { where, dropped });
      quota = { untilMs: nowMs + periodMs, left: linesMax, dropped: 0 };
      lines.set(where, quota);
    }
    if (quota.left > 0) logger.error('a fault was contained', { where, error });
    else quota.dropped += 1;
    quota.left -= 1;
  });
}

/** The properties of a handle, stream, or parser that refer to its connection. */
interface Resource {
  readonly socket?: unknown;
  readonly stream?: unknown;
  readonly destroy?: unknown;
}

/**
 * Keeps the process running when an exception or rejection escapes `base/faults.ts` because of a
 * bug or a library. The fault is reported like any other, and its connection is destroyed if it can
 * be determined. For programs that own their process only, because the handlers are process-wide.
 * docs/decisions/faults.md lists the faults that still end the process.
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

/** Faults after which the state of the process cannot be trusted. */
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

/** The stream of a handle, which Node.js stores under a private symbol. */
function ownerOf(resource: object): unknown {
  const symbol = Object.getOwnPropertySymbols(resource).find(
    ({ description }) => description === 'owner_symbol',
  );
  return symbol === undefined ? undefined : (resource as Record<symbol, unknown>)[symbol];
}
