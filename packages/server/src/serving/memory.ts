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
import { limitOf } from '../observe/process-metrics.ts';

/** Share of the heap that clients may fill; the rest is for the server itself and for garbage. */
const heapPart = 0.4;
/**
 * Share of the machine's or container's memory that clients may fill: buffers are not on the heap.
 */
const hostPart = 0.25;
/** The heap counts as short above this share of its limit, measured after a full collection. */
const shortPart = 0.8;
/** How long a short heap stays so unless a later collection confirms it. */
const shortMs = 5000;
const logPeriodMs = 1000;

/** A server's memory budget and the heap watcher that feeds it. */
interface ServerMemory {
  readonly budget: MemoryBudget;
  close(): void;
}

/**
 * Creates the budget for memory that clients make the server hold (TRUST-4). It reports usage in
 * `registry` and the log, and reacts to a nearly full heap, regardless of what was charged.
 * @param options.limitBytes 0 derives the limit from those of the heap and the host
 */
export function createServerMemory(options: {
  readonly limitBytes: number;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly registry: MetricRegistry;
  /** Registers a function to call before metrics are rendered. */
  readonly beforeRender: (update: () => void) => void;
}): ServerMemory {
  const { clock, logger } = options;
  let loggedMs = Number.NEGATIVE_INFINITY;
  const onShed = (owner: string, bytes: number): void => {
    const now = clock.monotonic();
    if (now - loggedMs < logPeriodMs) return;
    loggedMs = now;
    logger.warn('disconnected a client that held too much memory', { owner, bytes });
  };
  const limitBytes = options.limitBytes > 0 ? options.limitBytes : defaultLimit();
  const budget = new MemoryBudget({ limitBytes, onShed });
  options.beforeRender(memoryUpdater(options.registry, budget));
  return { budget, close: watchHeap({ budget, clock, logger }) };
}

function defaultLimit(): number {
  const heap = getHeapStatistics().heap_size_limit;
  const host = Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY);
  return Math.floor(Math.min(heap * heapPart, host * hostPart));
}

/**
 * Puts pressure on the budget when a full collection leaves the heap nearly full; returns a
 * function that stops the watch.
 */
function watchHeap(of: {
  readonly budget: MemoryBudget;
  readonly clock: Clock;
  readonly logger: Logger;
}): () => void {
  const { budget, clock, logger } = of;
  let isOver = false;
  let relief = { stop: () => {} };
  // Only a full collection finalizes the object, so this runs after each one and costs nothing
  // otherwise.
  const onCollection = (): void => {
    if (isOver) return;
    arm();
    const { used_heap_size: used, heap_size_limit: limit } = getHeapStatistics();
    if (used < limit * shortPart) return;
    logger.warn('the heap is nearly full', { used, limit, charged: budget.usedBytes });
    budget.setPressure('short');
    relief.stop();
    relief = clock.after(shortMs, () => budget.setPressure('enough'));
  };
  const collections = new FinalizationRegistry(contained({ where: 'memory' }, onCollection));
  const arm = (): void => collections.register({}, undefined);
  arm();
  return () => {
    isOver = true;
    relief.stop();
  };
}

function memoryUpdater(registry: MetricRegistry, budget: MemoryBudget): () => void {
  const used = registry.gauge({
    name: 'wheelhouse_memory_budget_used_bytes',
    help: 'Estimated bytes charged to clients, by purpose.',
    stability: 'ALPHA',
    labels: ['use'],
  });
  const limit = registry.gauge({
    name: 'wheelhouse_memory_budget_limit_bytes',
    help: 'Bytes that may be charged to all clients before the heaviest client is disconnected.',
    stability: 'ALPHA',
    labels: [],
  });
  const refused = registry.counter({
    name: 'wheelhouse_memory_budget_refused_total',
    help: 'Number of requests that were answered 429 because their client held too much memory.',
    stability: 'ALPHA',
    labels: [],
  });
  const shed = registry.counter({
    name: 'wheelhouse_memory_budget_shed_total',
    help: 'Number of requests and connections ended to free the memory that they held.',
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

/** File descriptors reserved for the store, logs, certificates, and outgoing connections. */
const reserveMin = 64;
const reserveMax = 1024;
const reservePart = 1 / 8;
const connectionsMin = 16;

/**
 * Number of connections that fit into the process's limit on open files, less a reserve (TRUST-4);
 * infinite if there is no limit or it cannot be read.
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
