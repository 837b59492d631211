import {
  type ApiObject,
  conflict,
  foregroundFinalizer,
  formatTime,
  type JsonObject,
  orphanFinalizer,
} from '@wheelhouse/machinery';
import type { Entry } from '../watchcache/entry.ts';
import type { DeletePlan } from './contract.ts';
import { groupKindOf, groupResourceOf } from './registry.ts';

/** Preconditions of a deletion, and how it marks an object. */

/** Warns about a deletion that leaves the propagation policy to the kind. */
export function warnOfPropagation({ target, context, options }: DeletePlan): void {
  const { propagationPolicy, orphanDependents } = options;
  const warning = target.def.strategy.missingPolicyWarning;
  const isStated = propagationPolicy !== undefined || orphanDependents !== undefined;
  if (warning !== undefined && !isStated) context.warn(warning);
}

/** Throws 409 if the object does not match the preconditions. */
export function checkPreconditions(
  plan: Pick<DeletePlan, 'target' | 'options'>,
  current: Entry,
): void {
  const { uid, resourceVersion } = plan.options.preconditions ?? {};
  const actualUid = current.index.uid;
  if (uid !== undefined && uid !== actualUid) {
    throw mismatch(plan.target, { what: 'UID', expected: uid, actual: actualUid });
  }
  const actual = String(current.revision);
  if (resourceVersion !== undefined && resourceVersion !== actual) {
    throw mismatch(plan.target, { what: 'ResourceVersion', expected: resourceVersion, actual });
  }
}

/**
 * The 409 of a failed precondition; kinds with their own deletion (Namespaces) have another
 * wording.
 */
function mismatch(
  { def, name }: DeletePlan['target'],
  { what, expected, actual }: { what: 'UID' | 'ResourceVersion'; expected: string; actual: string },
): Error {
  if (def.strategy.beforeDelete !== undefined) {
    const why = `${what} in precondition: ${expected}, ${what} in object meta: ${actual}`;
    return conflict(groupResourceOf(def), name, `Precondition failed: ${why}`);
  }
  const { group, kind } = groupKindOf(def);
  const likely = what === 'UID' ? 'deleted and then recreated' : 'modified';
  return conflict(
    { group: def.strategy.errorGroup ?? group, resource: kind },
    name,
    `the ${what} in the precondition (${expected}) does not match the ${what} in record ` +
      `(${actual}). The object might have been ${likely}`,
  );
}

/**
 * Whether an earlier deletion has not ended and the request does not hasten it, so that nothing
 * changes and no admission runs: its grace period is not over, or its kind holds the object.
 */
export function isPending({ target, options }: DeletePlan, object: ApiObject): boolean {
  const { deletionTimestamp, deletionGracePeriodSeconds: left = 0 } = object.metadata;
  if (deletionTimestamp === undefined) return false;
  const requested = options.gracePeriodSeconds ?? left;
  const isHeld = target.def.strategy.mayRemove?.(object) === false;
  return isHeld || (left > 0 && requested >= left);
}

/**
 * Marks an object for deletion: the first deletion sets the time, later ones can only shorten the
 * grace period (META-4). The garbage collector's finalizers follow each deletion's policy until the
 * grace period has started.
 */
export function markForDeletion(
  object: ApiObject,
  options: { plan: DeletePlan; nowMs: number; isGraceful: boolean },
): void {
  const { plan, nowMs } = options;
  const { metadata } = object;
  if (isPending(plan, object)) return;
  const left = metadata.deletionGracePeriodSeconds ?? 0;
  const requested = plan.options.gracePeriodSeconds;
  if (metadata.deletionTimestamp !== undefined && left > 0 && requested !== undefined) {
    const start = Date.parse(metadata.deletionTimestamp) - graceMs(left);
    metadata.deletionTimestamp = formatTime(start + graceMs(requested));
    metadata.deletionGracePeriodSeconds = requested;
  } else if (metadata.deletionTimestamp === undefined) {
    const grace = graceSeconds(plan, object) ?? 0;
    metadata.deletionTimestamp = formatTime(nowMs + graceMs(grace));
    // An object that waits for more than the finalizers in its metadata gets no grace period.
    if (options.isGraceful) metadata.deletionGracePeriodSeconds = grace;
    if ((metadata.generation ?? 0) > 0) metadata.generation = (metadata.generation ?? 0) + 1;
  } else if (options.isGraceful) metadata.deletionGracePeriodSeconds = 0;
  setFinalizers(object, finalizersFor(metadata.finalizers ?? [], plan));
}

/**
 * What a deletion replaces in its options before admission sees them: the grace period that it
 * starts, and, for kinds with their own deletion, the uid as a precondition.
 */
export function deletionOverrides(plan: DeletePlan, object: ApiObject): JsonObject {
  const { target, options } = plan;
  const seconds = graceSeconds(plan, object);
  const { uid = '' } = object.metadata;
  const hasUid = target.def.strategy.beforeDelete !== undefined;
  return {
    ...(seconds === undefined ? {} : { gracePeriodSeconds: seconds }),
    ...(hasUid ? { preconditions: { ...options.preconditions, uid } } : {}),
  };
}

/**
 * The grace period in seconds that the first deletion of an object starts; undefined for a kind
 * without one, and for an object that is already marked.
 */
function graceSeconds({ target, options }: DeletePlan, object: ApiObject): number | undefined {
  if (object.metadata.deletionTimestamp !== undefined) return undefined;
  const seconds = target.def.strategy.gracePeriod?.(object, options.gracePeriodSeconds);
  return seconds === undefined ? undefined : Math.min(seconds, Number.MAX_SAFE_INTEGER);
}

/** The longest duration of Go in seconds, 292 years, so that the time of a deletion can be written. */
const durationSecondsMax = 9_223_372_036;

const graceMs = (seconds: number) => Math.min(seconds, durationSecondsMax) * 1000;

/**
 * The finalizers after a deletion. Without a policy, those of the garbage collector stay; without
 * these, the kind's default applies.
 */
function finalizersFor(finalizers: readonly string[], plan: DeletePlan): readonly string[] {
  const { propagationPolicy, orphanDependents } = plan.options;
  const { def, version } = plan.target;
  const defaultPropagation = version.defaultPropagation ?? def.strategy.defaultPropagation;
  const others = finalizers.filter(
    (finalizer) => finalizer !== orphanFinalizer && finalizer !== foregroundFinalizer,
  );
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
  // For a Namespace, `orphanDependents: false` means Foreground.
  const isForeground =
    propagationPolicy === 'Foreground' ||
    (orphanDependents === false && def.strategy.mayRemove !== undefined);
  return isForeground ? [...others, foregroundFinalizer] : others;
}

/** Sets the finalizers; the same set keeps its order. */
function setFinalizers(object: ApiObject, finalizers: readonly string[]): void {
  const before = object.metadata.finalizers ?? [];
  // The others are the same, and may be thousands.
  const isSame = [orphanFinalizer, foregroundFinalizer].every(
    (name) => before.includes(name) === finalizers.includes(name),
  );
  if (isSame) return;
  if (finalizers.length === 0) delete object.metadata.finalizers;
  else object.metadata.finalizers = [...finalizers];
}
