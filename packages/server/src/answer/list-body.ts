import { cborListPieces, indentedPieces, loadYaml, parseWrittenText } from '@wheelhouse/codec';
import {
  type BodyPiece,
  type JsonValue,
  type MaybePromise,
  pieceBytes,
} from '@wheelhouse/machinery';
import type { ApiCall } from '../endpoints/call.ts';
import type { ListResult } from '../watchcache/contract.ts';
import type { ListDocument } from './list-document.ts';
import { encodedTexts } from './output.ts';
import { protobufList, protobufMetadataList } from './protobuf-list.ts';

/**
 * The body of a list in the encoding of the answer, item by item: nothing of it is made before its
 * turn, and never all of it at once (TRUST-3).
 */
export function listBody(
  call: ApiCall,
  list: { readonly document: ListDocument; readonly result: ListResult },
): MaybePromise<Iterable<BodyPiece>> {
  const { document, result } = list;
  const { encoding, pretty, as } = call.output;
  switch (encoding.form) {
    case 'json':
      return pretty ? indentedPieces(buffersOf(document.jsonPieces())) : document.jsonPieces();
    case 'cbor':
      return cborListPieces({ ...document, items: valuesOf(document) });
    case 'yaml':
      return yamlBody(document);
    case 'protobuf':
      return as === 'none' ? protobufList(call, result) : protobufMetadataList(call, document);
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

function* valuesOf(document: ListDocument): Generator<JsonValue> {
  for (const entry of document.entries()) yield parseWrittenText(document.itemText(entry));
}
