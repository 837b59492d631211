import type { CatalogueSnapshot, ResourceDef } from '@wheelhouse/kinds';
import {
  type ApiObject,
  asApiObject,
  compareText,
  type Dialect,
  errorText,
  formatTime,
  type JsonObject,
  objectOf,
  objectsOf,
  runInSlices,
  sortSteps,
} from '@wheelhouse/machinery';
import { followBeside } from '../registry/caches.ts';
import { decodedEntries } from '../registry/object-codec.ts';
import type { Entry } from '../watchcache/entry.ts';
import {
  type ControllerTools,
  createAbsent,
  isUnmarked,
  listEntries,
  removeEntries,
} from './tools.ts';
import { type Controller, createWorkQueue, runningQueue, type WorkQueue } from './work-queue.ts';

/** Interval for rechecking content that finalizers hold, in milliseconds. */
const recheckMs = 1_000;
/**
 * Milliseconds within which a create that admission accepted just before the namespace was removed
 * reaches the store; a write may take 34 seconds, and the network some more.
 */
const lateWritesMs = 60_000;

/**
 * Empties a namespace that is being deleted: removes every object in it, including custom ones,
 * reports remaining objects in conditions, and then removes its own finalizer, which completes the
 * deletion (DEL-4). Afterwards it removes the objects of late creates: at once, and again when no
 * create can be in flight anymore.
 */
export function startNamespaceDeletion(
  options: ControllerTools & {
    readonly catalogue: { snapshot(): CatalogueSnapshot };
    readonly namespaces: ResourceDef;
    /** The entry of `spec.finalizers` that this controller owns. */
    readonly finalizer: string;
    /** Whether other objects are kept until the Pods are gone (gate OrderedNamespaceDeletion). */
    readonly order?: 'pods first' | 'any';
  },
): Controller {
  const { caches, namespaces, clock, logger } = options;
  const cache = caches.of(namespaces);
  /** Removed namespaces, with the monotonic milliseconds until which late creates are removed. */
  const gone = new Map<string, number>();
  /** `RemovedNamespace.emptied` by UID, for namespaces that are being deleted. */
  const emptied = new Map<string, Set<string>>();
  const sweep = async (name: string, untilMs: number) => {
    const remaining = await removeContent(options, { name, uid: undefined, emptied: new Set() });
    if (remaining === 'replaced') {
      gone.delete(name);
      return;
    }
    const [failure] = remaining.failures;
    if (failure !== undefined) throw new Error(failure);
    if (clock.monotonic() >= untilMs) gone.delete(name);
    else queue.addAfter(name, lateWritesMs);
  };
  const run = async (name: string) => {
    const entry = cache.peek(name);
    const untilMs = gone.get(name);
    if (entry === undefined && untilMs !== undefined) return sweep(name, untilMs);
    if (entry === undefined || !isTerminating(entry)) return;
    const { uid } = entry.index;
    const removed = { name, uid, emptied: emptied.get(uid) ?? new Set() };
    emptied.set(uid, removed.emptied);
    const remaining = await removeContent(options, removed);
    if (remaining === 'replaced') return;
    if (remaining.count > 0) {
      await report(options, { name, remaining });
      queue.addAfter(name, recheckMs);
      return;
    }
    await finalize(options, removed);
  };
  const queue: WorkQueue = createWorkQueue({ ...options, name: 'namespace', run, workers: 4 });
  const following = followBeside(cache, {
    onEntry(name, current, previous) {
      if (current === undefined) {
        if (previous !== undefined) emptied.delete(previous.index.uid);
        gone.set(name, clock.monotonic() + lateWritesMs);
        queue.add(name);
      } else if (isTerminating(current)) queue.add(name);
    },
    failed: (error) => logger.error('cannot list namespaces', { error: String(error) }),
    unreadable: 'omitted',
    retrying: clock,
  });
  return runningQueue(queue, following);
}

type Options = Parameters<typeof startNamespaceDeletion>[0];

/** The objects that remain in a namespace after an attempt to delete them. */
export interface Remaining {
  readonly count: number;
  /** Number of remaining objects, by resource. */
  readonly resources: ReadonlyMap<string, number>;
  /** Number of remaining objects, by finalizer. */
  readonly finalizers: ReadonlyMap<string, number>;
  readonly failures: readonly string[];
}

function isTerminating(entry: Entry): boolean {
  return entry.index.deleting === true;
}

const isPods = ({ group, resource }: ResourceDef) => group === '' && resource === 'pods';

/** The kinds of a namespace's content, in order of deletion. */
function inOrder({ catalogue, order }: Options): readonly ResourceDef[] {
  const { defs } = catalogue.snapshot();
  if (order !== 'pods first') return defs;
  return [...defs.filter(isPods), ...defs.filter((def) => !isPods(def))];
}

/** A namespace whose content is removed. */
interface RemovedNamespace {
  readonly name: string;
  /** Undefined after its removal. */
  readonly uid: string | undefined;
  /** Storage prefixes of the kinds whose objects have been deleted once; finalizers may hold some. */
  readonly emptied: Set<string>;
}

/** Whether another namespace of the same name has been created. */
async function isReplaced(
  { caches, namespaces }: Options,
  { name, uid }: RemovedNamespace,
): Promise<boolean> {
  const current = await caches.of(namespaces).get(name, undefined);
  return current !== undefined && current.index.uid !== uid;
}

/**
 * Deletes the content of a namespace. Stops before it deletes objects that may belong to a
 * namespace of the same name that was created later.
 */
async function removeContent(
  options: Options,
  removed: RemovedNamespace,
): Promise<Remaining | 'replaced'> {
  const { caches, writer } = options;
  const { name: namespace, emptied } = removed;
  if (await isReplaced(options, removed)) return 'replaced';
  const resources = new Map<string, number>();
  const finalizers = new Map<string, number>();
  const failures: string[] = [];
  const seen = new Set<string>();
  for (const def of inOrder(options)) {
    const isContent = def.scope === 'Namespaced' && def.verbs.includes('delete');
    const { prefix } = def.storage;
    if (!isContent || seen.has(prefix)) continue;
    seen.add(prefix);
    try {
      const found = await listEntries(caches, { def, namespace });
      if (found.length > 0 && (await isReplaced(options, removed))) return 'replaced';
      const entries = emptied.has(prefix) ? found.filter(isUnmarked) : found;
      await removeEntries({ writer, def, entries });
      emptied.add(prefix);
    } catch (error) {
      failures.push(errorText(error));
    }
    const entries = await listEntries(caches, { def, namespace });
    // The dot is present even if the group is empty, as in kube-controller-manager.
    if (entries.length > 0) resources.set(`${def.resource}.${def.group}`, entries.length);
    for await (const { metadata } of decodedEntries(entries, options.clock)) {
      await runInSlices(countSteps(finalizers, metadata.finalizers ?? []), options.clock);
    }
    const isHeld = resources.size > 0 || failures.length > 0;
    if (isHeld && isPods(def) && options.order === 'pods first') break;
  }
  const count = [...resources.values()].reduce((sum, amount) => sum + amount, 0);
  return { count, resources, finalizers, failures };
}

/** Names that one step counts or shows, in less than a millisecond. */
const namesPerStep = 1_000;

/** Counts names in steps (TRUST-2): an object may have thousands of finalizers. */
function* countSteps(counts: Map<string, number>, names: readonly string[]): Generator<void, void> {
  for (const [index, name] of names.entries()) {
    if (index % namesPerStep === namesPerStep - 1) yield;
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
}

async function finalize(options: Options, { name, uid }: RemovedNamespace): Promise<void> {
  const at = { def: options.namespaces, namespace: '', name, subresource: 'finalize' };
  await options.writer.change(at, (object) => {
    if (object.metadata.uid !== uid) return object;
    const spec = objectOf(object.spec);
    const before = Array.isArray(spec.finalizers) ? spec.finalizers : [];
    const finalizers = before.filter((finalizer) => finalizer !== options.finalizer);
    object.spec = { ...spec, finalizers };
    return object;
  });
}

async function report(options: Options, at: { name: string; remaining: Remaining }): Promise<void> {
  const now = formatTime(options.clock.now());
  const target = { def: options.namespaces, namespace: '', name: at.name, subresource: 'status' };
  const found = await runInSlices(remainingConditions(at.remaining), options.clock);
  await options.writer.change(target, (object) => {
    const status: JsonObject = objectOf(object.status);
    const before = objectsOf(status.conditions);
    const conditions = found.map((condition) => {
      const same = before.find((existing) => existing.type === condition.type);
      const isSame = same?.status === condition.status;
      return { ...condition, lastTransitionTime: isSame ? (same?.lastTransitionTime ?? now) : now };
    });
    return asApiObject({ ...object, status: { ...status, conditions } });
  });
}

/** The counts by name, in words and in steps. */
function* shownCounts(
  counts: ReadonlyMap<string, number>,
  suffix: string,
): Generator<void, string> {
  const names = yield* sortSteps([...counts.keys()], compareText);
  const texts: string[] = [];
  for (let at = 0; at < names.length; at += namesPerStep) {
    const shown = names
      .slice(at, at + namesPerStep)
      .map((name) => `${name} ${suffix.replace('%d', String(counts.get(name)))}`);
    texts.push(shown.join(', '));
    yield;
  }
  return texts.join(', ');
}

/** The conditions of a namespace with remaining objects, in steps. */
export function* remainingConditions(remaining: Remaining): Generator<void, readonly JsonObject[]> {
  const resources = yield* shownCounts(remaining.resources, 'has %d resource instances');
  const finalizers = yield* shownCounts(remaining.finalizers, 'in %d resource instances');
  const failed = remaining.failures.length > 0;
  const hasFinalizers = remaining.finalizers.size > 0;
  return [
    {
      type: 'NamespaceDeletionDiscoveryFailure',
      status: 'False',
      reason: 'ResourcesDiscovered',
      message: 'All resources successfully discovered',
    },
    {
      type: 'NamespaceDeletionGroupVersionParsingFailure',
      status: 'False',
      reason: 'ParsedGroupVersions',
      message: 'All legacy kube types successfully parsed',
    },
    {
      type: 'NamespaceDeletionContentFailure',
      status: failed ? 'True' : 'False',
      reason: failed ? 'ContentDeletionFailed' : 'ContentDeleted',
      message: failed
        ? `Failed to delete all resource types, ${remaining.failures.length} remaining: ${remaining.failures.join(', ')}`
        : 'All content successfully deleted, may be waiting on finalization',
    },
    {
      type: 'NamespaceContentRemaining',
      status: 'True',
      reason: 'SomeResourcesRemain',
      message: `Some resources are remaining: ${resources}`,
    },
    {
      type: 'NamespaceFinalizersRemaining',
      status: hasFinalizers ? 'True' : 'False',
      reason: hasFinalizers ? 'SomeFinalizersRemain' : 'ContentHasNoFinalizers',
      message: hasFinalizers
        ? `Some content in the namespace has finalizers remaining: ${finalizers}`
        : 'All content-preserving finalizers finished',
    },
  ];
}

/** Suffixes of the namespaces that exist from the start, besides `default`. */
const stems = ['system', 'public', 'node-lease'];

/** The namespaces that the server creates. */
export function systemNamespaces(dialect: Dialect) {
  const names = ['default', ...stems.map((stem) => dialect.systemNamespace(stem))];
  // The strategy would add this label, too late to record the server as its manager.
  const label = dialect.label('metadata.name');
  return names.map((name) => ({
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name, labels: { [label]: name } },
  }));
}

/**
 * Recreates a deleted system namespace: that of node leases, unless admission stops protecting the
 * others.
 */
export function startSystemNamespaces(
  options: ControllerTools & { readonly namespaces: ResourceDef; readonly dialect: Dialect },
): Controller {
  const { namespaces: def, dialect, caches } = options;
  const desired = new Map<string, ApiObject>(
    systemNamespaces(dialect).map((namespace) => [namespace.metadata.name, namespace]),
  );
  const queue = createWorkQueue({
    ...options,
    name: 'system-namespaces',
    workers: 1,
    async run(name) {
      const object = desired.get(name);
      if (object !== undefined) {
        await createAbsent(options, { at: { def, namespace: '', name }, object });
      }
    },
  });
  const subscription = caches.of(def).subscribe(({ previous, current }) => {
    const isGone = current === undefined && previous !== undefined;
    if (isGone && desired.has(previous.index.name)) queue.add(previous.index.name);
  });
  return runningQueue(queue, subscription);
}
