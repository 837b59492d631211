import { parseWrittenJson } from '@wheelhouse/codec';
import { type ResourceDef, servesStoredForm, toStorage, versionNamed } from '@wheelhouse/kinds';
import { type ApiObject, jsonEqual, type MaybePromise } from '@wheelhouse/machinery';
import type { Entry, EntryIndex } from '../watchcache/contract.ts';
import { needsConverter, objectToStore } from './conversion/views.ts';
import { encodeStored, indexOf, objectKey, reshapeStored } from './object-codec.ts';
import { type Registry, storing } from './registry.ts';

/** An object on its way into the store. */
export interface StoredForm {
  readonly value: Buffer;
  /** What whoever reads the value is given: the value itself, unless it lacks defaults. */
  readonly shown: Buffer;
  /** What is shown, decoded. */
  readonly object: ApiObject;
  readonly index: EntryIndex;
}

/**
 * The form in which an object is stored. Where a webhook has to make it, defaults of the stored
 * version are not among what is stored, as upstream, though readers see them. Rejects with a
 * StatusError then.
 */
export function storedForm(def: ResourceDef, object: ApiObject): MaybePromise<StoredForm> {
  if (needsConverter(def, object)) return convertedForm(def, object);
  const stored = inStoredVersion(def, object);
  const value = encodeStored(stored);
  return { value, shown: value, object: stored, index: indexOf(def.storage, stored) };
}

/** An object that was judged in the request's version, converted in place to the stored one. */
export function inStoredVersion(def: ResourceDef, object: ApiObject): ApiObject {
  if (def.behavior.judgedIn === 'stored version') return object;
  const version = versionNamed(def, object.apiVersion);
  if (version === undefined) return object;
  return servesStoredForm(def, version) ? object : toStorage(def, version, object);
}

async function convertedForm(def: ResourceDef, object: ApiObject): Promise<StoredForm> {
  const value = encodeStored(await objectToStore(def, object));
  const { namespace = '', name = '' } = object.metadata;
  const key = def.storage.prefix + objectKey(namespace, name);
  const shown = reshapeStored(def, { key, value });
  const read = parseWrittenJson(shown) as ApiObject;
  return { value, shown, object: read, index: indexOf(def.storage, read) };
}

/** Entries whose stored value is known to be what their definition makes of it now. */
const present = new WeakSet<Entry>();

/** Records that the value of an entry has just been stored in the form that readers see. */
export function rememberPresent(def: ResourceDef, entry: Entry): void {
  if (def.behavior.reshapesStored) present.add(entry);
}

/**
 * Whether an object is stored in another form than its definition gives it now: an earlier
 * version, or without defaults that came later. The store is asked once for each entry at most.
 */
export async function isOutdated(
  registry: Pick<Registry, 'store'>,
  { def, entry }: { readonly def: ResourceDef; readonly entry: Entry },
): Promise<boolean> {
  if (present.has(entry)) return false;
  const key = def.storage.prefix + entry.key;
  const record = await storing(async () => registry.store.get(key));
  if (record === undefined || record.unreadable !== undefined) return false;
  if (record.modRevision !== entry.revision) return false;
  const shown = reshapeStored(def, record);
  const isSame = shown === record.value || jsonEqual(parsed(shown), parsed(record.value));
  if (isSame) present.add(entry);
  return !isSame;
}

const parsed = (value: Buffer) => parseWrittenJson(value);
