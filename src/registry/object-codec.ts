import { isObject, type JsonObject } from '../base/json.ts';
import type { ResourceDef, StorageDef, VersionDef } from '../catalogue/resource-def.ts';
import { encodeJson, encodeJsonBriefly, parseWrittenJson } from '../codec/json.ts';
import { StatusError } from '../meta/status.ts';
import { type ApiObject, apiVersionOf } from '../meta/types.ts';
import type { StoredRecord } from '../storage/contract.ts';
import type { Entry, EntryIndex } from '../watchcache/contract.ts';
import { makeEntry } from '../watchcache/entry.ts';
import { corruptObject } from '../watchcache/store-errors.ts';

/**
 * Between API objects and stored bytes. The stored form is the storage version's JSON with
 * `apiVersion`, `kind`, `metadata` first and without resourceVersion, which the store gives.
 */

/** A deep copy that shares nothing with the entry. */
export function decodeEntry(entry: Entry): ApiObject {
  return parseWrittenJson(entry.json) as ApiObject;
}

/** Canonical bytes of an object in its storage version. */
export function encodeStored(object: ApiObject): Buffer {
  // Members that are undefined are not written, and left out more quickly than taken out.
  const metadata = { ...object.metadata, resourceVersion: undefined };
  if (beginsAsStored(object)) return encodeJsonBriefly({ ...object, metadata });
  const { apiVersion, kind, metadata: _, ...rest } = object;
  return encodeJsonBriefly({ apiVersion, kind, metadata, ...rest });
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

/** What lists and watches look at, read off an object in its storage version. */
export function indexOf(storage: StorageDef, object: ApiObject): EntryIndex {
  const { metadata } = object;
  return {
    name: metadata.name ?? '',
    namespace: metadata.namespace ?? '',
    uid: metadata.uid ?? '',
    labels: metadata.labels ?? {},
    fields: storage.fieldsOf?.(object) ?? {},
    ownerUids: (metadata.ownerReferences ?? []).map((owner) => owner.uid),
    deleting: metadata.deletionTimestamp !== undefined,
  };
}

/** Key below the storage prefix. */
export function objectKey(namespace: string, name: string): string {
  return namespace === '' ? name : `${namespace}/${name}`;
}

/**
 * Converts a request-version object in place to the stored version; returns it. A custom kind's
 * object then gets the form that version's schema has, as upstream.
 */
export function toStorage(def: ResourceDef, version: VersionDef, object: ApiObject): ApiObject {
  const converted = version.toStorage?.(object) ?? object;
  converted.apiVersion = def.storage.apiVersion;
  converted.kind = def.storage.kind;
  if (def.custom !== undefined && !servesStoredForm(def, version)) {
    storedVersionOf(def)?.decode?.(converted);
  }
  return converted;
}

/**
 * Throws 500 where a kind's objects only become another version by a webhook: none is called, and to
 * pass them off as what they are not would lose what they hold. `apiVersion` is what they have now.
 */
export function requireConversion(def: ResourceDef, apiVersion = ''): void {
  if (def.custom?.conversion !== 'Webhook') return;
  const why = 'conversion webhooks are not called by this server';
  const message = `conversion webhook for ${apiVersion}, Kind=${def.kind} failed: ${why}`;
  throw new StatusError({ code: 500, reason: '', message });
}

/** Converts a stored-version object in place to a served version; returns it. */
export function fromStorage(def: ResourceDef, version: VersionDef, object: ApiObject): ApiObject {
  const converted = version.fromStorage?.(object) ?? object;
  converted.apiVersion = apiVersionOf({ group: def.group, version: version.version });
  converted.kind = def.kind;
  if (def.custom !== undefined && !servesStoredForm(def, version)) version.decode?.(converted);
  return converted;
}

function storedVersionOf(def: ResourceDef): VersionDef | undefined {
  const { group, storage } = def;
  return def.versions.find(
    ({ version }) => apiVersionOf({ group, version }) === storage.apiVersion,
  );
}

/**
 * What a custom object stored earlier is by the definition as it is now: of the storage version,
 * pruned and defaulted by its schema. The same bytes when nothing differs.
 */
export function reshapeStored(def: ResourceDef, value: Buffer): Buffer {
  const object = parseWrittenJson(value) as ApiObject;
  if (object.apiVersion !== def.storage.apiVersion) requireConversion(def, object.apiVersion);
  object.apiVersion = def.storage.apiVersion;
  object.kind = def.storage.kind;
  storedVersionOf(def)?.decode?.(object);
  const reshaped = encodeStored(object);
  return reshaped.equals(value) ? value : reshaped;
}

/** True when entries' bytes are already what this version serves. */
export function servesStoredForm(def: ResourceDef, version: VersionDef): boolean {
  return (
    def.storage.kind === def.kind &&
    def.storage.apiVersion === apiVersionOf({ group: def.group, version: version.version })
  );
}

/** The entry's JSON in a served version; the cached bytes themselves when that is the stored one. */
export function jsonIn(def: ResourceDef, version: VersionDef, entry: Entry): Buffer {
  if (servesStoredForm(def, version)) return entry.json;
  const memoKey = `${def.group}/${version.version};json`;
  const known = entry.memo?.get(memoKey);
  if (known !== undefined) return known;
  const bytes = encodeJson(objectIn(def, version, entry));
  entry.memo ??= new Map();
  entry.memo.set(memoKey, bytes);
  return bytes;
}

/** A fresh decoded object in a served version. */
export function objectIn(def: ResourceDef, version: VersionDef, entry: Entry): ApiObject {
  return fromStorage(def, version, decodeEntry(entry));
}

/** Narrows decoded JSON to an object with a metadata object, adding an empty one if absent. */
export function asApiObject(value: JsonObject): ApiObject {
  if (!isObject(value.metadata)) value.metadata = {};
  return value as ApiObject;
}

/** The entry of a record as the store gave it; undefined for an absent one. */
export function entryOf(def: ResourceDef, record: StoredRecord | undefined): Entry | undefined {
  if (record === undefined) return undefined;
  const { modRevision, createRevision, unreadable } = record;
  if (unreadable !== undefined) {
    const problem = `data from the storage is not transformable revision=0: ${unreadable}`;
    throw corruptObject({ storeKey: record.key, problem });
  }
  const value = def.custom === undefined ? record.value : reshapeStored(def, record.value);
  const object = parseWrittenJson(value) as ApiObject;
  return makeEntry({
    key: record.key.slice(def.storage.prefix.length),
    stored: value,
    revision: modRevision,
    createRevision,
    index: indexOf(def.storage, object),
  });
}
