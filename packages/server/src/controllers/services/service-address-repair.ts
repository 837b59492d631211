import {
  addressesOf,
  addressLabels,
  cidrsOf,
  createWholePool,
  familyOf,
  type ResourceDef,
  type Stored,
} from '@wheelhouse/kinds';
import type { IPAddress } from '@wheelhouse/kinds/types/networking/v1beta1';
import { type ApiObject, type Dialect, parseIpBlock } from '@wheelhouse/machinery';
import { decodeEntry, objectKey } from '../../registry/object-codec.ts';
import { type ControllerTools, listEntries } from '../tools.ts';
import { createWorkQueue } from '../work-queue.ts';
import { type AddressKinds, isOwnedBy, recordName, recordOf } from './address-records.ts';

/** How long an IPAddress may exist before its Service: the longest time of a request. */
const graceMs = 60_000;

/** Interval between full passes, in milliseconds. */
const resyncMs = 180_000;

interface Tools extends ControllerTools {
  readonly kinds: AddressKinds;
  readonly services: ResourceDef;
  readonly dialect: Dialect;
}

/**
 * Keeps Services and IPAddresses consistent: records addresses of Services that have no record or a
 * wrong one, and removes records without a Service. This recovers addresses after a crash, and
 * gives records to Services from before the allocator.
 */
export function startServiceAddressRepair(tools: Tools): { close(): Promise<void> } {
  const { kinds, services, caches, clock, logger } = tools;
  const queue = createWorkQueue({
    ...tools,
    name: 'service-ip-repair',
    run: (key) =>
      key.startsWith('service:')
        ? repairService(tools, key.slice('service:'.length))
        : repairRecord(tools, key.slice('record:'.length), (delayMs) =>
            queue.addAfter(key, delayMs),
          ),
    workers: 4,
  });
  const addAll = async (): Promise<void> => {
    for (const { key } of await listEntries(caches, { def: services, namespace: '' })) {
      queue.add(`service:${key}`);
    }
    for (const { key } of await listEntries(caches, { def: kinds.addresses, namespace: '' })) {
      queue.add(`record:${key}`);
    }
  };
  const look = () =>
    addAll().catch((error: unknown) =>
      logger.error('Services could not be listed', { error: String(error) }),
    );
  const subscriptions = [
    caches.of(services).subscribe(({ current }) => {
      if (current !== undefined) queue.add(`service:${current.key}`);
    }),
    caches.of(kinds.addresses).subscribe(({ previous, current }) => {
      const key = current?.key ?? previous?.key ?? '';
      queue.add(`record:${key}`);
      // The removed record may have been that of a Service.
      const parent = previous === undefined ? undefined : parentKey(decodeEntry(previous));
      if (parent !== undefined) queue.add(`service:${parent}`);
    }),
  ];
  let first = look();
  let timer = clock.after(resyncMs, again);
  function again(): void {
    first = look();
    timer = clock.after(resyncMs, again);
  }
  return {
    async close() {
      timer.stop();
      for (const subscription of subscriptions) subscription.close();
      await Promise.all([queue.close(), first]);
    },
  };
}

/** The key of the Service that a record names; undefined if it names something else. */
function parentKey(record: Stored<IPAddress>): string | undefined {
  const parent = record.spec?.parentRef ?? undefined;
  if ((parent?.group ?? '') !== '' || (parent?.resource ?? '') !== 'services') return undefined;
  return objectKey(parent?.namespace ?? '', parent?.name ?? '');
}

async function repairService(tools: Tools, key: string): Promise<void> {
  const { caches, services, kinds, logger, dialect, writer } = tools;
  const entry = await caches.of(services).get(key, undefined);
  if (entry === undefined) return;
  const { namespace, name } = entry.index;
  const owner = { namespace, name };
  for (const ip of addressesOf(decodeEntry(entry))) {
    const about = { service: key, ip };
    if (await isOutOfRange(tools, ip)) {
      logger.warn('a Service has an address of no ServiceCIDR; please recreate it', about);
      continue;
    }
    const at = { def: kinds.addresses, namespace: '', name: recordName(ip) };
    const found = await caches.of(kinds.addresses).get(at.name, undefined);
    if (found !== undefined) {
      const record = decodeEntry(found);
      if (isOwnedBy(record, owner) && isLabeled(record, dialect)) continue;
      const other = await otherHolder(tools, record, ip);
      if (other !== undefined && other !== key) {
        logger.warn('two Services have one address; please recreate one', { ...about, other });
        continue;
      }
      await writer.remove(at, { preconditions: { uid: found.index.uid } });
    }
    logger.warn('an address of a Service has no record; repairing', about);
    await writer.create(at, recordOf(ip, owner, dialect));
  }
}

async function isOutOfRange({ caches, kinds }: Tools, ip: string): Promise<boolean> {
  const ranges = await listEntries(caches, { def: kinds.ranges, namespace: '' });
  const blocks = ranges.flatMap((entry) => cidrsOf(decodeEntry(entry)));
  return !blocks.some((text) => {
    const block = parseIpBlock(text);
    return block !== undefined && createWholePool(block).keyOfAddress(ip) !== undefined;
  });
}

/** The key of the Service that a record names, if that Service has the address. */
async function otherHolder(
  { caches, services }: Tools,
  record: ApiObject,
  ip: string,
): Promise<string | undefined> {
  const key = parentKey(record);
  const entry = key === undefined ? undefined : await caches.of(services).get(key, undefined);
  if (entry === undefined) return undefined;
  const names = addressesOf(decodeEntry(entry)).map(recordName);
  return names.includes(recordName(ip)) ? key : undefined;
}

function isLabeled({ metadata }: ApiObject, dialect: Dialect): boolean {
  const { family, managedBy, allocator } = addressLabels(dialect);
  const { labels = {}, name = '' } = metadata;
  return labels[family] === familyOf(name) && labels[managedBy] === allocator;
}

async function repairRecord(
  tools: Tools,
  name: string,
  later: (delayMs: number) => void,
): Promise<void> {
  const { caches, services, kinds, clock, dialect, writer, logger } = tools;
  const entry = await caches.of(kinds.addresses).get(name, undefined);
  if (entry === undefined) return;
  const record = decodeEntry(entry);
  const { managedBy, allocator } = addressLabels(dialect);
  if (record.metadata.labels?.[managedBy] !== allocator) return;
  const key = parentKey(record);
  const parent = key === undefined ? undefined : await caches.of(services).get(key, undefined);
  if (key !== undefined && parent === undefined) {
    const created = Date.parse(record.metadata.creationTimestamp ?? '');
    const leftMs = created + graceMs - clock.now();
    if (leftMs >= 0) {
      later(leftMs + 1);
      return;
    }
  } else if (parent !== undefined) {
    const names = addressesOf(decodeEntry(parent)).map(recordName);
    if (names.includes(name)) return;
  }
  logger.warn('an IPAddress belongs to no Service: cleaning up', { name, parent: key });
  const at = { def: kinds.addresses, namespace: '', name };
  await writer.remove(at, { preconditions: { uid: entry.index.uid } });
}
