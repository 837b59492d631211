import {
  type ApiObject,
  badRequest,
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
  setMember,
} from '@wheelhouse/machinery';
import { type Property, resolved, type Schema } from '@wheelhouse/schema';
import { difference, type FieldFilter, setOfFields, union } from './field-set.ts';
import {
  capUpdates,
  decodeFieldsSteps,
  decodeManaged,
  encodeFieldsSteps,
  encodeManaged,
  identityOf,
  type Managed,
  noManaged,
  sameOwners,
} from './managed-fields.ts';
import {
  type TypedObject,
  type UpdaterPort,
  updateManagers,
  type VersionedSet,
} from './updater.ts';
import { TypedError, validateTyped } from './validate-typed.ts';
import { forgetElements, resourceType, type ValueType } from './value-type.ts';

/** Where client-side applies are recorded, by whom. */
export interface LastApplied {
  readonly annotation: string;
  /** The one manager whose client-side applies turn into server-side ones without conflicts. */
  readonly manager: string;
}

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
export function* readOwners(entries: JsonValue | undefined): Generator<void, void> {
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

export function* takeChanges(
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

export function identityFor(
  kind: TrackedKind,
  name: string,
  operation: 'Apply' | 'Update',
): string {
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
export function strip(owned: VersionedSet | undefined): VersionedSet | undefined {
  if (owned === undefined) return undefined;
  const set = difference(owned.set, neverOwned);
  if (set === owned.set) return owned;
  return set.size === 0 ? undefined : { ...owned, set };
}

/** Puts owners into an object, or the live object's own list when that says the same. */
export function* storeOwners(options: {
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

/** Shares all else. A member that is undefined counts as absent, and is quicker than one left out. */
export function withoutOwners(object: ApiObject): JsonObject {
  const { metadata } = object;
  if (metadata.managedFields === undefined) return object;
  return { ...object, metadata: { ...metadata, managedFields: undefined } };
}

/**
 * An object as it is compared with one that has the very same list of owners: nobody looks into the
 * list then, and it needs no taking out, except where a conversion would copy it.
 */
export function comparable(kind: TrackedKind, object: ApiObject, before: Managed): JsonObject {
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

export function typedObject(kind: TrackedKind, value: JsonObject): TypedObject {
  return { value, type: ownType(kind), apiVersion: kind.apiVersion };
}

export function typedLive(kind: TrackedKind, live: JsonObject | undefined): TypedObject {
  if (live !== undefined) return typedObject(kind, live);
  return typedObject(kind, zeroObject(kind.schemaFor(kind.apiVersion) ?? {}));
}

/** Conversions of one write, each made once. */
export function portOf(kind: TrackedKind): UpdaterPort {
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

const zeros = new WeakMap<Schema, JsonObject>();

/**
 * What a new object of a kind is before anybody wrote to it. A built-in kind has its members that are
 * always written, at their zero values: this is why a manager that creates a Deployment owns
 * `.spec.replicas` but not `.spec` itself. A custom kind has none. Shared: callers may not change it.
 */
function zeroObject(schema: Schema): JsonObject {
  const at = resolved(schema);
  const cachedObject = zeros.get(at);
  if (cachedObject !== undefined) return cachedObject;
  const object = at.typed === true ? zeroStruct(at, 0) : {};
  zeros.set(at, object);
  return object;
}

/** Structs that contain themselves do so behind pointers or lists; this bounds a mistaken schema. */
const depthMax = 32;

function zeroStruct(schema: Schema, depth: number): JsonObject {
  const object: JsonObject = {};
  for (const [name, property] of schema.properties ?? []) {
    if (property.omitEmpty !== true || property.isPlainUpstream === true)
      setMember(object, name, zeroValue(property, depth));
  }
  return object;
}

function zeroValue(property: Property, depth: number): JsonValue {
  if (property.pointer === true && property.isPlainUpstream !== true) return null;
  const schema = resolved(property.schema);
  switch (schema.type) {
    case 'object':
      if (schema.properties === undefined || depth > depthMax) return null;
      return zeroStruct(schema, depth + 1);
    case 'string':
      return zeroText(schema.format);
    case 'integer':
    case 'number':
      return 0;
    case 'boolean':
      return false;
    default:
      return schema.intOrString === true ? 0 : null;
  }
}

function zeroText(format: string | undefined): JsonValue {
  if (format === 'date-time' || format === 'micro-time' || format === 'byte') return null;
  if (format === 'duration') return '0s';
  return format === 'quantity' ? '0' : '';
}
