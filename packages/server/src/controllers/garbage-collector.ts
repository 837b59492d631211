import type { CatalogueSnapshot, ResourceDef } from '@wheelhouse/kinds';
import { appendAll, type OwnerReference, parseApiVersion, Slices } from '@wheelhouse/machinery';
import { followBeside } from '../registry/caches.ts';
import { metadataOf, objectKey } from '../registry/object-codec.ts';
import type { ResourceCache } from '../watchcache/contract.ts';
import type { Entry } from '../watchcache/entry.ts';
import { type ControllerTools, type ObjectAt, withoutFinalizer } from './tools.ts';
import { createWorkQueue } from './work-queue.ts';

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
): { close(): Promise<void> } {
  const graph = createGraph();
  const followed = new Map<string, Followed>();
  const queue = createWorkQueue({
    ...options,
    name: 'garbage_collector_attempt_to_delete',
    workers: 8,
    run: async (id) => {
      const state = graph.locate(id);
      if (state === undefined) return;
      if (await collect({ ...options, graph }, state)) queue.addAfter(id, recheckMs);
    },
  });
  const onChange = (def: ResourceDef, { previous, current }: Change) => {
    graph.update(def, { previous, current });
    const entry = current ?? previous;
    if (entry === undefined) return;
    const { index } = entry;
    if (current === undefined || index.deleting) {
      for (const id of graph.dependentsOf(index.uid)) queue.add(id);
    }
    if (current === undefined) {
      for (const owner of index.ownerUids)
        for (const id of graph.waitingOwners(owner)) queue.add(id);
      return;
    }
    if (index.deleting || index.ownerUids.length > 0) queue.add(idOf(def, entry.key));
  };
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
      const onEntry = (_: string, current: Entry | undefined, previous: Entry | undefined) =>
        onChange(def, { previous, current });
      followed.set(prefix, { cache, ...followBeside(cache, { onEntry }) });
    }
    for (const [prefix, gone] of followed) {
      if (served.has(prefix)) continue;
      gone.close();
      followed.delete(prefix);
    }
  };
  attach();
  const stopFollowing = options.catalogue.subscribe(attach);
  return {
    close() {
      stopFollowing();
      for (const followedKind of followed.values()) followedKind.close();
      return queue.close();
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
  readonly previous: Entry | undefined;
  readonly current: Entry | undefined;
}

interface Located {
  readonly def: ResourceDef;
  readonly key: string;
}

interface Graph {
  update(def: ResourceDef, change: Change): void;
  locate(id: string): Located | undefined;
  dependentsOf(uid: string): readonly string[];
  /** Objects with this UID that wait for their dependents. */
  waitingOwners(uid: string): readonly string[];
}

function idOf(def: ResourceDef, key: string): string {
  return def.storage.prefix + key;
}

function createGraph(): Graph {
  const dependents = new Map<string, Set<string>>();
  const located = new Map<string, Located>();
  const deletingByUid = new Map<string, string>();
  const removeEdges = (id: string, uids: readonly string[]) => {
    for (const uid of uids) {
      const set = dependents.get(uid);
      set?.delete(id);
      if (set?.size === 0) dependents.delete(uid);
    }
  };
  return {
    update(def, { previous, current }) {
      const key = (current ?? previous)?.key;
      if (key === undefined) return;
      const id = idOf(def, key);
      if (previous !== undefined) {
        removeEdges(id, previous.index.ownerUids);
        deletingByUid.delete(previous.index.uid);
        located.delete(id);
      }
      if (current === undefined) return;
      const { index } = current;
      for (const uid of index.ownerUids) {
        let set = dependents.get(uid);
        if (set === undefined) {
          set = new Set();
          dependents.set(uid, set);
        }
        set.add(id);
      }
      if (index.deleting) deletingByUid.set(index.uid, id);
      if (index.deleting || index.ownerUids.length > 0) located.set(id, { def, key });
    },
    locate: (id) => located.get(id),
    dependentsOf: (uid) => [...(dependents.get(uid) ?? [])],
    waitingOwners: (uid) => {
      const id = deletingByUid.get(uid);
      return id === undefined ? [] : [id];
    },
  };
}

type Collector = Parameters<typeof startGarbageCollector>[0] & { readonly graph: Graph };

/** Processes one object; returns true if it must be processed again. */
async function collect(collector: Collector, { def, key }: Located): Promise<boolean> {
  const entry = collector.caches.of(def).peek(key);
  if (entry === undefined) return false;
  const metadata = await metadataOf(entry, collector.clock);
  const finalizers = metadata.finalizers ?? [];
  const at: ObjectAt = { def, namespace: entry.index.namespace, name: entry.index.name };
  if (entry.index.deleting) {
    if (finalizers.includes(orphanFinalizer)) return orphanDependents(collector, { entry, at });
    if (finalizers.includes(foregroundFinalizer)) {
      return deleteDependents(collector, { entry, at });
    }
    return false;
  }
  const owners = metadata.ownerReferences ?? [];
  if (owners.length === 0) return false;
  await checkOwners(collector, { entry, at, owners });
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
    const references = (await metadataOf(entry, collector.clock)).ownerReferences ?? [];
    if (
      references.some((reference) => reference.uid === uid && reference.blockOwnerDeletion === true)
    )
      blocking += 1;
    if (!entry.index.deleting)
      await checkOwners(collector, { entry, at: dependent, owners: references });
  }
  if (blocking > 0) return true;
  await dropFinalizer(collector, owner.at, foregroundFinalizer);
  return false;
}

function locateObject(collector: Collector, id: string): ObjectAt | undefined {
  const located = collector.graph.locate(id);
  if (located === undefined) return undefined;
  const entry = collector.caches.of(located.def).peek(located.key);
  if (entry === undefined) return undefined;
  return { def: located.def, namespace: entry.index.namespace, name: entry.index.name };
}

/**
 * Deletes an object if all of its owners are gone or being deleted; otherwise drops references to
 * absent owners.
 */
async function checkOwners(
  collector: Collector,
  dependent: { entry: Entry; at: ObjectAt; owners: readonly OwnerReference[] },
): Promise<void> {
  const { entry, at, owners } = dependent;
  const states = await ownerStates(collector, owners, entry.index.namespace);
  if (states.includes('unknown')) return;
  const hasPresentOwner = states.includes('present');
  const gone = owners.filter((_, index) => states[index] === 'absent').map((owner) => owner.uid);
  if (hasPresentOwner) {
    if (gone.length > 0) await dropOwners(collector, at, new Set(gone));
    return;
  }
  const preconditions = { uid: entry.index.uid };
  const isForeground = states.includes('waiting');
  const hasDependents = collector.graph.dependentsOf(entry.index.uid).length > 0;
  const propagationPolicy = isForeground && hasDependents ? 'Foreground' : 'Background';
  await collector.writer.remove(at, { propagationPolicy, preconditions });
}

type OwnerState = 'present' | 'waiting' | 'absent' | 'unknown';

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
  if (def === undefined) return 'unknown';
  const key = objectKey(def.scope === 'Namespaced' ? namespace : '', owner.name);
  const entry = await collector.caches.of(def).get(key, undefined);
  if (entry === undefined || entry.index.uid !== owner.uid) return 'absent';
  if (!entry.index.deleting) return 'present';
  const finalizers = (await metadataOf(entry, collector.clock)).finalizers ?? [];
  return finalizers.includes(foregroundFinalizer) ? 'waiting' : 'present';
}

function defOfKind(snapshot: CatalogueSnapshot, owner: OwnerReference): ResourceDef | undefined {
  const parsed = parseApiVersion(owner.apiVersion);
  if (parsed === undefined) return undefined;
  return snapshot.defs.find((def) => def.group === parsed.group && def.kind === owner.kind);
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
