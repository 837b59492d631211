import { encodeJson, indentedPieces, loadYaml, parseWrittenJson } from '@wheelhouse/codec';
import {
  firstPieces,
  type JsonValue,
  type MaybePromise,
  type ResponseBody,
  wholeBytes,
} from '@wheelhouse/machinery';
import { jsonEncoding, type ServedEncoding } from './encodings.ts';

/** The encoding an answer is written in, as negotiated from `Accept`. */
export interface Output {
  readonly encoding: ServedEncoding;
  readonly pretty: boolean;
  /** A transformation asked for with `as=`; none for the object itself. */
  readonly as: 'none' | 'Table' | 'PartialObjectMetadata' | 'PartialObjectMetadataList';
  /** Version of the transformed answer. */
  readonly version: 'v1' | 'v1beta1';
}

/** Plain JSON, for answers before or outside negotiation. */
export const jsonOutput: Output = {
  encoding: jsonEncoding,
  pretty: false,
  as: 'none',
  version: 'v1',
};

/** Longer bodies are sent as they are made, bytes. */
const wholeBytesMax = 128 * 1024;

/** Encodes a decoded value. Long texts are made as they are taken (TRUST-2). */
export function encodeValue(output: Output, value: JsonValue): MaybePromise<ResponseBody> {
  const { encoding, pretty } = output;
  if (encoding.form === 'json') return jsonBody(encodeJson(value), pretty);
  return encoding.form === 'yaml' ? yaml(() => value) : encoding.encode(value);
}

/** Encodes what is already compact JSON bytes: as it is when the answer is. */
export function encodeBytes(output: Output, json: Buffer): MaybePromise<ResponseBody> {
  const { encoding, pretty } = output;
  if (encoding.form === 'json') return jsonBody(json, pretty);
  const value = () => parseWrittenJson(json);
  return encoding.form === 'yaml' ? yaml(value) : encoding.encode(value());
}

const newline = 0x0a;

/** A newline ends the text, as Go's encoder has it. */
function jsonBody(json: Buffer, pretty: Output['pretty']): ResponseBody {
  if (pretty) return indented(json);
  const body = Buffer.allocUnsafe(json.length + 1);
  json.copy(body);
  body[json.length] = newline;
  return body;
}

/** Two spaces an indent and a newline at the end, as upstream's pretty printer. */
function indented(json: Buffer): ResponseBody {
  return bodyOf(indentedPieces([json]));
}

async function yaml(value: () => JsonValue): Promise<ResponseBody> {
  // What writes YAML is loaded by the first who asks for it.
  const { yamlPieces } = await loadYaml();
  return bodyOf(encodedTexts(yamlPieces(value())));
}

/** Texts as bytes. */
export function* encodedTexts(texts: Iterable<string>): Generator<Buffer> {
  for (const text of texts) yield Buffer.from(text);
}

/** Short bodies whole, so that they go out in one write with their length ahead. */
function bodyOf(pieces: Iterable<Buffer>): ResponseBody {
  const first = firstPieces(pieces, wholeBytesMax);
  return Array.isArray(first) ? wholeBytes(first) : first;
}
