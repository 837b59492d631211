import { encodeJson, jsonText, parseWrittenText } from '@wheelhouse/codec';
import { servesStoredForm } from '@wheelhouse/kinds';
import {
  apiVersionOf,
  type BodyPiece,
  isObject,
  type JsonObject,
  jsonObject,
} from '@wheelhouse/machinery';
import type { ApiCall } from '../endpoints/call.ts';
import { jsonAhead, jsonIn } from '../registry/object-codec.ts';
import type { Entry, ListResult } from '../watchcache/contract.ts';
import { RequestSlices } from './request-slices.ts';

/** A collection as it is answered, before it has an encoding: its items are made as they are taken. */
export interface ListDocument {
  /** All members but that of the items, which comes last. */
  readonly head: JsonObject;
  readonly member: 'items' | 'rows';
  readonly count: number;
  /** Entries in the order of the items. */
  entries(): Iterable<Entry>;
  /** One item's JSON. */
  itemText(entry: Entry): string;
  /** Makes in steps what takes longest of a large item. */
  ahead(entry: Entry): Generator<void, void>;
  /** The whole as compact JSON, in pieces of at most a millisecond or two of work. */
  jsonPieces(): Iterable<BodyPiece>;
}

const noBytes = Buffer.alloc(0);
const footer = Buffer.from(']}\n');

/**
 * The objects of a list themselves, which are in the cache as they are answered in JSON (LIST-1), but
 * for the type that objects of built-in kinds state alone and not as items.
 */
export function objectList(call: ApiCall, result: ListResult): ListDocument {
  const { def, version } = call.target;
  const apiVersion = apiVersionOf({ group: def.group, version: version.version });
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
  const { def, version } = call.target;
  let brace = firstBrace;
  for (const entry of list.result.entries()) {
    for (const _ of jsonAhead(def, version, entry)) yield noBytes;
    yield brace;
    brace = nextBrace;
    yield jsonIn(def, version, entry).subarray(list.typeBytes + 1);
  }
}

/** What a list says of itself. */
export function listMetadata(result: ListResult): JsonObject {
  const { continueToken, remainingItemCount } = result;
  return {
    // What is made when it is asked for has no version.
    ...(result.revision === 0 ? {} : { resourceVersion: String(result.revision) }),
    ...(continueToken === undefined ? {} : { continue: continueToken }),
    ...(remainingItemCount === undefined ? {} : { remainingItemCount }),
  };
}

/** Pieces are about this long, in UTF-16 units: rows cost more than their length tells. */
const pieceUnits = 8 * 1024;

/** A list of what is made of each entry: rows, or metadata alone. */
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

/** The longest list that a record holds, in UTF-16 units: as much as one object may have. */
const recordedUnitsMax = 3 * 1024 * 1024;

/**
 * Puts a list into the audit record where the policy wants answers recorded (OPS-2), in slices. One
 * that is too long is left out, and an annotation says so, as where events are truncated.
 */
export async function recordList(call: ApiCall, document: ListDocument): Promise<void> {
  const { audit } = call;
  if (audit === undefined || !audit.recordsAnswers) return;
  const slices = new RequestSlices(call);
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
    texts.push(audit.omitsManagedFields ? withoutManagers(text, document.member) : text);
  }
  const head = jsonText(document.head).slice(0, -1);
  audit.responseText(`${head},"${document.member}":[${texts.join(',')}]}`);
}

/** An item without who owns which field; a row carries it in its object. */
function withoutManagers(text: string, member: ListDocument['member']): string {
  const item = jsonObject(parseWrittenText(text));
  const object = member === 'rows' ? item.object : item;
  if (!isObject(object) || !isObject(object.metadata)) return text;
  const { managedFields, ...rest } = object.metadata;
  if (managedFields === undefined) return text;
  object.metadata = rest;
  return jsonText(item);
}
