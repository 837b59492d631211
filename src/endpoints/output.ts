import type { JsonValue } from '../base/json.ts';
import type { MaybePromise } from '../base/maybe-promise.ts';
import { encodeJson } from '../codec/json.ts';

/** The encoding an answer is written in, as negotiated from `Accept`. */
export interface Output {
  readonly mediaType: 'application/json' | 'application/yaml';
  readonly pretty: boolean;
  /** A transformation asked for with `as=`; none for the object itself. */
  readonly as: 'none' | 'Table' | 'PartialObjectMetadata' | 'PartialObjectMetadataList';
}

/** Plain JSON, for answers before or outside negotiation. */
export const jsonOutput: Output = { mediaType: 'application/json', pretty: false, as: 'none' };

/** Encodes a decoded value. */
export function encodeValue(output: Output, value: JsonValue): MaybePromise<Buffer> {
  if (output.mediaType === 'application/yaml') return encodeYamlLater(value);
  return output.pretty ? prettyJson(value) : encodeJson(value);
}

/** Encodes what is already JSON bytes: as it is when the answer is compact JSON. */
export function encodeBytes(output: Output, json: Buffer): MaybePromise<Buffer> {
  if (output.mediaType === 'application/json' && !output.pretty) return json;
  return encodeValue(output, decodeTrusted(json));
}

/** Two spaces an indent and a newline at the end, as upstream's pretty printer. */
export function prettyJson(value: JsonValue): Buffer {
  return Buffer.from(`${indentJson(encodeJson(value))}\n`);
}
