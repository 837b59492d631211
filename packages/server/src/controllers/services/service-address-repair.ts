import { hostname } from 'node:os';
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
import {
  type ApiObject,
  background,
  type Dialect,
  errorText,
  formatMicroTime,
  parseIpBlock,
} from '@wheelhouse/machinery';
import { decodedInSlices, decodeEntry, objectKey } from '../../registry/object-codec.ts';
import type { Entry } from '../../watchcache/entry.ts';
import { type ControllerTools, listEntries } from '../tools.ts';
import { type Controller, createWorkQueue, runningQueue } from '../work-queue.ts';
import { type AddressKinds, isOwnedBy, recordName, recordOf } from './service-addresses.ts';

/** Milliseconds for which an IPAddress may exist before its Service: the longest request. */
const graceMs = 60_000;

/** Interval between full passes, in milliseconds. */
const resyncMs = 180_000;

interface Tools extends ControllerTools {
  readonly kinds: AddressKinds;
  readonly services: ResourceDef;
  readonly events: ResourceDef;
  readonly dialect: Dialect;
}

/** The name under which Events report repairs. */
export const addressRepairer = 'ipallocator-repair-controller';

/**
 * Keeps Services and IPAddresses consistent: creates missing and replaces wrong records of
 * Services' addresses, and removes records without a Service. This repairs records after a crash,
 * and creates them for Services that precede the allocator. Events report all repairs.
 */
export function startServiceAddressRepair(options: Tools): Controller {
  const reporter = new EventReporter(options, addressRepairer);
  const tools = { ...options, reporter };
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
  const addParent = async (entry: Entry): Promise<void> => {
    const parent = parentKey(await decodedInSlices(entry, clock));
    if (parent !== undefined) queue.add(`service:${parent}`);
  };
  const pass = () =>
    addAll().catch((error: unknown) =>
      logger.error('cannot list Services and IPAddresses', { error: String(error) }),
    );
  const subscriptions = [
    caches.of(services).subscribe(({ current }) => {
      if (current !== undefined) queue.add(`service:${current.key}`);
    }),
    caches.of(kinds.addresses).subscribe(({ previous, current }) => {
      const key = current?.key ?? previous?.key ?? '';
      queue.add(`record:${key}`);
      // The removed record may have been that of a Service.
      if (previous !== undefined) background({ where: 'controller' }, addParent(previous));
    }),
  ];
  let lastPass = pass();
  const timer = clock.every(resyncMs, () => {
    lastPass = pass();
  });
  return runningQueue(
    queue,
    () => timer.stop(),
    ...subscriptions,
    () => lastPass,
  );
}

/** The key of the Service that a record names; undefined if it names something else. */
function parentKey(record: Stored<IPAddress>): string | undefined {
  const parent = record.spec?.parentRef ?? undefined;
  if ((parent?.group ?? '') !== '' || (parent?.resource ?? '') !== 'services') return undefined;
  return objectKey(parent?.namespace ?? '', parent?.name ?? '');
}

interface RepairTools extends Tools {
  readonly reporter: EventReporter;
}

async function repairService(tools: RepairTools, key: string): Promise<void> {
  const { caches, services, kinds, logger, dialect, writer, reporter, clock } = tools;
  const entry = await caches.of(services).get(key, undefined);
  if (entry === undefined) return;
  const { namespace, name } = entry.index;
  const owner = { namespace, name };
  const service = await decodedInSlices(entry, clock);
  const report = (reason: string, note: string) =>
    reporter.report(service, { reason, action: 'ClusterIPAllocation', note });
  for (const ip of addressesOf(service)) {
    const about = { service: key, ip };
    const place = `[${familyOf(ip)}]: ${ip}`;
    if (await isOutOfRange(tools, ip)) {
      logger.warn('the address of a Service is in no ServiceCIDR; please recreate it', about);
      await report(
        'ClusterIPOutOfRange',
        `Cluster IP ${place} is not within any configured Service CIDR; please recreate service`,
      );
      continue;
    }
    const at = { def: kinds.addresses, namespace: '', name: recordName(ip) };
    const found = await caches.of(kinds.addresses).get(at.name, undefined);
    if (found !== undefined) {
      const record = await decodedInSlices(found, clock);
      if (isOwnedBy(record, owner) && isLabeled(record, dialect)) continue;
      const other = await confirmedHolder(tools, record, ip);
      if (other !== undefined && other !== key) {
        logger.warn('two Services have the same address; please recreate one', { ...about, other });
        await report(
          'ClusterIPAlreadyAllocated',
          `Cluster IP [${familyOf(ip)}]:${ip} was assigned to multiple services; please recreate service`,
        );
        continue;
      }
      if (!isOwnedBy(record, owner)) {
        await report(
          'ClusterIPNotAllocated',
          `the ClusterIP ${place} for Service ${namespace}/${name} has a wrong reference; repairing`,
        );
      }
      await writer.remove(at, { preconditions: { uid: found.index.uid } });
    }
    logger.warn('creating the missing IPAddress of a Service', about);
    if (found === undefined) {
      await report('ClusterIPNotAllocated', `Cluster IP ${place} is not allocated; repairing`);
    }
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
async function confirmedHolder(
  { caches, services, clock }: Tools,
  record: ApiObject,
  ip: string,
): Promise<string | undefined> {
  const key = parentKey(record);
  const entry = key === undefined ? undefined : await caches.of(services).get(key, undefined);
  if (entry === undefined) return undefined;
  const names = addressesOf(await decodedInSlices(entry, clock)).map(recordName);
  return names.includes(recordName(ip)) ? key : undefined;
}

function isLabeled({ metadata }: ApiObject, dialect: Dialect): boolean {
  const { family, managedBy, allocator } = addressLabels(dialect);
  const { labels = {}, name = '' } = metadata;
  return labels[family] === familyOf(name) && labels[managedBy] === allocator;
}

async function repairRecord(
  tools: RepairTools,
  name: string,
  later: (delayMs: number) => void,
): Promise<void> {
  const { caches, services, kinds, clock, dialect, writer, logger, reporter } = tools;
  const entry = await caches.of(kinds.addresses).get(name, undefined);
  if (entry === undefined) return;
  const record = await decodedInSlices(entry, clock);
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
    const names = addressesOf(await decodedInSlices(parent, clock)).map(recordName);
    if (names.includes(name)) return;
  }
  logger.warn('removing an IPAddress that belongs to no Service', { name, parent: key });
  await reporter.report(record, {
    ...removalOf(record, parent === undefined ? 'absent' : 'present'),
    action: 'IPAddressAllocation',
  });
  const at = { def: kinds.addresses, namespace: '', name };
  await writer.remove(at, { preconditions: { uid: entry.index.uid } });
}

/** Why a record is removed; `service` tells whether the Service that it names exists. */
function removalOf(
  record: Stored<IPAddress>,
  service: 'present' | 'absent',
): Pick<Incident, 'reason' | 'note'> {
  const { name = '' } = record.metadata;
  const {
    group = '',
    resource = '',
    namespace = '',
    name: parent = '',
  } = { ...record.spec?.parentRef };
  if (parentKey(record) === undefined) {
    const shown = `&ParentReference{Group:${group},Resource:${resource},Namespace:${namespace},Name:${parent},}`;
    return {
      reason: 'IPAddressNotAllocated',
      note: `IPAddress ${name} appears to have been modified, not referencing a Service ${shown}: cleaning up`,
    };
  }
  const subject = `IPAddress: ${name} for Service ${namespace}/${parent}`;
  return service === 'absent'
    ? { reason: 'IPAddressNotAllocated', note: `${subject} appears to have leaked: cleaning up` }
    : { reason: 'IPAddressWrongReference', note: `${subject} has a wrong reference; cleaning up` };
}

/** What an Event says about an object. */
interface Incident {
  readonly reason: string;
  readonly action: string;
  readonly note: string;
}

/** Milliseconds after which an incident that persists is reported again. */
const repeatMs = 30 * 60_000;

/**
 * Reports incidents as Events of type Warning, which `kubectl describe` shows with the object. An
 * Event that cannot be stored is only logged, because it must not delay its controller.
 */
class EventReporter {
  readonly #tools: ControllerTools & { readonly events: ResourceDef };
  readonly #controller: string;
  /** When each incident was last reported, in monotonic milliseconds; the oldest first. */
  readonly #reported = new Map<string, number>();
  #count = 0;

  /** @param controller the name of the reporting controller */
  constructor(tools: ControllerTools & { readonly events: ResourceDef }, controller: string) {
    this.#tools = tools;
    this.#controller = controller;
  }

  /** Reports an incident of an object, unless the same one was reported within half an hour. */
  async report({ apiVersion, kind, metadata }: ApiObject, incident: Incident): Promise<void> {
    const { clock, events, logger, writer } = this.#tools;
    const { name = '', namespace = '', uid = '', resourceVersion } = metadata;
    if (this.#isRepeated(`${uid} ${incident.reason} ${incident.note}`)) return;
    const place = namespace === '' ? 'default' : namespace;
    this.#count = (this.#count + 1) % 1_000_000;
    const nanoseconds = BigInt(Math.floor(clock.now())) * 1_000_000n + BigInt(this.#count);
    const at = { def: events, namespace: place, name: `${name}.${nanoseconds.toString(16)}` };
    const event: ApiObject = {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name: at.name, namespace: place },
      involvedObject: {
        kind,
        ...(namespace === '' ? {} : { namespace }),
        name,
        uid,
        apiVersion,
        ...(resourceVersion === undefined ? {} : { resourceVersion }),
      },
      reason: incident.reason,
      message: incident.note,
      type: 'Warning',
      eventTime: formatMicroTime(clock.now()),
      action: incident.action,
      reportingComponent: this.#controller,
      reportingInstance: `${this.#controller}-${hostname()}`,
    };
    try {
      await writer.create(at, event);
    } catch (error) {
      logger.debug(2, 'cannot store an Event', { name: at.name, error: errorText(error) });
    }
  }

  #isRepeated(incident: string): boolean {
    const now = this.#tools.clock.monotonic();
    for (const [old, reportedMs] of this.#reported) {
      if (now - reportedMs < repeatMs) break;
      this.#reported.delete(old);
    }
    if (this.#reported.has(incident)) return true;
    this.#reported.set(incident, now);
    return false;
  }
}
