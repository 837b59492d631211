import { conflict, modifiedMessage, notFound } from '../meta/status.ts';
import { formatTime } from '../meta/times.ts';
import type { ApiObject } from '../meta/types.ts';
import { type Entry, EntryHint } from '../watchcache/contract.ts';
import { makeEntry } from '../watchcache/entry.ts';
import type { Deleted, DeleteRequestOptions, Target, WriteContext } from './contract.ts';
import { strategyContextOf } from './create.ts';
import { isFinalized, removeFinalized } from './finalize.ts';
import {
  decodeEntry,
  encodeStored,
  entryOf,
  fromStorage,
  indexOf,
  objectKey,
} from './object-codec.ts';
import { preconditionFailed } from './object-meta.ts';
import { groupResourceOf, type Registry, storing } from './registry.ts';

const attemptsMax = 500;
const orphanFinalizer = 'orphan';
const foregroundFinalizer = 'foregroundDeletion';

export interface DeleteRequest {
  readonly target: Target;
  readonly context: WriteContext;
  readonly options: DeleteRequestOptions;
}

/**
 * Deletes an object: at once when nothing holds it, else marks it (deletionTimestamp) and leaves
 * its removal to whoever takes the last finalizer away (DEL-1, DEL-2, META-4). Throws 404, or 409
 * for a failed precondition.
 */
export async function deleteObject(registry: Registry, request: DeleteRequest): Promise<Deleted> {
  const { target, context } = request;
  const key = objectKey(target.namespace, target.name);
  let current = await registry.caches.of(target.def).get(key, undefined);
  for (let attempt = 1; attempt <= attemptsMax && !context.expired(); attempt += 1) {
    if (current === undefined) throw notFound(groupResourceOf(target.def), target.name);
    const outcome = await attemptDelete(registry, { request, current, attempt });
    if ('deleted' in outcome) return outcome.deleted;
    current = outcome.current;
  }
  throw conflict(groupResourceOf(target.def), target.name, modifiedMessage);
}

type Outcome = { readonly deleted: Deleted } | { readonly current: Entry | undefined };

async function attemptDelete(
  registry: Registry,
  attempt: { request: DeleteRequest; current: Entry; attempt: number },
): Promise<Outcome> {
  const { request, current } = attempt;
  const { target, context, options } = request;
  checkPreconditions(request, current);
  const old = decodeEntry(current);
  const live = () => fromStorage(target.def, target.version, decodeEntry(current));
  await registry.admission.validate({
    operation: 'DELETE',
    target,
    context,
    name: target.name,
    object: undefined,
    old: live(),
    attempt: attempt.attempt,
  });
  const nowMs = registry.clock.now();
  const object = decodeEntry(current);
  const mode = target.def.strategy.beforeDelete?.(
    strategyContextOf(target, context, nowMs),
    object,
  );
  markForDeletion(object, { request, nowMs, finalize: mode === 'finalize' });
  if (isFinalized(target.def.strategy, object)) {
    if (context.dryRun) return { deleted: { entry: current, removed: true } };
    const lost = await removeFinalized(registry, { target, current });
    return lost ?? { deleted: { entry: current, removed: true } };
  }
  if (unchanged(object, old)) return { deleted: { entry: current, removed: false } };
  return putMarked(registry, { target, context, current, object });
}

function checkPreconditions(request: DeleteRequest, current: Entry): void {
  const { target, options } = request;
  const uid = options.preconditions?.uid;
  if (uid !== undefined && uid !== current.index.uid) {
    throw preconditionFailed(target, { wanted: uid, actual: current.index.uid, what: 'UID' });
  }
  const wanted = options.preconditions?.resourceVersion;
  const actual = String(current.revision);
  if (wanted !== undefined && wanted !== actual) {
    throw preconditionFailed(target, { wanted, actual, what: 'ResourceVersion' });
  }
}

function markForDeletion(
  object: ApiObject,
  options: { request: DeleteRequest; nowMs: number; finalize: boolean },
): void {
  const { request, nowMs } = options;
  const { metadata } = object;
  const { strategy } = request.target.def;
  const finalizers = finalizersFor(metadata.finalizers ?? [], request.options.propagationPolicy);
  if (metadata.deletionTimestamp === undefined) {
    const grace = graceSeconds(request, object);
    metadata.deletionTimestamp = formatTime(nowMs + grace * 1000);
    metadata.deletionGracePeriodSeconds = grace;
    if ((metadata.generation ?? 0) > 0) metadata.generation = (metadata.generation ?? 0) + 1;
    setFinalizers(object, finalizers);
    return;
  }
  if (strategy.gracePeriod === undefined) return;
  const left = metadata.deletionGracePeriodSeconds ?? 0;
  const grace = Math.min(left, request.options.gracePeriodSeconds ?? left);
  if (grace < left) {
    metadata.deletionTimestamp = formatTime(nowMs + grace * 1000);
    metadata.deletionGracePeriodSeconds = grace;
  }
}

function graceSeconds(request: DeleteRequest, object: ApiObject): number {
  const { gracePeriod } = request.target.def.strategy;
  if (gracePeriod === undefined) return 0;
  return request.options.gracePeriodSeconds ?? gracePeriod(object);
}

/** The garbage collector's two finalizers follow the policy; without one they stay as they are. */
function finalizersFor(
  finalizers: readonly string[],
  policy: DeleteRequestOptions['propagationPolicy'],
): readonly string[] {
  if (policy === undefined) return finalizers;
  const others = finalizers.filter((one) => one !== orphanFinalizer && one !== foregroundFinalizer);
  if (policy === 'Orphan') return [...others, orphanFinalizer];
  if (policy === 'Foreground') return [...others, foregroundFinalizer];
  return others;
}

function setFinalizers(object: ApiObject, finalizers: readonly string[]): void {
  if (finalizers.length === 0) delete object.metadata.finalizers;
  else object.metadata.finalizers = [...finalizers];
}

function unchanged(object: ApiObject, old: ApiObject): boolean {
  return (
    object.metadata.deletionTimestamp === old.metadata.deletionTimestamp &&
    object.metadata.deletionGracePeriodSeconds === old.metadata.deletionGracePeriodSeconds
  );
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
  const storeKey = def.storage.prefix + key;
  const result = await storing(() =>
    registry.store.put({
      key: storeKey,
      value,
      expect: current.revision,
      hint: new EntryHint(index),
    }),
  );
  if (!result.ok) return { current: entryOf(def, result.current) };
  return { deleted: { entry: entryAt(result.revision), removed: false } };
}
