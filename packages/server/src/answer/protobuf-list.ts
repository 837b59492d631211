import {
  encodeMessage,
  itemFieldBytes,
  type ListSeal,
  parseWrittenText,
  sealedListPieces,
  usualListFields,
} from '@wheelhouse/codec';
import { schemaOf } from '@wheelhouse/kinds';
import { apiVersionOf, type JsonObject } from '@wheelhouse/machinery';
import type { ApiCall } from '../endpoints/call.ts';
import type { Entry, ListResult } from '../watchcache/contract.ts';
import { type ListDocument, listMetadata } from './list-document.ts';
import { messageOf } from './protobuf-bytes.ts';
import { RequestSlices } from './request-slices.ts';

/** The objects of a list in protobuf (CODEC-3); their messages stay with the entries. */
export function protobufList(call: ApiCall, result: ListResult): Promise<Iterable<Buffer>> {
  const { def, version } = call.target;
  const apiVersion = apiVersionOf({ group: def.group, version: version.version });
  return sealedList(call, {
    seal: { type: { apiVersion, kind: def.listKind }, metadata: metadataOf(listMetadata(result)) },
    entries: () => result.entries(),
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
  const itemOf = (entry: Entry) => parseWrittenText(document.itemText(entry)) as JsonObject;
  return sealedList(call, {
    seal: {
      type: { apiVersion: String(apiVersion), kind: String(kind) },
      metadata: metadataOf(metadata as JsonObject),
      // The first version of this list numbers its fields the other way round.
      fields: call.output.version === 'v1beta1' ? { metadata: 2, items: 1 } : usualListFields,
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
    readonly messageOf: (entry: Entry) => Buffer;
  },
): Promise<Iterable<Buffer>> {
  const { seal, entries, messageOf } = list;
  const slices = new RequestSlices(call);
  const kept: Buffer[] = [];
  let keptBytes = 0;
  let itemsBytes = 0;
  for (const entry of entries()) {
    if (slices.over) await slices.pause();
    const message = messageOf(entry);
    itemsBytes += itemFieldBytes(message.length);
    keptBytes += message.length;
    if (keptBytes <= keptBytesMax) kept.push(message);
  }
  function* messages(): Generator<Buffer> {
    let at = 0;
    for (const entry of entries()) {
      yield kept[at] ?? messageOf(entry);
      at += 1;
    }
  }
  return sealedListPieces({ ...seal, itemsBytes }, messages());
}
