import { addressLabels, cidrsOf, createWholePool, type Stored } from '@wheelhouse/kinds';
import type { ServiceCIDR } from '@wheelhouse/kinds/types/networking/v1beta1';
import {
  type ApiObject,
  blockContains,
  type Dialect,
  formatTime,
  type IpBlock,
  type JsonObject,
  parseIpBlock,
} from '@wheelhouse/machinery';
import { decodeEntry } from '../../registry/object-codec.ts';
import type { Entry } from '../../watchcache/entry.ts';
import { type ControllerTools, listEntries, withoutFinalizer } from '../tools.ts';
import { createWorkQueue } from '../work-queue.ts';
import type { AddressKinds } from './address-records.ts';

/** Milliseconds for which an unused range is kept, so that every allocator notices its deletion. */
const removalDelayMs = 10_000;

interface Tools extends ControllerTools {
  readonly kinds: AddressKinds;
  readonly dialect: Dialect;
}

/** The finalizer that keeps a ServiceCIDR while addresses depend on it. */
const rangeFinalizer = (dialect: Dialect): string =>
  `${dialect.group('networking')}/service-cidr-finalizer`;

const blocksOf = (object: ApiObject): readonly IpBlock[] =>
  cidrsOf(object).flatMap((text) => parseIpBlock(text) ?? []);

/** Creates a `Ready` condition for an apply of a ServiceCIDR's status. */
export function readyCondition(ready: {
  readonly status: 'True' | 'False';
  readonly reason?: string;
  readonly message: string;
  readonly nowMs: number;
}): JsonObject {
  const { status, reason, message, nowMs } = ready;
  return {
    type: 'Ready',
    status,
    ...(reason === undefined ? {} : { reason }),
    message,
    lastTransitionTime: formatTime(nowMs),
  };
}

/**
 * Protects ServiceCIDRs with a finalizer, marks them ready, and releases deleted ones once no
 * address depends on them (MultiCIDRServiceAllocator).
 */
export function startServiceCidrs(options: Tools): { close(): Promise<void> } {
  const { kinds, caches, logger } = options;
  const cache = caches.of(kinds.ranges);
  const run = (name: string) => syncRange(options, { name, later: queue.addAfter });
  const queue = createWorkQueue({ ...options, name: 'service-cidr-controller', run, workers: 4 });
  const addAll = async () => {
    const entries = await listEntries(caches, { def: kinds.ranges, namespace: '' });
    for (const entry of entries) queue.add(entry.key);
  };
  const failed = (error: unknown) =>
    logger.error('cannot list ServiceCIDRs', { error: String(error) });
  // A change of one range may release others, or make others wait.
  const ranges = cache.subscribe(({ previous, current }) => {
    if (current !== undefined) queue.add(current.key);
    if (previous === undefined || current === undefined) addAll().catch(failed);
  });
  const labels = addressLabels(options.dialect);
  const addresses = caches.of(kinds.addresses).subscribe(({ previous, current }) => {
    const entry = previous ?? current;
    if (previous !== undefined && current !== undefined) return;
    if (entry?.index.labels[labels.managedBy] === labels.allocator) addWaiting().catch(failed);
  });
  /** Queues the ranges being deleted that contain an address. */
  const addWaiting = async () => {
    const entries = await listEntries(caches, { def: kinds.ranges, namespace: '' });
    for (const entry of entries) if (entry.index.deleting === true) queue.add(entry.key);
  };
  const first = addAll().catch(failed);
  return {
    async close() {
      ranges.close();
      addresses.close();
      await Promise.all([queue.close(), first]);
    },
  };
}

async function syncRange(
  tools: Tools,
  { name, later }: { name: string; later: (key: string, delayMs: number) => void },
): Promise<void> {
  const { kinds, caches, writer, clock, dialect } = tools;
  const entry = await caches.of(kinds.ranges).get(name, undefined);
  if (entry === undefined) return;
  const range = decodeEntry(entry);
  const at = { def: kinds.ranges, namespace: '', name };
  const finalizer = rangeFinalizer(dialect);
  const { deletionTimestamp } = range.metadata;
  if (deletionTimestamp !== undefined) {
    if (await holdsAddresses(tools, range)) {
      const reason = 'Terminating';
      const message =
        'There are still IPAddresses referencing the ServiceCIDR, please remove them or create a ' +
        'new ServiceCIDR';
      await applyReady(tools, range, { status: 'False', reason, message });
      return;
    }
    const leftMs = Date.parse(deletionTimestamp) + removalDelayMs - clock.now();
    if (leftMs > 0) later(name, leftMs);
    else await writer.change(at, (current) => withoutFinalizer(current, finalizer));
    return;
  }
  if (range.metadata.finalizers?.includes(finalizer) !== true) {
    await writer.change(at, (current) => withFinalizer(current, finalizer));
  }
  const message = 'Kubernetes Service CIDR is ready';
  await applyReady(tools, range, { status: 'True', message });
}

/** Applies the Ready condition, unless it is unchanged. */
async function applyReady(
  { kinds, writer, clock }: Tools,
  range: Stored<ServiceCIDR>,
  ready: Omit<Parameters<typeof readyCondition>[0], 'nowMs'>,
): Promise<void> {
  const current = (range.status?.conditions ?? []).find(({ type }) => type === 'Ready');
  const isUnchanged =
    current !== undefined &&
    (current.status ?? '') === ready.status &&
    (current.reason ?? '') === (ready.reason ?? '');
  if (isUnchanged) return;
  const { apiVersion, kind, metadata } = range;
  const name = metadata.name ?? '';
  const at = { def: kinds.ranges, namespace: '', name, subresource: 'status' };
  const conditions = [readyCondition({ ...ready, nowMs: clock.now() })];
  await writer.apply(at, { apiVersion, kind, metadata: { name }, status: { conditions } });
}

function withFinalizer(object: ApiObject, finalizer: string): ApiObject {
  const finalizers = [...(object.metadata.finalizers ?? []), finalizer];
  return { ...object, metadata: { ...object.metadata, finalizers } };
}

/** Whether an allocated address is only in this range. */
async function holdsAddresses(tools: Tools, range: ApiObject): Promise<boolean> {
  const { kinds, caches, dialect } = tools;
  const all = await listEntries(caches, { def: kinds.ranges, namespace: '' });
  const others = all.filter(({ key }) => key !== range.metadata.name).map(decodeEntry);
  const otherBlocks = others.flatMap(blocksOf);
  const own = blocksOf(range);
  const isCovered = (block: IpBlock) => otherBlocks.some((outer) => blockContains(outer, block));
  if (own.every(isCovered)) return false;
  const labels = addressLabels(dialect);
  const pools = own.map(createWholePool);
  const otherPools = otherBlocks.map(createWholePool);
  const dependsOnRange = ({ key, index }: Entry) =>
    index.labels[labels.managedBy] === labels.allocator &&
    pools.some((pool) => pool.keyOfAddress(key) !== undefined) &&
    !otherPools.some((pool) => pool.keyOfAddress(key) !== undefined);
  return (await listEntries(caches, { def: kinds.addresses, namespace: '' })).some(dependsOnRange);
}
