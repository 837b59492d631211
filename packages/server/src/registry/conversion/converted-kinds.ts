import {
  apiVersionIn,
  type ObjectConverter,
  type ResourceDef,
  type VersionDef,
  versionNamed,
} from '@wheelhouse/kinds';
import {
  type ApiObject,
  andThen,
  appendAll,
  asApiObject,
  getOrMake,
  itemAt,
  type MaybePromise,
  paceFor,
  StatusError,
} from '@wheelhouse/machinery';
import { DecodeError, EmbeddedError } from '@wheelhouse/schema';
import { convertedStore, type Store, type StoredRecord } from '@wheelhouse/store';
import type { ResourceCache } from '../../watchcache/contract.ts';
import { type Entry, makeEntry, withoutRevision } from '../../watchcache/entry.ts';
import type { Target, WriteContext } from '../contract.ts';
import {
  decodedInSlices,
  decodeEntry,
  entryOf,
  indexOf,
  isMixed,
  objectIn,
  parsedAt,
  storedAt,
} from '../object-codec.ts';

/** An object could not be converted to another version; the client receives the message (CRD-4). */
export class ConversionFailure extends StatusError {
  constructor(message: string, cause?: unknown) {
    // kube-apiserver's conversion errors have no reason.
    super({ code: 500, reason: '', message, cause });
    this.name = 'ConversionFailure';
  }
}

/**
 * Objects of kinds with a conversion webhook (CRD-4): each is cached in its stored version, and
 * served in other versions as entries derived from it. For kinds without a converter these
 * functions return their input synchronously.
 */

const convertedKinds = new WeakMap<ResourceDef, Map<string, ResourceDef>>();

/**
 * The kind as if the version were its stored one, for converted entries. The kind itself if it has
 * no converter.
 */
export function convertedKind(def: ResourceDef, version: VersionDef): ResourceDef {
  const { form } = version;
  if (def.behavior.converter === undefined || form === undefined || form === def.storage)
    return def;
  return convertedKindAt(def, version);
}

function convertedKindAt(def: ResourceDef, version: VersionDef): ResourceDef {
  const byVersion = getOrMake(convertedKinds, def, () => new Map<string, ResourceDef>());
  return getOrMake(byVersion, version.version, () => ({
    ...def,
    storage: version.form ?? def.storage,
    convertedFrom: def,
  }));
}

/**
 * The kind whose cache serves watches of a version: all of its entries are in that version. Call it
 * only after the kind's own cache is loaded.
 */
export function watchedKind(def: ResourceDef, version: VersionDef): ResourceDef {
  const kind = convertedKind(def, version);
  return kind === def && isMixed(def) ? convertedKindAt(def, version) : kind;
}

/** The apiVersion of an entry's JSON. */
export function apiVersionOfEntry(def: ResourceDef, entry: Entry): string {
  return entry.index.apiVersion ?? def.storage.apiVersion;
}

/**
 * Waits until a cache is loaded, so that the stored versions of its objects are known. Rejects if
 * the store is unavailable.
 */
export async function whenLoaded(cache: ResourceCache): Promise<void> {
  await cache.get('', '0');
}

/** Whether all entries of a loaded cache are already in the version. */
export function isShownAsStored(def: ResourceDef, version: VersionDef): boolean {
  return convertedKind(def, version) === def && !isMixed(def);
}

/** Whether a webhook must convert an entry to a version. */
export function needsConversion(def: ResourceDef, version: VersionDef, entry: Entry): boolean {
  if (def.behavior.converter === undefined) return false;
  return apiVersionOfEntry(def, entry) !== apiVersionIn(def, version);
}

/** Whether a webhook must convert an object to the stored version. */
export function needsStoredForm(def: ResourceDef, object: ApiObject): boolean {
  return def.behavior.converter !== undefined && object.apiVersion !== def.storage.apiVersion;
}

/**
 * The target of a write. The server's own writes use the stored version, so that its housekeeping,
 * which concerns metadata, needs no webhook.
 */
export function targetOn(
  entry: Entry,
  { target, context }: { readonly target: Target; readonly context: WriteContext },
): Target {
  const { def, version } = target;
  if (context.origin !== 'server' || !needsConversion(def, version, entry)) return target;
  const own = versionNamed(def, apiVersionOfEntry(def, entry));
  return own === undefined ? target : { ...target, version: own };
}

/**
 * The maximum age of a webhook's answer: `recent` for lists and watches, which convert many
 * objects, or `now` for requests for one object. A conversion in progress is acceptable for both.
 */
export type AnswerAge = 'recent' | 'now';

/**
 * Milliseconds for which an answer is recent; short, so that fixing a webhook takes effect soon.
 */
const recentMs = 5000;

/** A converted entry and its time by the converter's clock; undefined while it is in progress. */
interface Form {
  readonly entry: MaybePromise<Entry>;
  readonly madeMs: number | undefined;
}

/** Converted entries by original entry and version, for as long as the original is referenced. */
const converted = new WeakMap<Entry, Map<string, Form>>();

const formsOf = (entry: Entry): Map<string, Form> =>
  getOrMake(converted, entry, () => new Map<string, Form>());

/**
 * An entry in a served version; the entry itself if it has that version. Rejects with a
 * StatusError.
 */
export function entryIn(
  def: ResourceDef,
  version: VersionDef,
  entry: Entry,
  age: AnswerAge = 'recent',
): MaybePromise<Entry> {
  if (!needsConversion(def, version, entry)) return entry;
  const forms = entriesIn(def, version, [entry], age);
  return forms instanceof Promise ? forms.then((all) => itemAt(all, 0)) : itemAt(forms, 0);
}

/**
 * Entries in a served version; those without a recent enough answer are converted with as few
 * reviews as possible. Synchronous if none is missing. Rejects with a StatusError if a conversion
 * fails.
 */
export function entriesIn(
  def: ResourceDef,
  version: VersionDef,
  entries: readonly Entry[],
  age: AnswerAge = 'recent',
): MaybePromise<readonly Entry[]> {
  const converter = def.behavior.converter;
  if (converter === undefined) return entries;
  const apiVersion = apiVersionIn(def, version);
  const oldestMs = age === 'now' ? Number.POSITIVE_INFINITY : converter.nowMs() - recentMs;
  const formOf = (entry: Entry) => {
    if (apiVersionOfEntry(def, entry) === apiVersion) return entry;
    const form = converted.get(entry)?.get(apiVersion);
    return form === undefined || (form.madeMs ?? oldestMs) < oldestMs ? undefined : form.entry;
  };
  const missing = [...new Set(entries.filter((entry) => formOf(entry) === undefined))];
  const formByEntry = new Map(entries.map((entry) => [entry, formOf(entry)]));
  const conversions = convertMissing({ def, version, converter, apiVersion }, missing);
  const conversionOf = new Map(missing.map((entry, at) => [entry, itemAt(conversions, at)]));
  const pending = entries.map(
    (entry) => formByEntry.get(entry) ?? conversionOf.get(entry) ?? entry,
  );
  const forms = pending.filter((form): form is Entry => !(form instanceof Promise));
  return forms.length === pending.length ? forms : Promise.all(pending);
}

interface Converting {
  readonly def: ResourceDef;
  readonly version: VersionDef;
  readonly converter: ObjectConverter;
  readonly apiVersion: string;
}

/** Starts to convert entries; concurrent requests share the result, and failures are not kept. */
function convertMissing(
  converting: Converting,
  entries: readonly Entry[],
): readonly Promise<Entry>[] {
  if (entries.length === 0) return [];
  const { apiVersion, converter } = converting;
  const all = convertEntries(converting, entries);
  return entries.map((entry, index) => {
    const forms = formsOf(entry);
    const conversion = all.then(
      (results) => {
        const form = itemAt(results, index);
        forms.set(apiVersion, { entry: form, madeMs: converter.nowMs() });
        return form;
      },
      (error: unknown) => {
        forms.delete(apiVersion);
        throw error;
      },
    );
    // The caller may stop waiting after the first failure.
    conversion.catch(() => {});
    forms.set(apiVersion, { entry: conversion, madeMs: undefined });
    return conversion;
  });
}

/** Limits of one conversion step: the objects that are decoded and sent in one review. */
const stepEntries = 500;
const stepBytes = 1024 * 1024;

/** Converts in steps, so that the decoded objects of only one step are in memory (TRUST-2). */
async function convertEntries(
  converting: Converting,
  entries: readonly Entry[],
): Promise<readonly Entry[]> {
  const forms: Entry[] = [];
  while (forms.length < entries.length) {
    appendAll(forms, await convertStep(converting, nextStep(entries, forms.length)));
  }
  return forms;
}

/** The entries of the step that starts at `from`: at least one. */
function nextStep(entries: readonly Entry[], from: number): readonly Entry[] {
  let end = from;
  let bytes = 0;
  do {
    bytes += entries[end]?.json.length ?? 0;
    end += 1;
    const next = entries[end];
    if (next === undefined || bytes + next.json.length > stepBytes) break;
  } while (end - from < stepEntries);
  return entries.slice(from, end);
}

async function convertStep(
  { def, version, converter, apiVersion }: Converting,
  entries: readonly Entry[],
): Promise<readonly Entry[]> {
  const paceOf = ({ json }: Entry) => converter.clock && paceFor(converter.clock, json.length);
  const before: ApiObject[] = [];
  for (const entry of entries) {
    const parsed = parsedAt(paceOf(entry), entry);
    if (parsed instanceof Promise) await parsed;
    before.push(storedObject(entry));
  }
  const objects = await converter.convert(before, apiVersion);
  const forms: Entry[] = [];
  for (const [at, object] of objects.entries()) {
    const entry = itemAt(entries, at);
    const pace = paceOf(entry);
    // Pruning is not divided.
    if (pace !== undefined) await pace.pause();
    prune(version, object);
    const { key, revision, createRevision } = entry;
    const index = { ...indexOf(version.form ?? def.storage, object), apiVersion };
    const encoded = storedAt(pace, object);
    const stored = encoded instanceof Promise ? await encoded : encoded;
    // The entry of a dry run has no version.
    if (revision === 0) forms.push({ ...entry, json: stored, index, memo: undefined });
    else forms.push(makeEntry({ key, stored, revision, createRevision, index }));
  }
  return forms;
}

/**
 * Prunes a webhook's object by its schema. Throws ConversionFailure if it does not fit.
 */
function prune(version: VersionDef | undefined, object: ApiObject): void {
  try {
    version?.prune?.(object);
  } catch (error) {
    const isMisfit = error instanceof EmbeddedError || error instanceof DecodeError;
    throw isMisfit ? new ConversionFailure(error.message, error) : error;
  }
}

/** The object of an entry as it is stored, without resourceVersion. */
function storedObject(entry: Entry): ApiObject {
  const object = decodeEntry(entry);
  delete object.metadata.resourceVersion;
  return object;
}

/** Decodes an entry in a served version. Throws or rejects with a StatusError. */
export function shownObject(
  { def, version }: { readonly def: ResourceDef; readonly version: VersionDef },
  entry: Entry,
  age: AnswerAge = 'now',
): MaybePromise<ApiObject> {
  const { converter } = def.behavior;
  if (converter === undefined) return objectIn(def, version, entry);
  const { clock } = converter;
  return andThen(entryIn(def, version, entry, age), (form) =>
    clock === undefined ? decodeEntry(form) : decodedInSlices(form, clock),
  );
}

/**
 * Converts an object to its stored version, without resourceVersion. Rejects with a StatusError.
 */
export function objectToStore(def: ResourceDef, object: ApiObject): Promise<ApiObject> {
  const { resourceVersion: _, ...metadata } = object.metadata;
  return objectAs(def, def.storage.apiVersion, { ...object, metadata });
}

/**
 * An object in another version: a new object, pruned by that version's schema, or the object itself
 * if it has the version. Rejects with a StatusError.
 */
export async function objectAs(
  def: ResourceDef,
  apiVersion: string,
  object: ApiObject,
): Promise<ApiObject> {
  const converter = def.behavior.converter;
  if (converter === undefined || object.apiVersion === apiVersion) return object;
  const [converted] = await converter.convert([object], apiVersion);
  const result = asApiObject(converted);
  prune(versionNamed(def, apiVersion), result);
  return result;
}

/**
 * The store as seen by the cache of one version's watches: all objects of a kind in that version.
 * Objects that the kind's own cache holds and that are already converted are not converted again.
 */
export function storeOfConverted(
  kind: ResourceDef,
  options: { readonly store: Store; readonly base: ResourceCache },
): Store {
  const { store, base } = options;
  const def = kind.convertedFrom;
  const version = def === undefined ? undefined : versionNamed(def, kind.storage.apiVersion);
  if (def === undefined || version === undefined)
    throw new Error(`${kind.resource} is not converted`);
  const entryFor = (record: StoredRecord): Entry => {
    const cached = base.peek(record.key.slice(def.storage.prefix.length));
    const entry = cached?.revision === record.modRevision ? cached : entryOf(def, record, store);
    if (entry === undefined) throw new Error(`${record.key} is no record`);
    return entry;
  };
  return convertedStore(store, (records): MaybePromise<readonly Buffer[]> => {
    return andThen(entriesIn(def, version, records.map(entryFor)), valuesOf);
  });
}

const valuesOf = (entries: readonly Entry[]) => entries.map(({ json }) => withoutRevision(json));
