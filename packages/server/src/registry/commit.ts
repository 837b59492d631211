import { parseAhead, parseWrittenJson } from '@wheelhouse/codec';
import {
  type ResourceDef,
  type Strategy,
  servesStoredForm,
  toStorage,
  versionNamed,
} from '@wheelhouse/kinds';
import {
  type ApiObject,
  andThen,
  asApiObject,
  itemAt,
  jsonEqual,
  jsonEqualExcept,
  jsonEqualSteps,
  type ManagedFieldsEntry,
  type MaybePromise,
  type Pace,
  paceFor,
  runAtPace,
  timedOut,
  tooManyValues,
} from '@wheelhouse/machinery';
import { type StoredRecord, StoreError, type WriteResult } from '@wheelhouse/store';
import { isSameButOwners, sameButOwnersSteps } from '@wheelhouse/structured-merge';
import {
  type Entry,
  EntryHint,
  type EntryIndex,
  entryAtRevision,
  makeEntry,
} from '../watchcache/entry.ts';
import { storing } from '../watchcache/store-errors.ts';
import type { Target, WriteContext, Written } from './contract.ts';
import { needsStoredForm, objectToStore } from './conversion/converted-kinds.ts';
import {
  decodedInSlices,
  dryEntry,
  encodeStored,
  entrySteps,
  indexOf,
  objectKey,
  refreshSteps,
  storedAt,
} from './object-codec.ts';
import { nameFrom } from './object-meta.ts';
import type { EncodedAhead, Registry } from './registry.ts';

/**
 * The last step of a write: one conditional put or delete in the store, or none for an unchanged
 * object and for a dry run.
 */

/** The result of one attempt to store. */
export type Outcome =
  | { readonly type: 'written'; readonly written: Written }
  /** Another writer was first; `current` is what it stored. */
  | { readonly type: 'lost'; readonly current: Entry | undefined }
  /** The store failed; whether it wrote is unknown. */
  | { readonly type: 'failed'; readonly error: unknown };

interface Commit {
  readonly target: Target;
  readonly context: WriteContext;
  /**
   * Whether an object that is too large for the store is stored without its managed fields (MF-2).
   */
  readonly owners: 'needed' | 'spare';
  /** The pace of work on a large object. */
  readonly pace: Pace | undefined;
}

/** An object on its way into the store. */
interface StoredForm {
  readonly value: Buffer;
  /** `value`, decoded. */
  readonly stored: ApiObject;
  /** The JSON that readers receive: the value itself, unless it lacks defaults. */
  readonly shown: Buffer;
  /** `shown`, decoded. */
  readonly object: ApiObject;
  readonly index: EntryIndex;
}

const written = (entry: Entry, effect: Written['effect']): Outcome => ({
  type: 'written',
  written: { entry, effect },
});

/** Maximum number of generated names that are tried, as in kube-apiserver. */
const generatedNameAttempts = 8;

/**
 * Stores a new object under an unused key. With `mayRename`, tries other generated names while the
 * name is taken; `stored` then has the last one.
 */
export async function commitNew(
  registry: Registry,
  commit: Commit & { readonly stored: ApiObject; readonly mayRename: boolean },
): Promise<Outcome> {
  const { target, stored, mayRename } = commit;
  let outcome = await insert(registry, commit);
  if (!mayRename) return outcome;
  const attemptsMax = registry.generatedNames === 'once' ? 1 : generatedNameAttempts;
  for (let attempt = 2; outcome.type === 'lost' && attempt <= attemptsMax; attempt += 1) {
    const { strategy } = target.def;
    stored.metadata.name = nameFrom(stored.metadata.generateName ?? '', strategy);
    strategy.afterNaming?.(stored);
    outcome = await insert(registry, commit);
  }
  return outcome;
}

async function insert(
  registry: Registry,
  commit: Commit & { readonly stored: ApiObject },
): Promise<Outcome> {
  const { target, context, pace } = commit;
  const { def } = target;
  const { namespace = '', name = '' } = commit.stored.metadata;
  const key = objectKey(namespace, name);
  const form = storedForm(def, commit.stored, pace);
  const { value, stored, shown, index, object } = form instanceof Promise ? await form : form;
  if (context.dryRun) {
    const current = await registry.caches.of(def).get(key, undefined);
    if (current !== undefined) return { type: 'lost', current };
    return written(dryEntry({ key, value: shown, index }), 'created');
  }
  const storeKey = def.storage.prefix + key;
  if (pace !== undefined) await encodeAhead(registry, { storeKey, value, object: stored, pace });
  requireTime(context);
  const hint = shown === value ? new EntryHint(index, def.storage, object) : new EntryHint(index);
  let result: WriteResult;
  try {
    limitSize(value);
    result = await registry.store.put({ key: storeKey, value, expect: 0, hint });
  } catch (error) {
    if (dropOwners(commit, error)) return insert(registry, commit);
    return { type: 'failed', error };
  }
  if (!result.ok) return { type: 'lost', current: await readable(registry, def, result.current) };
  const { revision } = result;
  const entry = hint.entryOf({ key, stored: shown, revision, createRevision: revision });
  if (shown === value) rememberPresent(def, entry);
  keepDecoded(registry, { storeKey, entry, object, context });
  return written(entry, 'created');
}

/** The entry of a record; undefined for an unreadable one, which nevertheless occupies the key. */
function readable(
  registry: Registry,
  def: ResourceDef,
  record: StoredRecord | undefined,
): MaybePromise<Entry | undefined> {
  return record?.unreadable === undefined ? winningEntry(registry, def, record) : undefined;
}

/**
 * The entry of the record that another writer stored: the cached one, or the record decoded at the
 * pace of its size.
 */
function winningEntry(
  registry: Registry,
  def: ResourceDef,
  record: StoredRecord | undefined,
): MaybePromise<Entry | undefined> {
  if (record === undefined) return undefined;
  const { key, modRevision, unreadable, value } = record;
  const cached = registry.caches.of(def).peek(key.slice(def.storage.prefix.length));
  if (unreadable === undefined && cached?.revision === modRevision) return cached;
  const steps = entrySteps(def, record, registry.store);
  return runAtPace(steps, paceFor(registry.clock, value.length));
}

/** A changed object and its predecessor. */
interface ChangeCommit extends Commit {
  readonly current: Entry;
  readonly stored: ApiObject;
  /** The current entry, decoded. */
  readonly old: ApiObject;
}

/**
 * Stores a changed object on condition that the entry is still the current one. An unchanged object
 * is not written (META-6); an object marked for deletion that nothing keeps any longer is removed
 * (META-5).
 */
export async function commitChange(registry: Registry, commit: ChangeCommit): Promise<Outcome> {
  const { target, context, current, stored, old, pace } = commit;
  const { def } = target;
  if (old.metadata.resourceVersion !== undefined) {
    stored.metadata.resourceVersion = old.metadata.resourceVersion;
  }
  const compared =
    pace === undefined ? changesNothing(stored, old) : runAtPace(sameSteps(stored, old), pace);
  const isSame = compared instanceof Promise ? await compared : compared;
  if (isSame && !(await isStale(registry, { def, context, current }))) {
    return written(current, 'unchanged');
  }
  if (!isFinalized(def.strategy, stored)) {
    const outcome = await replace(registry, { target, context, current, object: stored, pace });
    const isTooLarge = outcome.type === 'failed' && dropOwners(commit, outcome.error);
    return isTooLarge ? commitChange(registry, commit) : outcome;
  }
  const entry = { ...current, stored: encodeStored(stored), index: indexOf(def.storage, stored) };
  if (context.dryRun) return written(makeEntry(entry), 'removed');
  requireTime(context);
  const removal = await remove(registry, { target, current });
  return removal.type === 'written' ? written(makeEntry(entry), 'removed') : removal;
}

/** Stores an object marked for deletion, or removes it if nothing keeps it (DEL-1). */
export async function commitDeletion(
  registry: Registry,
  commit: Omit<ChangeCommit, 'owners' | 'stored'> & {
    readonly object: ApiObject;
    /** Whether this deletion may remove the object, or only marks it. */
    readonly ends: 'unless finalizers hold it' | 'later';
    /** Runs admission before an object that has just been marked is removed. */
    readonly reviewRemoval: (marked: Entry) => Promise<void>;
  },
): Promise<Outcome> {
  const { target, context, current, object, old, pace } = commit;
  const { strategy } = target.def;
  const compared =
    pace === undefined ? jsonEqual(object, old) : runAtPace(jsonEqualSteps(object, old), pace);
  const isChanged = !(compared instanceof Promise ? await compared : compared);
  const mark = { target, context, current, object, pace, purpose: 'removal' } as const;
  if (commit.ends === 'later' || !isFinalized(strategy, object)) {
    return isChanged ? replace(registry, mark) : written(current, 'unchanged');
  }
  const { deletionTimestamp, deletionGracePeriodSeconds: left = 0 } = old.metadata;
  const hasEnded = deletionTimestamp !== undefined && left === 0;
  // Watchers of a kind with a grace period act when they see an object marked.
  const isMarkedFirst = strategy.gracePeriod !== undefined && isChanged && !hasEnded;
  const marking = isMarkedFirst ? await replace(registry, mark) : written(current, 'unchanged');
  if (marking.type !== 'written') return marking;
  const { entry } = marking.written;
  if (context.dryRun) return written(entry, 'removed');
  if (isMarkedFirst) await commit.reviewRemoval(entry);
  requireTime(context);
  const removal = await remove(registry, { target, current: entry });
  const isGone = removal.type === 'lost' && removal.current === undefined;
  return isMarkedFirst && isGone ? written(entry, 'removed') : removal;
}

/** Replaces the current entry. `removal` marks a step toward the object's removal (TRUST-8). */
async function replace(
  registry: Registry,
  change: {
    readonly target: Target;
    readonly context: WriteContext;
    readonly current: Entry;
    readonly object: ApiObject;
    readonly pace: Pace | undefined;
    readonly purpose?: 'removal';
  },
): Promise<Outcome> {
  const { target, context, current, object, pace } = change;
  const { def } = target;
  const encoded = storedAt(pace, object);
  const value = encoded instanceof Promise ? await encoded : encoded;
  const index = indexOf(def.storage, object);
  const { key, createRevision } = current;
  if (context.dryRun) return written(makeEntry({ ...current, stored: value, index }), 'changed');
  const storeKey = def.storage.prefix + key;
  if (pace !== undefined) await encodeAhead(registry, { storeKey, value, object, pace });
  requireTime(context);
  const hint = new EntryHint(index, def.storage, object);
  const purpose = change.purpose ?? purposeOf(object, { before: current.json, after: value });
  const put = { key: storeKey, value, expect: current.revision, hint, purpose };
  let result: WriteResult;
  try {
    limitSize(value, current.json);
    result = await registry.store.put(put);
  } catch (error) {
    return { type: 'failed', error };
  }
  if (!result.ok) {
    return { type: 'lost', current: await winningEntry(registry, def, result.current) };
  }
  const { revision } = result;
  const entry = hint.entryOf({ key, stored: value, revision, createRevision });
  rememberPresent(def, entry);
  keepDecoded(registry, { storeKey, entry, object, context });
  return written(entry, 'changed');
}

/** Maximum number of bytes of a stored object: twice those of a body, for its managed fields. */
const storedBytesMax = 6_291_456;

/**
 * Throws a StoreError for an object that is too large, because reading it would block other requests
 * (TRUST-2). An object that was stored earlier may become smaller.
 */
function limitSize(value: Buffer, before?: Buffer): void {
  if (value.length <= Math.max(storedBytesMax, before?.length ?? 0)) return;
  const cause = tooManyValues(storedBytesMax, 'bytes of a stored object');
  throw new StoreError({ code: 'too-large', message: cause.message, cause });
}

/** Encodes a large object for the store in steps; otherwise the put would encode it in one. */
async function encodeAhead(
  registry: Registry,
  { pace, ...request }: EncodedAhead & { readonly pace: Pace },
): Promise<void> {
  const work = registry.encodeAhead?.(request);
  if (work !== undefined) await runAtPace(work, pace);
}

/**
 * Maximum number of bytes that a step toward removal adds to an object: conditions and their
 * managed fields.
 */
const partingBytesMax = 4096;

/**
 * Whether a write brings an object closer to removal, for which the store reserves space (TRUST-8).
 */
function purposeOf(
  object: ApiObject,
  sizes: { readonly before: Buffer; readonly after: Buffer },
): 'growth' | 'removal' {
  if (object.metadata.deletionTimestamp === undefined) return 'growth';
  return sizes.after.length <= sizes.before.length + partingBytesMax ? 'removal' : 'growth';
}

/**
 * Removes an object at the revision of its entry. The outcome contains the entry as clients see it.
 */
export async function remove(
  registry: Registry,
  { target, current }: { readonly target: Target; readonly current: Entry },
): Promise<Outcome> {
  const { def } = target;
  const key = def.storage.prefix + current.key;
  let result: WriteResult;
  try {
    result = await registry.store.delete({ key, expect: current.revision });
  } catch (error) {
    return { type: 'failed', error };
  }
  if (!result.ok) {
    return { type: 'lost', current: await winningEntry(registry, def, result.current) };
  }
  const { afterRemoval, deleteAnswers } = def.strategy;
  if (afterRemoval !== undefined)
    await afterRemoval(await decodedInSlices(current, registry.clock));
  const isShown = deleteAnswers === 'object';
  return written(isShown ? entryAtRevision(current, result.revision) : current, 'removed');
}

/**
 * Whether an object must be removed: marked for deletion, no grace left, nothing keeps it (DEL-1).
 */
function isFinalized(strategy: Strategy, object: ApiObject): boolean {
  const { metadata } = object;
  return (
    metadata.deletionTimestamp !== undefined &&
    (metadata.deletionGracePeriodSeconds ?? 0) === 0 &&
    (metadata.finalizers ?? []).length === 0 &&
    (strategy.mayRemove?.(object) ?? true)
  );
}

/**
 * Throws a 504 if the request has timed out. This is the last check before a write: after a
 * timeout, the write has already happened, is in progress, or never happens.
 */
function requireTime({ expired }: WriteContext): void {
  if (expired()) throw timedOut('write');
}

/**
 * Removes the managed fields of an object that is too large with them (MF-2). Returns whether it
 * did.
 */
function dropOwners(
  { owners, stored }: Commit & { readonly stored: ApiObject },
  error: unknown,
): boolean {
  const isTooLarge = error instanceof StoreError && error.code === 'too-large';
  if (!isTooLarge || owners === 'needed') return false;
  if (stored.metadata.managedFields === undefined) return false;
  delete stored.metadata.managedFields;
  return true;
}

/**
 * Keeps the written object, so that the next writer need not decode it. It is shared from now on.
 */
function keepDecoded(
  registry: Registry,
  commit: {
    readonly storeKey: string;
    readonly entry: Entry;
    readonly object: ApiObject;
    readonly context: WriteContext;
  },
): void {
  const { storeKey, entry, object, context } = commit;
  // The server's own writers may continue to modify the object that they passed.
  if (context.origin === 'server') return;
  object.metadata.resourceVersion = String(entry.revision);
  registry.decoded.keep(storeKey, { entry, object });
}

/**
 * The form in which an object is stored. Some defaults are not stored, although readers see them, as
 * in kube-apiserver: those of the stored version if a webhook converts the object, and that of the
 * status of a new custom object. Rejects with a StatusError if the webhook fails.
 */
function storedForm(def: ResourceDef, object: ApiObject, pace?: Pace): MaybePromise<StoredForm> {
  if (needsStoredForm(def, object)) return convertedForm(def, object, pace);
  const stored = inStoredVersion(def, object);
  const read = def.storage.asRead?.(stored) ?? stored;
  const formOf = (value: Buffer, shown: Buffer): StoredForm => ({
    value,
    stored,
    shown,
    object: read,
    index: indexOf(def.storage, read),
  });
  const encodedFor = (value: Buffer): MaybePromise<StoredForm> => {
    const shown = read === stored ? value : storedAt(pace, read);
    return andThen(shown, (json) => formOf(value, json));
  };
  return andThen(storedAt(pace, stored), encodedFor);
}

/**
 * The form in which a changed object is stored. Calls no webhook for an object that is about to be
 * removed, nor for the server's own housekeeping, which must work without it; the stored version
 * then stays the same.
 * @param options.storedVersion the apiVersion of the current entry
 */
export function formToStore(
  def: ResourceDef,
  object: ApiObject,
  options: {
    readonly context: WriteContext;
    readonly storedVersion: string;
    readonly pace: Pace | undefined;
  },
): MaybePromise<ApiObject> {
  if (def.behavior.validatedIn === 'stored version') return object;
  if (def.behavior.converter === undefined) return inStoredVersion(def, object);
  if (isFinalized(def.strategy, object)) return object;
  const isOwn = options.storedVersion === object.apiVersion;
  if (isOwn && options.context.origin === 'server') return object;
  if (needsStoredForm(def, object)) {
    return convertedForm(def, object, options.pace).then((form) => form.object);
  }
  const stored = inStoredVersion(def, object);
  return def.storage.asRead?.(stored) ?? stored;
}

/**
 * Converts an object that was validated in the request's version to the stored version, in place.
 */
function inStoredVersion(def: ResourceDef, object: ApiObject): ApiObject {
  if (def.behavior.validatedIn === 'stored version') return object;
  const version = versionNamed(def, object.apiVersion);
  if (version === undefined) return object;
  return servesStoredForm(def, version) ? object : toStorage(def, version, object);
}

async function convertedForm(
  def: ResourceDef,
  object: ApiObject,
  pace: Pace | undefined,
): Promise<StoredForm> {
  const stored = await objectToStore(def, object);
  const value = await storedAt(pace, stored);
  const { namespace = '', name = '' } = object.metadata;
  const key = def.storage.prefix + objectKey(namespace, name);
  const shown = await runAtPace(refreshSteps(def, { key, value }), pace);
  const read = asApiObject(parseWrittenJson(shown));
  return { value, stored, shown, object: read, index: indexOf(def.storage, read) };
}

/** Whether nothing has changed except, at most, the times of managed fields (META-6). */
function changesNothing(stored: ApiObject, old: ApiObject): boolean {
  return (
    isSameButOwners(stored, old) &&
    sameButTimes(stored.metadata.managedFields ?? [], old.metadata.managedFields ?? [])
  );
}

/** `changesNothing` in steps. */
function* sameSteps(stored: ApiObject, old: ApiObject): Generator<void, boolean> {
  return (
    (yield* sameButOwnersSteps(stored, old)) &&
    sameButTimes(stored.metadata.managedFields ?? [], old.metadata.managedFields ?? [])
  );
}

function sameButTimes(
  entries: readonly ManagedFieldsEntry[],
  old: readonly ManagedFieldsEntry[],
): boolean {
  if (entries.length !== old.length) return false;
  return entries.every((entry, at) => jsonEqualExcept(entry, itemAt(old, at), 'time'));
}

/**
 * Whether to write an unchanged object, which moves it to a new encryption key, or a custom object
 * to the form of its current definition (CRD-4).
 */
function isStale(
  registry: Registry,
  { def, context, current }: { def: ResourceDef; context: WriteContext; current: Entry },
): Promise<boolean> | false {
  if (context.dryRun) return false;
  if (def.behavior.refreshesStored) return isStaleOrOutdated(registry, { def, current });
  return registry.isStale?.(def.storage.prefix + current.key) ?? false;
}

async function isStaleOrOutdated(
  registry: Registry,
  { def, current }: { def: ResourceDef; current: Entry },
): Promise<boolean> {
  if ((await registry.isStale?.(def.storage.prefix + current.key)) === true) return true;
  return isOutdated(registry, { def, entry: current });
}

/** Entries whose stored value already has the form of their current definition. */
const present = new WeakSet<Entry>();

/** Records that an entry has just been stored in the form that readers see. */
function rememberPresent(def: ResourceDef, entry: Entry): void {
  if (def.behavior.refreshesStored) present.add(entry);
}

/**
 * Whether the stored form of an object differs from that of its current definition: another
 * version, or missing newer defaults. Reads the store at most once for each entry.
 */
async function isOutdated(
  registry: Pick<Registry, 'store' | 'clock'>,
  { def, entry }: { readonly def: ResourceDef; readonly entry: Entry },
): Promise<boolean> {
  if (present.has(entry)) return false;
  const key = def.storage.prefix + entry.key;
  const record = await storing(async () => registry.store.get(key));
  if (record === undefined || record.unreadable !== undefined) return false;
  if (record.modRevision !== entry.revision) return false;
  const pace = paceFor(registry.clock, record.value.length);
  const isSame = await runAtPace(isInCurrentForm(def, record), pace);
  if (isSame) present.add(entry);
  return !isSame;
}

function* isInCurrentForm(def: ResourceDef, record: StoredRecord): Generator<void, boolean> {
  const shown = yield* refreshSteps(def, record);
  if (shown === record.value) return true;
  yield* parseAhead(record.value);
  return yield* jsonEqualSteps(parseWrittenJson(shown), parseWrittenJson(record.value));
}
