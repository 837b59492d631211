import type { JsonObject, JsonValue } from '@wheelhouse/machinery';
import { FoundPaths, type Schema } from '@wheelhouse/schema';
import { CborError } from './cursor.ts';
import { Decoder } from './decoder.ts';
import { textOfFault } from './fault.ts';
import { anyMap } from './wanted.ts';
import { checkWellFormed, storedLimits } from './well-formed.ts';

export { CborError } from './cursor.ts';

/**
 * Decodes one CBOR item to what JSON would hold (CODEC-4): byte strings are strings, since upstream
 * writes them so; the tags for times and for byte strings' text forms are followed, other tags
 * dropped. Twice the same key, integers beyond 64 bits, NaN and everything JSON lacks are refused.
 * Throws CborError.
 */
export function decodeCbor(bytes: Buffer): JsonValue {
  checkWellFormed(bytes);
  return finished(new Decoder(bytes), (decoder) => decoder.any());
}

/**
 * The same of what has to be a map, or null, which stands for an empty one. What comes from the store
 * may have longer lists than a body in CBOR. Throws CborError.
 */
export function decodeCborMap(
  bytes: Buffer,
  { source = 'body' }: { readonly source?: 'body' | 'store' } = {},
): JsonObject {
  checkWellFormed(bytes, source === 'store' ? storedLimits : undefined);
  const value = finished(new Decoder(bytes), (decoder) => decoder.whole(anyMap));
  return (value ?? {}) as JsonObject;
}

/** A body decoded into a Go type: members the type does not have are not in it. */
export interface TypedCbor {
  readonly value: JsonObject;
  /** The paths of the members that the type does not have. */
  readonly unknown?: FoundPaths;
}

/**
 * Decodes one item by the schema of a built-in type, with upstream's faults; the result still wants
 * the typed decoder's zero values and the forms of times and quantities. Throws CborError.
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
  const decoded = finished(lax, (decoder) => decoder.whole(schema));
  return { value: (decoded ?? {}) as JsonObject, unknown };
}

function finished(decoder: Decoder, decode: (decoder: Decoder) => JsonValue): JsonValue {
  const value = decode(decoder);
  if (decoder.fault !== undefined) throw new CborError(textOfFault(decoder.fault));
  return value;
}
