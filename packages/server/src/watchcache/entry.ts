import { type ApiObject, isInSlab, Slab } from '@wheelhouse/machinery';
import type { Revision } from '@wheelhouse/store';

/** The parts of an object that lists and watches use without decoding it. */
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
  /** The object's apiVersion, if it differs from the kind's current storage version. */
  readonly apiVersion?: string;
}

/**
 * One object at one revision. `json` is the canonical JSON in the storage version with
 * `resourceVersion` inserted: the bytes that a GET sends. Immutable except for `memo` and the
 * memory location of `json`.
 */
export interface Entry {
  /** `<namespace>/<name>`, or `<name>` for cluster-scoped kinds. */
  readonly key: string;
  readonly revision: Revision;
  readonly createRevision: Revision;
  json: Buffer;
  readonly index: EntryIndex;
  /** Other encodings of the object (`v1beta1;json`, …), created once on demand. */
  memo: Map<string, Buffer> | undefined;
}

/** Stores another encoding with its entry. */
export function keepEncoding(entry: Entry, memoKey: string, bytes: Buffer): Buffer {
  entry.memo ??= new Map();
  entry.memo.set(memoKey, bytes);
  return bytes;
}

/**
 * Passed as `PutRequest.hint`: the index of the object that the writer encoded, so that the cache
 * and the writer share one entry.
 */
export class EntryHint {
  readonly index: EntryIndex;
  /** The storage definition that the writer used, which may be older than the reader's. */
  readonly form: unknown;
  /**
   * The encoded object, for a store that keeps another encoding; only valid during the call to
   * `put`, because the writer modifies it afterwards.
   */
  readonly object: ApiObject | undefined;
  #entry: Entry | undefined = undefined;

  constructor(index: EntryIndex, form?: unknown, object?: ApiObject) {
    this.index = index;
    this.form = form;
    this.object = object;
  }

  /**
   * Returns the entry of a record, created by the first call for its revision. A store that
   * restores an earlier state writes the same value again, with the hint of its first write.
   */
  entryOf(record: Omit<StoredEntry, 'index'>): Entry {
    if (this.#entry?.revision === record.revision) return this.#entry;
    this.#entry = makeEntry({
      key: record.key,
      stored: record.stored,
      revision: record.revision,
      createRevision: record.createRevision,
      index: this.index,
    });
    return this.#entry;
  }
}

/** Matches entries by their index; created once per request from label and field selectors. */
export type EntryFilter = (index: EntryIndex) => boolean;

const metadataStart = Buffer.from('"metadata":{');
const versionStart = Buffer.from('"resourceVersion":"');
const emptyName = Buffer.from('"name":""');
const closingBrace = 0x7d;
const quote = 0x22;
const comma = 0x2c;
const backslash = 0x5c;

/**
 * Offset after `"metadata":{` in canonical JSON, where the version belongs. Only `apiVersion` and
 * `kind` precede it, whose strings contain no unescaped quote, so the first match is correct.
 */
function versionOffset(json: Buffer): number {
  const index = json.indexOf(metadataStart);
  if (index < 0) throw noMetadata();
  return index + metadataStart.length;
}

function noMetadata(): Error {
  return new Error('a stored object has no metadata');
}

/** Entries above this many bytes have their own memory, because sharing would save nothing. */
const sharedBytesMax = 4 * 1024;
const slab = new Slab();

/** Allocates memory for an entry's JSON; `settle` moves entries that outlive the window. */
function allocate(size: number): Buffer {
  return size > sharedBytesMax ? Buffer.allocUnsafeSlow(size) : slab.take(size);
}

/** Moves an entry's JSON to its own memory, so that its slab can be freed. */
export function settle(entry: Entry): void {
  const { json } = entry;
  if (!isInSlab(json)) return;
  const own = Buffer.allocUnsafeSlow(json.length);
  json.copy(own);
  entry.json = own;
}

/** Replaces the bytes from `before` to `after` with the version member. */
function withVersion(json: Buffer, cut: { before: number; after: number }, revision: Revision) {
  const member = `"resourceVersion":"${revision}",`;
  const result = allocate(cut.before + member.length + json.length - cut.after);
  json.copy(result, 0, 0, cut.before);
  result.write(member, cut.before, 'latin1');
  json.copy(result, cut.before + member.length, cut.after);
  return result;
}

/**
 * Creates the JSON that a GET answers from the stored JSON: inserts `"resourceVersion":"N",` after
 * `"metadata":{`. `stored` is canonical JSON (`{"apiVersion":…,"kind":…,"metadata":{…`) without a
 * resourceVersion; throws if it has no metadata. Empty metadata, which only other programs store,
 * gets an empty name, because the version ends with a comma.
 */
export function spliceRevision(stored: Buffer, revision: Revision): Buffer {
  const offset = versionOffset(stored);
  const cut = { before: offset, after: offset };
  if (stored[offset] !== closingBrace) return withVersion(stored, cut, revision);
  const named = Buffer.concat([stored.subarray(0, offset), emptyName, stored.subarray(offset)]);
  return withVersion(named, cut, revision);
}

/** Replaces the version that `spliceRevision` inserted. */
function replaceRevision(json: Buffer, revision: Revision): Buffer {
  const before = versionOffset(json);
  const after = json.indexOf(quote, before + versionStart.length) + 2;
  return withVersion(json, { before, after }, revision);
}

/** Restores the stored JSON by removing the version that `spliceRevision` inserted. */
export function withoutRevision(json: Buffer): Buffer {
  const before = versionOffset(json);
  const after = json.indexOf(quote, before + versionStart.length) + 2;
  return Buffer.concat([json.subarray(0, before), json.subarray(after)]);
}

/** The values from which an entry is created. */
interface StoredEntry {
  /** Without the storage prefix. */
  readonly key: string;
  /** The stored bytes. */
  readonly stored: Buffer;
  readonly revision: Revision;
  readonly createRevision: Revision;
  readonly index: EntryIndex;
}

/** Creates a cache entry from stored bytes. */
export function makeEntry({ key, stored, revision, createRevision, index }: StoredEntry): Entry {
  const json = spliceRevision(stored, revision);
  return { key, revision, createRevision, json, index, memo: undefined };
}

/**
 * The last state of an object with the revision that removed it (WATCH-1) or moved it out of a
 * selector (WATCH-6).
 */
export function entryAtRevision(entry: Entry, revision: Revision): Entry {
  return { ...entry, revision, json: replaceRevision(entry.json, revision), memo: undefined };
}

/** Where `metadata`, including its braces, is in an entry's JSON text. */
export interface MetadataLocation {
  readonly start: number;
  readonly end: number;
  /** Where its `managedFields` and their comma are; both are `end` if it has none. */
  readonly managedStart: number;
  readonly managedEnd: number;
}

/**
 * Finds the metadata in an entry's JSON without parsing it: canonical JSON has no whitespace, and
 * the first `"metadata":{` is the right one (`versionOffset`).
 */
export function locateMetadata(text: string): MetadataLocation {
  const index = text.indexOf('"metadata":{');
  if (index < 0) throw noMetadata();
  const start = index + '"metadata":'.length;
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

/** The managed fields are always a list, and never the first member, which is the version. */
const managedKey = '"managedFields":[';

/** Index of the closing quote of the string that begins at `start`. */
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
