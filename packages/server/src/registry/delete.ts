import {
  type ApiObject,
  conflict,
  foregroundFinalizer,
  formatTime,
  jsonEqual,
  modifiedMessage,
  notFound,
  orphanFinalizer,
} from '@wheelhouse/machinery';
import { type Entry, EntryHint } from '../watchcache/contract.ts';
import { entryAtRevision, makeEntry } from '../watchcache/entry.ts';
import type { Deleted, DeleteRequestOptions, Target, WriteContext } from './contract.ts';
import { shownObject, targetOn } from './conversion/views.ts';
import { strategyContextOf } from './create.ts';
import { isFinalized, removeFinalized } from './finalize.ts';
import { attemptOnGuess, guessOf } from './guess.ts';
import { decodeEntry, encodeStored, entryOf, indexOf, objectKey } from './object-codec.ts';
import { groupKindOf, groupResourceOf, type Registry, requireTime, storing } from './registry.ts';

const attemptsMax = 500;

export interface DeleteRequest {
  readonly target: Target;
  readonly context: WriteContext;
  readonly options: DeleteRequestOptions;
  /** It is one of all that a request deletes: to admission that request names nothing. */
  readonly of?: 'collection';
}

/**
 * Deletes an object: at once when nothing holds it, else marks it (deletionTimestamp) and leaves
 * its removal to whoever takes the last finalizer away (DEL-1, DEL-2, META-4). Throws 404, or 409
 * for a failed precondition.
 */
export async function deleteObject(registry: Registry, request: DeleteRequest): Promise<Deleted> {
  const { target, context } = request;
  warnOfPropagation(request);
  const { def } = target;
  const key = objectKey(target.namespace, target.name);
  let guess = guessOf(registry, { def, key, context });
  let current = guess ?? (await registry.caches.of(def).get(key, undefined));
  for (let attempt = 1; attempt <= attemptsMax && !context.expired(); attempt += 1) {
    if (current === undefined) throw notFound(groupResourceOf(def), target.name);
    const outcome = await attemptAny(registry, { request, current, guess, attempt });
    if ('deleted' in outcome) return outcome.deleted;
    current = outcome.current;
    guess = undefined;
  }
  throw conflict(groupResourceOf(target.def), target.name, modifiedMessage);
}

function warnOfPropagation({ target, context, options }: DeleteRequest): void {
  const { propagationPolicy, orphanDependents } = options;
  const warning = target.def.strategy.unsaidPropagationWarning;
  const isSaid = propagationPolicy !== undefined || orphanDependents !== undefined;
  if (warning !== undefined && !isSaid) context.warn(warning);
}

type Outcome = { readonly deleted: Deleted } | { readonly current: Entry | undefined };

function attemptAny(
  registry: Registry,
  options: {
    readonly request: DeleteRequest;
    readonly current: Entry;
    /** The current entry, if it is only a guess. */
    readonly guess: Entry | undefined;
    readonly attempt: number;
  },
): Promise<Outcome> {
  const { request, current, guess, attempt } = options;
  const remove = () => attemptDelete(registry, { request, current, attempt });
  if (guess === undefined) return remove();
  const { def } = request.target;
  return attemptOnGuess<Outcome>(
    registry,
    { def, key: guess.key, entry: guess },
    {
      attempt: remove,
      isSure: (outcome) =>
        !('deleted' in outcome) || outcome.deleted.removed || outcome.deleted.entry !== guess,
    },
  );
}

async function attemptDelete(
  registry: Registry,
  attempt: { request: DeleteRequest; current: Entry; attempt: number },
): Promise<Outcome> {
  const { request, current } = attempt;
  const { context } = request;
  const target = targetOn(current, request);
  checkPreconditions(request, current);
  const old = decodeEntry(current);
  const live = shownObject(target, current, 'recent');
  const call = {
    operation: 'DELETE' as const,
    target,
    context,
    name: request.of === 'collection' ? '' : target.name,
    object: undefined,
    old: live instanceof Promise ? await live : live,
    attempt: attempt.attempt,
  };
  await registry.admission.mutate(call);
  await registry.admission.validate(call);
  const nowMs = registry.clock.now();
  const object = decodeEntry(current);
  const { strategy } = target.def;
  const way = strategy.beforeDelete?.(strategyContextOf(target, context, nowMs), object);
  const isGraceful = way !== 'finalize';
  if (way !== 'marked') markForDeletion(object, { request, nowMs, isGraceful });
  if (isFinalized(strategy, object)) {
    const isNewlyMarked = strategy.gracePeriod !== undefined && !jsonEqual(object, old);
    if (isNewlyMarked) return removeMarked(registry, { target, context, current, object });
    return removeCurrent(registry, { target, context, current });
  }
  if (jsonEqual(object, old)) return { deleted: { entry: current, removed: false } };
  return putMarked(registry, { target, context, current, object });
}

/**
 * Stores the mark of a kind that ends with grace before it removes the object, although none is
 * left: its watchers act upon objects that they see marked (DEL-1).
 */
async function removeMarked(
  registry: Registry,
  options: { target: Target; context: WriteContext; current: Entry; object: ApiObject },
): Promise<Outcome> {
  const { target, context } = options;
  const outcome = await putMarked(registry, options);
  if (!('deleted' in outcome)) return outcome;
  const { entry } = outcome.deleted;
  if (context.dryRun) return { deleted: { entry, removed: true } };
  const removal = await removeCurrent(registry, { target, context, current: entry });
  const isGone = !('deleted' in removal) && removal.current === undefined;
  return isGone ? { deleted: { entry, removed: true } } : removal;
}

async function removeCurrent(
  registry: Registry,
  options: { target: Target; context: WriteContext; current: Entry },
): Promise<Outcome> {
  const { target, context, current } = options;
  if (context.dryRun) return { deleted: { entry: current, removed: true } };
  requireTime(context);
  const result = await removeFinalized(registry, { target, current });
  if (!result.ok) return { current: entryOf(target.def, result.current) };
  const isShown = target.def.strategy.deleteAnswers === 'object';
  const entry = isShown ? entryAtRevision(current, result.revision) : current;
  return { deleted: { entry, removed: true } };
}

/** 409 when the object is not the one the client meant; upstream names the kind, not the resource. */
export function checkPreconditions(
  request: Pick<DeleteRequest, 'target' | 'options'>,
  current: Entry,
): void {
  const { target, options } = request;
  const { group, kind } = groupKindOf(target.def);
  const refuse = (why: string) => conflict({ group, resource: kind }, target.name, why);
  const uid = options.preconditions?.uid;
  const actualUid = current.index.uid;
  if (uid !== undefined && uid !== actualUid) {
    throw refuse(
      `the UID in the precondition (${uid}) does not match the UID in record (${actualUid}). ` +
        'The object might have been deleted and then recreated',
    );
  }
  const wanted = options.preconditions?.resourceVersion;
  const actual = String(current.revision);
  if (wanted !== undefined && wanted !== actual) {
    throw refuse(
      `the ResourceVersion in the precondition (${wanted}) does not match the ResourceVersion in ` +
        `record (${actual}). The object might have been modified`,
    );
  }
}

/**
 * The first deletion stamps the object; a later one may only shorten what grace is left (META-4).
 * The garbage collector's finalizers follow each deletion's policy, until grace has begun to run.
 */
function markForDeletion(
  object: ApiObject,
  options: { request: DeleteRequest; nowMs: number; isGraceful: boolean },
): void {
  const { request, nowMs } = options;
  const { metadata } = object;
  const left = metadata.deletionGracePeriodSeconds ?? 0;
  const asked = request.options.gracePeriodSeconds;
  if (metadata.deletionTimestamp !== undefined && left > 0) {
    if (asked === undefined || asked >= left) return;
    const end = Date.parse(metadata.deletionTimestamp) - (left - asked) * 1000;
    metadata.deletionTimestamp = formatTime(end);
    metadata.deletionGracePeriodSeconds = asked;
  } else if (metadata.deletionTimestamp === undefined) {
    const grace = graceSeconds(request, object);
    metadata.deletionTimestamp = formatTime(nowMs + grace * 1000);
    // What waits for more than the finalizers of its metadata is told no time.
    if (options.isGraceful) metadata.deletionGracePeriodSeconds = grace;
    if ((metadata.generation ?? 0) > 0) metadata.generation = (metadata.generation ?? 0) + 1;
  }
  setFinalizers(object, finalizersFor(metadata.finalizers ?? [], request));
}

/** A kind that ends at once whatever was asked (a Pod that runs nowhere) says 0. */
function graceSeconds(request: DeleteRequest, object: ApiObject): number {
  const own = request.target.def.strategy.gracePeriod?.(object) ?? 0;
  return own === 0 ? 0 : (request.options.gracePeriodSeconds ?? own);
}

/**
 * Without a policy the garbage collector's finalizers stay as they are, and where there are none the
 * kind's own default holds.
 */
function finalizersFor(finalizers: readonly string[], request: DeleteRequest): readonly string[] {
  const { propagationPolicy, orphanDependents } = request.options;
  const { def, version } = request.target;
  const defaultPropagation = version.defaultPropagation ?? def.strategy.defaultPropagation;
  const others = finalizers.filter((one) => one !== orphanFinalizer && one !== foregroundFinalizer);
  if (defaultPropagation === 'unsupported') return others;
  if (propagationPolicy === undefined && orphanDependents === undefined) {
    const isUndecided = others.length === finalizers.length;
    return isUndecided && defaultPropagation === 'Orphan'
      ? [...others, orphanFinalizer]
      : finalizers;
  }
  if (propagationPolicy === 'Orphan' || orphanDependents === true) {
    return [...others, orphanFinalizer];
  }
  return propagationPolicy === 'Foreground' ? [...others, foregroundFinalizer] : others;
}

/** The same ones stay in the order that they have. */
function setFinalizers(object: ApiObject, finalizers: readonly string[]): void {
  const before = new Set(object.metadata.finalizers);
  if (before.size === finalizers.length && finalizers.every((one) => before.has(one))) return;
  if (finalizers.length === 0) delete object.metadata.finalizers;
  else object.metadata.finalizers = [...finalizers];
}

async function putMarked(
  registry: Registry,
  options: { target: Target; context: WriteContext; current: Entry; object: ApiObject },
): Promise<Outcome> {
  const { target, context, current, object } = options;
  const { def } = target;
  const value = encodeStored(object);
  const index = indexOf(def.storage, object);
  const { key, createRevision } = current;
  const entryAt = (revision: number) =>
    makeEntry({ key, stored: value, revision, createRevision, index });
  if (context.dryRun) return { deleted: { entry: entryAt(current.revision), removed: false } };
  requireTime(context);
  const storeKey = def.storage.prefix + key;
  const result = await storing(() =>
    registry.store.put({
      key: storeKey,
      value,
      expect: current.revision,
      hint: new EntryHint(index, def.storage, object),
      purpose: 'removal',
    }),
  );
  if (!result.ok) return { current: entryOf(def, result.current) };
  return { deleted: { entry: entryAt(result.revision), removed: false } };
}
