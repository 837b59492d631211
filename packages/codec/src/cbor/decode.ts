import type { JsonObject, JsonValue } from '@wheelhouse/machinery';
import { FoundPaths, type Schema } from '@wheelhouse/schema';
import { CborError, textOfFault } from './cursor.ts';
import { Decoder } from './decoder.ts';
import { anyMap } from './item-types.ts';
import { checkWellFormed, storedLimits, wellFormedSteps } from './well-formed.ts';

export { CborError } from './cursor.ts';

/**
 * Decodes one CBOR item to a JSON value (CODEC-4). Byte strings become strings, because
 * kube-apiserver encodes strings as byte strings. Tags for times and for text forms of byte strings
 * have an effect; other tags are ignored. Duplicate keys, integers beyond 64 bits, NaN, and
 * everything that JSON cannot represent are rejected.
 * @throws CborError or TooManyValues
 */
export function decodeCbor(bytes: Buffer): JsonValue {
  checkWellFormed(bytes);
  return decodeWhole(new Decoder(bytes), (decoder) => decoder.any());
}

/**
 * Decodes a map, or null, which counts as an empty map.
 * @throws CborError or TooManyValues
 */
export function decodeCborMap(bytes: Buffer): JsonObject {
  checkWellFormed(bytes);
  const value = decodeWhole(new Decoder(bytes), (decoder) => decoder.whole(anyMap));
  return (value ?? {}) as JsonObject;
}

/**
 * `decodeCborMap` in steps, for a stored value, which may have longer lists than a body.
 * @throws CborError or TooManyValues
 */
export function* decodeStoredCborSteps(bytes: Buffer): Generator<void, JsonObject> {
  yield* wellFormedSteps(bytes, storedLimits);
  const decoder = new Decoder(bytes);
  const value = yield* decoder.mapSteps();
  checkFault(decoder);
  return (value ?? {}) as JsonObject;
}

/** A body decoded as a Go type, without unknown members. */
interface TypedCbor {
  readonly value: JsonObject;
  /** The paths of unknown members. */
  readonly unknown?: FoundPaths;
}

/**
 * Decodes one item by the schema of a built-in type. The typed decoder must still add zero values
 * and normalize times and quantities.
 * @throws CborError or TooManyValues
 */
export function decodeCborAs(schema: Schema, bytes: Buffer): TypedCbor {
  checkWellFormed(bytes);
  const strict = new Decoder(bytes, 'strict');
  const value = strict.whole(schema);
  const { fault } = strict;
  if (fault === undefined) return { value: (value ?? {}) as JsonObject };
  if (fault.kind !== 'unknown') throw new CborError(textOfFault(fault));
  const lax = new Decoder(bytes);
  const unknown = new FoundPaths();
  lax.unknown = unknown;
  const decoded = decodeWhole(lax, (decoder) => decoder.whole(schema));
  return { value: (decoded ?? {}) as JsonObject, unknown };
}

/** Decodes, and throws the error of the first fault. */
function decodeWhole(decoder: Decoder, decode: (decoder: Decoder) => JsonValue): JsonValue {
  const value = decode(decoder);
  checkFault(decoder);
  return value;
}

function checkFault({ fault }: Decoder): void {
  if (fault !== undefined) throw new CborError(textOfFault(fault));
}
