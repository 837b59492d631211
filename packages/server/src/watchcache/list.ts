import {
  type Clock,
  leafSpans,
  type MaybePromise,
  orderedMapRank,
  orderedMapValues,
  Slices,
} from '@wheelhouse/machinery';
import { encodeContinue, type Revision } from '@wheelhouse/store';
import type { Entry, EntryFilter, ListRequest, ListResult } from './contract.ts';
import { type EntryRun, runsOf, runsOfAll } from './entry-run.ts';
import type { Snapshot } from './window.ts';

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

/** Cuts the answer to a list out of a snapshot; a promise only when a filter has much to look at. */
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
