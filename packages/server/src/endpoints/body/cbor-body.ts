import { CborError, type DecodedJson, decodeCborAs, decodeCborMap } from '@wheelhouse/codec';
import type { JsonObject } from '@wheelhouse/machinery';
import type { FoundPaths, Schema } from '@wheelhouse/schema';

/** What decoding a body from CBOR found beside its value. */
export interface CborFindings {
  /** Why the body is not what its kind says: the value has that alone. */
  readonly misfit?: string;
  /** The unknown members; a custom kind's own decoder finds those. */
  readonly unknown?: FoundPaths;
}

const text: Schema = { type: 'string' };

/** What of a body says which kind it is. */
const typeMeta: Schema = {
  type: 'object',
  typeName: 'meta.v1.TypeMeta',
  properties: new Map([
    ['apiVersion', { schema: text }],
    ['kind', { schema: text }],
  ]),
};

/**
 * Decodes a body as upstream does: by its schema, which there is of built-in kinds, once its kind is
 * told, or else as a map whose kind is asked for where that fails (CODEC-4). Throws CborError when
 * the kind cannot be told.
 */
export function decodeCborBody(
  bytes: Buffer,
  schema: Schema | undefined,
): DecodedJson & { readonly cbor: CborFindings } {
  const type = schema === undefined ? undefined : typeOf(bytes);
  try {
    const { value, unknown } =
      schema === undefined ? { value: decodeCborMap(bytes) } : decodeCborAs(schema, bytes);
    return { value, duplicates: [], cbor: unknown === undefined ? {} : { unknown } };
  } catch (error) {
    if (!(error instanceof CborError)) throw error;
    return { value: type ?? typeOf(bytes), duplicates: [], cbor: { misfit: error.message } };
  }
}

function typeOf(bytes: Buffer): JsonObject {
  try {
    return decodeCborAs(typeMeta, bytes).value;
  } catch (error) {
    if (!(error instanceof CborError)) throw error;
    throw new CborError(`unable to determine group/version/kind: ${error.message}`);
  }
}
