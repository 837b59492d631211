import {
  type Allocation,
  type AllocationOutcome,
  fromStorage,
  type MaybeSteps,
  type StrategyContext,
  servesStoredForm,
  toStorage,
} from '@wheelhouse/kinds';
import {
  type ApiObject,
  alreadyExists,
  andThen,
  asApiObject,
  cloneJson,
  cloneJsonSteps,
  conflict,
  type MaybePromise,
  modifiedMessage,
  notFound,
  type Pace,
  paceFor,
  runAtPace,
  StatusError,
} from '@wheelhouse/machinery';
import {
  DecodeError,
  decodeTyped,
  decodeTypedSteps,
  removeOmitted,
  restoreOmitted,
  settleEmpty,
} from '@wheelhouse/schema';
import { isSameButOwners } from '@wheelhouse/structured-merge';
import type { Entry } from '../watchcache/entry.ts';
import { translateStoreError } from '../watchcache/store-errors.ts';
import { commitChange, commitDeletion, commitNew, formToStore, type Outcome } from './commit.ts';
import type {
  AdmissionCall,
  AdmissionPort,
  CreatePlan,
  DeletePlan,
  ObjectView,
  Target,
  UpdatePlan,
  WriteContext,
  WritePlan,
  Written,
} from './contract.ts';
import {
  type AnswerAge,
  apiVersionOfEntry,
  needsConversion,
  shownObject,
  targetOn,
} from './conversion/converted-kinds.ts';
import {
  checkPreconditions,
  deletionOverrides,
  isPending,
  markForDeletion,
  warnOfPropagation,
} from './deletion.ts';
import { decodedAt, objectKey, parsedAt } from './object-codec.ts';
import {
  checkNamespace,
  checkPathAgreement,
  checkReadable,
  checkResourceVersion,
  checkUid,
  dropDuplicateOwners,
  fillSystemFields,
  keepSystemFields,
  namesVersion,
  preconditionFailed,
  validateObject,
  versionOnCreate,
  wipeSystemFields,
} from './object-meta.ts';
import { requireWrite } from './permit.ts';
import { groupResourceOf, type Registry } from './registry.ts';

/**
 * Maximum number of lost races before a write fails with 409; each one means that another write
 * succeeded.
 */
const attemptsMax = 500;

/**
 * Carries out a write: reads the current object, makes the new one, and stores it on condition that
 * the current one is unchanged; starts over if it has changed (PATCH-4). Rejects with a
 * StatusError: 404, 409, 422, an error from admission, or a failure of the store.
 */
export async function write(registry: Registry, plan: WritePlan): Promise<Written> {
  requireWrite(plan.context.permit, plan);
  if (plan.operation === 'create') {
    return writtenOf(await attempt(registry, plan, { current: undefined, number: 1 }));
  }
  if (plan.operation === 'delete') warnOfPropagation(plan);
  const { def, namespace, name } = plan.target;
  const key = objectKey(namespace, name);
  const guess = guessOf(registry, plan, key);
  const current = guess ?? (await registry.caches.of(def).get(key, undefined));
  const start = { current, number: 1 };
  const first =
    guess === undefined
      ? await attempt(registry, plan, start)
      : await attemptOnGuess(registry, { def, guess }, () => attempt(registry, plan, start));
  if (first.type !== 'lost') return writtenOf(first);
  return registry.turns.take(def.storage.prefix + key, async (hasWaited) => {
    const newest = hasWaited ? await registry.caches.of(def).get(key, undefined) : first.current;
    return retry(registry, plan, newest);
  });
}

/** Repeats the write on the store's current object until an attempt wins its race. */
async function retry(
  registry: Registry,
  plan: UpdatePlan | DeletePlan,
  newest: Entry | undefined,
): Promise<Written> {
  const { target, context } = plan;
  let current = newest;
  for (let number = 2; number <= attemptsMax && !context.expired(); number += 1) {
    const outcome = await attempt(registry, plan, { current, number });
    if (outcome.type !== 'lost') return writtenOf(outcome);
    current = outcome.current;
  }
  throw conflict(groupResourceOf(target.def), target.name, modifiedMessage);
}

function writtenOf(outcome: Outcome): Written {
  if (outcome.type === 'written') return outcome.written;
  throw outcome.type === 'failed' ? translateStoreError(outcome.error) : new Error('a lost race');
}

/** The state in which an attempt starts. */
interface Start {
  /** Undefined if no object has that name. */
  readonly current: Entry | undefined;
  /** Number of the attempt, from 1. */
  readonly number: number;
}

/** The current object in several read-only forms; equal forms are the same value. */
interface Before {
  readonly entry: Entry;
  /** As it is stored. */
  readonly decoded: ApiObject;
  /** In the request's version. */
  readonly live: ApiObject;
  /** In the version that the strategy works on. */
  readonly old: ApiObject;
}

/** Runs one attempt: all steps of a write, in order. */
async function attempt(registry: Registry, plan: WritePlan, start: Start): Promise<Outcome> {
  if (plan.operation === 'delete') return attemptDeletion(registry, plan, start);
  const { current, number } = start;
  const { context } = plan;
  const source = plan.operation === 'create' ? 'body' : plan.source;
  const view = plan.operation === 'create' ? undefined : plan.view;

  // Read.
  if (current === undefined && plan.operation === 'update') await startCreate(registry, plan);
  const target = current === undefined ? plan.target : targetOn(current, plan);
  const nowMs = registry.clock.now();
  const pace = context.pace ?? (current && paceFor(registry.clock, current.json.length));
  if (pace !== undefined && current !== undefined) await parsedAt(pace, current);
  const read = current && readCurrent(registry, { target, current, pace, age: 'now' });
  const before = read instanceof Promise ? await read : read;
  const live = before && view ? await runAtPace(view.showOwned(before.live), pace) : before?.live;
  if (pace?.over) await pace.pause();

  // Transform.
  const transformed = transform(plan, live, pace);
  const result = transformed instanceof Promise ? await transformed : transformed;
  const formed = typedForm(target, context, { object: result, pace });
  const object = formed instanceof Promise ? await formed : formed;
  // If an apply states a uid, a missing object is a conflict, which precedes a missing name.
  if (source === 'merged' && before === undefined) checkNoUid(registry, plan, object);
  checkPathAgreement(target, object);
  // Duplicates from a patch are dropped only after admission, as in kube-apiserver.
  if (source === 'body' && view === undefined) {
    dropDuplicateOwners(object, { warn: context.warn, after: 'body' });
  }
  const namedVersion = plan.operation === 'create' && namesVersion(object);
  if (before === undefined) checkNew(registry, plan, object);
  else if (view === undefined) checkExpectations(registry, plan, { object, before, source });
  if (pace?.over) await pace.pause();

  // Record managers.
  const tracked = view?.target ?? target;
  if (source !== 'merged') {
    const manager = context.fieldManager;
    const recording = { target: tracked, live, object, manager, nowMs, pace };
    const recorded = registry.fieldManager.recordUpdate(recording);
    if (recorded instanceof Promise) await recorded;
  }
  if (pace !== undefined) await pace.pause();
  settleEmpty(tracked.version.schema, object);

  // Mutate.
  const name = before === undefined ? (object.metadata.name ?? '') : target.name;
  const operation = before === undefined ? 'CREATE' : 'UPDATE';
  const call = { operation, target, context, name, object, old: live, attempt: number } as const;
  const mutation = admissionOf(registry, plan).mutate(call);
  if (mutation !== undefined) await mutation;
  const isVersioned = namedVersion || (before === undefined && namesVersion(object));
  if (before !== undefined && view === undefined) checkMutated(target, object, before);
  const whole =
    before && view ? await behindView(registry, plan, view, { object, before, pace }) : object;
  const isNameless = before === undefined && completeNew(target, object, nowMs);
  dropDuplicateOwners(whole, { warn: context.warn, after: 'admission' });

  // Convert to the version that the strategy works on, and allocate numbers.
  const stored = validatedForm(plan, target, { whole, before });
  const strategyContext = strategyContextOf(target, context, nowMs);
  const fresh = { isVersioned, isNameless };
  const step = { plan, target, call, whole, stored, before, strategyContext, pace, fresh };
  // Most kinds allocate nothing and need no await.
  const allocation = target.def.strategy.allocate?.(strategyContext, stored, before?.old);
  if (allocation === undefined) return prepareAndStore(registry, step);
  const since = current?.revision ?? 0;
  return allocated(allocation, since, () => prepareAndStore(registry, step));
}

/** The state of an attempt when the strategy takes over. */
interface Step {
  readonly plan: CreatePlan | UpdatePlan;
  readonly target: Target;
  readonly call: AdmissionCall;
  /** The whole object in the request's version. */
  readonly whole: ApiObject;
  /** The object to store. */
  readonly stored: ApiObject;
  readonly before: Before | undefined;
  readonly strategyContext: StrategyContext;
  readonly pace: Pace | undefined;
  /** Facts about a new object. */
  readonly fresh: {
    /** Whether the body of a create, or admission, names a resourceVersion (META-2). */
    readonly isVersioned: boolean;
    /** Whether the server has generated the name, which it may replace while it is taken. */
    readonly isNameless: boolean;
  };
}

/**
 * Sets the fields of a new object that the server owns.
 * @returns whether it generated the name
 */
function completeNew(target: Target, object: ApiObject, nowMs: number): boolean {
  checkPathAgreement(target, object);
  const isNameless = (object.metadata.name ?? '') === '';
  fillSystemFields(target.def, object, nowMs);
  return isNameless;
}

/** Warnings that one step adds to the answer of a large object. */
const warningsPerStep = 500;

/**
 * The second half of an attempt, from the strategy to the store. Each pass over a large object that
 * cannot be divided starts in its own turn of the event loop (TRUST-2).
 */
async function prepareAndStore(registry: Registry, step: Step): Promise<Outcome> {
  const { plan, target, stored, before, strategyContext, pace } = step;
  const { context } = plan;
  const { def, subresource } = target;
  const { strategy } = def;
  if (pace !== undefined) await pace.pause();

  // Prepare.
  if (before !== undefined) keepSystemFields(stored, before.old);
  const preparation =
    before === undefined
      ? strategy.prepareForCreate?.(strategyContext, stored)
      : strategy.prepareForUpdate?.(strategyContext, stored, before.old);
  const prepared = preparation && runAtPace(preparation, pace);
  if (prepared instanceof Promise) await prepared;
  if (pace !== undefined) await pace.pause();

  // Validate. Rules see the empty lists and maps of a new object, which are neither stored nor
  // shown. In a change, they would be differences where kube-apiserver sees none.
  if (before === undefined) restoreOmitted(stored);
  const change = { object: stored, old: before?.old, pace, clock: registry.clock };
  const validated = validateObject(target, strategyContext, change);
  if (validated instanceof Promise) await validated;
  if (before === undefined) {
    removeOmitted(stored);
    strategy.afterNaming?.(stored);
  }
  if (pace !== undefined) await pace.pause();

  // Warn. A status update did not write the fields that warnings concern.
  const found = subresource === 'status' ? undefined : strategy.warnings?.(stored, before?.old);
  const warned = found && runAtPace(warnSteps(found, context), pace);
  if (warned instanceof Promise) await warned;
  if (pace?.over) await pace.pause();

  // Run validating admission.
  const validation = admissionOf(registry, plan).validate(validatingCall(step));
  if (validation !== undefined) await validation;
  if (pace?.over) await pace.pause();

  // Store.
  const owners = settlesOwners(plan) ? 'needed' : 'spare';
  if (before === undefined) return storeNew(registry, step, owners);
  const storedVersion = apiVersionOfEntry(def, before.entry);
  const formed = formToStore(def, stored, { context, storedVersion, pace });
  const form = formed instanceof Promise ? await formed : formed;
  if (pace?.over) await pace.pause();
  const { entry: current, decoded: old } = before;
  return commitChange(registry, { target, context, owners, current, stored: form, old, pace });
}

/** Adds warnings to the answer in steps (TRUST-2). */
function* warnSteps(
  found: MaybeSteps<readonly string[]>,
  context: Pick<WriteContext, 'warn'>,
): Generator<void, void> {
  const warnings = 'next' in found ? yield* found : found;
  for (const [index, text] of warnings.entries()) {
    if (index % warningsPerStep === 0) yield;
    context.warn(text);
  }
}

/** A deletion: admission validates it before anything changes. */
async function attemptDeletion(
  registry: Registry,
  plan: DeletePlan,
  { current, number }: Start,
): Promise<Outcome> {
  const { context } = plan;

  // Read.
  if (current === undefined) throw notFound(groupResourceOf(plan.target.def), plan.target.name);
  const target = targetOn(current, plan);
  checkPreconditions(plan, current);
  const pace = context.pace ?? paceFor(registry.clock, current.json.length);
  if (pace !== undefined) await parsedAt(pace, current);
  const read = readCurrent(registry, { target, current, pace, age: 'recent' });
  const { decoded: old, live } = read instanceof Promise ? await read : read;

  // Mutate, and run validating admission.
  const call = {
    operation: 'DELETE',
    target,
    context,
    name: plan.of === 'collection' ? '' : target.name,
    object: undefined,
    old: live,
    attempt: number,
    deletion: plan.of === 'collection' ? undefined : deletionOverrides(plan, old),
  } as const;
  const admission = isPending(plan, old) ? noAdmission : admissionOf(registry, plan);
  const review = async (shown: ApiObject) => {
    await admission.mutate({ ...call, old: shown });
    await admission.validate({ ...call, old: shown });
  };
  await review(live);

  // Transform.
  const nowMs = registry.clock.now();
  // Marking replaces members of the object and of its metadata, and shares the others.
  const object = { ...old, metadata: { ...old.metadata } };
  const strategyContext = strategyContextOf(target, context, nowMs);
  const way = target.def.strategy.beforeDelete?.(strategyContext, object);
  const isGraceful = way !== 'finalize';
  if (way !== 'marked') markForDeletion(object, { plan, nowMs, isGraceful });

  // Store. The removal of an object that is marked first is another deletion to admission.
  const reviewRemoval = async (marked: Entry) => {
    if (pace !== undefined) await parsedAt(pace, marked);
    await review(await shownObject(target, marked, 'recent'));
  };
  const ends = isGraceful ? 'unless finalizers hold it' : 'later';
  const commit = { target, context, current, object, old, pace, ends, reviewRemoval } as const;
  return commitDeletion(registry, commit);
}

const noAdmission: AdmissionPort = { mutate: () => undefined, validate: () => undefined };

const admissionOf = (registry: Registry, plan: WritePlan): AdmissionPort =>
  plan.admission === 'done' ? noAdmission : registry.admission;

/**
 * Prepares a create in place of an update. Throws if the object must exist or may not be created.
 */
async function startCreate(registry: Registry, plan: UpdatePlan): Promise<void> {
  const { target } = plan;
  if (plan.onAbsent === 'create') {
    const permit = (await plan.beforeCreate?.()) ?? plan.context.permit;
    return requireWrite(permit, { operation: 'create', target });
  }
  // A body that states a uid refers to an existing object.
  if (plan.source === 'body' && plan.view === undefined) {
    const nothing = { current: undefined, live: undefined, pace: undefined };
    const { uid = '' } = (await plan.transform(nothing)).metadata;
    if (uid !== '') throw nothingWithUid(registry, plan, uid);
  }
  throw notFound(groupResourceOf(target.def), target.name);
}

/** The current object for a write; `age` is that of a webhook's answer if one converts it. */
function readCurrent(
  registry: Registry,
  at: {
    readonly target: Target;
    readonly current: Entry;
    readonly pace: Pace | undefined;
    readonly age: AnswerAge;
  },
): MaybePromise<Before> {
  const { target, current, pace, age } = at;
  const { def, version } = target;
  const decoded = registry.decoded.of(def.storage.prefix + current.key, current);
  const formsOf = (live: ApiObject): Before => ({
    entry: current,
    decoded,
    live,
    old: def.behavior.validatedIn === 'request version' ? live : decoded,
  });
  if (needsConversion(def, version, current)) {
    return andThen(shownObject({ def, version }, current, age), formsOf);
  }
  const isSame = def.behavior.converter !== undefined || servesStoredForm(def, version);
  if (isSame) return formsOf(decoded);
  // The decoding above consumed the parsed value.
  return andThen(decodedAt(pace, current), (copy) => formsOf(fromStorage(def, version, copy)));
}

function transform(
  plan: CreatePlan | UpdatePlan,
  live: ApiObject | undefined,
  pace: Pace | undefined,
): MaybePromise<ApiObject> {
  if (plan.operation === 'create') return plan.object;
  if (live === undefined || plan.base === 'shared') {
    return plan.transform({ current: live, live, pace });
  }
  if (pace === undefined) return plan.transform({ current: cloneJson(live), live, pace });
  const copy = Promise.resolve(runAtPace(cloneJsonSteps(live), pace));
  return copy.then((current) => plan.transform({ current, live, pace }));
}

/**
 * An object that the server created, in the form that decoding gives to clients' objects; otherwise
 * it would differ from what the store returns, which omits empty lists. Returns other objects
 * unchanged, as well as an object that does not fit its kind because it was damaged in the store.
 */
function typedForm(
  { def, version }: Target,
  { origin }: WriteContext,
  { object, pace }: { readonly object: ApiObject; readonly pace: Pace | undefined },
): MaybePromise<ApiObject> {
  if (origin !== 'server' || def.behavior.serverObjects === 'bare') return object;
  const unchanged = (error: unknown): ApiObject => {
    if (error instanceof DecodeError) return object;
    throw error;
  };
  if (pace !== undefined) {
    const decoded = runAtPace(decodeTypedSteps(version.schema, object), pace);
    return Promise.resolve(decoded).then(asApiObject).catch(unchanged);
  }
  try {
    return asApiObject(decodeTyped(version.schema)(object));
  } catch (error) {
    return unchanged(error);
  }
}

/**
 * Checks that a new object states no uid or version, and removes the fields that only the server
 * sets.
 */
function checkNew(registry: Registry, plan: CreatePlan | UpdatePlan, object: ApiObject): void {
  if (plan.operation === 'update') {
    checkNoUid(registry, plan, object);
    checkReadable(plan.target, object);
  }
  wipeSystemFields(object, plan.target.def.behavior);
}

/** The 409 for an update that states the uid of an object that does not exist. */
function checkNoUid(registry: Registry, plan: CreatePlan | UpdatePlan, object: ApiObject): void {
  const uid = object.metadata.uid ?? '';
  if (plan.operation === 'update' && uid !== '') throw nothingWithUid(registry, plan, uid);
}

/**
 * Throws 409 if an apply that would create an object states a uid; the wording differs from a
 * PUT's.
 */
function nothingWithUid(
  { store }: Registry,
  { target, source, context }: UpdatePlan,
  uid: string,
): Error {
  if (source !== 'merged') {
    const { dryRun } = context;
    return preconditionFailed(target, { expected: uid, actual: '', what: 'UID', store, dryRun });
  }
  const why = `uid mismatch: the provided object specified uid ${uid}, and no existing object was found`;
  return conflict(groupResourceOf(target.def), target.name, why);
}

/** Checks uid and resourceVersion: the uid first for a PUT, the version first for a patch. */
function checkExpectations(
  { store }: Registry,
  { target, context: { dryRun } }: CreatePlan | UpdatePlan,
  of: {
    readonly object: ApiObject;
    readonly before: Before;
    readonly source: UpdatePlan['source'];
  },
): void {
  const { object, before, source } = of;
  const { old } = before;
  if (source === 'body') checkUid(target, object, { old, store, dryRun });
  checkResourceVersion(target, object, before.entry.revision);
  if (source !== 'body') checkUid(target, object, { old, store, dryRun });
}

/** Checks that admission has left a changed object in its namespace, and at its version. */
function checkMutated(target: Target, object: ApiObject, { entry }: Before): void {
  checkNamespace(target, object);
  checkResourceVersion(target, object, entry.revision);
}

/**
 * The whole object: merges a changed view into the current one, whose uid and version the view must
 * match.
 */
async function behindView(
  registry: Registry,
  plan: CreatePlan | UpdatePlan,
  view: ObjectView,
  of: { readonly object: ApiObject; readonly before: Before; readonly pace: Pace | undefined },
): Promise<ApiObject> {
  const { object, before, pace } = of;
  const whole = await runAtPace(cloneJsonSteps(before.live), pace);
  await runAtPace(view.merge(whole, object), pace);
  checkExpectations(registry, plan, { object: whole, before, source: 'merged' });
  return whole;
}

/** Whether the object already has its managed fields: from an apply, an operation, or a view. */
const settlesOwners = (plan: CreatePlan | UpdatePlan): boolean =>
  plan.operation === 'update' && (plan.source === 'merged' || plan.view !== undefined);

/**
 * The object in the version that the strategy works on. An apply that changes nothing keeps fields
 * that the request's version cannot express (SSA-9); a PUT in that version drops them.
 */
function validatedForm(
  plan: CreatePlan | UpdatePlan,
  { def, version }: Target,
  { whole, before }: { readonly whole: ApiObject; readonly before: Before | undefined },
): ApiObject {
  if (def.behavior.validatedIn === 'request version') return whole;
  if (!settlesOwners(plan) || before === undefined || before.live === before.decoded) {
    return toStorage(def, version, whole);
  }
  if (!isSameButOwners(whole, before.live)) return toStorage(def, version, whole);
  const { managedFields } = whole.metadata;
  const same = cloneJson(before.decoded);
  if (managedFields === undefined) delete same.metadata.managedFields;
  else same.metadata.managedFields = managedFields;
  return same;
}

/** The call of validating admission: on the object as it will be stored, or on its view. */
function validatingCall({ plan, call, whole, stored, before }: Step): AdmissionCall {
  const view = plan.operation === 'update' ? plan.view : undefined;
  if (view !== undefined && before !== undefined) {
    return { ...call, object: view.show(whole), old: view.show(before.live) };
  }
  // A name that a webhook has set since counts only if the request has none, as in kube-apiserver.
  if (call.name !== '') return stored === call.object ? call : { ...call, object: stored };
  const { name = '' } = stored.metadata;
  return { ...call, object: stored, name, hasGeneratedName: true };
}

/**
 * Stores a new object. A PUT or an apply that loses the race starts over, now with an object to
 * change.
 */
async function storeNew(
  registry: Registry,
  step: Step,
  owners: 'needed' | 'spare',
): Promise<Outcome> {
  const { plan, target, stored, pace } = step;
  const { context } = plan;
  if (step.fresh.isVersioned && !context.dryRun) throw versionOnCreate();
  const mayRename = plan.operation === 'create' && step.fresh.isNameless;
  const outcome = await commitNew(registry, { target, context, stored, owners, mayRename, pace });
  if (outcome.type !== 'lost') return outcome;
  if (plan.operation === 'create') throw nameTaken(target, stored, outcome.current);
  const key = objectKey(target.namespace, target.name);
  return { type: 'lost', current: await registry.caches.of(target.def).get(key, undefined) };
}

/** The 409 for an existing name; with a generated name the client is asked to retry (META-1). */
function nameTaken(
  { def }: Target,
  { metadata }: ApiObject,
  existing: Entry | undefined,
): StatusError {
  const plain = alreadyExists(groupResourceOf(def), metadata.name ?? '');
  const isGenerated = (metadata.generateName ?? '') !== '';
  const isDeleting = existing?.index.deleting === true;
  if (!isGenerated && !isDeleting) return plain;
  const when = isDeleting ? 'object is being deleted: ' : '';
  const why = isGenerated
    ? ', the server was not able to generate a unique name for the object'
    : '';
  return new StatusError({
    code: 409,
    reason: 'AlreadyExists',
    message: `${when}${plain.message}${why}`,
    details: { ...plain.status.details, ...(isGenerated ? { retryAfterSeconds: 1 } : {}) },
  });
}

/**
 * Runs the rest of an attempt and reports its outcome to the allocation. `since` is the revision at
 * which the attempt started, 0 for a create; a dry run and an unchanged object keep it.
 */
async function allocated(
  allocating: Promise<Allocation>,
  since: number,
  rest: () => Promise<Outcome>,
): Promise<Outcome> {
  const allocation = await allocating;
  let settlement: AllocationOutcome = { type: 'refused' };
  try {
    const outcome = await rest();
    if (outcome.type === 'failed') settlement = { type: 'unknown' };
    if (outcome.type === 'written') {
      const { revision } = outcome.written.entry;
      if (revision > since) settlement = { type: 'written', revision };
    }
    return outcome;
  } finally {
    await allocation.settle(settlement);
  }
}

function strategyContextOf(target: Target, context: WriteContext, nowMs: number): StrategyContext {
  const { user, dryRun, warn } = context;
  const { subresource, version } = target;
  return { user, nowMs, dryRun, warn, subresource, version: version.version };
}

/**
 * The cached entry, on which a write to a shared store may be based although it may be stale
 * (STORE-2): reading the newest costs a round trip, and the write compares the revision anyway.
 * Undefined if the newest must be read.
 */
export function guessOf(
  registry: Pick<Registry, 'store' | 'caches'>,
  { target, context }: Pick<WritePlan, 'target' | 'context'>,
  key: string,
): Entry | undefined {
  // A dry run does not write, so nothing would detect a stale entry.
  if (registry.store.sharing !== 'shared' || context.dryRun) return undefined;
  return registry.caches.of(target.def).peek(key);
}

/**
 * An attempt on a possibly stale entry. A success, a lost race, or a failure of the store is final.
 * Any other outcome (a rejection, an unchanged object) is valid only if the entry was the newest;
 * otherwise returns the newest as a lost race, for another attempt.
 */
export async function attemptOnGuess(
  registry: Pick<Registry, 'caches'>,
  { def, guess }: { readonly def: Target['def']; readonly guess: Entry },
  run: () => Promise<Outcome>,
): Promise<Outcome> {
  const settled = await run().then(
    (outcome) => ({ outcome }),
    (error: unknown) => ({ error }),
  );
  if ('outcome' in settled) {
    const { outcome } = settled;
    if (outcome.type !== 'written' || outcome.written.effect !== 'unchanged') return outcome;
  }
  const current = await registry.caches.of(def).get(guess.key, undefined);
  if (current?.revision !== guess.revision) return { type: 'lost', current };
  if ('outcome' in settled) return settled.outcome;
  throw settled.error;
}
