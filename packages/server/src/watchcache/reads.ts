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

/** How fresh the state that answers a read must be. */
export type ReadPoint =
  /** At least as new as the store when the request came: a consistent read. */
  | { readonly type: 'newest' }
  | { readonly type: 'any' }
  | { readonly type: 'notOlderThan'; readonly revision: Revision; readonly requested: string }
  | { readonly type: 'exact'; readonly revision: Revision; readonly requested: string };

export interface ListPlan {
  readonly point: ReadPoint;
  /** Where a continued list resumes. */
  readonly continued: ContinuePoint | undefined;
}

/** The get table (LIST-4): unset most recent, `0` any, else not older than. 400 when malformed. */
export function getPoint(resourceVersion: string | undefined): ReadPoint {
  if (resourceVersion === undefined || resourceVersion === '') return { type: 'newest' };
  const revision = soundRevision(resourceVersion);
  return revision === 0
    ? { type: 'any' }
    : { type: 'notOlderThan', revision, requested: resourceVersion };
}

/**
 * The list table (LIST-5), for requests that passed `validateListOptions`. Throws 400 for a
 * malformed version or token, and for a token together with a version other than `0`.
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
 * Reads a get's or list's version. Upstream answers a malformed one with 400 where the request goes
 * to its storage and, by accident, 500 where it is served from its cache; here it is always 400.
 */
function soundRevision(text: string): Revision {
  const parsed = parseResourceVersion(text);
  if (parsed.ok) return parsed.revision;
  const value = JSON.stringify(text.slice(0, 128));
  throw badRequest(
    `invalid resource version: resourceVersion: Invalid value: ${value}: ${parsed.why}`,
  );
}

/**
 * Reads a watch's version; 422 when malformed, with the resource in the kind's place as upstream.
 */
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

/** What a list is made from, once it is known at which state. */
interface ListSource {
  readonly snapshot: Snapshot;
  readonly revision: Revision;
  readonly namespaced: boolean;
  readonly tokenVersion: string;
  readonly clock: Pick<Clock, 'monotonic'>;
  /** Where a continued list goes on, relative to the namespace. */
  readonly start: string | undefined;
}

/** So many entries are filtered before the clock is read: a selector may have many terms. */
const checkedEntries = 128;
/** After so many entries a slice ends, whatever the clock says. */
const sliceEntriesMax = 10_000;

/**
 * Cuts the answer to a list out of a snapshot; a promise only when a filter has much to look at.
 */
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
    continueToken: more ? tokenBehind(source, { request, position: to - 1 }) : undefined,
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
 * The limit counts what passed the filter; the token stands behind the last entry looked at, and
 * there is one whenever entries are left to look at, as upstream (LIST-2).
 */
function filteredList(source: ListSource, filtering: Filtering): MaybePromise<ListResult> {
  const found: Entry[] = [];
  const slices = new Slices(source.clock);
  const first = filterSlice(source, filtering, { found, from: filtering.range.from, slices });
  if (!first.isDone) return filterRest(source, filtering, { found, from: first.position, slices });
  return filteredResult(source, filtering, { found, position: first.position });
}

interface FilterPart {
  readonly found: Entry[];
  readonly from: number;
  readonly slices: Slices;
}

/** A long list is filtered in slices: the snapshot does not change meanwhile. */
async function filterRest(
  source: ListSource,
  filtering: Filtering,
  { found, from, slices }: FilterPart,
): Promise<ListResult> {
  let part = { position: from, isDone: false };
  while (!part.isDone) {
    await slices.pause();
    part = filterSlice(source, filtering, { found, from: part.position, slices });
  }
  return filteredResult(source, filtering, { found, position: part.position });
}

/** Filters until the slice is over, and some entries at least. */
function filterSlice(
  source: ListSource,
  filtering: Filtering,
  { found, from, slices }: FilterPart,
): { readonly position: number; readonly isDone: boolean } {
  const { to } = filtering.range;
  let position = from;
  while (position < to) {
    const end = Math.min(to, position + checkedEntries);
    position = filterSome(source, filtering, { found, from: position, to: end });
    if (position < end) break;
    const isOver = position - from >= sliceEntriesMax || slices.over;
    if (position < to && isOver) return { position, isDone: false };
  }
  return { position, isDone: true };
}

/** Adds what passes to `found` until that is full; gives the position behind the last looked at. */
function filterSome(
  source: ListSource,
  { request, filter }: Filtering,
  part: { readonly found: Entry[]; readonly from: number; readonly to: number },
): number {
  const limit = request.limit !== undefined && request.limit > 0 ? request.limit : Infinity;
  let position = part.from;
  for (const { leaf, from, to } of leafSpans(source.snapshot, part)) {
    for (let i = from; i < to; i++) {
      if (part.found.length >= limit) return position;
      position += 1;
      const entry = leaf.values[i];
      if (entry !== undefined && filter(entry.index)) part.found.push(entry);
    }
  }
  return position;
}

function filteredResult(
  source: ListSource,
  { request, range }: Filtering,
  { found, position }: { found: readonly Entry[]; position: number },
): ListResult {
  const more = position < range.to;
  return {
    revision: source.revision,
    continueToken: more ? tokenBehind(source, { request, position: position - 1 }) : undefined,
    remainingItemCount: undefined,
    count: found.length,
    examined: position - range.from,
    entries: () => found,
    jsonPieces: (typeBytes) => runsOfAll(found, typeBytes),
  };
}

/** The token of a list that goes on behind the entry at `position`. */
function tokenBehind(
  source: ListSource,
  { request, position }: { request: ListRequest; position: number },
): string {
  const [last] = orderedMapValues(source.snapshot, { from: position, to: position + 1 });
  if (last === undefined) throw new Error('no entry at this position');
  const skip = request.namespace === '' ? 0 : request.namespace.length + 1;
  const point = { revision: source.revision, start: `${last.key.slice(skip)}\0` };
  return encodeContinue(point, source.tokenVersion);
}

/** The entries' JSON, none of it copied yet. */
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

/** Which keys a list or watch is about: all, a namespace's, or those of one name. */
interface Scope {
  /** Empty: all namespaces, or a cluster-scoped kind. */
  readonly namespace: string;
  readonly name?: string | undefined;
}

/**
 * The positions of the scope's entries in a snapshot, as narrow as the order of keys allows: one
 * name in all namespaces is still a walk over all of them.
 * @param start only keys from here on, relative to the namespace
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
  // `0` is the character behind `/`: the first key that is no longer in the namespace.
  const from = orderedMapRank(snapshot, `${namespace}/`);
  return { from, to: orderedMapRank(snapshot, `${namespace}0`) };
}

const comma = 0x2c;
const openingBrace = 0x7b;
const runBytes = 16 * 1024;

/** Some neighbours, `from` inclusive, `to` exclusive. */
interface Entries {
  readonly entries: readonly Entry[];
  readonly from: number;
  readonly to: number;
  /** Others follow them. */
  readonly endsWithComma: boolean;
  /** As of `ListResult.jsonPieces`. */
  readonly typeBytes: number;
}

/** Entries as runs of 16 KiB or one entry more, so that a writer can stop soon. */
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

/** All items of a list as runs; the parameters are those of `ListResult.jsonPieces`. */
export function runsOfAll(entries: readonly Entry[], typeBytes: number): Generator<EntryRun> {
  return runsOf({ entries, from: 0, to: entries.length, endsWithComma: false, typeBytes });
}

/**
 * The JSON of neighbouring entries with commas between them, and one behind the last when more are
 * to follow. It is copied from the entries' own buffers when it is written: a joined copy, kept for
 * the next list, would hold every object's bytes twice.
 */
export class EntryRun implements ByteRun {
  readonly length: number;
  readonly #entries: readonly Entry[];
  readonly #to: number;
  readonly #commas: number;
  readonly #typeBytes: number;
  /** The entry that is being copied, and how much of it, its comma included, has been. */
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

  /** Copies entries that fit as a whole; returns where the last of them ends. */
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
    // From the last to the first, and with its type, which the end of the one before it replaces:
    // a view of the rest of each would cost more than to copy it.
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

  /** Copies of the next entry what fits; returns where that ends. */
  #copyPart(target: Buffer, start: number, end: number): number {
    if (this.#at >= this.#to) throw nothingLeft();
    const json = this.#jsonAt(this.#at);
    const typeBytes = this.#typeBytes;
    const before = this.#done;
    const all = this.#bytesOf(this.#at);
    const done = Math.min(all, before + end - start);
    const last = start + done - before;
    checkType(json, typeBytes);
    // The comma is not part of the JSON, whose end bounds the view.
    target.set(json.subarray(typeBytes + before, typeBytes + done), start);
    if (before === 0 && typeBytes > 0) target[start] = openingBrace;
    if (done === all && this.#at < this.#commas) target[last - 1] = comma;
    this.#done = done === all ? 0 : done;
    if (done === all) this.#at += 1;
    return last;
  }

  /** Bytes of an entry with its comma. */
  #bytesOf(at: number): number {
    return lengthAt(this.#entries, at) - this.#typeBytes + (at < this.#commas ? 1 : 0);
  }

  #jsonAt(at: number): Buffer {
    const entry = this.#entries[at];
    if (entry === undefined) throw nothingLeft();
    return entry.json;
  }
}

const lengthAt = (entries: readonly Entry[], at: number) => entries[at]?.json.length ?? 0;

const nothingLeft = () => new Error('nothing is left of these entries');

/** The brace of an item takes the place of the comma that ends its type. */
function checkType(json: Buffer, typeBytes: number): void {
  const isType = typeBytes === 0 || json[typeBytes] === comma;
  if (!isType) throw new Error('a stored object does not begin with its type');
}
