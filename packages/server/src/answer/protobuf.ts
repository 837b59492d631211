import {
  encodeMessage,
  encodeMessageSteps,
  itemFieldBytes,
  type ListSeal,
  parseAhead,
  parseWrittenText,
  seal,
  sealedListPieces,
  usualListFields,
} from '@wheelhouse/codec';
import { schemaOf } from '@wheelhouse/kinds';
import { apiVersionOf, type JsonObject, jsonObject, pacedBytesMin } from '@wheelhouse/machinery';
import type { ApiCall } from '../endpoints/call.ts';
import { objectIn } from '../registry/object-codec.ts';
import type { Entry, ListResult } from '../watchcache/contract.ts';
import { type ListDocument, listMetadata } from './list-document.ts';
import { RequestSlices } from './request-slices.ts';

/**
 * Protobuf of cached objects (CODEC-3): an entry's message is made once and kept with it, so that
 * gets, lists and watches after the first cost what JSON costs.
 */
type Addressed = Pick<ApiCall, 'target'>;

/** An entry's own message, without envelope. */
export function messageOf(call: Addressed, entry: Entry): Buffer {
  const memoKey = memoKeyOf(call);
  return entry.memo?.get(memoKey) ?? makeMessage(call, { entry, memoKey });
}

function memoKeyOf({ target }: Addressed): string {
  return `${target.def.group}/${target.version.version};protobuf`;
}

function makeMessage(
  { target }: Addressed,
  { entry, memoKey }: { entry: Entry; memoKey: string },
): Buffer {
  const { def, version } = target;
  const message = encodeMessage(version.schema, objectIn(def, version, entry));
  entry.memo ??= new Map();
  entry.memo.set(memoKey, message);
  return message;
}

/** Makes the message of a large entry in steps, unless it is kept with the entry. */
export function* messageAhead(call: Addressed, entry: Entry): Generator<void, void> {
  const memoKey = memoKeyOf(call);
  if (entry.json.length < pacedBytesMin || entry.memo?.has(memoKey) === true) return;
  const { def, version } = call.target;
  yield* parseAhead(entry.json);
  const object = objectIn(def, version, entry);
  yield;
  const message = yield* encodeMessageSteps(version.schema, object);
  entry.memo ??= new Map();
  entry.memo.set(memoKey, message);
}

const versionOf = ({ target }: Addressed) =>
  apiVersionOf({ group: target.def.group, version: target.version.version });

/** One object in its envelope. */
export function protobufObject(call: Addressed, entry: Entry): Buffer {
  const type = { apiVersion: versionOf(call), kind: call.target.def.kind };
  return seal(type, messageOf(call, entry));
}

/** The objects of a list in protobuf (CODEC-3); their messages stay with the entries. */
export function protobufList(call: ApiCall, result: ListResult): Promise<Iterable<Buffer>> {
  const { def, version } = call.target;
  const apiVersion = apiVersionOf({ group: def.group, version: version.version });
  return sealedList(call, {
    seal: { type: { apiVersion, kind: def.listKind }, metadata: metadataOf(listMetadata(result)) },
    entries: () => result.entries(),
    ahead: (entry) => messageAhead(call, entry),
    messageOf: (entry) => messageOf(call, entry),
  });
}

/** A list of metadata alone in protobuf. */
export function protobufMetadataList(
  call: ApiCall,
  document: ListDocument,
): Promise<Iterable<Buffer>> {
  const { apiVersion, kind, metadata } = document.head;
  const schema = schemaOf('meta.v1.PartialObjectMetadata');
  const itemOf = (entry: Entry) => jsonObject(parseWrittenText(document.itemText(entry)));
  return sealedList(call, {
    seal: {
      type: { apiVersion: String(apiVersion), kind: String(kind) },
      metadata: metadataOf(jsonObject(metadata)),
      // The first version of this list numbers its fields the other way round.
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

/** Messages kept between the pass that measures them and the one that sends them, bytes. */
const keptBytesMax = 1024 * 1024;

/**
 * A collection in one envelope, whose length comes first: all messages are made once for their
 * lengths, in slices, and again as they are sent. Only the first are kept from one time to the other,
 * so that what a request holds does not grow with its list. The snapshot is the same both times.
 */
async function sealedList(
  call: ApiCall,
  list: {
    readonly seal: Omit<ListSeal, 'itemsBytes'>;
    readonly entries: () => Iterable<Entry>;
    /** Makes in steps what a message is made of. */
    readonly ahead?: (entry: Entry) => Iterable<void>;
    readonly messageOf: (entry: Entry) => Buffer;
  },
): Promise<Iterable<Buffer>> {
  const { seal: envelope, entries } = list;
  const slices = new RequestSlices(call);
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
