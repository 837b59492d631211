import {
  type AddressOwner,
  type AddressPool,
  type AddressRecords,
  addressLabels,
  cidrsOf,
  createWholePool,
  type Family,
  familyOf,
  isReady,
  type ResourceDef,
  type Stored,
} from '@wheelhouse/kinds';
import type { IPAddress, ServiceCIDR } from '@wheelhouse/kinds/types/networking/v1beta1';
import {
  type ApiObject,
  blockContains,
  type Clock,
  type Dialect,
  formatIpAddress,
  formatTime,
  type IpBlock,
  type JsonObject,
  type Logger,
  parseIpAddress,
  parseIpBlock,
} from '@wheelhouse/machinery';
import type { CachePool } from '../../registry/caches.ts';
import { decodedInSlices, decodeEntry } from '../../registry/object-codec.ts';
import type { Entry } from '../../watchcache/entry.ts';
import {
  type ControllerTools,
  listEntries,
  type ObjectWriter,
  withoutFinalizer,
} from '../tools.ts';
import { type Controller, createWorkQueue, runningQueue } from '../work-queue.ts';

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
export function startServiceCidrs(options: Tools): Controller {
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
  return runningQueue(queue, ranges, addresses, () => first);
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

/** The kinds of the allocator: ServiceCIDRs and IPAddresses. */
export interface AddressKinds {
  readonly ranges: ResourceDef;
  readonly addresses: ResourceDef;
}

/** The name of the IPAddress of an address, regardless of its spelling. */
export function recordName(ip: string): string {
  const address = parseIpAddress(ip);
  return address === undefined ? ip : formatIpAddress(address);
}

/** The IPAddress that records a Service's address. */
export function recordOf(ip: string, owner: AddressOwner, dialect: Dialect): ApiObject {
  const labels = addressLabels(dialect);
  const name = recordName(ip);
  return {
    apiVersion: `${dialect.group('networking')}/v1beta1`,
    kind: 'IPAddress',
    metadata: {
      name,
      labels: { [labels.family]: familyOf(name), [labels.managedBy]: labels.allocator },
    },
    spec: { parentRef: { group: '', resource: 'services', ...owner } },
  };
}

/** Whether an IPAddress records that a Service has the address. */
export function isOwnedBy(record: Stored<IPAddress>, owner: AddressOwner): boolean {
  const parent = record.spec?.parentRef ?? undefined;
  return (
    (parent?.group ?? '') === '' &&
    (parent?.resource ?? '') === 'services' &&
    (parent?.namespace ?? '') === owner.namespace &&
    (parent?.name ?? '') === owner.name
  );
}

/** Creates the port through which the allocator of Services uses ServiceCIDRs and IPAddresses. */
export function createAddressRecords(options: {
  readonly kinds: AddressKinds;
  readonly caches: CachePool;
  readonly writer: ObjectWriter;
  readonly dialect: Dialect;
  readonly clock: Clock;
  readonly logger: Logger;
}): AddressRecords {
  const { kinds, caches, writer, dialect, clock, logger } = options;
  const { ranges, addresses } = kinds;
  const cached = cachedPools(caches, ranges);
  const at = (ip: string) => ({ def: addresses, namespace: '', name: recordName(ip) });
  return {
    async caughtUp() {
      await Promise.all([cached.refresh(), caches.of(addresses).get('', undefined)]);
    },
    pools: (family) => cached.pools(family),
    isRecorded: (key) => caches.of(addresses).peek(key.slice('ip:'.length)) !== undefined,
    record: (ip, owner) => writer.create(at(ip), recordOf(ip, owner, dialect)),
    async erase(ip, owner) {
      try {
        const entry = await caches.of(addresses).get(recordName(ip), undefined);
        if (entry === undefined) return;
        if (!isOwnedBy(await decodedInSlices(entry, clock), owner)) return;
        await writer.remove(at(ip), { preconditions: { uid: entry.index.uid } });
      } catch (error) {
        logger.warn('cannot remove an IPAddress; the repair will', { ip, error: String(error) });
      }
    },
  };
}

/** The pools of the ready ranges, rebuilt when a ServiceCIDR changes. */
function cachedPools(caches: CachePool, ranges: ResourceDef) {
  let cached: { readonly generation: number; readonly pools: readonly AddressPool[] } | undefined;
  let generation = 0;
  let isFollowed = false;
  const load = async (): Promise<readonly AddressPool[]> => {
    const entries = await listEntries(caches, { def: ranges, namespace: '' });
    const ready = entries.map(decodeEntry).filter(isReady);
    const blocks = new Set(ready.flatMap(cidrsOf));
    return [...blocks].flatMap((text) => {
      const block = parseIpBlock(text);
      return block === undefined ? [] : [createWholePool(block)];
    });
  };
  return {
    async refresh() {
      const cache = caches.of(ranges);
      if (!isFollowed) {
        isFollowed = true;
        cache.subscribe(() => {
          generation += 1;
        });
      }
      await cache.get('', undefined);
      if (cached?.generation === generation) return;
      const loading = generation;
      cached = { generation: loading, pools: await load() };
    },
    pools: (family: Family) => (cached?.pools ?? []).filter((pool) => pool.family === family),
  };
}
