import {
  type ApiObject,
  asApiObject,
  badRequest,
  errorText,
  formatTime,
  inOnePiece,
  isObject,
  type JsonObject,
  type JsonValue,
  jsonEqual,
  jsonEqualBut,
  jsonEqualButSteps,
  jsonEqualSteps,
  jsonObject,
  StatusError,
} from '@wheelhouse/machinery';
import type { FoundPaths, Schema } from '@wheelhouse/schema';
import { applyConflict } from './conflict.ts';
import {
  difference,
  type FieldFilter,
  hasPath,
  setOfFields,
  setsEqual,
  union,
} from './field-set.ts';
import { decodeFieldsSteps, encodeFieldsSteps } from './fields-v1.ts';
import { allowedConflicts, type LastApplied, refreshLastApplied } from './last-applied.ts';
import { forgetElements } from './list-items.ts';
import {
  capUpdates,
  decodeManaged,
  encodeManaged,
  identityOf,
  type Managed,
  noManaged,
  sameOwners,
} from './managed-fields.ts';
import { TypedError } from './typed-errors.ts';
import { undeclaredIn } from './undeclared.ts';
import {
  applyConfiguration,
  ConflictsError,
  type TypedObject,
  type UpdaterPort,
  updateManagers,
  type VersionedSet,
} from './updater.ts';
import { validateTyped, validateTypedSteps } from './validate-typed.ts';
import { resourceType, type ValueType } from './value-type.ts';
import { zeroObject } from './zero-object.ts';

/** What tracking has to know of the kind, version and endpoint a request addresses. */
export interface TrackedKind {
  /** Of the request; objects go in and out in this version. */
  readonly apiVersion: string;
  readonly kind: string;
  /** Empty for the object itself. */
  readonly subresource: string;
  /** Schema of a version of this kind; undefined when it has none such (any more). */
  readonly schemaFor: (apiVersion: string) => Schema | undefined;
  /** ObjectMeta's schema, for kinds whose own schema does not declare metadata. */
  readonly metadataSchema: Schema;
  /**
   * The object in another version of the kind, as a new object: the given one may not change.
   * Undefined when the kind has no such version.
   */
  readonly convert: (object: JsonObject, apiVersion: string) => JsonObject | undefined;
  /** What writes through this endpoint may own, in terms of a version; undefined: everything. */
  readonly filterFor?: (apiVersion: string) => FieldFilter | undefined;
  /** Annotation client-side apply keeps its last configuration in. */
  readonly lastApplied: LastApplied;
}

/**
 * Thrown by a kind's `convert` that has to ask somebody first: nothing has changed yet, and whoever
 * asked for the tracking has the object converted and begins again.
 */
export class ConversionWanted extends Error {
  readonly object: JsonObject;
  readonly apiVersion: string;

  constructor(object: JsonObject, apiVersion: string) {
    super(`the object is wanted in ${apiVersion}`);
    this.object = object;
    this.apiVersion = apiVersion;
  }
}

/** A write that has replaced the object already: create, PUT, or a patch other than apply. */
export interface RecordedUpdate {
  /** The stored object; undefined for a create. */
  readonly live: ApiObject | undefined;
  /** What is to be stored; `metadata.managedFields` is as the request gave it. */
  readonly object: ApiObject;
  /** Name of the writer. */
  readonly manager: string;
  readonly nowMs: number;
  /** `large`: sets of fields are read, compared, and written in steps, which cost small ones more. */
  readonly size?: 'large';
}

/** Owners of this are no business of anybody's: the server writes it, or everybody must. */
const neverOwned = setOfFields([
  'apiVersion',
  'kind',
  'metadata',
  'metadata.name',
  'metadata.namespace',
  'metadata.creationTimestamp',
  'metadata.selfLink',
  'metadata.uid',
  'metadata.clusterName',
  'metadata.generation',
  'metadata.managedFields',
  'metadata.resourceVersion',
]);

const beforeFirstApply = 'before-first-apply';

/**
 * Sets `object.metadata.managedFields` for a write other than apply (MF-2). When neither the object
 * nor its owners change, it becomes the live object's own list, times and all. Gives the error when
 * an object does not fit its schema: then the list is dropped, as upstream does, and the write goes on.
 */
export function recordUpdate(kind: TrackedKind, update: RecordedUpdate): Error | undefined {
  return inOnePiece(recordSteps(kind, update));
}

/** `recordUpdate` in steps, between which nobody may change either object. */
export function* recordSteps(
  kind: TrackedKind,
  update: RecordedUpdate,
): Generator<void, Error | undefined> {
  const { live, object } = update;
  forgetElements();
  try {
    if (update.size === 'large') {
      yield* readOwners(live?.metadata.managedFields);
      if (kind.subresource === '') yield* readOwners(object.metadata.managedFields);
    }
    const before = yield* ownersBefore(kind, update);
    yield;
    const owners = yield* trackUpdate(kind, update, before);
    yield;
    yield* storeOwners({ live, object, owners, before, size: update.size });
    return undefined;
  } catch (error) {
    if (error instanceof ConversionWanted) throw error;
    delete object.metadata.managedFields;
    if (error instanceof Error) return error;
    throw error;
  }
}

/**
 * The owners a write starts from: those the request gives, if it gives any that can be read; else
 * the stored ones. `[{}]` resets them, `[]` does not (MF-3); sub-resources cannot give any.
 */
function* ownersBefore(
  kind: TrackedKind,
  { live, object, size }: RecordedUpdate,
): Generator<void, Managed> {
  const stored = live?.metadata.managedFields;
  const sentEntries: JsonValue | undefined = object.metadata.managedFields;
  if (kind.subresource !== '' || sentEntries === undefined) return decodeOrNone(stored);
  if (Array.isArray(sentEntries) && sentEntries.length === 1 && isEmptyEntry(sentEntries[0]))
    return resetManaged;
  const isStored =
    size === 'large' ? yield* jsonEqualSteps(sentEntries, stored) : jsonEqual(sentEntries, stored);
  if (isStored) return decodeOrNone(stored);
  const { managers, times } = decodeOrNone(sentEntries);
  // Without the entries themselves: a client may have written them in a form that is not ours.
  return managers.size === 0 ? decodeOrNone(stored) : { managers, times };
}

/** No owners because the request says so: what it changes itself is tracked all the same. */
const resetManaged: Managed = { managers: new Map(), times: new Map() };

const isEmptyEntry = (entry: JsonValue | undefined) =>
  isObject(entry) && Object.keys(entry).length === 0;

/** Reads the sets of owners in steps, where they can be read. */
function* readOwners(entries: JsonValue | undefined): Generator<void, void> {
  if (!Array.isArray(entries)) return;
  for (const entry of entries) {
    const fields = isObject(entry) ? entry['fieldsV1'] : undefined;
    if (!isObject(fields)) continue;
    try {
      yield* decodeFieldsSteps(fields);
    } catch {
      // Whoever reads the entry next reports it.
    }
  }
}

function decodeOrNone(entries: JsonValue | undefined): Managed {
  try {
    return decodeManaged(entries);
  } catch {
    return noManaged;
  }
}

function* trackUpdate(
  kind: TrackedKind,
  update: RecordedUpdate,
  before: Managed,
): Generator<void, Managed> {
  const { live, object } = update;
  // An object stored without owners stays without until somebody applies; upstream has it so even
  // for the request that resets them, whose own changes must be its own here (MF-3).
  const isUntracked = before.managers.size === 0 && before !== resetManaged;
  if (isUntracked && (live?.metadata.uid ?? '') !== '') return noManaged;
  // What the request gave has been read. With the same list on both sides neither needs a copy.
  if (isOfOneVersion(kind, before)) {
    jsonObject(object.metadata)['managedFields'] = live?.metadata.managedFields;
  }
  return capUpdates(yield* takeChanges(kind, update, before));
}

/** While a write is tracked, its changes belong to nobody known before: not even the same manager. */
const currentOperation = 'current-operation';

function* takeChanges(
  kind: TrackedKind,
  update: RecordedUpdate,
  before: Managed,
): Generator<void, Managed> {
  const { live, object, nowMs } = update;
  const managers = yield* updateManagers(portOf(kind), {
    live: typedLive(kind, live === undefined ? undefined : comparable(kind, live, before)),
    object: typedObject(kind, comparable(kind, object, before)),
    managers: before.managers,
    manager: currentOperation,
    size: update.size,
  });
  const taken = strip(managers.get(currentOperation));
  managers.delete(currentOperation);
  if (taken === undefined) return { managers, times: before.times };
  const identity = identityFor(kind, update.manager, 'Update');
  const previous = managers.get(identity);
  // In this order the set stays the very one it was when nothing is new, and with it its encoding.
  const set = previous === undefined ? taken.set : union(previous.set, taken.set);
  managers.set(identity, { ...taken, set });
  return { managers, times: new Map(before.times).set(identity, formatTime(nowMs)) };
}

/** Identities of managers that have written through an endpoint, by name. */
type KnownIdentities = Record<'Apply' | 'Update', Map<string, string>>;
const knownIdentities = new WeakMap<TrackedKind, KnownIdentities>();
const identitiesMax = 256;

function identityFor(kind: TrackedKind, name: string, operation: 'Apply' | 'Update'): string {
  let identities = knownIdentities.get(kind);
  if (identities === undefined) {
    identities = { Apply: new Map(), Update: new Map() };
    knownIdentities.set(kind, identities);
  }
  const byName = identities[operation];
  let identity = byName.get(name);
  if (identity !== undefined) return identity;
  const { apiVersion, subresource } = kind;
  identity = identityOf({ manager: name || 'unknown', operation, apiVersion, subresource });
  if (byName.size >= identitiesMax) byName.clear();
  byName.set(name, identity);
  return identity;
}

/** Without what nobody may own; undefined when nothing is left. */
function strip(owned: VersionedSet | undefined): VersionedSet | undefined {
  if (owned === undefined) return undefined;
  const set = difference(owned.set, neverOwned);
  if (set === owned.set) return owned;
  return set.size === 0 ? undefined : { ...owned, set };
}

/** Puts owners into an object, or the live object's own list when that says the same. */
function* storeOwners(options: {
  live: ApiObject | undefined;
  object: ApiObject;
  owners: Managed;
  /** What the write began from: mostly the live object's owners. */
  before: Managed;
  size: 'large' | undefined;
}): Generator<void, void> {
  const { live, object, owners, before, size } = options;
  const stored = live?.metadata.managedFields;
  if (live !== undefined && stored !== undefined) {
    // Times alone are no change (META-6).
    const mayBeSame = before.repeated !== true && sameOwners(owners, before);
    const isSame =
      mayBeSame &&
      (size === 'large'
        ? yield* sameButOwnersSteps(live, object)
        : isSameButOwners(live, object)) &&
      (before.entries === stored || sameOwners(owners, decodeOrNone(stored)));
    if (isSame) {
      object.metadata.managedFields = stored;
      return;
    }
  }
  yield;
  if (size === 'large') {
    for (const { set } of owners.managers.values()) yield* encodeFieldsSteps(set);
  }
  const entries = encodeManaged(owners, before);
  if (entries === undefined) delete object.metadata.managedFields;
  else object.metadata.managedFields = entries;
}

/** Whether two objects differ in their owners at most. */
const isSameButOwners = (one: ApiObject, other: ApiObject): boolean =>
  jsonEqualBut(one, other, 'metadata') &&
  jsonEqualBut(one.metadata, other.metadata, 'managedFields');

/** `isSameButOwners` in steps. */
function* sameButOwnersSteps(one: ApiObject, other: ApiObject): Generator<void, boolean> {
  return (
    (yield* jsonEqualButSteps(one, other, 'metadata')) &&
    (yield* jsonEqualButSteps(one.metadata, other.metadata, 'managedFields'))
  );
}

/** An apply: the body merges into the object, and the manager owns exactly what it names. */
export interface AppliedPatch {
  /** The stored object; undefined when the apply creates it. */
  readonly live: ApiObject | undefined;
  /** The body. */
  readonly patch: JsonObject;
  readonly manager: string;
  readonly force: boolean;
  readonly nowMs: number;
  /** As of a recorded update. */
  readonly size?: 'large';
  /** Called with all members that the schema does not declare, to refuse them by name. */
  readonly onUndeclared?: ((undeclared: FoundPaths) => never) | undefined;
}

/**
 * Applies a body (SSA-3, SSA-5). The result shares parts with `live` and `patch`; it is neither
 * defaulted nor validated yet. When nothing changes its managedFields are the live object's own list
 * (SSA-9). Throws StatusError: 400 for a body that names another kind, holds managedFields (MF-4) or
 * does not fit the schema, 409 with a cause per field unless `force`.
 */
export function applyPatch(kind: TrackedKind, apply: AppliedPatch): ApiObject {
  return inOnePiece(applySteps(kind, apply));
}

/** `applyPatch` in steps, between which nobody may change either object. */
export function* applySteps(kind: TrackedKind, apply: AppliedPatch): Generator<void, ApiObject> {
  const { live, patch } = apply;
  forgetElements();
  checkPatch(kind, patch);
  const applied = typedObject(kind, patch);
  yield* explainingSteps(
    () => `failed to create typed patch object (${describe(patch)})`,
    () => checkTyped(applied.type, apply),
  );
  yield;
  if (apply.size === 'large') yield* readOwners(live?.metadata.managedFields);
  const before = yield* ownersForApply(kind, apply);
  yield;
  const merged = yield* mergeApplied(kind, { apply, before, applied, force: apply.force });
  yield;
  const object = withOwnMetadata(merged.object ?? live ?? patch);
  if (apply.manager === kind.lastApplied.manager) refreshLastApplied(kind, { object, patch });
  yield* storeOwners({ live, object, owners: merged.owners, before, size: apply.size });
  return object;
}

/** Throws a TypedError for a body that does not fit, once undeclared members have been reported. */
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
    const undeclared = undeclaredIn(type, patch);
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

const textOf = (value: JsonValue | undefined) => (typeof value === 'string' ? value : '');

/** `apps/v1, Kind=Deployment`; for the core group `/v1, Kind=Pod`. */
export function describeKind(object: JsonObject): string {
  const apiVersion = textOf(object['apiVersion']);
  if (apiVersion.split('/').length > 2) return '/, Kind=';
  const groupVersion = apiVersion.includes('/') ? apiVersion : `/${apiVersion}`;
  return `${groupVersion}, Kind=${textOf(object['kind'])}`;
}

/** An object as messages about an apply name it: `default/a; apps/v1, Kind=Deployment`. */
export function describe(object: JsonObject): string {
  const metadata = isObject(object['metadata']) ? object['metadata'] : {};
  const place = `${textOf(metadata['namespace'])}/${textOf(metadata['name'])}`;
  return `${place}; ${describeKind(object)}`;
}

const explained = (what: () => string, error: unknown): unknown =>
  error instanceof TypedError ? badRequest(`${what()}: ${error.message}`) : error;

/**
 * Runs work in steps; an object that does not fit its schema is what some client sent, and so a 400,
 * with the words of upstream's unnamed 500.
 */
function* explainingSteps<T>(
  what: () => string,
  steps: () => Generator<void, T>,
): Generator<void, T> {
  try {
    return yield* steps();
  } catch (error) {
    throw explained(what, error);
  }
}

/** The stored owners; whatever is in an object that has none belongs to a manager made up for it. */
function* ownersForApply(
  kind: TrackedKind,
  { live, nowMs, size }: AppliedPatch,
): Generator<void, Managed> {
  if (live === undefined) return noManaged;
  let managed: Managed;
  try {
    managed = decodeManaged(live.metadata.managedFields);
  } catch (error) {
    const why = errorText(error);
    const message = `failed to decode managed fields: ${why}`;
    throw new StatusError({ code: 500, reason: '', message, cause: error });
  }
  if (managed.managers.size > 0) return managed;
  const write = { live: undefined, object: live, manager: beforeFirstApply, nowMs };
  const sized = size === undefined ? write : { ...write, size };
  return yield* explainingSteps(
    () => 'failed to create manager for existing fields',
    () => takeChanges(kind, sized, noManaged),
  );
}

interface Merging {
  readonly apply: AppliedPatch;
  readonly before: Managed;
  readonly applied: TypedObject;
  readonly force: boolean;
}

interface Merged {
  /** Undefined when the object stays as it is. */
  readonly object: JsonValue | undefined;
  readonly owners: Managed;
}

function* mergeApplied(kind: TrackedKind, merging: Merging): Generator<void, Merged> {
  try {
    return yield* mergeOnce(kind, merging);
  } catch (error) {
    if (!(error instanceof ConflictsError)) throw error;
    const { conflicts } = error;
    const isUpgrade = merging.apply.manager === kind.lastApplied.manager;
    const allowed = isUpgrade ? allowedBy(kind, merging) : undefined;
    if (allowed === undefined) throw applyConflict(conflicts);
    const refused = conflicts.filter(({ path }) => !hasPath(allowed, path));
    if (refused.length > 0) throw applyConflict(refused);
    return yield* mergeOnce(kind, { ...merging, force: true });
  }
}

function allowedBy(kind: TrackedKind, { apply: { live }, applied }: Merging) {
  if (live === undefined) return undefined;
  return allowedConflicts(kind, { live: asApiObject(withoutOwners(live)), type: applied.type });
}

function* mergeOnce(kind: TrackedKind, merging: Merging): Generator<void, Merged> {
  const { before, applied, force } = merging;
  const { live, manager, nowMs } = merging.apply;
  const identity = identityFor(kind, manager, 'Apply');
  const result = yield* explainingSteps(
    () => 'failed to merge config',
    () =>
      applyConfiguration(portOf(kind), {
        // No body may name the owners' list: it goes from one object to the other as it is.
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
  else managers.set(identity, sameSet(own, before.managers.get(identity)));
  let { times } = before;
  if (result.object !== undefined) times = new Map(times).set(identity, formatTime(nowMs));
  // A new object begins as what was applied; zero values are its decoder's business.
  const object = live === undefined ? undefined : result.object?.value;
  return { object, owners: { managers, times } };
}

/** The set that was there before when it says the same: its encoding is known. */
function sameSet(owned: VersionedSet, before: VersionedSet | undefined): VersionedSet {
  if (before === undefined || !setsEqual(before.set, owned.set)) return owned;
  const { apiVersion, applied } = owned;
  return { set: before.set, apiVersion, applied };
}

/** A copy whose metadata may change; what is shared below stays as it is. */
function withOwnMetadata(value: JsonValue): ApiObject {
  const object = isObject(value) ? value : {};
  const metadata = isObject(object['metadata']) ? object['metadata'] : {};
  return asApiObject({ ...object, metadata: { ...metadata } });
}

/** Shares all else. A member that is undefined counts as absent, and is quicker than one left out. */
function withoutOwners(object: ApiObject): JsonObject {
  const { metadata } = object;
  if (metadata.managedFields === undefined) return object;
  return { ...object, metadata: { ...metadata, managedFields: undefined } };
}

/**
 * An object as it is compared with one that has the very same list of owners: nobody looks into the
 * list then, and it needs no taking out, except where a conversion would copy it.
 */
function comparable(kind: TrackedKind, object: ApiObject, before: Managed): JsonObject {
  return isOfOneVersion(kind, before) ? object : withoutOwners(object);
}

/** Whether all owners know the object in the version it is in. */
function isOfOneVersion(kind: TrackedKind, { managers }: Managed): boolean {
  for (const { apiVersion } of managers.values()) if (apiVersion !== kind.apiVersion) return false;
  return true;
}

function typeFor(kind: TrackedKind, apiVersion: string): ValueType | undefined {
  const schema = kind.schemaFor(apiVersion);
  return schema === undefined ? undefined : resourceType(schema, kind.metadataSchema);
}

/** Types of the kinds' own versions, which are asked for several times in a write. */
const ownTypes = new WeakMap<TrackedKind, ValueType>();

function ownType(kind: TrackedKind): ValueType {
  const cachedType = ownTypes.get(kind);
  if (cachedType !== undefined) return cachedType;
  const type = typeFor(kind, kind.apiVersion);
  if (type === undefined) throw new Error(`no schema for ${kind.apiVersion}, Kind=${kind.kind}`);
  ownTypes.set(kind, type);
  return type;
}

function typedObject(kind: TrackedKind, value: JsonObject): TypedObject {
  return { value, type: ownType(kind), apiVersion: kind.apiVersion };
}

function typedLive(kind: TrackedKind, live: JsonObject | undefined): TypedObject {
  if (live !== undefined) return typedObject(kind, live);
  return typedObject(kind, zeroObject(kind.schemaFor(kind.apiVersion) ?? {}));
}

/** Conversions of one write, each made once. */
function portOf(kind: TrackedKind): UpdaterPort {
  let made: Map<JsonValue, Map<string, TypedObject | undefined>> | undefined;
  return {
    convert(object, apiVersion) {
      if (object.apiVersion === apiVersion) return object;
      made ??= new Map();
      let byVersion = made.get(object.value);
      if (byVersion === undefined) {
        byVersion = new Map();
        made.set(object.value, byVersion);
      }
      if (!byVersion.has(apiVersion))
        byVersion.set(apiVersion, convertTyped(kind, object, apiVersion));
      return byVersion.get(apiVersion);
    },
    filterFor: (apiVersion) => kind.filterFor?.(apiVersion),
  };
}

/** Throws StatusError 400 for an object that does not fit that version, in upstream's words. */
function convertTyped(
  kind: TrackedKind,
  object: TypedObject,
  apiVersion: string,
): TypedObject | undefined {
  const type = typeFor(kind, apiVersion);
  if (type === undefined || !isObject(object.value)) return undefined;
  const value = kind.convert(object.value, apiVersion);
  if (value === undefined) return undefined;
  try {
    // Stored objects may hold duplicates; what they are converted to may not, as upstream.
    validateTyped(type, value, { allowDuplicates: false });
  } catch (error) {
    throw error instanceof TypedError ? badRequest(error.message) : error;
  }
  return { value, type, apiVersion };
}
