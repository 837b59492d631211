import {
  fromStorage,
  type ResourceDef,
  type StrategyContext,
  servesStoredForm,
  toStorage,
} from '@wheelhouse/kinds';
import {
  type ApiObject,
  cloneJson,
  conflict,
  jsonEqualBut,
  type ManagedFieldsEntry,
  type MaybePromise,
  modifiedMessage,
  notFound,
  paceFor,
  StatusError,
} from '@wheelhouse/machinery';
import { settleEmpty } from '@wheelhouse/schema';
import { type Entry, EntryHint } from '../watchcache/contract.ts';
import { makeEntry } from '../watchcache/entry.ts';
import { settling } from './allocation.ts';
import type { Target, Transform, WriteContext, Written } from './contract.ts';
import { apiVersionOfEntry, needsConversion, shownObject, targetOn } from './conversion/views.ts';
import { insertObject, keepDecoded, strategyContextOf } from './create.ts';
import { isFinalized, removeFinalized } from './finalize.ts';
import { attemptOnGuess, guessOf } from './guess.ts';
import { decodeEntry, encodeStored, entryOf, indexOf, objectKey } from './object-codec.ts';
import {
  checkPathAgreement,
  checkReadable,
  checkResourceVersion,
  checkUid,
  dropDuplicateOwners,
  keepSystemFields,
  namesVersion,
  preconditionFailed,
  versionOnCreate,
  wipeSystemFields,
} from './object-meta.ts';
import { groupResourceOf, type Registry, requireTime, sparingOwners, storing } from './registry.ts';
import { inStoredVersion, isOutdated, rememberPresent, storedForm } from './stored-form.ts';
import { Turns } from './turns.ts';
import { typedForm } from './typed-form.ts';
import { validateChange } from './validate.ts';

/** Lost races after which an update gives up with a 409; each one means another write succeeded. */
const attemptsMax = 500;

export interface UpdateRequest {
  readonly target: Target;
  readonly context: WriteContext;
  /**
   * Makes the new object, in the request's version, with managed fields not yet recorded. `record`
   * is false when the transform has recorded them itself (apply).
   */
  readonly transform: Transform;
  /** What the transform gives is the body itself, as the client wrote it. */
  readonly replaces?: boolean;
  /** `shared`: the transform changes nothing of the object it is given, and is spared a copy. */
  readonly base?: 'shared';
  readonly record: boolean;
  /** What to do when the object is absent: `create` it (PUT where allowed, apply), or 404. */
  readonly onAbsent: 'create' | 'refuse';
  /**
   * What admission judges in place of the object (a Scale); absent: the object itself. Mutating
   * admission is then the transform's own affair.
   */
  readonly shown?: (object: ApiObject) => ApiObject;
  /** Called before a create in place of an update; throws when the user may not (API-5, SSA-7). */
  readonly beforeCreate?: () => Promise<void>;
}

/**
 * The guaranteed update: reads, transforms, admits, validates and writes on condition that nothing
 * changed meanwhile; begins again if something did. A change of nothing writes nothing (META-6).
 * An object marked for deletion whose last finalizer goes is removed (META-5).
 */
export async function updateObject(registry: Registry, request: UpdateRequest): Promise<Written> {
  const { target, context } = request;
  const { def } = target;
  const key = objectKey(target.namespace, target.name);
  const guess = guessOf(registry, { def, key, context });
  const current = guess ?? (await registry.caches.of(def).get(key, undefined));
  const first = await attemptAny(registry, { request, current, guess, attempt: 1 });
  if (first.written !== undefined) return first.written;
  return turnsOf(registry).take(def.storage.prefix + key, async (hasWaited) => {
    const newest = hasWaited ? await registry.caches.of(def).get(key, undefined) : first.current;
    return tryAgain(registry, { request, newest });
  });
}

/** Attempts that begin with what stands in the store, until one of them wins its race. */
async function tryAgain(
  registry: Registry,
  { request, newest }: { request: UpdateRequest; newest: Entry | undefined },
): Promise<Written> {
  const { target, context } = request;
  let current = newest;
  for (let attempt = 2; attempt <= attemptsMax && !context.expired(); attempt += 1) {
    const outcome = await attemptAny(registry, { request, current, guess: undefined, attempt });
    if (outcome.written !== undefined) return outcome.written;
    current = outcome.current;
  }
  throw conflict(groupResourceOf(target.def), target.name, modifiedMessage);
}

const turns = new WeakMap<Registry['store'], Turns>();

/** One for each store: a registry may be a variant of another. */
function turnsOf({ store, clock }: Registry): Turns {
  const known = turns.get(store) ?? new Turns(clock);
  turns.set(store, known);
  return known;
}

function attemptAny(
  registry: Registry,
  options: {
    readonly request: UpdateRequest;
    readonly current: Entry | undefined;
    /** The current entry, if it is only a guess. */
    readonly guess: Entry | undefined;
    readonly attempt: number;
  },
): Promise<Outcome> {
  const { request, current, guess, attempt } = options;
  if (current === undefined) return attemptCreate(registry, request, attempt);
  const update = () => attemptUpdate(registry, { request, current, attempt });
  if (guess === undefined) return update();
  const { def } = request.target;
  return attemptOnGuess<Outcome>(
    registry,
    { def, key: guess.key, entry: guess },
    { attempt: update, isSure: ({ written }) => written?.entry !== guess },
  );
}

type Outcome =
  | { readonly written: Written }
  | { readonly current: Entry | undefined; readonly written?: never };

async function attemptCreate(
  registry: Registry,
  request: UpdateRequest,
  attempt: number,
): Promise<Outcome> {
  const { target, context } = request;
  if (request.onAbsent === 'refuse') throw await refusalOfAbsent(request, attempt);
  await request.beforeCreate?.();
  const nowMs = registry.clock.now();
  const object = await request.transform(undefined, attempt, undefined);
  checkPathAgreement(target, object);
  const prepared = prepareInserted(registry, { request, object, nowMs });
  if (prepared instanceof Promise) await prepared;
  settleEmpty(target.version.schema, object);
  const owners = request.record ? 'spare' : 'needed';
  try {
    const create = { target, object, context, nowMs, attempt, owners } as const;
    return { written: await insertObject(registry, create) };
  } catch (error) {
    if (!(error instanceof StatusError) || error.reason !== 'AlreadyExists') throw error;
    const key = objectKey(target.namespace, target.name);
    return { current: await registry.caches.of(target.def).get(key, undefined) };
  }
}

/** A body that asks for an object by its uid asks for another than none. */
async function refusalOfAbsent(request: UpdateRequest, attempt: number): Promise<Error> {
  const { target, replaces } = request;
  if (replaces === true) {
    const { uid = '' } = (await request.transform(undefined, attempt, undefined)).metadata;
    if (uid !== '') return nothingWithUid(request, uid);
  }
  return notFound(groupResourceOf(target.def), target.name);
}

function prepareInserted(
  registry: Registry,
  options: { request: UpdateRequest; object: ApiObject; nowMs: number },
): MaybePromise<void> {
  const { request, object, nowMs } = options;
  const uid = object.metadata.uid ?? '';
  if (uid !== '') throw nothingWithUid(request, uid);
  checkReadable(request.target, object);
  delete object.metadata.resourceVersion;
  if (namesVersion(object)) throw versionOnCreate();
  wipeSystemFields(object);
  if (!request.record) return undefined;
  return registry.fieldManager.recordUpdate({
    target: request.target,
    live: undefined,
    object,
    manager: request.context.fieldManager,
    nowMs,
  });
}

/** An apply does not ask for an object by its uid as a PUT does, and says so in other words. */
function nothingWithUid({ target, record }: UpdateRequest, uid: string): Error {
  if (record) return preconditionFailed(target, { wanted: uid, actual: '', what: 'UID' });
  const why = `uid mismatch: the provided object specified uid ${uid}, and no existing object was found`;
  return conflict(groupResourceOf(target.def), target.name, why);
}

async function attemptUpdate(
  registry: Registry,
  options: { request: UpdateRequest; current: Entry; attempt: number },
): Promise<Outcome> {
  const { request, current, attempt } = options;
  const { context } = request;
  const target = targetOn(current, request);
  const { def, version } = target;
  const nowMs = registry.clock.now();
  const pace = context.pace ?? paceFor(registry.clock, current.json.length);
  const held = registry.decoded.of(def.storage.prefix + current.key, current);
  // Neither is changed from here on, so one decoded form serves as both where they are the same.
  const found = liveIn(target, { current, held });
  const live = found instanceof Promise ? await found : found;
  const isJudgedAsSent = def.behavior.judgedIn === 'request version';
  const old = isJudgedAsSent ? live : held;
  if (pace?.over) await pace.pause();
  const base = request.base === 'shared' ? live : cloneJson(live);
  const made = request.transform(base, attempt, live);
  const object = typedForm(target, context, made instanceof Promise ? await made : made);
  checkPathAgreement(target, object);
  // A patch's own duplicates are dropped behind admission only, as upstream.
  if (request.replaces === true) {
    dropDuplicateOwners(object, { warn: context.warn, after: 'body' });
  }
  checkConditions(request, { target, object, old, revision: current.revision });
  if (request.record) {
    const manager = context.fieldManager;
    if (pace?.over) await pace.pause();
    const update = { target, live, object, manager, nowMs, pace };
    const recorded = registry.fieldManager.recordUpdate(update);
    if (recorded instanceof Promise) await recorded;
  }
  if (pace?.over) await pace.pause();
  settleEmpty(version.schema, object);
  const { name } = target;
  const operation = 'UPDATE' as const;
  const call = { operation, target, context, name, object, old: live, attempt };
  const { shown } = request;
  const mutation = shown === undefined ? registry.admission.mutate(call) : undefined;
  if (mutation !== undefined) await mutation;
  dropDuplicateOwners(object, { warn: context.warn, after: 'admission' });
  const told = shown === undefined ? call : { ...call, object: shown(object), old: shown(live) };
  const stored = isJudgedAsSent ? object : inStorageVersion(request, { object, live, held });
  // Who only looks sees what will be stored.
  const judged = stored === object || shown !== undefined ? told : { ...call, object: stored };
  const strategyContext = strategyContextOf(target, context, nowMs);
  const allocation = def.strategy.allocate?.(strategyContext, stored, old);
  return settling<Outcome>(allocation, current.revision, async () => {
    if (pace?.over) await pace.pause();
    applyStrategy({ target, strategyContext, stored, old });
    if (pace?.over) await pace.pause();
    const validation = registry.admission.validate(judged);
    if (validation !== undefined) await validation;
    warnOf(target, { stored, old, context });
    const form = isJudgedAsSent ? storedObject(request, { current, stored }) : stored;
    const written = form instanceof Promise ? await form : form;
    if (pace?.over) await pace.pause();
    return sparingOwners(written, {
      owners: request.record ? 'spare' : 'needed',
      write: () => putChanged(registry, { target, context, current, stored: written, old: held }),
    });
  });
}

/** Whoever tells of a status is not who wrote what there is to warn of. */
function warnOf(
  { def, subresource }: Target,
  { stored, old, context }: { stored: ApiObject; old: ApiObject; context: WriteContext },
): void {
  const warnings = subresource === 'status' ? undefined : def.strategy.warnings?.(stored, old);
  for (const text of warnings ?? []) context.warn(text);
}

/**
 * An object in the version stored. An apply that changes nothing leaves there what the request's
 * version cannot tell (SSA-9); a PUT in that version leaves it out.
 */
function inStorageVersion(
  { target, record }: UpdateRequest,
  { object, live, held }: { object: ApiObject; live: ApiObject; held: ApiObject },
): ApiObject {
  const { def, version } = target;
  const isApply = !record && live !== held;
  if (!isApply || !isSameButOwners(object, live)) return toStorage(def, version, object);
  const { managedFields } = object.metadata;
  const same = cloneJson(held);
  if (managedFields === undefined) delete same.metadata.managedFields;
  else same.metadata.managedFields = managedFields;
  return same;
}

const isSameButOwners = (object: ApiObject, other: ApiObject) =>
  jsonEqualBut(object, other, 'metadata') &&
  jsonEqualBut(object.metadata, other.metadata, 'managedFields');

/** A PUT asks for an object by its uid; of a patch the revision is judged first, as upstream. */
function checkConditions(
  request: UpdateRequest,
  of: { target: Target; object: ApiObject; old: ApiObject; revision: number },
): void {
  const { target, object, old, revision } = of;
  if (request.replaces === true) checkUid(target, object, old);
  checkResourceVersion(target, object, revision);
  if (request.replaces !== true) checkUid(target, object, old);
}

/** The current object in the request's version: the one held, where it is that. */
function liveIn(
  { def, version }: Target,
  { current, held }: { current: Entry; held: ApiObject },
): MaybePromise<ApiObject> {
  if (needsConversion(def, version, current)) return shownObject({ def, version }, current);
  if (def.behavior.converter !== undefined || servesStoredForm(def, version)) return held;
  return fromStorage(def, version, decodeEntry(current));
}

/**
 * What is made of a custom object to store it. A webhook is not asked about what is to be removed
 * anyway, nor by the server itself, whose housekeeping must go on without it: then the version stays
 * what it was.
 */
function storedObject(
  { target, context }: UpdateRequest,
  { current, stored }: { current: Entry; stored: ApiObject },
): MaybePromise<ApiObject> {
  const { def } = target;
  if (def.behavior.converter === undefined) return inStoredVersion(def, stored);
  if (isFinalized(def.strategy, stored)) return stored;
  const isOwn = apiVersionOfEntry(def, current) === stored.apiVersion;
  if (isOwn && context.origin === 'server') return stored;
  const form = storedForm(def, stored);
  return form instanceof Promise ? form.then(({ object }) => object) : form.object;
}

function applyStrategy(options: {
  target: Target;
  strategyContext: StrategyContext;
  stored: ApiObject;
  old: ApiObject;
}): void {
  const { target, strategyContext, stored, old } = options;
  const { strategy } = target.def;
  keepSystemFields(stored, old);
  strategy.prepareForUpdate?.(strategyContext, stored, old);
  validateChange(target, strategyContext, { object: stored, old });
}

/** Whether all is as it was but, at most, the times of managed fields (META-6). */
function changesNothing(stored: ApiObject, old: ApiObject): boolean {
  return (
    isSameButOwners(stored, old) &&
    sameButTimes(stored.metadata.managedFields ?? [], old.metadata.managedFields ?? [])
  );
}

function sameButTimes(
  entries: readonly ManagedFieldsEntry[],
  old: readonly ManagedFieldsEntry[],
): boolean {
  if (entries.length !== old.length) return false;
  return entries.every((entry, at) => jsonEqualBut(entry, old[at] as ManagedFieldsEntry, 'time'));
}

/**
 * A write that changes nothing is how objects come under a new encryption key, and custom ones to the
 * form that their definition gives them now (CRD-4).
 */
function isStale(
  registry: Registry,
  { def, context, current }: { def: ResourceDef; context: WriteContext; current: Entry },
): Promise<boolean> | false {
  if (context.dryRun) return false;
  if (def.behavior.reshapesStored) return isStaleOrOutdated(registry, { def, current });
  return registry.isStale?.(def.storage.prefix + current.key) ?? false;
}

async function isStaleOrOutdated(
  registry: Registry,
  { def, current }: { def: ResourceDef; current: Entry },
): Promise<boolean> {
  if ((await registry.isStale?.(def.storage.prefix + current.key)) === true) return true;
  return isOutdated(registry, { def, entry: current });
}

async function putChanged(
  registry: Registry,
  options: {
    target: Target;
    context: WriteContext;
    current: Entry;
    stored: ApiObject;
    old: ApiObject;
  },
): Promise<Outcome> {
  const { target, context, current, stored, old } = options;
  const { def } = target;
  if (old.metadata.resourceVersion !== undefined) {
    stored.metadata.resourceVersion = old.metadata.resourceVersion;
  }
  const isSame = changesNothing(stored, old);
  const { pace } = context;
  if (pace?.over) await pace.pause();
  if (isSame && !(await isStale(registry, { def, context, current }))) {
    return { written: { entry: current, created: false } };
  }
  const value = encodeStored(stored);
  const index = indexOf(def.storage, stored);
  const { key } = current;
  const unwritten = () => ({
    written: { entry: makeEntry({ ...current, stored: value, index }), created: false },
  });
  if (context.dryRun) return unwritten();
  requireTime(context);
  if (isFinalized(def.strategy, stored)) {
    const removal = await removeFinalized(registry, { target, current });
    return removal.ok ? unwritten() : { current: entryOf(def, removal.current) };
  }
  const storeKey = def.storage.prefix + key;
  const hint = new EntryHint(index, def.storage, stored);
  const expect = current.revision;
  const purpose = purposeOf(stored, { before: current.json, after: value });
  const put = { key: storeKey, value, expect, hint, purpose };
  const result = await storing(() => registry.store.put(put));
  if (!result.ok) return { current: entryOf(def, result.current) };
  const { revision } = result;
  const { createRevision } = current;
  const entry = hint.entry ?? makeEntry({ key, stored: value, revision, createRevision, index });
  rememberPresent(def, entry);
  keepDecoded(registry, { storeKey, entry, object: stored, context });
  return { written: { entry, created: false } };
}

/** What a step on an object's way out may add to it: conditions, and who wrote them. */
const partingBytesMax = 4096;

/** Whether a write brings an object closer to its end, for which a store keeps room (TRUST-8). */
function purposeOf(
  object: ApiObject,
  sizes: { readonly before: Buffer; readonly after: Buffer },
): 'growth' | 'removal' {
  if (object.metadata.deletionTimestamp === undefined) return 'growth';
  return sizes.after.length <= sizes.before.length + partingBytesMax ? 'removal' : 'growth';
}
