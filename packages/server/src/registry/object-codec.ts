import {
  encodeJson,
  encodeJsonBriefly,
  encodeJsonSteps,
  parseAhead,
  parseWrittenJson,
  parseWrittenText,
} from '@wheelhouse/codec';
import {
  fromStorage,
  type ResourceDef,
  type StorageDef,
  servesStoredForm,
  type VersionDef,
  versionNamed,
} from '@wheelhouse/kinds';
import {
  type ApiObject,
  asApiObject,
  type Clock,
  isObject,
  type JsonObject,
  type JsonValue,
  type MaybePromise,
  type Pace,
  paceFor,
  runAtPace,
  runInOnePiece,
  Slices,
  textOf,
} from '@wheelhouse/machinery';
import { type Store, type StoredRecord, shownKey } from '@wheelhouse/store';
import {
  type Entry,
  type EntryIndex,
  keepEncoding,
  locateMetadata,
  makeEntry,
} from '../watchcache/entry.ts';
import { problemOf } from '../watchcache/loader.ts';
import { corruptObject } from '../watchcache/store-errors.ts';

/**
 * Converts between API objects and stored bytes. The stored form is JSON in the storage version,
 * with `apiVersion`, `kind`, and `metadata` first and without resourceVersion, which the store
 * assigns.
 */

/** Decodes an entry into an object that shares nothing with it. */
export function decodeEntry(entry: Entry): ApiObject {
  return asApiObject(parseWrittenJson(entry.json));
}

/**
 * Parses an entry at a pace, after which its next decoding takes little time (TRUST-2). Does nothing
 * without a pace, which `paceFor` does not give a small entry.
 */
export function parsedAt(pace: Pace | undefined, entry: Entry): MaybePromise<void> {
  return pace === undefined ? undefined : runAtPace(parseAhead(entry.json), pace);
}

/** `decodeEntry` at the pace of a large entry; a promise only if there is one. */
export function decodedAt(pace: Pace | undefined, entry: Entry): MaybePromise<ApiObject> {
  const parsed = parsedAt(pace, entry);
  return parsed instanceof Promise ? parsed.then(() => decodeEntry(entry)) : decodeEntry(entry);
}

/** Decodes an entry, in slices if it is large (TRUST-2); otherwise without a promise. */
export function decodedInSlices(
  entry: Entry,
  clock: Pick<Clock, 'monotonic'>,
): MaybePromise<ApiObject> {
  return decodedAt(paceFor(clock, entry.json.length), entry);
}

/** Decodes entries one after the other, in slices (TRUST-2): a namespace may have thousands. */
export async function* decodedEntries(
  entries: Iterable<Entry>,
  clock: Pick<Clock, 'monotonic'>,
): AsyncGenerator<ApiObject, void> {
  const slices = new Slices(clock);
  for (const entry of entries) {
    if (slices.over) await slices.pause();
    yield decodedInSlices(entry, clock);
  }
}

/** Decodes only the metadata of a small entry, without managed fields. */
function decodeMetadata(entry: Entry): ApiObject['metadata'] {
  const text = entry.json.toString('utf8');
  const { start, end, managedStart, managedEnd } = locateMetadata(text);
  const shown = text.slice(start, managedStart) + text.slice(managedEnd, end);
  return parseWrittenText(shown) as ApiObject['metadata'];
}

/** Decodes an entry's metadata, in slices if the entry is large (TRUST-2). */
export async function metadataOf(
  entry: Entry,
  clock: Pick<Clock, 'monotonic'>,
): Promise<ApiObject['metadata']> {
  const pace = paceFor(clock, entry.json.length);
  return pace === undefined ? decodeMetadata(entry) : (await decodedAt(pace, entry)).metadata;
}

/** Canonical bytes of an object in its storage version. */
export function encodeStored(object: ApiObject): Buffer {
  return withoutVersion(object, () => {
    if (beginsAsStored(object)) return encodeJsonBriefly(object);
    const { apiVersion, kind, metadata, ...rest } = object;
    return encodeJsonBriefly({ apiVersion, kind, metadata, ...rest });
  });
}

/** `encodeStored` at the pace of a large object. */
export function storedAt(pace: Pace | undefined, object: ApiObject): MaybePromise<Buffer> {
  return pace === undefined ? encodeStored(object) : runAtPace(encodeStoredSteps(object), pace);
}

/** Does the work of `encodeStored` in steps. */
export function encodeStoredSteps(object: ApiObject): Generator<void, Buffer> {
  const { apiVersion, kind, metadata, ...rest } = object;
  const bare: JsonObject = { ...metadata, resourceVersion: undefined };
  return encodeJsonSteps({ apiVersion, kind, metadata: bare, ...rest });
}

/** Encodes an object without its resourceVersion, which the store assigns. */
export function withoutVersion(object: ApiObject, encode: () => Buffer): Buffer {
  const metadata: JsonObject = object.metadata;
  const { resourceVersion } = metadata;
  if (resourceVersion === undefined) return encode();
  // Undefined members are not encoded; hiding the member for a moment is faster than a copy.
  metadata.resourceVersion = undefined;
  try {
    return encode();
  } finally {
    metadata.resourceVersion = resourceVersion;
  }
}

const firstMembers = ['apiVersion', 'kind', 'metadata'];

function beginsAsStored(object: ApiObject): boolean {
  let at = 0;
  for (const name in object) {
    if (name !== firstMembers[at]) return false;
    at += 1;
    if (at === firstMembers.length) return true;
  }
  return false;
}

/** The index of an object in its storage version, which lists and watches filter by. */
export function indexOf(storage: StorageDef, object: ApiObject): EntryIndex {
  const { metadata } = object;
  const index: EntryIndex = {
    name: metadata.name ?? '',
    namespace: metadata.namespace ?? '',
    uid: metadata.uid ?? '',
    labels: metadata.labels ?? {},
    fields: storage.fieldsOf?.(object) ?? {},
    ownerUids: (metadata.ownerReferences ?? []).map((owner) => owner.uid),
    deleting: metadata.deletionTimestamp !== undefined,
  };
  const { apiVersion } = object;
  return apiVersion === storage.apiVersion ? index : { ...index, apiVersion };
}

/** The entry of a dry run, which has no revision. */
export function dryEntry(options: {
  readonly key: string;
  readonly value: Buffer;
  readonly index: EntryIndex;
}): Entry {
  return {
    key: options.key,
    revision: 0,
    createRevision: 0,
    json: options.value,
    index: options.index,
    memo: undefined,
  };
}

/** An object's key below the storage prefix. */
export function objectKey(namespace: string, name: string): string {
  // `join` creates a flat string; a template would create a rope, which compares slowly.
  return namespace === '' ? name : [namespace, name].join('/');
}

/**
 * Brings a stored custom object up to date with its current definition: in the storage version (or
 * its own version, if a webhook converts), pruned and defaulted by its schema, without metadata of
 * the wrong type. Returns the same buffer if nothing differs.
 *
 * @param record.key the store's key, which supplies a missing name and namespace
 */
export function refreshStored(
  def: ResourceDef,
  record: { readonly key: string; readonly value: Buffer },
): Buffer {
  const { value } = record;
  const refreshed = encodeStored(refreshedObject(def, record));
  return refreshed.equals(value) ? value : refreshed;
}

/** Does the work of `refreshStored` in steps, and parses the result ahead (TRUST-2). */
export function* refreshSteps(
  def: ResourceDef,
  record: { readonly key: string; readonly value: Buffer },
): Generator<void, Buffer> {
  const { value } = record;
  yield* parseAhead(value);
  const object = refreshedObject(def, record);
  yield;
  const refreshed = yield* encodeStoredSteps(object);
  const result = refreshed.equals(value) ? value : refreshed;
  yield* parseAhead(result);
  return result;
}

function refreshedObject(
  def: ResourceDef,
  { key, value }: { readonly key: string; readonly value: Buffer },
): ApiObject {
  const object = parseWrittenJson(value);
  if (!isObject(object)) throw new Error('the stored value is not an object');
  // With a conversion webhook the object keeps its version and is converted on demand.
  const { storage } = def;
  if (def.behavior.converter === undefined) object.apiVersion = storage.apiVersion;
  else if (object.apiVersion !== storage.apiVersion) mixed.add(def);
  object.kind = storage.kind;
  // A removed version has no schema, but all versions have the same metadata.
  const decode = versionNamed(def, textOf(object.apiVersion))?.decode;
  const dropsMistyped = true;
  if (decode !== undefined) decode(object, { dropsMistyped });
  else {
    const { metadata = {} } = object;
    const bare = { metadata };
    def.versions[0]?.decode?.(bare, { dropsMistyped });
    object.metadata = bare.metadata;
  }
  const found = asApiObject(object);
  fillIdentity(found, key.slice(storage.prefix.length));
  return found;
}

/** Fills in name, namespace, and generation, which old custom objects may lack. */
function fillIdentity({ metadata }: ApiObject, key: string): void {
  const slash = key.indexOf('/');
  if ((metadata.name ?? '') === '') metadata.name = key.slice(slash + 1);
  if ((metadata.namespace ?? '') === '' && slash > 0) metadata.namespace = key.slice(0, slash);
  if ((metadata.generation ?? 0) === 0) metadata.generation = 1;
}

const mixed = new WeakSet<ResourceDef>();

/**
 * Whether objects of a kind were found in the store in another version than the storage version.
 */
export const isMixed = (def: ResourceDef): boolean => mixed.has(def);

/**
 * The entry's JSON in a served version; the cached bytes themselves if that is the stored version.
 */
export function jsonIn(def: ResourceDef, version: VersionDef, entry: Entry): Buffer {
  if (servesStoredForm(def, version)) return entry.json;
  const memoKey = memoKeyOf(def, version);
  const cached = entry.memo?.get(memoKey);
  return cached ?? keepEncoding(entry, memoKey, encodeJson(objectIn(def, version, entry)));
}

const memoKeyOf = (def: ResourceDef, { version }: VersionDef) => `${def.group}/${version};json`;

/** Computes `jsonIn` of a large entry in steps, unless it is already kept with the entry. */
export function* jsonAhead(
  def: ResourceDef,
  version: VersionDef,
  entry: Entry,
): Generator<void, void> {
  const memoKey = memoKeyOf(def, version);
  if (servesStoredForm(def, version) || entry.memo?.has(memoKey) === true) return;
  yield* parseAhead(entry.json);
  const object = objectIn(def, version, entry);
  yield;
  keepEncoding(entry, memoKey, yield* encodeJsonSteps(object));
}

/** A fresh decoded object in a served version. */
export function objectIn(def: ResourceDef, version: VersionDef, entry: Entry): ApiObject {
  return fromStorage(def, version, decodeEntry(entry));
}

/** The entry of a stored record; undefined for an absent one. */
export function entryOf(
  def: ResourceDef,
  record: StoredRecord | undefined,
  store: KeyNames,
): Entry | undefined {
  return record === undefined ? undefined : runInOnePiece(entrySteps(def, record, store));
}

/** The store of a record, which names its keys in messages. */
type KeyNames = Pick<Store, 'shownKey'>;

/** `entryOf` in steps, for a record that exists. */
export function* entrySteps(
  def: ResourceDef,
  record: StoredRecord,
  store: KeyNames,
): Generator<void, Entry> {
  const { modRevision, createRevision } = record;
  const problem = problemOf({ ...record, revision: modRevision });
  if (problem !== undefined) {
    throw corruptObject({ storeKey: shownKey(store, record.key), problem });
  }
  const value = def.behavior.refreshesStored ? yield* refreshSteps(def, record) : record.value;
  yield* parseAhead(value);
  const object = asApiObject(parseWrittenJson(value));
  return makeEntry({
    key: record.key.slice(def.storage.prefix.length),
    stored: value,
    revision: modRevision,
    createRevision,
    index: indexOf(def.storage, object),
  });
}

/**
 * Maximum bytes of JSON of all kept objects, and of a single one; decoded objects take two to three
 * times as much.
 */
const decodedBytesMax = 2 * 1024 * 1024;
const objectBytesMax = 64 * 1024;

/** An entry and the object that it encodes. */
interface DecodedEntry {
  readonly entry: Entry;
  readonly object: ApiObject;
}

/**
 * Recently written objects in decoded form, by store key: a writer usually writes an object again,
 * and then need not decode it. The objects are shared and must not be modified.
 */
export interface DecodedObjects {
  /** The decoded object of an entry; decodes it unless it is kept. */
  of(storeKey: string, entry: Entry): ApiObject;
  /** Keeps an object that has just been written. Its writer must no longer modify it. */
  keep(storeKey: string, decoded: DecodedEntry): void;
}

/** @param options.form `frozen`: kept objects are frozen, so that tests detect modifications */
export function createDecodedObjects(options: {
  readonly form: 'plain' | 'frozen';
}): DecodedObjects {
  const kept = new Map<string, DecodedEntry>();
  let bytes = 0;
  const drop = (storeKey: string, { entry }: DecodedEntry) => {
    kept.delete(storeKey);
    bytes -= entry.json.length;
  };
  return {
    of(storeKey, entry) {
      const found = kept.get(storeKey);
      return found?.entry === entry ? found.object : decodeEntry(entry);
    },
    keep(storeKey, decoded) {
      const before = kept.get(storeKey);
      if (before !== undefined) drop(storeKey, before);
      const { length } = decoded.entry.json;
      if (length > objectBytesMax) return;
      if (options.form === 'frozen') freeze(decoded.object);
      kept.set(storeKey, decoded);
      bytes += length;
      if (bytes <= decodedBytesMax) return;
      for (const [oldestKey, oldest] of kept) {
        if (bytes <= decodedBytesMax) break;
        drop(oldestKey, oldest);
      }
    },
  };
}

function freeze(value: JsonValue | undefined): void {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return;
  Object.freeze(value);
  for (const part of Object.values(value)) freeze(part);
}
