import {
  type Crd,
  type CrdStatus,
  type CustomKindDeps,
  crdIsEstablished,
  crdOf,
  type NumberClaims,
  type ReconcileOptions,
  type ResourceDef,
  setCondition,
} from '@wheelhouse/kinds';
import { type Dialect, formatTime, runAtPace, Slices } from '@wheelhouse/machinery';
import type { Catalogue } from '../../catalogue/catalogue.ts';
import { decodedAt, decodeEntry } from '../../registry/object-codec.ts';
import type { EntryChange } from '../../watchcache/contract.ts';
import type { Entry } from '../../watchcache/entry.ts';
import { CorruptObjectError } from '../../watchcache/store-errors.ts';
import {
  type ControllerTools,
  isUnmarked,
  listEntries,
  removeEntries,
  withoutFinalizer,
} from '../tools.ts';
import { createWorkQueue } from '../work-queue.ts';
import { KindTable } from './kind-table.ts';

/** Interval for rechecking custom objects that finalizers hold, in milliseconds. */
const recheckMs = 200;
/** Interval in milliseconds for retrying while another server assigns names of the group. */
const claimRetryMs = 50;

/** Keeps the catalogue's custom kinds in sync with the CustomResourceDefinitions (CRD-1). */
interface CustomKinds {
  /** Resolves when the definitions stored before the start are served. */
  readonly ready: Promise<void>;
  close(): Promise<void>;
}

interface CustomKindsOptions extends ControllerTools {
  readonly definitions: ResourceDef;
  readonly catalogue: Catalogue;
  readonly deps: CustomKindDeps;
  readonly dialect: Dialect;
  /** Validates the CA bundle of a conversion webhook (base64 of PEM). */
  readonly checkBundle: ReconcileOptions['checkBundle'];
  readonly cleanupFinalizer: string;
  /** Present when other servers on the same store assign names too. */
  readonly claims?: NumberClaims | undefined;
}

/**
 * Follows the definitions. A kind is served before its definition's status says so, and removed
 * after its objects are gone.
 */
export function startCustomKinds(options: CustomKindsOptions): CustomKinds {
  const { definitions, caches, clock, logger } = options;
  const cache = caches.of(definitions);
  const kinds = new KindTable(options);
  const emptied = new Set<string>();
  /** The current definition, including newly accepted names. */
  const current = async (name: string) => {
    await ready;
    await cache.get(name, undefined);
    await following.idle();
    return kinds.get(name);
  };
  const decideNames = async (name: string) => {
    const crd = await current(name);
    if (crd === undefined) return;
    if (crd.metadata.deletionTimestamp !== undefined) return removals.add(name);
    if (kinds.newStatus(crd) === undefined) return;
    const claim = await claimGroup(options, crd.spec.group);
    if (claim === undefined) return names.addAfter(name, claimRetryMs);
    try {
      // Includes the names that other servers have assigned; the claim excludes further ones.
      const now = await current(name);
      const isPresent = now !== undefined && now.metadata.deletionTimestamp === undefined;
      if (isPresent) await writeStatus(options, kinds, now);
    } catch (error) {
      claim.letExpire();
      throw error;
    }
    claim.release();
  };
  const remove = async (name: string) => {
    const crd = await current(name);
    if (crd?.metadata.deletionTimestamp === undefined) return;
    if (await cleanUp({ ...options, emptied }, kinds, crd)) removals.addAfter(name, recheckMs);
  };
  // One at a time, so that two definitions never receive the same name.
  const tools = { clock, logger, queues: options.queues };
  const names = createWorkQueue({ ...tools, name: namesQueue, run: decideNames, workers: 1 });
  const removals = createWorkQueue({ ...tools, name: 'crd_finalizer', run: remove, workers: 4 });
  const following = followInSteps(options, kinds, (name, crd) => {
    for (const queued of kinds.change(name, crd)) names.add(queued);
  });
  const subscription = cache.subscribe(following.receive);
  const ready = cache.ready().then(async () => {
    const stored = await storedDefinitions(options);
    for (const name of kinds.fill(stored)) names.add(name);
  });
  // A server whose start fails closes the caches before this promise is awaited.
  ready.catch(() => {});
  return {
    ready,
    async close() {
      subscription.close();
      await Promise.all([names.close(), removals.close()]);
    },
  };
}

/** Definitions of at least this many bytes of JSON are parsed and checked in steps. */
const largeDefinitionBytes = 131_072;

/**
 * Applies changes in order: a small definition at once, and a large one in its own turn of the
 * event loop after it has been parsed and checked in steps (TRUST-2). Small definitions wait for a
 * large one ahead of them.
 */
function followInSteps(
  { clock, logger }: Pick<CustomKindsOptions, 'clock' | 'logger'>,
  kinds: KindTable,
  apply: (name: string, crd: Crd | undefined) => void,
) {
  let waiting = 0;
  let last: Promise<void> = Promise.resolve();
  const isLarge = (change: EntryChange): change is EntryChange & { readonly current: Entry } =>
    (change.current?.json.length ?? 0) >= largeDefinitionBytes;
  const definitionOf = ({ current }: EntryChange) =>
    current === undefined ? undefined : crdOf(decodeEntry(current));
  const applyInSteps = async (change: EntryChange) => {
    try {
      const name = nameOf(change);
      if (!isLarge(change)) return apply(name, definitionOf(change));
      const slices = new Slices(clock);
      await slices.pause();
      const crd = crdOf(await decodedAt(slices, change.current));
      await runAtPace(kinds.check(name, crd), slices);
      await slices.pause();
      apply(name, crd);
    } catch (error) {
      logger.error('cannot apply a changed CustomResourceDefinition', { error: String(error) });
    } finally {
      waiting -= 1;
    }
  };
  return {
    receive(change: EntryChange) {
      if (waiting === 0 && !isLarge(change)) {
        apply(nameOf(change), definitionOf(change));
        return;
      }
      waiting += 1;
      last = last.then(() => applyInSteps(change));
    },
    /** Resolves when all received changes are applied. */
    idle: () => last,
  };
}

const nameOf = ({ current, previous }: EntryChange) => (current ?? previous)?.index.name ?? '';

const namesQueue = 'crd_naming_condition_controller';

const unsharedClaim = { release: () => {}, letExpire: () => {} };

/** The exclusive right to assign names of a group; undefined while another server holds it. */
async function claimGroup({ claims }: CustomKindsOptions, group: string) {
  return claims === undefined ? unsharedClaim : claims.take([`definitions/${group}`]);
}

/**
 * The readable definitions. Unreadable ones are logged; their kinds are not served, and their
 * objects stay in the store.
 */
async function storedDefinitions({
  caches,
  definitions,
  logger,
}: CustomKindsOptions): Promise<ReadonlyMap<string, Crd>> {
  const at = { def: definitions, namespace: '' };
  const entries = await listEntries(caches, at).catch((error: unknown) => {
    if (!(error instanceof CorruptObjectError)) throw error;
    const keys = (error.status.details?.causes ?? []).map(({ field = '' }) => field);
    logger.error('cannot read stored CustomResourceDefinitions', { keys: keys.join(', ') });
    return listEntries(caches, at, { unreadable: 'omitted' });
  });
  const decode = (entry: Entry) => [entry.index.name, crdOf(decodeEntry(entry))] as const;
  return new Map(entries.map(decode));
}

async function writeStatus(
  { definitions, writer }: CustomKindsOptions,
  kinds: KindTable,
  crd: Crd,
): Promise<void> {
  if (kinds.newStatus(crd) === undefined) return;
  const at = { def: definitions, namespace: '', name: crd.metadata.name ?? '' };
  await writer.change({ ...at, subresource: 'status' }, (object) => {
    const current = crdOf(object);
    const status = kinds.newStatus(current);
    return status === undefined ? current : { ...current, status };
  });
}

/**
 * Removes the kind's objects and then the finalizer; returns true while objects remain.
 * @param options.emptied UIDs of definitions whose objects have been deleted once; finalizers may
 *   hold some
 */
async function cleanUp(
  options: CustomKindsOptions & { readonly emptied: Set<string> },
  kinds: KindTable,
  crd: Crd,
): Promise<boolean> {
  const { writer, definitions, cleanupFinalizer, caches, emptied } = options;
  const { uid = '' } = crd.metadata;
  const at = { def: definitions, namespace: '', name: crd.metadata.name ?? '' };
  const finalizers = crd.metadata.finalizers ?? [];
  if (!finalizers.includes(cleanupFinalizer)) return false;
  await markTerminating(options, crd, {
    status: 'True',
    reason: progressOf(crd, options.clock.now()),
  });
  const def = kinds.find(at.name);
  if (def !== undefined) {
    const all = { def, namespace: '' };
    const found = await listEntries(caches, all);
    const entries = emptied.has(uid) ? found.filter(isUnmarked) : found;
    await removeEntries({ writer, def, entries });
    emptied.add(uid);
    const left = await listEntries(caches, all);
    if (left.length > 0) return true;
  }
  // Visible only if another finalizer keeps the definition.
  if (finalizers.length > 1) {
    await markTerminating(options, crd, { status: 'False', reason: outcomeOf(crd, kinds) });
  }
  // A status write does not validate the spec, which newer rules may reject.
  await writer.change({ ...at, subresource: 'status' }, (object) =>
    withoutFinalizer(object, cleanupFinalizer),
  );
  emptied.delete(uid);
  return false;
}

/** The messages of the condition Terminating, by its reason. */
const cleanupMessages = {
  InstanceDeletionInProgress: 'CustomResource deletion is in progress',
  InstanceDeletionCheck:
    'could not confirm zero CustomResources remaining: timed out waiting for the condition',
  InstanceDeletionCompleted: 'removed all instances',
  OverlappingBuiltInResource: 'instances overlap with built-in resources in storage',
  NeverEstablished: 'resource was never established',
};

type CleanupReason = keyof typeof cleanupMessages;

/** How long objects may remain before the status says so, in milliseconds. */
const confirmationMs = 60_000;

/** The state of a cleanup that has not ended, by the time since it began. */
function progressOf({ status }: Crd, nowMs: number): CleanupReason {
  const condition = status?.conditions?.find(({ type }) => type === 'Terminating');
  const since = condition?.lastTransitionTime;
  const isRecent = condition?.status !== 'True' || typeof since !== 'string';
  return isRecent || nowMs - Date.parse(since) < confirmationMs
    ? 'InstanceDeletionInProgress'
    : 'InstanceDeletionCheck';
}

/** The outcome of a definition's cleanup. */
function outcomeOf(crd: Crd, kinds: KindTable): CleanupReason {
  if (!kinds.hasOwnKeys(crd)) return 'OverlappingBuiltInResource';
  return crdIsEstablished(crd) ? 'InstanceDeletionCompleted' : 'NeverEstablished';
}

async function markTerminating(
  options: CustomKindsOptions,
  crd: Crd,
  { status: value, reason }: { readonly status: 'True' | 'False'; readonly reason: CleanupReason },
): Promise<void> {
  const type = 'Terminating';
  const state = { type, status: value, reason, message: cleanupMessages[reason] } as const;
  if (
    crd.status?.conditions?.some(
      (condition) => condition.type === type && condition.reason === reason,
    )
  )
    return;
  const { writer, definitions, clock } = options;
  const at = { def: definitions, namespace: '', name: crd.metadata.name ?? '' };
  const now = formatTime(clock.now());
  await writer.change({ ...at, subresource: 'status' }, (object) => {
    const current = crdOf(object);
    const conditions = [...setCondition(current.status?.conditions ?? [], state, now)];
    const status = { ...(current.status as CrdStatus), conditions };
    return { ...current, status };
  });
}
