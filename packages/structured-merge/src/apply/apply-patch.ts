import {
  type ApiObject,
  asApiObject,
  badRequest,
  boundedList,
  canonicalJson,
  compareText,
  errorText,
  formatTime,
  goEscaped,
  isObject,
  type JsonObject,
  type JsonValue,
  omittedText,
  parseJson,
  runInOnePiece,
  StatusError,
  Stride,
  textOf,
} from '@wheelhouse/machinery';
import { FoundPaths } from '@wheelhouse/schema';
import { compareSteps } from './compare.ts';
import {
  comparable,
  identityFor,
  portOf,
  storeOwners,
  strip,
  type TrackedKind,
  takeChanges,
  typedLive,
  typedObject,
  withoutOwners,
} from './field-manager.ts';
import { differenceSteps, type FieldSet, hasPath, setsEqual, setsEqualSteps } from './field-set.ts';
import { decodeManagedSteps, type Managed, noManaged, parseIdentity } from './managed-fields.ts';
import { showPath } from './path-element.ts';
import {
  applyConfiguration,
  type Conflict,
  ConflictsError,
  type TypedObject,
  type VersionedSet,
} from './updater.ts';
import { TypedError, validateTyped, validateTypedSteps } from './validate-typed.ts';
import { toFieldSetSteps } from './value-fields.ts';
import { fitting, forgetElements, memberType, type ValueType } from './value-type.ts';

const beforeFirstApply = 'before-first-apply';

/**
 * An apply request: the body is merged into the object, and the manager owns exactly the fields in
 * the body.
 */
interface AppliedPatch {
  /** The stored object; undefined if the apply creates it. */
  readonly live: ApiObject | undefined;
  /** The body. */
  readonly patch: JsonObject;
  readonly manager: string;
  readonly force: boolean;
  readonly nowMs: number;
  /** See `RecordedUpdate`. */
  readonly size?: 'large';
  /** Called with all undeclared members of an invalid body, to reject them by name. */
  readonly onUndeclared?: ((undeclared: FoundPaths) => never) | undefined;
}

/**
 * Applies a body (SSA-3, SSA-5). The result shares parts with `live` and `patch` and is neither
 * defaulted nor validated. If nothing changes, its managedFields are the live object's list
 * (SSA-9). Throws a StatusError: 400 for a body that has another kind, contains managedFields
 * (MF-4), or does not match the schema; 409 with a cause per field unless `force`.
 */
export function applyPatch(kind: TrackedKind, apply: AppliedPatch): ApiObject {
  return runInOnePiece(applySteps(kind, apply));
}

/** `applyPatch` in steps. The objects must not change between steps. */
export function* applySteps(kind: TrackedKind, apply: AppliedPatch): Generator<void, ApiObject> {
  const { live, patch, size } = apply;
  forgetElements();
  checkPatch(kind, patch);
  const applied = typedObject(kind, patch);
  yield* explainingSteps(
    () => `failed to create typed patch object (${describe(patch)})`,
    () => checkTyped(applied.type, apply),
  );
  if (size === 'large') yield;
  const before = yield* ownersForApply(kind, apply);
  if (size === 'large') yield;
  const merged = yield* mergeApplied(kind, { apply, before, applied, force: apply.force });
  if (size === 'large') yield;
  const object = withOwnMetadata(merged.object ?? live ?? patch);
  if (apply.manager === kind.lastApplied.manager) refreshLastApplied(kind, { object, patch });
  yield* storeOwners({ live, object, owners: merged.owners, before, size });
  return object;
}

/** Validates the body. Throws a TypedError after undeclared members have been reported. */
function* checkTyped(
  type: ValueType,
  { patch, onUndeclared, size }: AppliedPatch,
): Generator<void, void> {
  try {
    const options = { allowDuplicates: false };
    if (size === 'large') yield* validateTypedSteps(type, patch, options);
    else validateTyped(type, patch, options);
  } catch (error) {
    if (onUndeclared === undefined) throw error;
    const undeclared = yield* undeclaredMembers(type, patch);
    if (undeclared.count > 0) onUndeclared(undeclared);
    throw error;
  }
}

function checkPatch(kind: TrackedKind, patch: JsonObject): void {
  if (patch['apiVersion'] !== kind.apiVersion || patch['kind'] !== kind.kind) {
    throw badRequest(`invalid object type: ${describeKind(patch)}`);
  }
  const metadata = patch['metadata'];
  const managedFields = isObject(metadata) ? metadata['managedFields'] : undefined;
  if (managedFields !== undefined && managedFields !== null) {
    throw badRequest('metadata.managedFields must be nil');
  }
}

/** `apps/v1, Kind=Deployment`; for the core group `/v1, Kind=Pod`. */
export function describeKind(object: JsonObject): string {
  const apiVersion = textOf(object['apiVersion']);
  if (apiVersion.split('/').length > 2) return '/, Kind=';
  const groupVersion = apiVersion.includes('/') ? apiVersion : `/${apiVersion}`;
  return `${groupVersion}, Kind=${textOf(object['kind'])}`;
}

/** The name of an object in messages about an apply: `default/a; apps/v1, Kind=Deployment`. */
export function describe(object: JsonObject): string {
  const metadata = isObject(object['metadata']) ? object['metadata'] : {};
  const name = `${textOf(metadata['namespace'])}/${textOf(metadata['name'])}`;
  return `${name}; ${describeKind(object)}`;
}

/**
 * Runs work in steps and turns a TypedError into a 400, since some client sent the object.
 * kube-apiserver answers it with a 500 of the same message.
 * @param what returns the prefix of the message
 */
function* explainingSteps<T>(
  what: () => string | Generator<void, string>,
  steps: () => Generator<void, T>,
): Generator<void, T> {
  try {
    return yield* steps();
  } catch (error) {
    if (!(error instanceof TypedError)) throw error;
    const prefix = what();
    const shown = typeof prefix === 'string' ? prefix : yield* prefix;
    throw badRequest(`${shown}: ${error.message}`);
  }
}

/** The stored owners. If an object has none, a synthetic manager owns all of its fields. */
function* ownersForApply(
  kind: TrackedKind,
  { live, nowMs, size }: AppliedPatch,
): Generator<void, Managed> {
  if (live === undefined) return noManaged;
  let managed: Managed;
  try {
    managed = yield* decodeManagedSteps(live.metadata.managedFields);
  } catch (error) {
    const message = `failed to decode managed fields: ${errorText(error)}`;
    throw new StatusError({ code: 500, reason: '', message, cause: error });
  }
  if (managed.managers.size > 0) return managed;
  const creation = { live: undefined, object: live, manager: beforeFirstApply, nowMs };
  const update = size === undefined ? creation : { ...creation, size };
  return yield* explainingSteps(
    () =>
      `failed to create manager for existing fields: ` +
      `failed to convert new object (${describe(live)}) to smd typed`,
    () => takeChanges(kind, update, noManaged),
  );
}

interface Merging {
  readonly apply: AppliedPatch;
  /** The owners before the apply. */
  readonly before: Managed;
  readonly applied: TypedObject;
  readonly force: boolean;
}

interface Merged {
  /** Undefined if the object does not change. */
  readonly object: JsonValue | undefined;
  readonly owners: Managed;
}

function* mergeApplied(kind: TrackedKind, merging: Merging): Generator<void, Merged> {
  try {
    return yield* mergeOnce(kind, merging);
  } catch (error) {
    if (!(error instanceof ConflictsError)) throw error;
    const { conflicts } = error;
    const { live, manager } = merging.apply;
    const allowed =
      live !== undefined && manager === kind.lastApplied.manager
        ? yield* allowedConflicts(kind, { live, type: merging.applied.type })
        : undefined;
    if (allowed === undefined) throw applyConflict(conflicts);
    const forbidden = conflicts.filter(({ path }) => !hasPath(allowed, path));
    if (forbidden.length > 0) throw applyConflict(forbidden);
    return yield* mergeOnce(kind, { ...merging, force: true });
  }
}

function* mergeOnce(kind: TrackedKind, merging: Merging): Generator<void, Merged> {
  const { before, applied, force } = merging;
  const { live, manager, nowMs } = merging.apply;
  const identity = identityFor(kind, manager, 'Apply');
  const result = yield* explainingSteps(
    () => mergeProblem(live, applied.type),
    () =>
      applyConfiguration(portOf(kind, merging.apply.size), {
        // A body must not contain managedFields, so the list passes through unchanged.
        live: typedLive(kind, live === undefined ? undefined : comparable(kind, live, before)),
        applied,
        managers: before.managers,
        manager: identity,
        force,
        size: merging.apply.size,
      }),
  );
  const { managers } = result;
  const own = strip(managers.get(identity));
  if (own === undefined) managers.delete(identity);
  else {
    const previous = before.managers.get(identity);
    managers.set(identity, yield* sameSet(own, previous, merging.apply.size));
  }
  let { times } = before;
  if (result.object !== undefined) times = new Map(times).set(identity, formatTime(nowMs));
  // A new object starts as the applied body; its decoder adds zero values.
  const object = live === undefined ? undefined : result.object?.value;
  return { object, owners: { managers, times } };
}

/** The prefix of the message for a TypedError in a merge: the stored object may be invalid. */
function* mergeProblem(live: ApiObject | undefined, type: ValueType): Generator<void, string> {
  const problem = 'failed to merge config';
  if (live === undefined) return problem;
  try {
    yield* validateTypedSteps(type, live, { allowDuplicates: true });
    return problem;
  } catch (error) {
    if (!(error instanceof TypedError)) throw error;
    return `failed to create typed live object (${describe(live)})`;
  }
}

/** Returns the previous set if it is equal, because its encoding is cached. */
function* sameSet(
  owned: VersionedSet,
  before: VersionedSet | undefined,
  size: 'large' | undefined,
): Generator<void, VersionedSet> {
  if (before === undefined) return owned;
  const isSame =
    size === 'large'
      ? yield* setsEqualSteps(before.set, owned.set)
      : setsEqual(before.set, owned.set);
  if (!isSame) return owned;
  const { apiVersion, applied } = owned;
  return { set: before.set, apiVersion, applied };
}

/** A copy with its own metadata; everything else is shared. */
function withOwnMetadata(value: JsonValue): ApiObject {
  const object = isObject(value) ? value : {};
  const metadata = isObject(object['metadata']) ? object['metadata'] : {};
  return asApiObject({ ...object, metadata: { ...metadata } });
}

/** A conflict in a response. */
interface ShownConflict {
  readonly manager: string;
  readonly path: string;
}

/**
 * The 409 of an apply that conflicts with other managers, with one cause per field (SSA-3). If
 * there are more conflicts than a response may list (TRUST-3), a final line counts the others.
 */
function applyConflict(conflicts: readonly Conflict[]): StatusError {
  const shownConflicts: ShownConflict[] = [];
  const { items, omitted } = boundedList(conflicts, ({ manager, path }) => {
    const shown = { manager, path: showPath(path) };
    shownConflicts.push(shown);
    // The answer names the path twice: in the message and in a cause.
    return shown.path + shown.path + managerText(manager);
  });
  const listed = shownConflicts.slice(0, items.length);
  return new StatusError({
    code: 409,
    reason: 'Conflict',
    message: conflictMessage(listed, omitted),
    details: {
      causes: listed.map(({ manager, path }) => ({
        reason: 'FieldManagerConflict',
        message: `conflict with ${managerText(manager)}`,
        field: path,
      })),
    },
  });
}

function conflictMessage(conflicts: readonly ShownConflict[], omitted: number): string {
  const [only] = conflicts;
  if (only !== undefined && conflicts.length + omitted === 1) {
    return `Apply failed with 1 conflict: conflict with ${managerText(only.manager)}: ${only.path}`;
  }
  const byManager = new Map<string, string[]>();
  for (const { manager, path } of conflicts) {
    const lines = byManager.get(manager) ?? [];
    lines.push(`- ${path}`);
    byManager.set(manager, lines);
  }
  const managers = [...byManager.keys()].sort(compareText);
  const lines = managers.flatMap((manager) => [
    `conflicts with ${managerText(manager)}:`,
    ...byManager.get(manager)!,
  ]);
  if (omitted > 0) lines.push(omittedText(omitted, 'conflict'));
  return `Apply failed with ${conflicts.length + omitted} conflicts: ${lines.join('\n')}`;
}

/**
 * The name of a manager in messages: `"kubectl" with subresource "status" using apps/v1`. Appliers
 * have no version.
 */
function managerText(identity: string): string {
  const { manager, subresource, operation, apiVersion } = parseIdentity(identity);
  const name = JSON.stringify(manager ?? '');
  const qualified =
    subresource === undefined ? name : `${name} with subresource ${JSON.stringify(subresource)}`;
  return operation === 'Update' ? `${qualified} using ${apiVersion ?? ''}` : qualified;
}

/** The paths of all undeclared members: `spec.ports[0].odd`. */
function* undeclaredMembers(type: ValueType, value: JsonValue): Generator<void, FoundPaths> {
  const found = new FoundPaths();
  yield* findUndeclared(type, value, { path: '', found, stride: new Stride() });
  return found;
}

function* findUndeclared(
  type: ValueType,
  value: JsonValue,
  walk: { readonly path: string; readonly found: FoundPaths; readonly stride: Stride },
): Generator<void, void> {
  const { path, found, stride } = walk;
  stride.count();
  if (stride.isOver) yield;
  const { map, list } = fitting(type, value);
  if (list !== undefined && Array.isArray(value)) {
    const element = list.element.get();
    for (const [index, item] of value.entries()) {
      yield* findUndeclared(element, item, { ...walk, path: `${path}[${index}]` });
    }
  } else if (map !== undefined && isObject(value)) {
    for (const [name, item] of Object.entries(value)) {
      if (item === undefined) continue;
      const member = memberType(map, name);
      const below = path === '' ? name : `${path}.${name}`;
      if (member === undefined) found.add(below);
      else yield* findUndeclared(member, item, { ...walk, path: below });
    }
  }
}

/** Maximum total size of an object's annotations, bytes. */
const annotationsBytesMax = 256 * 1024;

/**
 * The fields that client-side apply set last and nobody has changed since, which its manager may
 * take over without conflict. Undefined if the object has no record in the request's version.
 */
function* allowedConflicts(
  kind: TrackedKind,
  { live, type }: { readonly live: ApiObject; readonly type: ValueType },
): Generator<void, FieldSet | undefined> {
  const record = live.metadata.annotations?.[kind.lastApplied.annotation] ?? '';
  if (record === '') return undefined;
  try {
    const last = parseJson(record);
    if (!isObject(last) || last['kind'] !== kind.kind) return undefined;
    if (last['apiVersion'] !== kind.apiVersion) return undefined;
    const before = withoutOwners(live);
    for (const value of [last, before]) {
      yield* validateTypedSteps(type, value, { allowDuplicates: false });
    }
    const { modified, added, removed } = yield* compareSteps(type, last, before);
    let allowed = yield* toFieldSetSteps(type, last);
    for (const changed of [modified, added, removed]) {
      allowed = yield* differenceSteps(allowed, changed);
    }
    return allowed;
  } catch (error) {
    if (error instanceof TypedError || error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** Updates the record of client-side apply, if the object has one. */
export function refreshLastApplied(
  kind: Pick<TrackedKind, 'lastApplied'>,
  { object, patch }: { readonly object: ApiObject; readonly patch: JsonObject },
): void {
  const name = kind.lastApplied.annotation;
  const { annotations } = object.metadata;
  if ((annotations?.[name] ?? '') === '') return;
  const refreshed = { ...annotations, [name]: recordOf(patch, name) };
  if (sizeOf(refreshed) > annotationsBytesMax) delete refreshed[name];
  object.metadata.annotations = refreshed;
}

function sizeOf(annotations: Readonly<Record<string, string>>): number {
  let bytes = 0;
  for (const [name, value] of Object.entries(annotations)) {
    bytes += Buffer.byteLength(name) + Buffer.byteLength(value);
  }
  return bytes;
}

/**
 * The record as kubectl writes it: the body without the annotation, on one line, with sorted
 * members.
 */
function recordOf(patch: JsonObject, annotation: string): string {
  const { annotations, ...rest } = isObject(patch['metadata']) ? patch['metadata'] : {};
  if (isObject(annotations)) {
    const { [annotation]: _, ...others } = annotations;
    rest['annotations'] = others;
  }
  return `${goEscaped(canonicalJson({ ...patch, metadata: rest }))}\n`;
}
