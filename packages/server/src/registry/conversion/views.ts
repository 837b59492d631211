import {
  type ObjectConverter,
  type ResourceDef,
  type VersionDef,
  versionNamed,
} from '@wheelhouse/kinds';
import {
  type ApiObject,
  apiVersionOf,
  appendAll,
  asApiObject,
  itemAt,
  type MaybePromise,
  StatusError,
} from '@wheelhouse/machinery';
import { DecodeError, EmbeddedError } from '@wheelhouse/schema';
import { convertedStore, type Store, type StoredRecord } from '@wheelhouse/store';
import type { ResourceCache } from '../../watchcache/contract.ts';
import { type Entry, makeEntry, withoutRevision } from '../../watchcache/entry.ts';
import type { Target, WriteContext } from '../contract.ts';
import { decodeEntry, encodeStored, entryOf, indexOf, isMixed, objectIn } from '../object-codec.ts';

/** An object could not be had in another version; the message is told to the client (CRD-4). */
export class ConversionFailure extends StatusError {
  constructor(message: string, cause?: unknown) {
    // Upstream's errors of conversion have no reason.
    super({ code: 500, reason: '', message, cause });
    this.name = 'ConversionFailure';
  }
}

/**
 * Objects of kinds whose versions somebody outside converts (CRD-4): each is held in the version it
 * was stored in, and shown in others by entries made of it. Kinds without a converter pass through
 * here as they are, at once.
 */

const views = new WeakMap<ResourceDef, Map<string, ResourceDef>>();

/**
 * The kind as if the version were its stored one: what converted entries are shown by. The kind
 * itself where nobody has to convert.
 */
export function viewOf(def: ResourceDef, version: VersionDef): ResourceDef {
  const { form } = version;
  if (def.behavior.converter === undefined || form === undefined || form === def.storage)
    return def;
  return viewAt(def, version);
}

function viewAt(def: ResourceDef, version: VersionDef): ResourceDef {
  let byVersion = views.get(def);
  if (byVersion === undefined) {
    byVersion = new Map();
    views.set(def, byVersion);
  }
  const cached = byVersion.get(version.version);
  if (cached !== undefined) return cached;
  const view: ResourceDef = { ...def, storage: version.form ?? def.storage, viewOf: def };
  byVersion.set(version.version, view);
  return view;
}

/**
 * The kind whose cache watches of a version are served from: all of its entries are in that
 * version. To be asked once the kind's own cache is loaded.
 */
export function watchedKind(def: ResourceDef, version: VersionDef): ResourceDef {
  const view = viewOf(def, version);
  return view === def && isMixed(def) ? viewAt(def, version) : view;
}

/** The version that an entry's JSON has. */
export function apiVersionOfEntry(def: ResourceDef, entry: Entry): string {
  return entry.index.apiVersion ?? def.storage.apiVersion;
}

const servedVersion = (def: ResourceDef, { version }: VersionDef) =>
  apiVersionOf({ group: def.group, version });

/**
 * Waits until a cache is loaded, and with it is known in which versions objects are stored. Rejects
 * where the store does not serve.
 */
export async function whenLoaded(cache: ResourceCache): Promise<void> {
  await cache.get('', '0');
}

/** Whether all entries of a loaded cache are in the version already. */
export function isShownAsStored(def: ResourceDef, version: VersionDef): boolean {
  return viewOf(def, version) === def && !isMixed(def);
}

/** Whether somebody outside must make of an entry what a version shows. */
export function needsConversion(def: ResourceDef, version: VersionDef, entry: Entry): boolean {
  if (def.behavior.converter === undefined) return false;
  return apiVersionOfEntry(def, entry) !== servedVersion(def, version);
}

/** Whether somebody outside must make of an object what is stored. */
export function needsConverter(def: ResourceDef, object: ApiObject): boolean {
  return def.behavior.converter !== undefined && object.apiVersion !== def.storage.apiVersion;
}

/**
 * What a write is about. The server itself works on an object in the version it is stored in, so
 * that its housekeeping, which is about metadata, needs nobody outside.
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
 * How old a webhook's answer may be: `recent`, as lists and watches take it, which ask for many
 * objects at a time, or `now`, for whoever asks for one object. Answers under way are as good.
 */
export type AnswerAge = 'recent' | 'now';

/** For how long an answer is recent, in milliseconds: who corrects a webhook sees it soon. */
const recentMs = 5000;

/** What a webhook made of an entry, and when, by the converter's clock; undefined: under way. */
interface Form {
  readonly entry: MaybePromise<Entry>;
  readonly madeMs: number | undefined;
}

/** What entries became in other versions, while these are held by anybody. */
const converted = new WeakMap<Entry, Map<string, Form>>();

function knownForms(entry: Entry): Map<string, Form> {
  let forms = converted.get(entry);
  if (forms === undefined) {
    forms = new Map();
    converted.set(entry, forms);
  }
  return forms;
}

/** An entry in a served version: itself where it is that. Rejects with a StatusError. */
export function entryIn(
  def: ResourceDef,
  version: VersionDef,
  entry: Entry,
  age: AnswerAge = 'recent',
): MaybePromise<Entry> {
  if (!needsConversion(def, version, entry)) return entry;
  const made = entriesIn(def, version, [entry], age);
  return made instanceof Promise ? made.then((forms) => itemAt(forms, 0)) : itemAt(made, 0);
}

/**
 * Entries in a served version, those without an answer of that age made by as few reviews as
 * possible; at once where all are known. Rejects with a StatusError when one of them cannot be had.
 */
export function entriesIn(
  def: ResourceDef,
  version: VersionDef,
  entries: readonly Entry[],
  age: AnswerAge = 'recent',
): MaybePromise<readonly Entry[]> {
  const converter = def.behavior.converter;
  if (converter === undefined) return entries;
  const wanted = servedVersion(def, version);
  const oldestMs = age === 'now' ? Number.POSITIVE_INFINITY : converter.nowMs() - recentMs;
  const formOf = (entry: Entry) => {
    if (apiVersionOfEntry(def, entry) === wanted) return entry;
    const form = converted.get(entry)?.get(wanted);
    return form === undefined || (form.madeMs ?? oldestMs) < oldestMs ? undefined : form.entry;
  };
  const missing = [...new Set(entries.filter((entry) => formOf(entry) === undefined))];
  const formByEntry = new Map(entries.map((entry) => [entry, formOf(entry)]));
  const made = convertMissing({ def, version, converter, wanted }, missing);
  const madeByEntry = new Map(missing.map((entry, at) => [entry, itemAt(made, at)]));
  const pending = entries.map((entry) => formByEntry.get(entry) ?? madeByEntry.get(entry) ?? entry);
  const forms = pending.filter((form): form is Entry => !(form instanceof Promise));
  return forms.length === pending.length ? forms : Promise.all(pending);
}

interface Converting {
  readonly def: ResourceDef;
  readonly version: VersionDef;
  readonly converter: ObjectConverter;
  readonly wanted: string;
}

/** Begins to convert entries, for whoever asks for them meanwhile; a failure is not kept. */
function convertMissing(
  converting: Converting,
  entries: readonly Entry[],
): readonly Promise<Entry>[] {
  if (entries.length === 0) return [];
  const { wanted, converter } = converting;
  const all = convertEntries(converting, entries);
  return entries.map((entry, index) => {
    const forms = knownForms(entry);
    const one = all.then(
      (made) => {
        const form = itemAt(made, index);
        forms.set(wanted, { entry: form, madeMs: converter.nowMs() });
        return form;
      },
      (error: unknown) => {
        forms.delete(wanted);
        throw error;
      },
    );
    // Somebody may not wait for each of them.
    one.catch(() => {});
    forms.set(wanted, { entry: one, madeMs: undefined });
    return one;
  });
}

/** What is decoded at a time, and sent in one review. */
const stepEntries = 500;
const stepBytes = 1024 * 1024;

/** Converts step by step, so that decoded objects of one step at most are in memory (TRUST-2). */
async function convertEntries(
  converting: Converting,
  entries: readonly Entry[],
): Promise<readonly Entry[]> {
  const made: Entry[] = [];
  while (made.length < entries.length) {
    appendAll(made, await convertStep(converting, nextStep(entries, made.length)));
  }
  return made;
}

/** The entries from `from` on that one step takes: one at least. */
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
  { def, version, converter, wanted }: Converting,
  entries: readonly Entry[],
): Promise<readonly Entry[]> {
  const objects = await converter.convert(entries.map(storedObject), wanted);
  return objects.map((object, at) => {
    prune(version, object);
    const entry = itemAt(entries, at);
    const { key, revision, createRevision } = entry;
    const index = { ...indexOf(version.form ?? def.storage, object), apiVersion: wanted };
    const stored = encodeStored(object);
    // A dry run's has no version.
    if (revision === 0) return { ...entry, json: stored, index, memo: undefined };
    return makeEntry({ key, stored, revision, createRevision, index });
  });
}

/**
 * Gives what a webhook made the form its schema has. Throws ConversionFailure where it has none.
 */
function prune(version: VersionDef | undefined, object: ApiObject): void {
  try {
    version?.prune?.(object);
  } catch (error) {
    const isMisfit = error instanceof EmbeddedError || error instanceof DecodeError;
    throw isMisfit ? new ConversionFailure(error.message, error) : error;
  }
}

/** As it is stored: its version is not in it. */
function storedObject(entry: Entry): ApiObject {
  const object = decodeEntry(entry);
  delete object.metadata.resourceVersion;
  return object;
}

/** A fresh decoded object of an entry in a served version. Throws or rejects with a StatusError. */
export function shownObject(
  { def, version }: { readonly def: ResourceDef; readonly version: VersionDef },
  entry: Entry,
  age: AnswerAge = 'now',
): MaybePromise<ApiObject> {
  if (def.behavior.converter === undefined) return objectIn(def, version, entry);
  const found = entryIn(def, version, entry, age);
  return found instanceof Promise ? found.then(decodeEntry) : decodeEntry(found);
}

/**
 * An object as it is to be stored: in another version, and without its own of the store's versions.
 */
export function objectToStore(def: ResourceDef, object: ApiObject): Promise<ApiObject> {
  const { resourceVersion: _, ...metadata } = object.metadata;
  return objectAs(def, def.storage.apiVersion, { ...object, metadata });
}

/**
 * An object in another version: a new one, and pruned by that version's schema. The object itself
 * where it has the version. Rejects with a StatusError.
 */
export async function objectAs(
  def: ResourceDef,
  apiVersion: string,
  object: ApiObject,
): Promise<ApiObject> {
  const converter = def.behavior.converter;
  if (converter === undefined || object.apiVersion === apiVersion) return object;
  const [made] = await converter.convert([object], apiVersion);
  const result = asApiObject(made);
  prune(versionNamed(def, apiVersion), result);
  return result;
}

/**
 * The store as the cache of one version's watches reads it: all objects of a kind in that version.
 * What the kind's own cache has, and others have had converted, is not converted again.
 */
export function viewStore(
  view: ResourceDef,
  options: { readonly store: Store; readonly base: ResourceCache },
): Store {
  const { store, base } = options;
  const def = view.viewOf;
  const version = def === undefined ? undefined : versionNamed(def, view.storage.apiVersion);
  if (def === undefined || version === undefined) throw new Error(`${view.resource} is no view`);
  const entryFor = (record: StoredRecord): Entry => {
    const cached = base.peek(record.key.slice(def.storage.prefix.length));
    const entry = cached?.revision === record.modRevision ? cached : entryOf(def, record);
    if (entry === undefined) throw new Error(`${record.key} is no record`);
    return entry;
  };
  return convertedStore(store, (records): MaybePromise<readonly Buffer[]> => {
    const shown = entriesIn(def, version, records.map(entryFor));
    return shown instanceof Promise ? shown.then(valuesOf) : valuesOf(shown);
  });
}

const valuesOf = (entries: readonly Entry[]) => entries.map(({ json }) => withoutRevision(json));
