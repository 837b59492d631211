import {
  type ByteRun,
  badRequest,
  type Clock,
  invalid,
  invalidObject,
  leafSpans,
  type MaybePromise,
  orderedMapRank,
  orderedMapValues,
  Slices,
} from '@wheelhouse/machinery';
import {
  type ContinuePoint,
  decodeContinue,
  encodeContinue,
  parseResourceVersion,
  type Revision,
} from '@wheelhouse/store';
import type { ListRequest, ListResult } from './contract.ts';
import type { Entry, EntryFilter } from './entry.ts';
import type { Snapshot } from './window.ts';

/** The required freshness of a read. */
export type ReadPoint =
  /** At least as new as the store when the request arrived: a consistent read. */
  | { readonly type: 'newest' }
  | { readonly type: 'any' }
  | { readonly type: 'notOlderThan'; readonly revision: Revision; readonly requested: string }
  | { readonly type: 'exact'; readonly revision: Revision; readonly requested: string };

/** Where a list is read and where it begins. */
export interface ListPlan {
  readonly point: ReadPoint;
  /** The position at which a continued list resumes. */
  readonly continued: ContinuePoint | undefined;
}

/**
 * The freshness of a get (LIST-4): the newest state without a version, any state for `0`, and
 * otherwise one not older than the version. Throws 400 for a malformed version.
 */
export function getPoint(resourceVersion: string | undefined): ReadPoint {
  if (resourceVersion === undefined || resourceVersion === '') return { type: 'newest' };
  const revision = parseRevision(resourceVersion);
  return revision === 0
    ? { type: 'any' }
    : { type: 'notOlderThan', revision, requested: resourceVersion };
}

/**
 * Determines the freshness and the start of a list (LIST-5) that passed `validateListOptions`.
 * Throws 400 for a malformed version or token, and for a token with a version other than `0`.
 * @param tokenVersion the `v` of continue tokens
 */
export function planList(request: ListRequest, tokenVersion: string): ListPlan {
  const { resourceVersion, resourceVersionMatch, limit } = request;
  if (request.continueToken !== undefined && request.continueToken !== '') {
    return planContinued({ token: request.continueToken, resourceVersion, tokenVersion });
  }
  const point = getPoint(resourceVersion);
  if (point.type !== 'notOlderThan') return { point, continued: undefined };
  const paged = limit !== undefined && limit > 0;
  const exact = resourceVersionMatch === 'Exact' || (resourceVersionMatch === undefined && paged);
  return { point: exact ? { ...point, type: 'exact' } : point, continued: undefined };
}

function planContinued(options: {
  token: string;
  resourceVersion: string | undefined;
  tokenVersion: string;
}): ListPlan {
  const { token, resourceVersion, tokenVersion } = options;
  const decoded = decodeContinue(token, tokenVersion);
  if (!decoded.ok) throw badRequest(`invalid continue token: ${decoded.why}`);
  if (resourceVersion !== undefined && resourceVersion !== '' && resourceVersion !== '0') {
    throw badRequest('specifying resource version is not allowed when using continue');
  }
  const { revision } = decoded.point;
  const point: ReadPoint =
    revision < 0 ? { type: 'newest' } : { type: 'exact', revision, requested: String(revision) };
  return { point, continued: decoded.point };
}

/**
 * Parses the version of a get or list. Throws 400 if it is malformed, even where kube-apiserver's
 * cache answers 500.
 */
function parseRevision(text: string): Revision {
  const parsed = parseResourceVersion(text);
  if (parsed.ok) return parsed.revision;
  const value = JSON.stringify(text.slice(0, 128));
  throw badRequest(
    `invalid resource version: resourceVersion: Invalid value: ${value}: ${parsed.why}`,
  );
}

/** Parses the version of a watch. Throws 422, with the resource in place of the kind. */
export function watchRevision(
  text: string | undefined,
  resource: { readonly group: string; readonly resource: string },
): Revision {
  const parsed = parseResourceVersion(text);
  if (parsed.ok) return parsed.revision;
  const kind = { group: resource.group, kind: resource.resource };
  const shown = (text ?? '').slice(0, 128);
  throw invalidObject(kind, '', [invalid('resourceVersion', shown, parsed.why)]);
}

/** The state from which a list is answered. */
interface ListSource {
  readonly snapshot: Snapshot;
  readonly revision: Revision;
  readonly namespaced: boolean;
  readonly tokenVersion: string;
  readonly clock: Pick<Clock, 'monotonic'>;
  /** The key at which a continued list resumes, relative to the namespace. */
  readonly start: string | undefined;
}

/**
 * Number of entries that are filtered between clock readings; small, because selectors may have
 * many terms.
 */
const checkedEntries = 128;
/** Number of entries after which a slice ends regardless of the clock. */
const sliceEntriesMax = 10_000;

/** Answers a list from a snapshot; returns a promise only if a filter examines many entries. */
export function listSnapshot(source: ListSource, request: ListRequest): MaybePromise<ListResult> {
  const { snapshot, namespaced, start } = source;
  const scope = { namespace: request.namespace, name: request.name };
  const range = scopeRange(snapshot, {
    scope,
    namespaced,
    ...(start === undefined ? {} : { start }),
  });
  if (request.filter !== undefined) {
    return filteredList(source, { request, range, filter: request.filter });
  }
  const limit = request.limit ?? 0;
  const to = limit > 0 ? Math.min(range.to, range.from + limit) : range.to;
  const more = to < range.to;
  const shown = { from: range.from, to };
  return {
    revision: source.revision,
    continueToken: more ? tokenAfter(source, { request, position: to - 1 }) : undefined,
    remainingItemCount: more ? range.to - to : undefined,
    count: Math.max(0, to - range.from),
    entries: () => orderedMapValues(snapshot, shown),
    jsonPieces: (typeBytes) => leafPieces(source, { ...shown, typeBytes }),
  };
}

interface Filtering {
  readonly request: ListRequest;
  readonly range: { readonly from: number; readonly to: number };
  readonly filter: EntryFilter;
}

/**
 * The limit counts matching entries. The token follows the last examined entry and exists whenever
 * entries remain to be examined (LIST-2).
 */
function filteredList(source: ListSource, filtering: Filtering): MaybePromise<ListResult> {
  const matching: Entry[] = [];
  const slices = new Slices(source.clock);
  const first = filterSlice(source, filtering, { matching, from: filtering.range.from, slices });
  if (!first.isDone)
    return filterRest(source, filtering, { matching, from: first.position, slices });
  return filteredResult(source, filtering, { matching, position: first.position });
}

interface FilterPart {
  readonly matching: Entry[];
  readonly from: number;
  readonly slices: Slices;
}

/** Filters the rest of a long list in slices; the snapshot is immutable. */
async function filterRest(
  source: ListSource,
  filtering: Filtering,
  { matching, from, slices }: FilterPart,
): Promise<ListResult> {
  let part = { position: from, isDone: false };
  while (!part.isDone) {
    await slices.pause();
    part = filterSlice(source, filtering, { matching, from: part.position, slices });
  }
  return filteredResult(source, filtering, { matching, position: part.position });
}

/** Filters until the slice ends, but at least some entries. */
function filterSlice(
  source: ListSource,
  filtering: Filtering,
  { matching, from, slices }: FilterPart,
): { readonly position: number; readonly isDone: boolean } {
  const { to } = filtering.range;
  let position = from;
  while (position < to) {
    const end = Math.min(to, position + checkedEntries);
    position = filterSome(source, filtering, { matching, from: position, to: end });
    if (position < end) break;
    const isOver = position - from >= sliceEntriesMax || slices.over;
    if (position < to && isOver) return { position, isDone: false };
  }
  return { position, isDone: true };
}

/** Adds matches up to the limit; returns the position after the last examined entry. */
function filterSome(
  source: ListSource,
  { request, filter }: Filtering,
  part: { readonly matching: Entry[]; readonly from: number; readonly to: number },
): number {
  const limit = request.limit !== undefined && request.limit > 0 ? request.limit : Infinity;
  let position = part.from;
  for (const { leaf, from, to } of leafSpans(source.snapshot, part)) {
    for (let i = from; i < to; i++) {
      if (part.matching.length >= limit) return position;
      position += 1;
      const entry = leaf.values[i];
      if (entry !== undefined && filter(entry.index)) part.matching.push(entry);
    }
  }
  return position;
}

function filteredResult(
  source: ListSource,
  { request, range }: Filtering,
  { matching, position }: { matching: readonly Entry[]; position: number },
): ListResult {
  const more = position < range.to;
  return {
    revision: source.revision,
    continueToken: more ? tokenAfter(source, { request, position: position - 1 }) : undefined,
    remainingItemCount: undefined,
    examined: position - range.from,
    ...contentOf(matching),
  };
}

/** The continue token of a list that continues after the entry at `position`. */
function tokenAfter(
  source: ListSource,
  { request, position }: { request: ListRequest; position: number },
): string {
  const [last] = orderedMapValues(source.snapshot, { from: position, to: position + 1 });
  if (last === undefined) throw new Error('no entry at this position');
  const skip = request.namespace === '' ? 0 : request.namespace.length + 1;
  const point = { revision: source.revision, start: `${last.key.slice(skip)}\0` };
  return encodeContinue(point, source.tokenVersion);
}

/** The entries' JSON as runs, which copy the bytes only when they are written. */
function* leafPieces(
  source: ListSource,
  range: { readonly from: number; readonly to: number; readonly typeBytes: number },
): Generator<EntryRun> {
  const { typeBytes } = range;
  let position = range.from;
  for (const { leaf, from, to } of leafSpans(source.snapshot, range)) {
    position += to - from;
    const endsWithComma = position < range.to;
    yield* runsOf({ entries: leaf.values, from, to, endsWithComma, typeBytes });
  }
}

/** The keys that a list or watch covers: all, those of a namespace, or those of one name. */
interface Scope {
  /** Empty: all namespaces, or a cluster-scoped kind. */
  readonly namespace: string;
  readonly name?: string | undefined;
}

/**
 * The positions of the scope's entries in a snapshot, as narrow as the key order allows: one name
 * in all namespaces still covers all entries.
 * @param options.start the first key, relative to the namespace
 */
export function scopeRange(
  snapshot: Snapshot,
  options: { readonly scope: Scope; readonly namespaced: boolean; readonly start?: string },
): { from: number; to: number } {
  const { namespace, name } = options.scope;
  const prefix = namespace === '' ? '' : `${namespace}/`;
  const exact = name !== undefined && (namespace !== '' || !options.namespaced);
  const range = exact ? keyRange(snapshot, prefix + name) : prefixRange(snapshot, namespace);
  if (options.start === undefined) return range;
  return {
    from: Math.max(range.from, orderedMapRank(snapshot, prefix + options.start)),
    to: range.to,
  };
}

function keyRange(snapshot: Snapshot, key: string): { from: number; to: number } {
  return { from: orderedMapRank(snapshot, key), to: orderedMapRank(snapshot, `${key}\0`) };
}

function prefixRange(snapshot: Snapshot, namespace: string): { from: number; to: number } {
  if (namespace === '') return { from: 0, to: snapshot.size };
  // `0` is the character after `/`, so this is the first key after the namespace.
  const from = orderedMapRank(snapshot, `${namespace}/`);
  return { from, to: orderedMapRank(snapshot, `${namespace}0`) };
}

const comma = 0x2c;
const openingBrace = 0x7b;
const runBytes = 16 * 1024;

/** A range of neighboring entries; `from` is inclusive, `to` exclusive. */
interface Entries {
  readonly entries: readonly Entry[];
  readonly from: number;
  readonly to: number;
  /** Whether further entries follow. */
  readonly endsWithComma: boolean;
  /** See `ListResult.jsonPieces`. */
  readonly typeBytes: number;
}

/** Divides entries into runs of about 16 KiB, so that a writer can stop soon. */
export function* runsOf(options: Entries): Generator<EntryRun> {
  const { entries, from, to, endsWithComma, typeBytes } = options;
  let start = from;
  let bytes = 0;
  for (let end = from + 1; end <= to; end += 1) {
    bytes += lengthAt(entries, end - 1) - typeBytes;
    if (bytes < runBytes && end < to) continue;
    const hasNext = endsWithComma || end < to;
    yield new EntryRun({ entries, from: start, to: end, endsWithComma: hasNext, typeBytes });
    start = end;
    bytes = 0;
  }
}

/** Divides all items of a list into runs; for the parameters see `ListResult.jsonPieces`. */
export function runsOfAll(entries: readonly Entry[], typeBytes: number): Generator<EntryRun> {
  return runsOf({ entries, from: 0, to: entries.length, endsWithComma: false, typeBytes });
}

/** The part of a result that consists of these entries, in their order. */
export function contentOf(
  entries: readonly Entry[],
): Pick<ListResult, 'count' | 'entries' | 'jsonPieces'> {
  return {
    count: entries.length,
    entries: () => entries,
    jsonPieces: (typeBytes) => runsOfAll(entries, typeBytes),
  };
}

/**
 * The JSON of neighboring entries, separated by commas, with a comma at the end if more follow. It
 * is copied from the entries' own buffers when it is written: a cached copy would hold the bytes of
 * every object twice.
 */
export class EntryRun implements ByteRun {
  readonly length: number;
  readonly #entries: readonly Entry[];
  readonly #to: number;
  readonly #commas: number;
  readonly #typeBytes: number;
  /** The index of the next entry, and how many bytes of it, with its comma, have been copied. */
  #at: number;
  #done = 0;

  constructor(options: Entries) {
    const { entries, from, to, endsWithComma, typeBytes } = options;
    this.#entries = entries;
    this.#at = from;
    this.#to = to;
    this.#commas = endsWithComma ? to : to - 1;
    this.#typeBytes = typeBytes;
    let length = this.#commas - from;
    for (let at = from; at < to; at += 1) length += lengthAt(entries, at) - typeBytes;
    this.length = length;
  }

  copyNext(target: Buffer, start: number, bytes: number): void {
    const end = start + bytes;
    const first = this.#done > 0 ? this.#copyPart(target, start, end) : start;
    const last = this.#copyWhole(target, first, end);
    if (last < end) this.#copyPart(target, last, end);
  }

  /** Copies the entries that fit completely; returns the end of the last one. */
  #copyWhole(target: Buffer, start: number, end: number): number {
    const begun = this.#at;
    let at = begun;
    let last = start;
    for (; at < this.#to; at += 1) {
      const next = last + this.#bytesOf(at);
      if (next > end) break;
      last = next;
    }
    this.#at = at;
    // From last to first and including the type, which the previous entry's end overwrites:
    // creating a subarray without the type would cost more than copying it.
    const typeBytes = this.#typeBytes;
    let to = last;
    for (at -= 1; at >= begun; at -= 1) {
      const json = this.#jsonAt(at);
      if (at < this.#commas) {
        to -= 1;
        target[to] = comma;
      }
      to -= json.length - typeBytes;
      checkType(json, typeBytes);
      if (to - typeBytes >= start) target.set(json, to - typeBytes);
      else target.set(json.subarray(typeBytes), to);
      if (typeBytes > 0) target[to] = openingBrace;
    }
    return last;
  }

  /** Copies as much of the next entry as fits; returns the end. */
  #copyPart(target: Buffer, start: number, end: number): number {
    if (this.#at >= this.#to) throw exhausted();
    const json = this.#jsonAt(this.#at);
    const typeBytes = this.#typeBytes;
    const before = this.#done;
    const all = this.#bytesOf(this.#at);
    const done = Math.min(all, before + end - start);
    const last = start + done - before;
    checkType(json, typeBytes);
    // The subarray ends with the JSON; the comma is not part of it.
    target.set(json.subarray(typeBytes + before, typeBytes + done), start);
    if (before === 0 && typeBytes > 0) target[start] = openingBrace;
    if (done === all && this.#at < this.#commas) target[last - 1] = comma;
    this.#done = done === all ? 0 : done;
    if (done === all) this.#at += 1;
    return last;
  }

  /** Bytes of an entry, with its comma. */
  #bytesOf(at: number): number {
    return lengthAt(this.#entries, at) - this.#typeBytes + (at < this.#commas ? 1 : 0);
  }

  #jsonAt(at: number): Buffer {
    const entry = this.#entries[at];
    if (entry === undefined) throw exhausted();
    return entry.json;
  }
}

const lengthAt = (entries: readonly Entry[], at: number) => entries[at]?.json.length ?? 0;

const exhausted = () => new Error('nothing is left of these entries');

/** Checks that the item's brace can replace the comma that ends its type. */
function checkType(json: Buffer, typeBytes: number): void {
  const isType = typeBytes === 0 || json[typeBytes] === comma;
  if (!isType) throw new Error('a stored object does not begin with its type');
}
