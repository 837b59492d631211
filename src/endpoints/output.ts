import type { JsonValue } from '../base/json.ts';
import type { MaybePromise } from '../base/maybe-promise.ts';
import { indentJson } from '../codec/indent-json.ts';
import { decodeJson, encodeJson } from '../codec/json.ts';
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

/** Encodes a decoded value. */
export function encodeValue(output: Output, value: JsonValue): MaybePromise<Buffer> {
  const { encoding, pretty } = output;
  return encoding.form === 'json' && pretty ? prettyJson(value) : encoding.encode(value);
}

/** Encodes what is already compact JSON bytes: as it is when the answer is. */
export function encodeBytes(output: Output, json: Buffer): MaybePromise<Buffer> {
  if (output.encoding.form === 'json') return output.pretty ? indentJson(json) : json;
  return encodeValue(output, decodeJson(json).value);
}

/** Two spaces an indent and a newline at the end, as upstream's pretty printer. */
export function prettyJson(value: JsonValue): Buffer {
  return indentJson(encodeJson(value));
}
