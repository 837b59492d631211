import type { JsonValue } from '../base/json.ts';
import type { MaybePromise } from '../base/maybe-promise.ts';
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

/** Encodes what is already JSON bytes: as it is when the answer is compact JSON. */
export function encodeBytes(output: Output, json: Buffer): MaybePromise<Buffer> {
  if (output.encoding.form === 'json' && !output.pretty) return json;
  return encodeValue(output, decodeJson(json).value);
}

/** Two spaces an indent and a newline at the end, as upstream's pretty printer. */
export function prettyJson(value: JsonValue): Buffer {
  return Buffer.from(`${indentJson(encodeJson(value).toString('utf8'))}\n`);
}

/** Lays compact JSON out; text level, so that 64-bit integers stay as they are. */
function indentJson(compact: string): string {
  let out = '';
  let depth = 0;
  let isInString = false;
  const line = () => `\n${'  '.repeat(depth)}`;
  for (let at = 0; at < compact.length; at += 1) {
    const character = compact[at] as string;
    if (isInString) {
      out += character;
      if (character === '\\') out += compact[++at] ?? '';
      else if (character === '"') isInString = false;
    } else if (character === '"') {
      isInString = true;
      out += character;
    } else if (character === '{' || character === '[') {
      const next = compact[at + 1];
      depth += 1;
      if (next === '}' || next === ']') {
        out += character + next;
        depth -= 1;
        at += 1;
      } else out += character + line();
    } else if (character === '}' || character === ']') {
      depth -= 1;
      out += line() + character;
    } else if (character === ',') out += character + line();
    else if (character === ':') out += ': ';
    else out += character;
  }
  return out;
}
