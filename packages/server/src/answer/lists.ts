import {
  cborListPieces,
  encodeJson,
  encodeJsonSteps,
  encodeMessage,
  indentedPieces,
  itemFieldBytes,
  jsonText,
  type ListSeal,
  loadYaml,
  parseAhead,
  parseWrittenJson,
  parseWrittenText,
  sealedListPieces,
  usualListFields,
} from '@wheelhouse/codec';
import { apiVersionIn, schemaOf, servesStoredForm } from '@wheelhouse/kinds';
import {
  type BodyPiece,
  isObject,
  type JsonObject,
  type JsonValue,
  jsonObject,
  type MaybePromise,
  pacedBytesMin,
  pieceBytes,
  runAtPace,
} from '@wheelhouse/machinery';
import { encodeContinue } from '@wheelhouse/store';
import type { ApiCall } from '../endpoints/call.ts';
import { entriesIn, isShownAsStored, whenLoaded } from '../registry/conversion/converted-kinds.ts';
import { jsonAhead, jsonIn } from '../registry/object-codec.ts';
import { requestSlices } from '../request/request-state.ts';
import type { ListRequest, ListResult } from '../watchcache/contract.ts';
import type { Entry, EntryFilter } from '../watchcache/entry.ts';
import { contentOf } from '../watchcache/reads.ts';
import { encodedTexts, messageAhead, messageOf } from './encodings.ts';

/**
 * A list in the request's version, which selectors also apply to. Usually the cache's own result;
 * if a webhook converts the kind's objects, a page is converted as a whole (CRD-4). Rejects with
 * the StatusError of an object that cannot be converted.
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
  return { ...result, ...contentOf(await entriesIn(def, version, [...result.entries()])) };
}

/** Number of objects that are converted at a time until enough of them match. */
const stepEntries = 500;

/** The limit counts matches; the token follows the last examined entry, as in the cache's lists. */
async function filterConverted(
  call: ApiCall,
  list: { readonly request: ListRequest; readonly whole: ListResult; readonly filter: EntryFilter },
): Promise<ListResult> {
  const { request, whole, filter } = list;
  const { def, version } = call.target;
  const limit = request.limit !== undefined && request.limit > 0 ? request.limit : Infinity;
  const all = [...whole.entries()];
  const entries: Entry[] = [];
  let position = 0;
  while (position < all.length && entries.length < limit) {
    const step = all.slice(position, position + stepEntries);
    const shown = await entriesIn(def, version, step);
    for (const entry of shown) {
      if (entries.length >= limit) break;
      position += 1;
      if (filter(entry.index)) entries.push(entry);
    }
  }
  const last = position < all.length ? all[position - 1] : undefined;
  const continueToken =
    last === undefined ? undefined : tokenBehind(call, { request, whole, last });
  return { ...whole, ...contentOf(entries), continueToken, remainingItemCount: undefined };
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
 * The body of a list in the encoding of the answer, item by item: each item is encoded when it is
 * consumed, and never all of them at once (TRUST-3).
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
  // Loaded with the first request for YAML.
  const { yamlListPieces } = await loadYaml();
  return encodedTexts(yamlListPieces({ ...document, items: valuesOf(document) }));
}

function* buffersOf(pieces: Iterable<BodyPiece>): Generator<Buffer> {
  for (const piece of pieces) yield pieceBytes(piece);
}

/** The items of a list; undefined marks a step of work on a large item. */
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

/** A collection as it is answered, in any encoding. Items are produced as they are consumed. */
export interface ListDocument {
  /** All members except the items, which come last. */
  readonly head: JsonObject;
  readonly member: 'items' | 'rows';
  readonly count: number;
  /** Entries in the order of the items. */
  entries(): Iterable<Entry>;
  /** One item's JSON. */
  itemText(entry: Entry): string;
  /** Performs the expensive part of a large item in steps. */
  ahead(entry: Entry): Generator<void, void>;
  /** The whole list as compact JSON, in pieces that each take at most one or two milliseconds. */
  jsonPieces(): Iterable<BodyPiece>;
}

const noBytes = Buffer.alloc(0);
const footer = Buffer.from(']}\n');

/**
 * A list of objects: their cached JSON, unchanged (LIST-1), except that items of built-in kinds
 * omit apiVersion and kind.
 */
export function objectList(call: ApiCall, result: ListResult): ListDocument {
  const { entryKind: def } = call;
  const { version } = call.target;
  const apiVersion = apiVersionIn(def, version);
  const metadata = { ...def.behavior.listMetadata, ...listMetadata(result) };
  const head = { kind: def.listKind, apiVersion, metadata };
  const type = `"apiVersion":${jsonText(apiVersion)},"kind":${jsonText(def.kind)},`;
  const typeBytes = def.behavior.listItems === 'typed' ? 0 : type.length;
  return {
    head,
    member: 'items',
    count: result.count,
    entries: () => result.entries(),
    itemText: (entry) => itemText(jsonIn(def, version, entry), typeBytes),
    ahead: (entry) => jsonAhead(def, version, entry),
    *jsonPieces() {
      const text = encodeJson(head).toString('utf8');
      yield Buffer.from(`${text.slice(0, -1)},"items":[`);
      yield* servesStoredForm(def, version)
        ? result.jsonPieces(typeBytes)
        : convertedPieces(call, { result, typeBytes });
      yield footer;
    },
  };
}

function itemText(json: Buffer, typeBytes: number): string {
  return typeBytes === 0 ? json.toString('utf8') : `{${json.toString('utf8', typeBytes + 1)}`;
}

const firstBrace = Buffer.from('{');
const nextBrace = Buffer.from(',{');

function* convertedPieces(
  call: ApiCall,
  list: { readonly result: ListResult; readonly typeBytes: number },
): Generator<Buffer> {
  const { entryKind: def } = call;
  const { version } = call.target;
  let brace = firstBrace;
  for (const entry of list.result.entries()) {
    for (const _ of jsonAhead(def, version, entry)) yield noBytes;
    yield brace;
    brace = nextBrace;
    yield jsonIn(def, version, entry).subarray(list.typeBytes + 1);
  }
}

/** The ListMeta of a list. */
export function listMetadata(result: ListResult): JsonObject {
  const { continueToken, remainingItemCount } = result;
  return {
    // Computed objects have no version.
    ...(result.revision === 0 ? {} : { resourceVersion: String(result.revision) }),
    ...(continueToken === undefined ? {} : { continue: continueToken }),
    ...(remainingItemCount === undefined ? {} : { remainingItemCount }),
  };
}

/**
 * Approximate length of a piece in UTF-16 units; small, because rows cost more than their length.
 */
const pieceUnits = 8 * 1024;

/** A list whose items are derived from entries: rows, or metadata alone. */
export function madeList(
  list: Pick<ListDocument, 'head' | 'member' | 'count' | 'entries' | 'itemText'> &
    Partial<Pick<ListDocument, 'ahead'>>,
): ListDocument {
  const { ahead = nothingAhead } = list;
  return { ...list, ahead, jsonPieces: () => madePieces({ ...list, ahead }) };
}

function* nothingAhead(): Generator<void, void> {}

function* madePieces(
  list: Pick<ListDocument, 'head' | 'member' | 'entries' | 'itemText' | 'ahead'>,
): Generator<Buffer> {
  let piece = `${jsonText(list.head).slice(0, -1)},"${list.member}":[`;
  let separator = '';
  for (const entry of list.entries()) {
    for (const _ of list.ahead(entry)) yield noBytes;
    piece += separator + list.itemText(entry);
    separator = ',';
    if (piece.length < pieceUnits) continue;
    yield Buffer.from(piece);
    piece = '';
  }
  yield Buffer.from(`${piece}]}\n`);
}

/** Maximum length of a list in an audit record, in UTF-16 units: as long as one object may be. */
const recordedUnitsMax = 3 * 1024 * 1024;

/**
 * Adds a list to the audit record if the policy records answers (OPS-2), in slices. A list that is
 * too long is omitted, which an annotation states, as for truncated events.
 */
export async function recordList(call: ApiCall, document: ListDocument): Promise<void> {
  const { audit } = call;
  if (audit === undefined || !audit.recordsAnswers) return;
  const slices = requestSlices(call);
  const texts: string[] = [];
  let units = 0;
  for (const entry of document.entries()) {
    if (slices.over) await slices.pause();
    for (const _ of document.ahead(entry)) if (slices.over) await slices.pause();
    const text = document.itemText(entry);
    units += text.length;
    if (units > recordedUnitsMax) {
      audit.annotate(`${call.context.dialect.group('audit')}/truncated`, 'true');
      return;
    }
    texts.push(
      audit.omitsManagedFields
        ? await runAtPace(withoutManagers(text, document.member), slices)
        : text,
    );
  }
  const head = jsonText(document.head).slice(0, -1);
  audit.setResponseText(`${head},"${document.member}":[${texts.join(',')}]}`);
}

/** An item without managed fields, in steps; a table row has them in its object. */
function* withoutManagers(text: string, member: ListDocument['member']): Generator<void, string> {
  const bytes = Buffer.from(text);
  yield* parseAhead(bytes);
  const item = jsonObject(parseWrittenJson(bytes));
  const object = member === 'rows' ? item.object : item;
  if (!isObject(object) || !isObject(object.metadata)) return text;
  const { managedFields, ...rest } = object.metadata;
  if (managedFields === undefined) return text;
  object.metadata = rest;
  return String(yield* encodeJsonSteps(item));
}

/** A list of objects in protobuf (CODEC-3); the messages are kept with the entries. */
function protobufList(call: ApiCall, result: ListResult): Promise<Iterable<Buffer>> {
  const { def, version } = call.target;
  const apiVersion = apiVersionIn(def, version);
  return sealedList(call, {
    seal: { type: { apiVersion, kind: def.listKind }, metadata: metadataOf(listMetadata(result)) },
    entries: () => result.entries(),
    ahead: (entry) => messageAhead(call, entry),
    messageOf: (entry) => messageOf(call, entry),
  });
}

/** A list of metadata alone in protobuf. */
function protobufMetadataList(call: ApiCall, document: ListDocument): Promise<Iterable<Buffer>> {
  const { apiVersion, kind, metadata } = document.head;
  const schema = schemaOf('meta.v1.PartialObjectMetadata');
  const itemOf = (entry: Entry) => jsonObject(parseWrittenText(document.itemText(entry)));
  return sealedList(call, {
    seal: {
      type: { apiVersion: String(apiVersion), kind: String(kind) },
      metadata: metadataOf(jsonObject(metadata)),
      // v1beta1 of this list swaps the field numbers.
      fields:
        call.rendering.shapeVersion === 'v1beta1' ? { metadata: 2, items: 1 } : usualListFields,
    },
    entries: () => document.entries(),
    messageOf: (entry) => encodeMessage(schema, itemOf(entry)),
  });
}

function metadataOf(metadata: JsonObject): Buffer {
  return encodeMessage(schemaOf('meta.v1.ListMeta'), metadata);
}

/** Bytes of messages that are kept between the measuring pass and the sending pass. */
const keptBytesMax = 1024 * 1024;

/**
 * A collection in one envelope, which starts with its length: all messages are encoded once to
 * measure them, in slices, and again as they are sent. Only the first ones are kept in between, so
 * the memory of a request does not grow with its list. Both passes read the same snapshot.
 */
async function sealedList(
  call: ApiCall,
  list: {
    readonly seal: Omit<ListSeal, 'itemsBytes'>;
    readonly entries: () => Iterable<Entry>;
    /** Prepares a message in steps. */
    readonly ahead?: (entry: Entry) => Iterable<void>;
    readonly messageOf: (entry: Entry) => Buffer;
  },
): Promise<Iterable<Buffer>> {
  const { seal: envelope, entries } = list;
  const slices = requestSlices(call);
  const kept: Buffer[] = [];
  let keptBytes = 0;
  let itemsBytes = 0;
  for (const entry of entries()) {
    if (slices.over) await slices.pause();
    for (const _ of list.ahead?.(entry) ?? []) if (slices.over) await slices.pause();
    const message = list.messageOf(entry);
    itemsBytes += itemFieldBytes(message.length);
    keptBytes += message.length;
    if (keptBytes <= keptBytesMax) kept.push(message);
  }
  function* messages(): Generator<Buffer> {
    let at = 0;
    for (const entry of entries()) {
      yield kept[at] ?? list.messageOf(entry);
      at += 1;
    }
  }
  return sealedListPieces({ ...envelope, itemsBytes }, messages());
}
