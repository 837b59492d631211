import {
  type ApiObject,
  badRequest,
  formatTime,
  isObject,
  type JsonObject,
  type JsonValue,
  jsonEqual,
  jsonEqualExcept,
  jsonEqualExceptSteps,
  jsonEqualSteps,
  jsonObject,
  memoized,
  runInOnePiece,
  setMember,
} from '@wheelhouse/machinery';
import { type Property, resolved, type Schema } from '@wheelhouse/schema';
import { difference, type FieldSet, setOfFields, union } from './field-set.ts';
import {
  areFew,
  cachedOwners,
  capUpdates,
  decodeManagedSteps,
  encodeManaged,
  encodeManagedSteps,
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
import { TypedError, validateTyped, validateTypedSteps } from './validate-typed.ts';
import { forgetElements, resourceType, type ValueType } from './value-type.ts';

/** The annotation that records client-side applies, and the manager that writes it. */
export interface LastApplied {
  readonly annotation: string;
  /**
   * The manager whose client-side applies can be upgraded to server-side applies without conflicts.
   */
  readonly manager: string;
}

/** What the field manager needs to know about the kind, version, and endpoint of a request. */
export interface TrackedKind {
  /** The version of the request, in which objects are passed and returned. */
  readonly apiVersion: string;
  readonly kind: string;
  /** Empty for the main resource. */
  readonly subresource: string;
  /** The schema of a version of the kind; undefined if the version does not exist. */
  readonly schemaFor: (apiVersion: string) => Schema | undefined;
  /** The schema of ObjectMeta, for kinds whose schema does not declare metadata. */
  readonly metadataSchema: Schema;
  /**
   * Converts an object to another version of the kind without modifying it; the result may share
   * parts with it. Undefined if the kind has no such version.
   */
  readonly convert: (object: JsonObject, apiVersion: string) => JsonObject | undefined;
  /** The fields of a version that this endpoint resets, which its writers cannot own (SSA-10). */
  readonly resetFor?: (apiVersion: string) => FieldSet | undefined;
  /** How client-side applies are recorded. */
  readonly lastApplied: LastApplied;
}

/**
 * Thrown by a kind's `convert` if the conversion is asynchronous. Nothing has changed yet; the
 * caller converts the object and starts over.
 */
export class ConversionNeeded extends Error {
  readonly object: JsonObject;
  readonly apiVersion: string;

  constructor(object: JsonObject, apiVersion: string) {
    super(`the object must be converted to ${apiVersion}`);
    this.object = object;
    this.apiVersion = apiVersion;
  }
}

/** A write that has already produced the new object: create, PUT, or a patch other than apply. */
interface RecordedUpdate {
  /** The stored object; undefined for a create. */
  readonly live: ApiObject | undefined;
  /** The object to be stored; `metadata.managedFields` is that of the request. */
  readonly object: ApiObject;
  /** Name of the writer. */
  readonly manager: string;
  readonly nowMs: number;
  /** `large` processes field sets in steps, which is slower for small ones. */
  readonly size?: 'large';
}

/** Fields without owners: the server writes them, or every client must. */
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
 * Sets `object.metadata.managedFields` for a write other than apply (MF-2). If neither the object
 * nor its owners change, it becomes the live object's list, including its times. If an object
 * violates its schema, the list is dropped, the write continues, and the error is returned.
 */
export function recordUpdate(kind: TrackedKind, update: RecordedUpdate): Error | undefined {
  return runInOnePiece(recordSteps(kind, update));
}

/** `recordUpdate` in steps. The objects must not change between steps. */
export function* recordSteps(
  kind: TrackedKind,
  update: RecordedUpdate,
): Generator<void, Error | undefined> {
  const { live, object } = update;
  forgetElements();
  try {
    const before = yield* ownersBefore(kind, update);
    if (update.size === 'large') yield;
    const owners = yield* trackUpdate(kind, update, before);
    if (update.size === 'large') yield;
    yield* storeOwners({ live, object, owners, before, size: update.size });
    return undefined;
  } catch (error) {
    if (error instanceof ConversionNeeded) throw error;
    delete object.metadata.managedFields;
    if (error instanceof Error) return error;
    throw error;
  }
}

/**
 * The owners before a write: those of the request, if it has valid ones, else the stored ones.
 * `[{}]` resets them, `[]` does not (MF-3). Writes to subresources cannot change them.
 */
function* ownersBefore(
  kind: TrackedKind,
  { live, object, size }: RecordedUpdate,
): Generator<void, Managed> {
  const stored = live?.metadata.managedFields;
  const sentEntries: JsonValue | undefined = object.metadata.managedFields;
  if (kind.subresource !== '' || sentEntries === undefined) {
    return cachedOwners(stored) ?? (yield* decodeOrNone(stored));
  }
  if (Array.isArray(sentEntries) && sentEntries.length === 1 && isEmptyEntry(sentEntries[0]))
    return resetManaged;
  const isStored =
    size === 'large' ? yield* jsonEqualSteps(sentEntries, stored) : jsonEqual(sentEntries, stored);
  if (isStored) return yield* decodeOrNone(stored);
  const { managers, times } = yield* decodeOrNone(sentEntries);
  // Without the entries themselves, which a client may have written in another form.
  return managers.size === 0 ? yield* decodeOrNone(stored) : { managers, times };
}

/** No owners because the request reset them; its own changes are tracked nevertheless. */
const resetManaged: Managed = { managers: new Map(), times: new Map() };

const isEmptyEntry = (entry: JsonValue | undefined) =>
  isObject(entry) && Object.keys(entry).length === 0;

function* decodeOrNone(entries: JsonValue | undefined): Generator<void, Managed> {
  try {
    return yield* decodeManagedSteps(entries);
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
  // An object that is stored without owners has none until the first apply. A request that resets
  // the owners still owns its own changes, unlike in kube-apiserver (MF-3).
  const isUntracked = before.managers.size === 0 && before !== resetManaged;
  if (isUntracked && (live?.metadata.uid ?? '') !== '') return noManaged;
  // The owners in the request have been read. With the same list on both sides, neither object
  // needs a copy.
  if (isOfOneVersion(kind, before)) {
    jsonObject(object.metadata)['managedFields'] = live?.metadata.managedFields;
  }
  const owners = yield* takeChanges(kind, update, before);
  return areFew(owners) ? owners : yield* capUpdates(owners);
}

/** A temporary manager that owns the changes of the current write. */
const currentOperation = 'current-operation';

/** The owners after a write whose changes its manager takes over. */
export function* takeChanges(
  kind: TrackedKind,
  update: RecordedUpdate,
  before: Managed,
): Generator<void, Managed> {
  const { live, object, nowMs } = update;
  const managers = yield* updateManagers(portOf(kind, update.size), {
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
  // In this order the result is the previous set itself if nothing is new, so its encoding stays
  // cached.
  const set = previous === undefined ? taken.set : union(previous.set, taken.set);
  managers.set(identity, { ...taken, set });
  return { managers, times: new Map(before.times).set(identity, formatTime(nowMs)) };
}

type Operation = 'Apply' | 'Update';

/** The identities of managers of a kind by their names, memoized. */
const identitiesOf = new WeakMap<TrackedKind, Record<Operation, (name: string) => string>>();

/** The identity of a manager that writes through an endpoint. */
export function identityFor(kind: TrackedKind, name: string, operation: Operation): string {
  let identities = identitiesOf.get(kind);
  if (identities === undefined) {
    const { apiVersion, subresource } = kind;
    const of = (operation: Operation) =>
      memoized(
        (manager) =>
          identityOf({ manager: manager || 'unknown', operation, apiVersion, subresource }),
        { countMax: 256, lengthMax: Number.POSITIVE_INFINITY },
      );
    identities = { Apply: of('Apply'), Update: of('Update') };
    identitiesOf.set(kind, identities);
  }
  return identities[operation](name);
}

/** Removes fields without owners; undefined if nothing is left. */
export function strip(owned: VersionedSet | undefined): VersionedSet | undefined {
  if (owned === undefined) return undefined;
  const set = difference(owned.set, neverOwned);
  if (set === owned.set) return owned;
  return set.size === 0 ? undefined : { ...owned, set };
}

/** Sets an object's managedFields to owners, or to the live object's list if it is equivalent. */
export function* storeOwners(options: {
  readonly live: ApiObject | undefined;
  readonly object: ApiObject;
  readonly owners: Managed;
  /** The owners before the write, usually those of the live object. */
  readonly before: Managed;
  readonly size: 'large' | undefined;
}): Generator<void, void> {
  const { live, object, owners, before, size } = options;
  const stored = live?.metadata.managedFields;
  if (live !== undefined && stored !== undefined) {
    // Changed times alone are not a change (META-6).
    const mayBeSame = before.repeated !== true && sameOwners(owners, before);
    const isSame =
      mayBeSame &&
      (size === 'large'
        ? yield* sameButOwnersSteps(live, object)
        : isSameButOwners(live, object)) &&
      (before.entries === stored || sameOwners(owners, yield* decodeOrNone(stored)));
    if (isSame) {
      object.metadata.managedFields = stored;
      return;
    }
  }
  if (size === 'large') yield;
  const entries =
    size === 'large' ? yield* encodeManagedSteps(owners, before) : encodeManaged(owners, before);
  if (entries === undefined) delete object.metadata.managedFields;
  else object.metadata.managedFields = entries;
}

/** Whether two objects are equal except for their owners. */
export const isSameButOwners = (left: ApiObject, right: ApiObject): boolean =>
  jsonEqualExcept(left, right, 'metadata') &&
  jsonEqualExcept(left.metadata, right.metadata, 'managedFields');

/** `isSameButOwners` in steps. */
export function* sameButOwnersSteps(left: ApiObject, right: ApiObject): Generator<void, boolean> {
  return (
    (yield* jsonEqualExceptSteps(left, right, 'metadata')) &&
    (yield* jsonEqualExceptSteps(left.metadata, right.metadata, 'managedFields'))
  );
}

/**
 * A copy without managedFields that shares everything else. An undefined member counts as absent
 * and is faster than omitting it.
 */
export function withoutOwners(object: ApiObject): JsonObject {
  const { metadata } = object;
  if (metadata.managedFields === undefined) return object;
  return { ...object, metadata: { ...metadata, managedFields: undefined } };
}

/**
 * The object, without managedFields if owners use several versions. The live object and the new one
 * have the same list, which the comparison skips; only a conversion would copy it.
 */
export function comparable(kind: TrackedKind, object: ApiObject, before: Managed): JsonObject {
  return isOfOneVersion(kind, before) ? object : withoutOwners(object);
}

/** Whether all owners use the version of the request. */
function isOfOneVersion(kind: TrackedKind, { managers }: Managed): boolean {
  for (const { apiVersion } of managers.values()) if (apiVersion !== kind.apiVersion) return false;
  return true;
}

function typeFor(kind: TrackedKind, apiVersion: string): ValueType | undefined {
  const schema = kind.schemaFor(apiVersion);
  return schema === undefined ? undefined : resourceType(schema, kind.metadataSchema);
}

/** The types of requests' versions, which each write needs several times. */
const ownTypes = new WeakMap<TrackedKind, ValueType>();

function ownType(kind: TrackedKind): ValueType {
  const cachedType = ownTypes.get(kind);
  if (cachedType !== undefined) return cachedType;
  const type = typeFor(kind, kind.apiVersion);
  if (type === undefined) throw new Error(`no schema for ${kind.apiVersion}, Kind=${kind.kind}`);
  ownTypes.set(kind, type);
  return type;
}

/** An object in the version of the request. */
export function typedObject(kind: TrackedKind, value: JsonObject): TypedObject {
  return { value, type: ownType(kind), apiVersion: kind.apiVersion };
}

/** The live object in the version of the request; before a create, the zero object. */
export function typedLive(kind: TrackedKind, live: JsonObject | undefined): TypedObject {
  if (live !== undefined) return typedObject(kind, live);
  return typedObject(kind, zeroObject(kind.schemaFor(kind.apiVersion) ?? {}));
}

/** The conversions of one write, each cached. */
export function portOf(kind: TrackedKind, size: 'large' | undefined): UpdaterPort {
  let conversions: Map<JsonValue, Map<string, TypedObject | undefined>> | undefined;
  return {
    *convert(object, apiVersion) {
      if (object.apiVersion === apiVersion) return object;
      conversions ??= new Map();
      let byVersion = conversions.get(object.value);
      if (byVersion === undefined) {
        byVersion = new Map();
        conversions.set(object.value, byVersion);
      }
      if (!byVersion.has(apiVersion)) {
        byVersion.set(apiVersion, yield* convertTyped(kind, object, { apiVersion, size }));
      }
      return byVersion.get(apiVersion);
    },
    resetFor: (apiVersion) => kind.resetFor?.(apiVersion),
  };
}

/**
 * Converts and validates an object. Throws a StatusError 400 if it does not match the schema of the
 * version.
 */
function* convertTyped(
  kind: TrackedKind,
  object: TypedObject,
  to: { readonly apiVersion: string; readonly size: 'large' | undefined },
): Generator<void, TypedObject | undefined> {
  const { apiVersion, size } = to;
  const type = typeFor(kind, apiVersion);
  if (type === undefined || !isObject(object.value)) return undefined;
  const value = kind.convert(object.value, apiVersion);
  if (value === undefined) return undefined;
  try {
    // Stored objects may contain duplicates; converted ones must not, as in kube-apiserver.
    const options = { allowDuplicates: false };
    if (size === 'large') yield* validateTypedSteps(type, value, options);
    else validateTyped(type, value, options);
  } catch (error) {
    throw error instanceof TypedError ? badRequest(error.message) : error;
  }
  return { value, type, apiVersion };
}

const zeros = new WeakMap<Schema, JsonObject>();

/**
 * The state of an object before its creation. For a built-in kind it contains the members that are
 * always serialized, with their zero values, which is why a manager that creates a Deployment owns
 * `.spec.replicas` but not `.spec` itself. For a custom kind it is empty. The result is shared and
 * must not be modified.
 */
function zeroObject(schema: Schema): JsonObject {
  const at = resolved(schema);
  const cachedObject = zeros.get(at);
  if (cachedObject !== undefined) return cachedObject;
  const object = at.typed === true ? zeroStruct(at, 0) : {};
  zeros.set(at, object);
  return object;
}

/** Recursive structs use pointers or lists; this limit guards against a faulty schema. */
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
