import type { MaybePromise } from '../base/maybe-promise.ts';
import { leafSpans, orderedMapValues } from '../base/ordered-map.ts';
import { encodeContinue } from '../storage/continue-token.ts';
import type { Revision } from '../storage/contract.ts';
import type { Entry, EntryFilter, ListRequest, ListResult } from './contract.ts';
import { type EntryRun, runsOf } from './entry-run.ts';
import { scopeRange } from './scope.ts';
import type { Snapshot } from './window.ts';

/** What a list is made from, once it is known at which state. */
export interface ListSource {
  readonly snapshot: Snapshot;
  readonly revision: Revision;
  readonly namespaced: boolean;
  readonly tokenVersion: string;
  /** Where a continued list goes on, relative to the namespace. */
  readonly start: string | undefined;
}

/** So many entries are filtered before other work gets its turn. */
const turnEntries = 10_000;

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
    jsonPieces: () => leafPieces(source, shown),
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
  const { from, to } = filtering.range;
  const found: Entry[] = [];
  if (to - from > turnEntries) return filterInTurns(source, filtering, found);
  const position = filterSome(source, filtering, { found, from, to });
  return filteredResult(source, filtering, { found, position });
}

/** A long list is filtered bit by bit: the snapshot does not change meanwhile. */
async function filterInTurns(
  source: ListSource,
  filtering: Filtering,
  found: Entry[],
): Promise<ListResult> {
  const { to } = filtering.range;
  let position = filtering.range.from;
  while (position < to) {
    const end = Math.min(to, position + turnEntries);
    position = filterSome(source, filtering, { found, from: position, to: end });
    if (position < end) break;
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
  return filteredResult(source, filtering, { found, position });
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
      const entry = leaf.values[i] as Entry;
      if (filter(entry.index)) part.found.push(entry);
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
    jsonPieces: () => runsOf({ entries: found, from: 0, to: found.length, endsWithComma: false }),
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
  range: { readonly from: number; readonly to: number },
): Generator<EntryRun> {
  let position = range.from;
  for (const { leaf, from, to } of leafSpans(source.snapshot, range)) {
    position += to - from;
    yield* runsOf({ entries: leaf.values, from, to, endsWithComma: position < range.to });
  }
}
