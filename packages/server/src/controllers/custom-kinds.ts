import { parseAhead } from '@wheelhouse/codec';
import {
  type Crd,
  type CrdNames,
  type CrdStatus,
  type CustomKindDeps,
  type CustomResourceDef,
  crdConditionIsTrue,
  crdOf,
  customPrefix,
  fromCrd,
  type NumberClaims,
  type ReconcileOptions,
  type ResourceDef,
  reconcileCrd,
  setCondition,
} from '@wheelhouse/kinds';
import { atPace, type Dialect, formatTime, jsonEqual, Slices } from '@wheelhouse/machinery';
import { type Catalogue, sharesKeys } from '../catalogue/catalogue.ts';
import { decodeEntry } from '../registry/object-codec.ts';
import type { EntryChange } from '../watchcache/contract.ts';
import type { Entry } from '../watchcache/entry.ts';
import { CorruptObjectError } from '../watchcache/store-errors.ts';
import { type ControllerTools, listEntries, removeEntries } from './inside.ts';

import { createWorkQueue } from './work-queue.ts';

/** How long to wait before looking again at custom objects that finalizers hold. */
const recheckMs = 200;
/** The same, while another server gives names of the group. */
const turnMs = 50;

/** Keeps the catalogue's custom kinds in step with the CustomResourceDefinitions (CRD-1). */
export interface CustomKinds {
  /** Resolves when the definitions stored before the start are served. */
  readonly ready: Promise<void>;
  close(): Promise<void>;
}

export interface CustomKindsOptions extends ControllerTools {
  readonly definitions: ResourceDef;
  readonly catalogue: Catalogue;
  readonly deps: CustomKindDeps;
  readonly dialect: Dialect;
  /** What is wrong with the authorities of a conversion webhook (base64 of PEM). */
  readonly checkBundle: ReconcileOptions['checkBundle'];
  readonly cleanupFinalizer: string;
  /** Kept filled with the names of definitions being deleted: their kinds take no new objects. */
  readonly terminating: Set<string>;
  /** Where other servers on the same store give names too; absent where there is but one. */
  readonly claims?: NumberClaims | undefined;
}

/**
 * Follows the definitions. Every change gives the whole set of kinds anew, entries that did not
 * change being the same values, so that nothing compiled for them is lost. A definition's entry is
 * served before its status says so, and taken away after its objects are gone.
 */
export function startCustomKinds(options: CustomKindsOptions): CustomKinds {
  const { definitions, caches, clock, logger, terminating } = options;
  const cache = caches.of(definitions);
  const kinds = createKindTable(options);
  const crds = new Map<string, Crd>();
  /** The current definition, including names that were just accepted. */
  const current = async (name: string) => {
    await ready;
    await cache.get(name, undefined);
    await following.idle();
    return crds.get(name);
  };
  const decideNames = async (name: string) => {
    const crd = await current(name);
    if (crd === undefined) return;
    if (crd.metadata.deletionTimestamp !== undefined) return removals.add(name);
    if (newStatus(options, crd, [...crds.values()]) === undefined) return;
    const turn = await takeTurn(options, crd.spec.group);
    if (turn === undefined) return names.addAfter(name, turnMs);
    try {
      // What another server gave is seen now, and none gives any before this is written.
      const now = await current(name);
      const isThere = now !== undefined && now.metadata.deletionTimestamp === undefined;
      if (isThere) await writeStatus(options, now, [...crds.values()]);
    } catch (error) {
      turn.doubt();
      throw error;
    }
    turn.release();
  };
  const remove = async (name: string) => {
    const crd = await current(name);
    if (crd?.metadata.deletionTimestamp === undefined) return;
    if (await cleanUp(options, kinds, crd)) removals.addAfter(name, recheckMs);
  };
  // One at a time: two definitions must not be given the same name. Nor must they by two servers.
  const tools = { clock, logger, queues: options.queues };
  const names = createWorkQueue({ ...tools, name: namesQueue, run: decideNames, workers: 1 });
  const removals = createWorkQueue({ ...tools, name: 'crd_finalizer', run: remove, workers: 4 });
  const refresh = () => {
    terminating.clear();
    for (const [name, crd] of crds) {
      if (crd.metadata.deletionTimestamp !== undefined) terminating.add(name);
    }
    kinds.replace(crds);
  };
  const following = followInSteps(options, (change) => {
    const name = (change.current ?? change.previous)?.index.name ?? '';
    if (change.current === undefined) crds.delete(name);
    else crds.set(name, crdOf(decodeEntry(change.current)));
    refresh();
    for (const one of [name, ...waitingForNames(crds)]) names.add(one);
  });
  const subscription = cache.subscribe(following.take);
  const ready = cache.ready().then(async () => {
    const stored = await storedDefinitions(options);
    for (const [name, crd] of stored) if (!crds.has(name)) crds.set(name, crd);
    refresh();
    for (const name of crds.keys()) names.add(name);
  });
  // A server that gives up its start closes the caches before anybody waits for this.
  ready.catch(() => {});
  return {
    ready,
    async close() {
      subscription.close();
      await Promise.all([names.close(), removals.close()]);
    },
  };
}

/** Bytes of JSON from which on a definition is read in a turn of its own. */
const largeDefinitionBytes = 131_072;

/**
 * Applies changes in their order: a small definition at once, a large one in a turn of the event loop
 * of its own, once it has been parsed in steps (TRUST-2). Small ones behind a large one wait for it.
 */
function followInSteps(
  { clock, logger }: Pick<CustomKindsOptions, 'clock' | 'logger'>,
  apply: (change: EntryChange) => void,
) {
  let waiting = 0;
  let last: Promise<void> = Promise.resolve();
  const isLarge = (change: EntryChange): change is EntryChange & { readonly current: Entry } =>
    (change.current?.json.length ?? 0) >= largeDefinitionBytes;
  const applyInSteps = async (change: EntryChange) => {
    try {
      if (isLarge(change)) {
        const slices = new Slices(clock);
        await slices.pause();
        await atPace(parseAhead(change.current.json), slices);
        await slices.pause();
      }
      apply(change);
    } catch (error) {
      logger.error('a definition could not be followed', { error: String(error) });
    } finally {
      waiting -= 1;
    }
  };
  return {
    take(change: EntryChange) {
      if (waiting === 0 && !isLarge(change)) {
        apply(change);
        return;
      }
      waiting += 1;
      last = last.then(() => applyInSteps(change));
    },
    /** Resolves when every change that was taken has been handed on. */
    idle: () => last,
  };
}

const namesQueue = 'crd_naming_condition_controller';

const ownTurn = { release: () => {}, doubt: () => {} };

/** The right to give names of a group, which one server has at a time; undefined: another has it. */
async function takeTurn({ claims }: CustomKindsOptions, group: string) {
  return claims === undefined ? ownTurn : claims.take([`definitions/${group}`]);
}

/** Definitions whose names are not all accepted; any change may free those names. */
function waitingForNames(crds: ReadonlyMap<string, Crd>): readonly string[] {
  const waits = (crd: Crd) =>
    crd.status?.conditions?.some((one) => one.type === 'NamesAccepted' && one.status === 'False');
  return [...crds].flatMap(([name, crd]) => (waits(crd) === true ? [name] : []));
}

/**
 * The definitions that can be read. The log names the others: their kinds are not served, and their
 * objects stay where they are.
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
    logger.error('stored definitions cannot be read', { keys: keys.join(', ') });
    return listEntries(caches, at, { unreadable: 'left-out' });
  });
  const decode = (entry: Entry) => [entry.index.name, crdOf(decodeEntry(entry))] as const;
  return new Map(entries.map(decode));
}

interface KindTable {
  replace(definitions: ReadonlyMap<string, Crd>): void;
  /** The served entry of a definition, if it has one. */
  find(name: string): CustomResourceDef | undefined;
}

interface Made {
  readonly crd: Crd;
  readonly def: CustomResourceDef;
}

function createKindTable(options: CustomKindsOptions): KindTable {
  const { catalogue, caches, deps, logger } = options;
  let made = new Map<string, Made>();
  const entryOf = (name: string, crd: Crd): Made | undefined => {
    const before = made.get(name);
    if (before?.crd === crd) return before;
    if (before !== undefined && isSameKind(before.crd, crd)) return { crd, def: before.def };
    if (!hasOwnKeys(crd, catalogue)) return undefined;
    try {
      return { crd, def: fromCrd(crd, deps) };
    } catch (error) {
      logger.error('a stored definition cannot be served', { name, error: String(error) });
      return undefined;
    }
  };
  return {
    find: (name) => made.get(name)?.def,
    replace(definitions) {
      const next = new Map<string, Made>();
      for (const [name, crd] of definitions) {
        const entry = isServed(crd, definitions, options) ? entryOf(name, crd) : undefined;
        if (entry !== undefined) next.set(name, entry);
      }
      const changed = [...made].filter(([name, { def }]) => next.get(name)?.def !== def);
      const isSame = changed.length === 0 && next.size === made.size;
      made = next;
      if (isSame) return;
      for (const [name, { def }] of changed) caches.drop(def, next.get(name)?.def);
      catalogue.replaceCustom([...next.values()].map(({ def }) => def));
    },
  };
}

/** Established, or about to be: the entry must be there before the status tells of it. */
function isServed(crd: Crd, all: ReadonlyMap<string, Crd>, options: CustomKindsOptions): boolean {
  if (crdConditionIsTrue(crd, 'Established')) return true;
  if (crd.metadata.deletionTimestamp !== undefined) return false;
  const status = newStatus(options, crd, [...all.values()]);
  return status !== undefined && crdConditionIsTrue({ ...crd, status }, 'Established');
}

/**
 * Whether nothing but objects of this definition can be stored under its prefix. Definitions named
 * like kinds that the server itself stores by group and plural would otherwise take their objects.
 */
function hasOwnKeys(crd: Crd, catalogue: Catalogue): boolean {
  const { group, names } = crd.spec;
  if (crd.metadata.name !== `${names.plural}.${group}`) return false;
  const prefix = customPrefix(crd);
  const { builtins } = catalogue.snapshot();
  return builtins.every(({ storage }) => !sharesKeys(storage.prefix, prefix));
}

function isSameKind(one: Crd, other: Crd): boolean {
  return (
    one.metadata.uid === other.metadata.uid &&
    jsonEqual(one.spec, other.spec) &&
    jsonEqual(namesOf(one), namesOf(other))
  );
}

/** The accepted names, or those asked for while nothing was decided. */
function namesOf({ spec, status }: Crd): CrdNames {
  const accepted = status?.acceptedNames;
  return accepted === undefined || accepted.plural === '' ? spec.names : accepted;
}

function newStatus(
  { dialect, checkBundle, clock }: CustomKindsOptions,
  crd: Crd,
  all: readonly Crd[],
): CrdStatus | undefined {
  return reconcileCrd(crd, all, { dialect, checkBundle, nowMs: clock.now() });
}

async function writeStatus(
  options: CustomKindsOptions,
  crd: Crd,
  all: readonly Crd[],
): Promise<void> {
  const { definitions, inside } = options;
  if (newStatus(options, crd, all) === undefined) return;
  const at = { def: definitions, namespace: '', name: crd.metadata.name ?? '' };
  await inside.change({ ...at, subresource: 'status' }, (object) => {
    const current = crdOf(object);
    const status = newStatus(options, current, all);
    return status === undefined ? current : { ...current, status };
  });
}

/** Removes the kind's objects, then the finalizer; true when some still stand. */
async function cleanUp(options: CustomKindsOptions, kinds: KindTable, crd: Crd): Promise<boolean> {
  const { inside, definitions, cleanupFinalizer, caches } = options;
  const at = { def: definitions, namespace: '', name: crd.metadata.name ?? '' };
  const finalizers = crd.metadata.finalizers ?? [];
  if (!finalizers.includes(cleanupFinalizer)) return false;
  await markTerminating(options, crd, underWay);
  const def = kinds.find(at.name);
  if (def !== undefined) {
    await removeEntries({ caches, inside, at: { def, namespace: '' } });
    const left = await listEntries(caches, { def, namespace: '' });
    if (left.length > 0) return true;
  }
  // Seen only where somebody else's finalizer keeps the definition.
  if (finalizers.length > 1) await markTerminating(options, crd, outcomeOf(crd, options.catalogue));
  await inside.change(at, (object) => {
    const rest = (object.metadata.finalizers ?? []).filter((one) => one !== cleanupFinalizer);
    if (rest.length === 0) delete object.metadata.finalizers;
    else object.metadata.finalizers = rest;
    return object;
  });
  return false;
}

const underWay = {
  type: 'Terminating',
  status: 'True',
  reason: 'InstanceDeletionInProgress',
  message: 'CustomResource deletion is in progress',
} as const;
const completed = {
  type: 'Terminating',
  status: 'False',
  reason: 'InstanceDeletionCompleted',
  message: 'removed all instances',
} as const;

const overlapping = {
  type: 'Terminating',
  status: 'False',
  reason: 'OverlappingBuiltInResource',
  message: 'instances overlap with built-in resources in storage',
} as const;
const neverEstablished = {
  type: 'Terminating',
  status: 'False',
  reason: 'NeverEstablished',
  message: 'resource was never established',
} as const;

/** What became of the objects of a definition whose cleanup has ended. */
function outcomeOf(crd: Crd, catalogue: Catalogue) {
  if (!hasOwnKeys(crd, catalogue)) return overlapping;
  return crdConditionIsTrue(crd, 'Established') ? completed : neverEstablished;
}

async function markTerminating(
  options: CustomKindsOptions,
  crd: Crd,
  state: typeof underWay | ReturnType<typeof outcomeOf>,
): Promise<void> {
  const { type, reason } = state;
  if (crd.status?.conditions?.some((one) => one.type === type && one.reason === reason)) return;
  const { inside, definitions, clock } = options;
  const at = { def: definitions, namespace: '', name: crd.metadata.name ?? '' };
  const now = formatTime(clock.now());
  await inside.change({ ...at, subresource: 'status' }, (object) => {
    const current = crdOf(object);
    const conditions = [...setCondition(current.status?.conditions ?? [], state, now)];
    const status = { ...(current.status as CrdStatus), conditions };
    return { ...current, status };
  });
}
