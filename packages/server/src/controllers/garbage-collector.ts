import { type CatalogueSnapshot, type ResourceDef, versionNamed } from '@wheelhouse/kinds';
import {
  type ApiObject,
  appendAll,
  background,
  type Logger,
  type OwnerReference,
  pendingPromise,
  Slices,
} from '@wheelhouse/machinery';
import { followBeside } from '../registry/caches.ts';
import type { DeleteRequestOptions } from '../registry/contract.ts';
import { metadataOf, objectKey } from '../registry/object-codec.ts';
import type { ResourceCache } from '../watchcache/contract.ts';
import type { Entry, EntryIndex } from '../watchcache/entry.ts';
import { type ControllerTools, type ObjectAt, withoutFinalizer } from './tools.ts';
import { type Controller, createWorkQueue, runningQueue } from './work-queue.ts';

const orphanFinalizer = 'orphan';
const foregroundFinalizer = 'foregroundDeletion';
/** Interval for rechecking dependents of a foreground deletion, in milliseconds. */
const recheckMs = 500;

/**
 * Removes objects whose owners are gone (DEL-5). Objects are indexed by the UIDs of their owners.
 * An owner is looked up by the coordinates in the reference, and is absent if there is no such
 * object or one with another UID.
 */
export function startGarbageCollector(
  options: ControllerTools & {
    readonly catalogue: {
      snapshot(): CatalogueSnapshot;
      subscribe(listener: () => void): () => void;
    };
  },
): Controller {
  const { clock, logger } = options;
  const graph = createGraph();
  const followed = new Map<string, Followed>();
  const listing = createCountdown();
  const queue = createWorkQueue({
    ...options,
    name: 'garbage_collector_attempt_to_delete',
    workers: 8,
    // Until all objects are known, an owner may seem to have no dependents.
    startAfter: listing.done,
    run: async (id) => {
      const state = graph.locate(id);
      if (state === undefined) return;
      if (await collect({ ...options, graph }, state)) queue.addAfter(id, recheckMs);
    },
  });
  const onChange = changesOf(graph, queue.add);
  const attach = () => {
    const served = new Set<string>();
    for (const def of options.catalogue.snapshot().defs) {
      const { prefix } = def.storage;
      if (!def.verbs.includes('delete')) continue;
      served.add(prefix);
      const cache = options.caches.of(def);
      const before = followed.get(prefix);
      if (before?.cache === cache) continue;
      before?.close();
      listing.add(prefix);
      const { close } = followBeside(cache, {
        onEntry: (key, current, previous) => onChange(def, { key, previous, current }),
        listed: () => {
          listing.remove(prefix);
          if (before === undefined) return;
          const isFollowed = () => followed.get(prefix)?.cache === cache;
          const caughtUp = catchUp({ ...options, graph, queue, onChange, isFollowed }, def);
          background({ where: 'controller' }, caughtUp);
        },
        failed: (error) => reportUnlisted(logger, def, error),
        unreadable: 'omitted',
        retrying: clock,
      });
      followed.set(prefix, { cache, close });
    }
    for (const [prefix, gone] of followed) {
      if (served.has(prefix)) continue;
      gone.close();
      followed.delete(prefix);
      listing.remove(prefix);
    }
  };
  attach();
  const stopFollowing = options.catalogue.subscribe(attach);
  return runningQueue(queue, stopFollowing, () => {
    for (const followedKind of followed.values()) followedKind.close();
    followed.clear();
  });
}

function reportUnlisted(logger: Logger, { resource, group }: ResourceDef, error: unknown): void {
  const fields = { resource, group, error: String(error) };
  logger.error('cannot list the objects of a kind to collect garbage', fields);
}

/** Resolves `done` when all kinds that were added have been removed; later ones are ignored. */
function createCountdown(): {
  readonly done: Promise<void>;
  add(prefix: string): void;
  remove(prefix: string): void;
} {
  const remaining = new Set<string>();
  const { promise: done, resolve: finish } = pendingPromise();
  return {
    done,
    add: (prefix) => remaining.add(prefix),
    remove(prefix) {
      if (remaining.delete(prefix) && remaining.size === 0) finish();
    },
  };
}

/** A followed kind; a changed custom kind has a new cache, which replaces this one. */
interface Followed {
  readonly cache: ResourceCache;
  close(): void;
}

/** The previous and the current state of an object; either may be absent. */
interface Change {
  readonly key: string;
  readonly previous: Entry | undefined;
  readonly current: Entry | undefined;
}

type OnChange = (def: ResourceDef, change: Change) => void;

/** Returns a function that records a change in the graph and queues the objects that it affects. */
function changesOf(graph: Graph, add: (id: string) => void): OnChange {
  const onRemoved = ({ uid, ownerUids }: EntryIndex) => {
    for (const id of graph.dependentsOf(uid)) add(id);
    for (const owner of ownerUids) for (const id of graph.waitingOwners(owner)) add(id);
  };
  return (def, { key, previous, current }) => {
    const id = idOf(def, key);
    const before = previous ?? graph.locate(id)?.entry;
    graph.update(id, current === undefined ? undefined : { def, entry: current });
    if (before !== undefined && before.index.uid !== current?.index.uid) {
      graph.remember({ def, entry: before });
      onRemoved(before.index);
    }
    if (current === undefined) return;
    const { uid, deleting, ownerUids } = current.index;
    if (deleting) for (const dependent of graph.dependentsOf(uid)) add(dependent);
    if (deleting || ownerUids.length > 0) add(id);
  };
}

/**
 * Processes what may have happened to a changed kind before its new cache was loaded: deletions of
 * tracked objects, and of other owners, whose dependents are checked again.
 */
async function catchUp(
  collector: Collector & {
    readonly queue: { add(id: string): void };
    readonly onChange: OnChange;
    /** Whether the new cache is still the current one. */
    readonly isFollowed: () => boolean;
  },
  def: ResourceDef,
): Promise<void> {
  const { graph, queue, onChange, isFollowed, clock } = collector;
  const { prefix } = def.storage;
  const slices = new Slices(clock);
  for (const [id, located] of graph.all()) {
    if (slices.over) await slices.pause();
    if (!isFollowed()) return;
    const { key } = located.entry;
    if (located.def.storage.prefix === prefix && collector.caches.of(def).peek(key) === undefined) {
      onChange(def, { key, previous: undefined, current: undefined });
    } else if (await hasOwnerOfKind(located.entry, def, clock)) queue.add(id);
  }
}

/** An object that is being deleted or has owners, in its last known state. */
interface Located {
  readonly def: ResourceDef;
  readonly entry: Entry;
}

interface Graph {
  /** Replaces the state of an object; undefined removes it. */
  update(id: string, state: Located | undefined): void;
  locate(id: string): Located | undefined;
  /** All objects that are being deleted or have owners, by id. */
  all(): readonly (readonly [string, Located])[];
  dependentsOf(uid: string): readonly string[];
  /** Objects with this UID that wait for their dependents. */
  waitingOwners(uid: string): readonly string[];
  /** Remembers a removed owner as long as it has dependents. */
  remember(owner: Located): void;
  removedOwner(uid: string): Located | undefined;
}

function idOf(def: ResourceDef, key: string): string {
  return def.storage.prefix + key;
}

function createGraph(): Graph {
  const dependents = new Map<string, Set<string>>();
  const located = new Map<string, Located>();
  const deletingByUid = new Map<string, string>();
  const removedOwners = new Map<string, Located>();
  const removeEdges = (id: string, uids: readonly string[]) => {
    for (const uid of uids) {
      const set = dependents.get(uid);
      set?.delete(id);
      if (set?.size !== 0) continue;
      dependents.delete(uid);
      removedOwners.delete(uid);
    }
  };
  return {
    update(id, state) {
      const previous = located.get(id)?.entry;
      if (previous !== undefined) {
        removeEdges(id, previous.index.ownerUids);
        deletingByUid.delete(previous.index.uid);
        located.delete(id);
      }
      if (state === undefined) return;
      const { index } = state.entry;
      removedOwners.delete(index.uid);
      for (const uid of index.ownerUids) {
        let set = dependents.get(uid);
        if (set === undefined) {
          set = new Set();
          dependents.set(uid, set);
        }
        set.add(id);
      }
      if (index.deleting) deletingByUid.set(index.uid, id);
      if (index.deleting || index.ownerUids.length > 0) located.set(id, state);
    },
    locate: (id) => located.get(id),
    all: () => [...located],
    dependentsOf: (uid) => [...(dependents.get(uid) ?? [])],
    waitingOwners: (uid) => {
      const id = deletingByUid.get(uid);
      return id === undefined ? [] : [id];
    },
    remember(owner) {
      const { uid } = owner.entry.index;
      if (dependents.has(uid)) removedOwners.set(uid, owner);
    },
    removedOwner: (uid) => removedOwners.get(uid),
  };
}

type Collector = Parameters<typeof startGarbageCollector>[0] & { readonly graph: Graph };

/**
 * Processes one object; returns true if it must be processed again. Rejects if the kind of an owner
 * is unknown, because it may be served later.
 */
async function collect(collector: Collector, { def, entry: { key } }: Located): Promise<boolean> {
  const entry = collector.caches.of(def).peek(key);
  if (entry === undefined) return false;
  const metadata = await metadataOf(entry, collector.clock);
  const finalizers = metadata.finalizers ?? [];
  const at: ObjectAt = { def, namespace: entry.index.namespace, name: entry.index.name };
  if (entry.index.deleting) {
    if (finalizers.includes(orphanFinalizer)) return orphanDependents(collector, { entry, at });
    if (finalizers.includes(foregroundFinalizer)) return deleteDependents(collector, { entry, at });
    return false;
  }
  if ((metadata.ownerReferences ?? []).length === 0) return false;
  const isKnown = await checkOwners(collector, { entry, at, metadata });
  if (!isKnown) throw new Error('an owner is of an unknown kind');
  return false;
}

async function orphanDependents(
  collector: Collector,
  owner: { entry: Entry; at: ObjectAt },
): Promise<boolean> {
  const { uid } = owner.entry.index;
  for (const id of collector.graph.dependentsOf(uid)) {
    const dependent = locateObject(collector, id);
    if (dependent !== undefined) await dropOwners(collector, dependent, new Set([uid]));
  }
  if (collector.graph.dependentsOf(uid).length > 0) return true;
  await dropFinalizer(collector, owner.at, orphanFinalizer);
  return false;
}

async function deleteDependents(
  collector: Collector,
  owner: { entry: Entry; at: ObjectAt },
): Promise<boolean> {
  const { uid } = owner.entry.index;
  let blocking = 0;
  const slices = new Slices(collector.clock);
  for (const id of collector.graph.dependentsOf(uid)) {
    if (slices.over) await slices.pause();
    const dependent = locateObject(collector, id);
    if (dependent === undefined) continue;
    const entry = collector.caches
      .of(dependent.def)
      .peek(objectKey(dependent.namespace, dependent.name));
    if (entry === undefined) continue;
    const metadata = await metadataOf(entry, collector.clock);
    const references = metadata.ownerReferences ?? [];
    if (
      references.some((reference) => reference.uid === uid && reference.blockOwnerDeletion === true)
    )
      blocking += 1;
    if (!entry.index.deleting) await checkOwners(collector, { entry, at: dependent, metadata });
  }
  if (blocking > 0) return true;
  await dropFinalizer(collector, owner.at, foregroundFinalizer);
  return false;
}

function locateObject(collector: Collector, id: string): ObjectAt | undefined {
  const located = collector.graph.locate(id);
  if (located === undefined) return undefined;
  const entry = collector.caches.of(located.def).peek(located.entry.key);
  if (entry === undefined) return undefined;
  return { def: located.def, namespace: entry.index.namespace, name: entry.index.name };
}

/** Whether a reference of an object names a kind. */
async function hasOwnerOfKind(
  entry: Entry,
  def: ResourceDef,
  clock: Collector['clock'],
): Promise<boolean> {
  if (entry.index.ownerUids.length === 0) return false;
  const references = (await metadataOf(entry, clock)).ownerReferences ?? [];
  return references.some((reference) => isOfKind(def, reference));
}

/**
 * Deletes an object if all of its owners are gone or wait for it; otherwise drops the references to
 * these. Resolves to false, and changes nothing, if the kind of an owner is unknown.
 */
async function checkOwners(
  collector: Collector,
  dependent: { entry: Entry; at: ObjectAt; metadata: ApiObject['metadata'] },
): Promise<boolean> {
  const { entry, at, metadata } = dependent;
  const { ownerReferences: owners = [], finalizers = [] } = metadata;
  if (owners.length === 0) return true;
  const states = await ownerStates(collector, owners, entry.index.namespace);
  if (states.includes('unknown')) return false;
  if (states.includes('invalid')) return true;
  const hasPresentOwner = states.includes('present');
  if (hasPresentOwner) {
    // An owner that waits for this object would do so forever, because the object stays.
    const others = owners.filter((_, index) => states[index] !== 'present');
    const uids = others.map((owner) => owner.uid);
    if (uids.length > 0) await dropOwners(collector, at, new Set(uids));
    return true;
  }
  const { uid } = entry.index;
  const isAwaited = states.includes('waiting') && collector.graph.dependentsOf(uid).length > 0;
  if (isAwaited && (await hasWaitingDependent(collector, uid)))
    await unblockOwners(collector, dependent);
  const propagationPolicy = isAwaited ? 'Foreground' : policyOf(finalizers);
  await collector.writer.remove(at, { propagationPolicy, preconditions: { uid } });
  return true;
}

/** The policy that an object's own finalizers request. */
function policyOf(finalizers: readonly string[]): DeleteRequestOptions['propagationPolicy'] {
  if (finalizers.includes(orphanFinalizer)) return 'Orphan';
  return finalizers.includes(foregroundFinalizer) ? 'Foreground' : 'Background';
}

/** Whether a dependent waits for its own dependents, among which its owner may be. */
async function hasWaitingDependent(collector: Collector, uid: string): Promise<boolean> {
  const slices = new Slices(collector.clock);
  for (const id of collector.graph.dependentsOf(uid)) {
    if (slices.over) await slices.pause();
    const located = collector.graph.locate(id);
    if (located === undefined || located.entry.index.deleting !== true) continue;
    const { finalizers = [] } = await metadataOf(located.entry, collector.clock);
    if (finalizers.includes(foregroundFinalizer)) return true;
  }
  return false;
}

/** Lets the owners of an object go before it, so that owners in a cycle do not wait forever. */
async function unblockOwners(
  collector: Collector,
  { entry, at }: { readonly entry: Entry; readonly at: ObjectAt },
): Promise<void> {
  await collector.writer.change(at, (object) => {
    if (object.metadata.uid !== entry.index.uid) return object;
    const ownerReferences = (object.metadata.ownerReferences ?? []).map((reference) =>
      reference.blockOwnerDeletion === true
        ? { ...reference, blockOwnerDeletion: false }
        : reference,
    );
    object.metadata.ownerReferences = ownerReferences;
    return object;
  });
}

/** `invalid`: the reference of a cluster-scoped object to a namespaced kind names no namespace. */
type OwnerState = 'present' | 'waiting' | 'absent' | 'unknown' | 'invalid';

/** Maximum number of owners that are read at once; an object can have thousands (TRUST-2). */
const ownersAtOnce = 100;

/** Determines the states of owners from reads as new as the store, because caches may lag behind. */
async function ownerStates(
  collector: Collector,
  owners: readonly OwnerReference[],
  namespace: string,
): Promise<readonly OwnerState[]> {
  const slices = new Slices(collector.clock);
  const kinds = new Map<string, ResourceDef | undefined>();
  const read = (owner: OwnerReference) => {
    const kind = `${owner.apiVersion}/${owner.kind}`;
    if (!kinds.has(kind)) kinds.set(kind, defOfKind(collector.catalogue.snapshot(), owner));
    return ownerState(collector, owner, { def: kinds.get(kind), namespace });
  };
  const states: OwnerState[] = [];
  for (let at = 0; at < owners.length; at += ownersAtOnce) {
    if (slices.over) await slices.pause();
    appendAll(states, await Promise.all(owners.slice(at, at + ownersAtOnce).map(read)));
  }
  return states;
}

async function ownerState(
  collector: Collector,
  owner: OwnerReference,
  { def, namespace }: { readonly def: ResourceDef | undefined; readonly namespace: string },
): Promise<OwnerState> {
  if (def === undefined) {
    // A removed kind is no longer served when the last dependents of its objects are processed.
    return isRemoved(collector.graph.removedOwner(owner.uid), { owner, namespace })
      ? 'absent'
      : 'unknown';
  }
  if (def.scope === 'Namespaced' && namespace === '') return 'invalid';
  const key = objectKey(def.scope === 'Namespaced' ? namespace : '', owner.name);
  const entry = await collector.caches.of(def).get(key, undefined);
  if (entry === undefined || entry.index.uid !== owner.uid) return 'absent';
  if (!entry.index.deleting) return 'present';
  const finalizers = (await metadataOf(entry, collector.clock)).finalizers ?? [];
  return finalizers.includes(foregroundFinalizer) ? 'waiting' : 'present';
}

/** Whether a reference in this namespace, or of a cluster-scoped object, names a removed owner. */
function isRemoved(
  removed: Located | undefined,
  { owner, namespace }: { readonly owner: OwnerReference; readonly namespace: string },
): boolean {
  if (removed === undefined || !isOfKind(removed.def, owner)) return false;
  const { index } = removed.entry;
  const isThere = removed.def.scope === 'Cluster' || index.namespace === namespace;
  return isThere && index.name === owner.name;
}

function defOfKind(snapshot: CatalogueSnapshot, owner: OwnerReference): ResourceDef | undefined {
  return snapshot.defs.find((def) => isOfKind(def, owner));
}

function isOfKind(def: ResourceDef, owner: OwnerReference): boolean {
  return def.kind === owner.kind && versionNamed(def, owner.apiVersion)?.served === true;
}

async function dropOwners(
  collector: Collector,
  at: ObjectAt,
  uids: ReadonlySet<string>,
): Promise<void> {
  await collector.writer.change(at, (object) => {
    const kept = (object.metadata.ownerReferences ?? []).filter(
      (ownerReference) => !uids.has(ownerReference.uid),
    );
    if (kept.length === 0) delete object.metadata.ownerReferences;
    else object.metadata.ownerReferences = kept;
    return object;
  });
}

async function dropFinalizer(collector: Collector, at: ObjectAt, finalizer: string): Promise<void> {
  await collector.writer.change(at, (object) => withoutFinalizer(object, finalizer));
}
