import type { JsonValue } from '../base/json.ts';
import type { MaybePromise } from '../base/maybe-promise.ts';
import { type DecodedJson, decodeJson } from '../codec/json.ts';
import { contentMediaType } from '../codec/negotiation.ts';
import { decodeYaml } from '../codec/yaml.ts';
import { unsupportedMediaType } from '../meta/status.ts';
import { mediaTypes, servedEncodings } from './encodings.ts';

/** A request body as bytes and as the value its Content-Type says. */
export interface DecodedBody {
  readonly bytes: Buffer;
  readonly value: JsonValue;
  /** Paths of members given twice. */
  readonly duplicates: readonly string[];
  /** The same as YAML tells them: `line 4: key "a" already set in map`. */
  readonly repeated?: readonly string[];
}

/** Decodes a body; throws (or rejects with) JsonError and YamlError. */
export type BodyDecoder = (bytes: Buffer) => MaybePromise<DecodedJson>;

const decoders: Readonly<Record<string, BodyDecoder>> = {
  'application/json': (bytes) => decodeJson(bytes),
  'application/yaml': decodeYaml,
};

/** The decoder a Content-Type names; JSON when there is none. Throws 415 (API-9, CODEC-1). */
export function decoderFor(contentType: string | undefined): BodyDecoder {
  if (contentType === undefined || contentType === '') return decodeJson;
  const mediaType = contentMediaType(contentType) ?? '';
  if (!Object.hasOwn(decoders, mediaType)) {
    throw unsupportedMediaType(mediaTypes(servedEncodings));
  }
  return decoders[mediaType] as BodyDecoder;
}
