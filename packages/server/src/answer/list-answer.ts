import {
  cborListPieces,
  indentedPieces,
  loadYaml,
  parseAhead,
  parseWrittenJson,
  parseWrittenText,
} from '@wheelhouse/codec';
import {
  type BodyPiece,
  type JsonValue,
  type MaybePromise,
  pacedBytesMin,
  pieceBytes,
} from '@wheelhouse/machinery';
import { encodeContinue } from '@wheelhouse/store';
import type { ApiCall } from '../endpoints/call.ts';
import { entriesIn, isShownAsStored, whenLoaded } from '../registry/conversion/views.ts';
import type { Entry, EntryFilter, ListRequest, ListResult } from '../watchcache/contract.ts';
import { runsOfAll } from '../watchcache/entry-run.ts';
import { encodedTexts } from './encodings.ts';
import type { ListDocument } from './list-document.ts';
import { protobufList, protobufMetadataList } from './protobuf.ts';

/**
 * What a list shows in the request's version: selectors judge objects as they are in it. Mostly the
 * cache's own answer; where a webhook converts the kind's objects, all of a page are converted at
 * once (CRD-4). Rejects with its error when one of them cannot be.
 */
export function listShown(call: ApiCall, request: ListRequest): MaybePromise<ListResult> {
  const { context, target } = call;
  const cache = context.registry.caches.of(target.def);
  if (target.def.behavior.converter === undefined) return cache.list(request);
  return listConverted(call, request);
}

async function listConverted(call: ApiCall, request: ListRequest): Promise<ListResult> {
  const { def, version } = call.target;
  const cache = call.context.registry.caches.of(def);
  await whenLoaded(cache);
  if (isShownAsStored(def, version)) return cache.list(request);
  const { filter } = request;
  if (filter !== undefined) {
    const whole = await cache.list({ ...request, filter: undefined, limit: undefined });
    return filterConverted(call, { request, whole, filter });
  }
  const result = await cache.list(request);
  return resultOf(result, await entriesIn(def, version, [...result.entries()]));
}

function resultOf(result: ListResult, entries: readonly Entry[]): ListResult {
  return {
    ...result,
    count: entries.length,
    entries: () => entries,
    jsonPieces: (typeBytes) => runsOfAll(entries, typeBytes),
  };
}

/** So many objects are converted at a time until as many have passed as the list may have. */
const stepEntries = 500;

/** The limit counts what passes; the token stands behind the last looked at, as in the cache's lists. */
async function filterConverted(
  call: ApiCall,
  list: { readonly request: ListRequest; readonly whole: ListResult; readonly filter: EntryFilter },
): Promise<ListResult> {
  const { request, whole, filter } = list;
  const { def, version } = call.target;
  const limit = request.limit !== undefined && request.limit > 0 ? request.limit : Infinity;
  const all = [...whole.entries()];
  const found: Entry[] = [];
  let position = 0;
  while (position < all.length && found.length < limit) {
    const step = all.slice(position, position + stepEntries);
    const shown = await entriesIn(def, version, step);
    for (const entry of shown) {
      if (found.length >= limit) break;
      position += 1;
      if (filter(entry.index)) found.push(entry);
    }
  }
  const last = position < all.length ? all[position - 1] : undefined;
  const continueToken =
    last === undefined ? undefined : tokenBehind(call, { request, whole, last });
  return { ...resultOf(whole, found), continueToken, remainingItemCount: undefined };
}

function tokenBehind(
  { context }: ApiCall,
  at: { readonly request: ListRequest; readonly whole: ListResult; readonly last: Entry },
): string {
  const { request, whole, last } = at;
  const skip = request.namespace === '' ? 0 : request.namespace.length + 1;
  const point = { revision: whole.revision, start: `${last.key.slice(skip)}\0` };
  return encodeContinue(point, `${context.dialect.group('meta')}/v1`);
}

/**
 * The body of a list in the encoding of the answer, item by item: nothing of it is made before its
 * turn, and never all of it at once (TRUST-3).
 */
export function listBody(
  call: ApiCall,
  list: { readonly document: ListDocument; readonly result: ListResult },
): MaybePromise<Iterable<BodyPiece>> {
  const { document, result } = list;
  const { encoding, pretty, shape } = call.rendering;
  switch (encoding.form) {
    case 'json':
      return pretty ? indentedPieces(buffersOf(document.jsonPieces())) : document.jsonPieces();
    case 'cbor':
      return cborListPieces({ ...document, items: valuesOf(document) });
    case 'yaml':
      return yamlBody(document);
    case 'protobuf':
      return shape === 'object' ? protobufList(call, result) : protobufMetadataList(call, document);
  }
}

async function yamlBody(document: ListDocument): Promise<Iterable<Buffer>> {
  // What writes YAML is loaded by the first who asks for it.
  const { yamlListPieces } = await loadYaml();
  return encodedTexts(yamlListPieces({ ...document, items: valuesOf(document) }));
}

function* buffersOf(pieces: Iterable<BodyPiece>): Generator<Buffer> {
  for (const piece of pieces) yield pieceBytes(piece);
}

/** The items of a list; undefined stands for work on one. */
function* valuesOf(document: ListDocument): Generator<JsonValue | undefined> {
  for (const entry of document.entries()) {
    for (const _ of document.ahead(entry)) yield undefined;
    const text = document.itemText(entry);
    if (text.length < pacedBytesMin) {
      yield parseWrittenText(text);
      continue;
    }
    const bytes = Buffer.from(text);
    for (const _ of parseAhead(bytes)) yield undefined;
    yield parseWrittenJson(bytes);
  }
}
