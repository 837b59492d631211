import {
  type ApiObject,
  conflict,
  foregroundFinalizer,
  formatTime,
  orphanFinalizer,
} from '@wheelhouse/machinery';
import type { Entry } from '../watchcache/entry.ts';
import type { DeletePlan } from './contract.ts';
import { groupKindOf, groupResourceOf } from './registry.ts';

/** What a deletion asks of an object, and how it marks one. */

/** Warns of a deletion that leaves to the kind what becomes of dependents. */
export function warnOfPropagation({ target, context, options }: DeletePlan): void {
  const { propagationPolicy, orphanDependents } = options;
  const warning = target.def.strategy.missingPolicyWarning;
  const isStated = propagationPolicy !== undefined || orphanDependents !== undefined;
  if (warning !== undefined && !isStated) context.warn(warning);
}

/** 409 when the object is not the one the client meant. */
export function checkPreconditions(
  plan: Pick<DeletePlan, 'target' | 'options'>,
  current: Entry,
): void {
  const { uid, resourceVersion } = plan.options.preconditions ?? {};
  const actualUid = current.index.uid;
  if (uid !== undefined && uid !== actualUid) {
    throw mismatch(plan.target, { what: 'UID', wanted: uid, actual: actualUid });
  }
  const actual = String(current.revision);
  if (resourceVersion !== undefined && resourceVersion !== actual) {
    throw mismatch(plan.target, { what: 'ResourceVersion', wanted: resourceVersion, actual });
  }
}

/** Upstream names the kind, but the resource of a kind whose deletion it handles apart. */
function mismatch(
  { def, name }: DeletePlan['target'],
  { what, wanted, actual }: { what: 'UID' | 'ResourceVersion'; wanted: string; actual: string },
): Error {
  if (def.strategy.beforeDelete !== undefined) {
    const why = `${what} in precondition: ${wanted}, ${what} in object meta: ${actual}`;
    return conflict(groupResourceOf(def), name, `Precondition failed: ${why}`);
  }
  const { group, kind } = groupKindOf(def);
  const likely = what === 'UID' ? 'deleted and then recreated' : 'modified';
  return conflict(
    { group: def.strategy.errorGroup ?? group, resource: kind },
    name,
    `the ${what} in the precondition (${wanted}) does not match the ${what} in record ` +
      `(${actual}). The object might have been ${likely}`,
  );
}

/**
 * The first deletion stamps the object; a later one may only shorten what grace is left (META-4).
 * The garbage collector's finalizers follow each deletion's policy, until grace has begun to run.
 */
export function markForDeletion(
  object: ApiObject,
  options: { plan: DeletePlan; nowMs: number; isGraceful: boolean },
): void {
  const { plan, nowMs } = options;
  const { metadata } = object;
  const left = metadata.deletionGracePeriodSeconds ?? 0;
  const requested = plan.options.gracePeriodSeconds;
  if (metadata.deletionTimestamp !== undefined && left > 0) {
    if (requested === undefined || requested >= left) return;
    const end = Date.parse(metadata.deletionTimestamp) - (left - requested) * 1000;
    metadata.deletionTimestamp = formatTime(end);
    metadata.deletionGracePeriodSeconds = requested;
  } else if (metadata.deletionTimestamp === undefined) {
    const grace = graceSeconds(plan, object);
    metadata.deletionTimestamp = formatTime(nowMs + grace * 1000);
    // What waits for more than the finalizers of its metadata is told no time.
    if (options.isGraceful) metadata.deletionGracePeriodSeconds = grace;
    if ((metadata.generation ?? 0) > 0) metadata.generation = (metadata.generation ?? 0) + 1;
  }
  setFinalizers(object, finalizersFor(metadata.finalizers ?? [], plan));
}

/** A kind that ends at once whatever was asked (a Pod that runs nowhere) says 0. */
function graceSeconds(plan: DeletePlan, object: ApiObject): number {
  const own = plan.target.def.strategy.gracePeriod?.(object) ?? 0;
  return own === 0 ? 0 : (plan.options.gracePeriodSeconds ?? own);
}

/**
 * Without a policy the garbage collector's finalizers stay as they are, and where there are none
 * the kind's own default holds.
 */
function finalizersFor(finalizers: readonly string[], plan: DeletePlan): readonly string[] {
  const { propagationPolicy, orphanDependents } = plan.options;
  const { def, version } = plan.target;
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
  // Of a Namespace, upstream takes `orphanDependents: false` for Foreground.
  const isForeground =
    propagationPolicy === 'Foreground' ||
    (orphanDependents === false && def.strategy.mayRemove !== undefined);
  return isForeground ? [...others, foregroundFinalizer] : others;
}

/** The same ones stay in the order that they have. */
function setFinalizers(object: ApiObject, finalizers: readonly string[]): void {
  const before = new Set(object.metadata.finalizers);
  if (before.size === finalizers.length && finalizers.every((one) => before.has(one))) return;
  if (finalizers.length === 0) delete object.metadata.finalizers;
  else object.metadata.finalizers = [...finalizers];
}
