import { type ApiObject, isInSlab, Slab } from '@wheelhouse/machinery';
import type { Revision } from '@wheelhouse/store';

/** What lists and watches need to know of an object without decoding it. */
export interface EntryIndex {
  readonly name: string;
  /** Empty for cluster-scoped kinds. */
  readonly namespace: string;
  readonly uid: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Selectable fields other than `metadata.name` and `metadata.namespace`. */
  readonly fields: Readonly<Record<string, string>>;
  readonly ownerUids: readonly string[];
  /** `metadata.deletionTimestamp` is set. */
  readonly deleting?: boolean;
  /** The object's version, where it is not that which the kind's objects are stored in now. */
  readonly apiVersion?: string;
}

/**
 * One object at one revision. `json` is the canonical storage-version JSON with `resourceVersion`
 * spliced in: what a GET writes to the socket. Immutable but for `memo`, and for where in memory
 * the bytes of `json` lie.
 */
export interface Entry {
  /** `<namespace>/<name>`, or `<name>` for cluster-scoped kinds. */
  readonly key: string;
  readonly revision: Revision;
  readonly createRevision: Revision;
  json: Buffer;
  readonly index: EntryIndex;
  /** Other encodings of the same object (`v1beta1;json`, `v1;yaml`, …), made on demand, once. */
  memo: Map<string, Buffer> | undefined;
}

/**
 * Passed as `PutRequest.hint`: the index of the object that the value encodes, and by which storage
 * definition it was written, which may be an older one than its readers go by.
 */
export class EntryHint {
  readonly index: EntryIndex;
  readonly form: unknown;
  /** What this process's cache has made of the write, once it has seen it. */
  entry: Entry | undefined = undefined;
  /**
   * The object that the value encodes, for a store that keeps another encoding: only while the put
   * is being started, since its writer goes on to change it.
   */
  object: ApiObject | undefined;
  constructor(index: EntryIndex, form?: unknown, object?: ApiObject) {
    this.index = index;
    this.form = form;
    this.object = object;
  }
}

/** Decides on an entry by its index; made once per request from label and field selectors. */
export type EntryFilter = (index: EntryIndex) => boolean;

const metadataStart = Buffer.from('"metadata":{');
const versionStart = Buffer.from('"resourceVersion":"');
const emptyName = Buffer.from('"name":""');
const closingBrace = 0x7d;
const quote = 0x22;
const comma = 0x2c;
const backslash = 0x5c;

/**
 * Offset just behind `"metadata":{` of canonical JSON, where the version belongs. What stands
 * before it is `apiVersion` and `kind`, whose strings cannot contain an unescaped quote, so the
 * first match is the right one.
 */
function versionOffset(json: Buffer): number {
  const found = json.indexOf(metadataStart);
  if (found < 0) throw noMetadata();
  return found + metadataStart.length;
}

function noMetadata(): Error {
  return new Error('a stored object has no metadata');
}

/** Larger ones gain nothing by sharing. */
const sharedBytesMax = 4 * 1024;
const young = new Slab();

/** Memory for an entry's JSON; what outlives its time in the window is moved (`settle`). */
function allocate(size: number): Buffer {
  return size > sharedBytesMax ? Buffer.allocUnsafeSlow(size) : young.take(size);
}

/** Gives an entry that stays memory of its own, so that its slab can go with its neighbours. */
export function settle(entry: Entry): void {
  const { json } = entry;
  if (!isInSlab(json)) return;
  const own = Buffer.allocUnsafeSlow(json.length);
  json.copy(own);
  entry.json = own;
}

/** JSON up to `before`, the version member, and JSON from `after` on. */
function withVersion(json: Buffer, cut: { before: number; after: number }, revision: Revision) {
  const member = `"resourceVersion":"${revision}",`;
  const result = allocate(cut.before + member.length + json.length - cut.after);
  json.copy(result, 0, 0, cut.before);
  result.write(member, cut.before, 'latin1');
  json.copy(result, cut.before + member.length, cut.after);
  return result;
}

/**
 * What a GET answers, made from what is stored: `"resourceVersion":"N",` goes in right behind
 * `"metadata":{`. `stored` is canonical JSON (`{"apiVersion":…,"kind":…,"metadata":{…`) whose
 * metadata has no version of its own; throws when it has no metadata. Empty metadata, which only
 * other programs store, gets an empty name, as the version ends with a comma.
 */
export function spliceRevision(stored: Buffer, revision: Revision): Buffer {
  const offset = versionOffset(stored);
  const cut = { before: offset, after: offset };
  if (stored[offset] !== closingBrace) return withVersion(stored, cut, revision);
  const named = Buffer.concat([stored.subarray(0, offset), emptyName, stored.subarray(offset)]);
  return withVersion(named, cut, revision);
}

/** Puts another version in the place of the one `spliceRevision` put in. */
export function replaceRevision(json: Buffer, revision: Revision): Buffer {
  const before = versionOffset(json);
  const after = json.indexOf(quote, before + versionStart.length) + 2;
  return withVersion(json, { before, after }, revision);
}

/** What was stored, of JSON that `spliceRevision` put the version into. */
export function withoutRevision(json: Buffer): Buffer {
  const before = versionOffset(json);
  const after = json.indexOf(quote, before + versionStart.length) + 2;
  return Buffer.concat([json.subarray(0, before), json.subarray(after)]);
}

/** An entry as the cache holds it, made from the stored bytes. `key` has no storage prefix. */
export function makeEntry(options: {
  readonly key: string;
  readonly stored: Buffer;
  readonly revision: Revision;
  readonly createRevision: Revision;
  readonly index: EntryIndex;
}): Entry {
  const { key, stored, revision, createRevision, index } = options;
  const json = spliceRevision(stored, revision);
  return { key, revision, createRevision, json, index, memo: undefined };
}

/**
 * The last state of an object at the revision that removed it (WATCH-1) or moved it out of a
 * selector (WATCH-6): same object, the later version.
 */
export function entryAtRevision(entry: Entry, revision: Revision): Entry {
  return { ...entry, revision, json: replaceRevision(entry.json, revision), memo: undefined };
}

/** Where `metadata` stands in the text of an entry's JSON, its braces included. */
export interface MetadataPlace {
  readonly start: number;
  readonly end: number;
  /** Its `managedFields` with the comma that goes with them; both `end` when it has none. */
  readonly managedStart: number;
  readonly managedEnd: number;
}

/**
 * Finds the metadata in an entry's JSON without parsing that: it is canonical, so that no white
 * space stands between its marks, and the first `"metadata":{` is the right one (`versionOffset`).
 */
export function metadataPlace(text: string): MetadataPlace {
  const found = text.indexOf('"metadata":{');
  if (found < 0) throw noMetadata();
  const start = found + '"metadata":'.length;
  let managedStart = -1;
  let managedEnd = -1;
  let depth = 0;
  for (let at = start; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === quote) {
      const isOwn = depth === 1 && text.startsWith(managedKey, at);
      if (isOwn) managedStart = at;
      at = stringEnd(text, at);
    } else if (code === 0x7b || code === 0x5b) depth += 1;
    else if (code === 0x7d || code === 0x5d) {
      depth -= 1;
      if (depth === 1 && managedStart >= 0 && managedEnd < 0) managedEnd = at + 1;
      if (depth > 0) continue;
      const end = at + 1;
      if (managedEnd < 0) return { start, end, managedStart: end, managedEnd: end };
      const isLast = text.charCodeAt(managedEnd) !== comma;
      if (isLast) return { start, end, managedStart: managedStart - 1, managedEnd };
      return { start, end, managedStart, managedEnd: managedEnd + 1 };
    }
  }
  throw noMetadata();
}

/** A member of this name is always a list, and never the metadata's first: the version is. */
const managedKey = '"managedFields":[';

/** Index of the quote that ends the string begun at `start`. */
function stringEnd(text: string, start: number): number {
  let end = text.indexOf('"', start + 1);
  while (isEscaped(text, end)) end = text.indexOf('"', end + 1);
  if (end < 0) throw new Error('a stored object is cut off');
  return end;
}

function isEscaped(text: string, at: number): boolean {
  let first = at;
  while (text.charCodeAt(first - 1) === backslash) first -= 1;
  return (at - first) % 2 === 1;
}
