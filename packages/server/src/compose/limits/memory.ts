import { readFileSync } from 'node:fs';
import { totalmem } from 'node:os';
import { getHeapStatistics } from 'node:v8';
import {
  type Clock,
  contained,
  type Logger,
  MemoryBudget,
  type MetricRegistry,
  memoryUses,
} from '@wheelhouse/machinery';
import { limitOf } from '../observability/process-metrics.ts';

/** What part of the heap clients may fill: the rest is the server's own and garbage. */
const heapPart = 0.4;
/** What part of the machine's or container's memory they may fill: buffers are not on the heap. */
const hostPart = 0.25;
/** The heap is short from this part of its limit on, measured behind a full collection. */
const shortPart = 0.8;
/** How long that holds unless a later collection says so again. */
const shortMs = 5000;
const logPeriodMs = 1000;

/** The budget of a server, and what keeps an eye on the heap for it. */
export interface ServerMemory {
  readonly budget: MemoryBudget;
  close(): void;
}

/**
 * Makes the process-wide budget for what clients make the server hold (TRUST-4). It reports itself
 * in `registry` and in the log, and learns of a heap that is nearly full whatever was charged.
 * @param options.limitBytes 0: from the limits of the heap and of the host
 */
export function createServerMemory(options: {
  readonly limitBytes: number;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly registry: MetricRegistry;
  /** Has a function called before metrics are shown. */
  readonly lookAt: (look: () => void) => void;
}): ServerMemory {
  const { clock, logger } = options;
  let loggedMs = Number.NEGATIVE_INFINITY;
  const onShed = (owner: string, bytes: number): void => {
    const now = clock.monotonic();
    if (now - loggedMs < logPeriodMs) return;
    loggedMs = now;
    logger.warn('a client holds too much memory and was cut off', { owner, bytes });
  };
  const limitBytes = options.limitBytes > 0 ? options.limitBytes : defaultLimit();
  const budget = new MemoryBudget({ limitBytes, onShed });
  options.lookAt(memoryLook(options.registry, budget));
  return { budget, close: watchHeap({ budget, clock, logger }) };
}

function defaultLimit(): number {
  const heap = getHeapStatistics().heap_size_limit;
  const host = Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY);
  return Math.floor(Math.min(heap * heapPart, host * hostPart));
}

/** Presses the budget when a full collection leaves the heap nearly full; returns what ends that. */
function watchHeap(of: {
  readonly budget: MemoryBudget;
  readonly clock: Clock;
  readonly logger: Logger;
}): () => void {
  const { budget, clock, logger } = of;
  let isOver = false;
  let relief = { stop: () => {} };
  // Only a full collection finalizes, so that this runs behind each of them and costs nothing else.
  const onCollection = (): void => {
    if (isOver) return;
    arm();
    const { used_heap_size: used, heap_size_limit: limit } = getHeapStatistics();
    if (used < limit * shortPart) return;
    logger.warn('the heap is nearly full', { used, limit, charged: budget.usedBytes });
    budget.press('short');
    relief.stop();
    relief = clock.after(shortMs, () => budget.press('enough'));
  };
  const collections = new FinalizationRegistry(contained({ where: 'memory' }, onCollection));
  const arm = (): void => collections.register({}, undefined);
  arm();
  return () => {
    isOver = true;
    relief.stop();
  };
}

function memoryLook(registry: MetricRegistry, budget: MemoryBudget): () => void {
  const used = registry.gauge({
    name: 'wheelhouse_memory_budget_used_bytes',
    help: 'Bytes charged to clients, by what they are for. Estimates, not measurements.',
    stability: 'ALPHA',
    labels: ['use'],
  });
  const limit = registry.gauge({
    name: 'wheelhouse_memory_budget_limit_bytes',
    help: 'Bytes that may be charged to all clients before the heaviest is cut off.',
    stability: 'ALPHA',
    labels: [],
  });
  const refused = registry.counter({
    name: 'wheelhouse_memory_budget_refused_total',
    help: 'Requests that were answered 429 because their client held too much memory.',
    stability: 'ALPHA',
    labels: [],
  });
  const shed = registry.counter({
    name: 'wheelhouse_memory_budget_shed_total',
    help: 'How often requests or connections were ended to free the memory that they held.',
    stability: 'ALPHA',
    labels: [],
  });
  let [countedRefused, countedShed] = [0, 0];
  return () => {
    for (const use of memoryUses) used.of(use).set(budget.usedFor(use));
    limit.of().set(budget.limitBytes);
    refused.of().add(budget.refused - countedRefused);
    shed.of().add(budget.shedAccounts - countedShed);
    [countedRefused, countedShed] = [budget.refused, budget.shedAccounts];
  };
}

/** Files kept for the store, logs, certificates, and connections to others. */
const reserveMin = 64;
const reserveMax = 1024;
const reservePart = 1 / 8;
const connectionsMin = 16;

/**
 * How many connections fit into the process's limit on open files, with a reserve for its own
 * (TRUST-4); infinite where the limit cannot be read or there is none.
 */
export function connectionsWithin(limitsText = limitsOfProcess()): number {
  const files = limitOf(limitsText, 'Max open files') ?? Number.POSITIVE_INFINITY;
  const reserve = Math.min(reserveMax, Math.max(reserveMin, Math.ceil(files * reservePart)));
  return Math.max(connectionsMin, files - reserve);
}

function limitsOfProcess(): string | undefined {
  try {
    return readFileSync('/proc/self/limits', 'utf8');
  } catch {
    return undefined;
  }
}
