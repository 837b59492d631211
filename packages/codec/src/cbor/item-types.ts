import { int64Max, int64Min, parseGoTime, parseQuantity } from '@wheelhouse/machinery';
import type { Schema } from '@wheelhouse/schema';

/** The schema of an item of any type; compared by identity. */
export const anyItem: Schema = {};
/** The schema of a text, for parts of a value that have no schema of their own, such as keys. */
export const textItem: Schema = { type: 'string' };
/** The schema of an item of a list that stands for bytes. */
export const byteItem: Schema = { type: 'integer', format: 'uint8' };
/** The schema of the number in an IntOrString. */
export const int32Item: Schema = { type: 'integer', format: 'int32' };
/** The schema of a map with values of any type. */
export const anyMap: Schema = {
  type: 'object',
  additionalProperties: anyItem,
  goName: 'map[string]interface {}',
};

const rawExtension =
  'failed to transcode RawExtension to JSON: failed to parse RawExtension bytes as CBOR: ';

/** Prefixes of faults in types that kube-apiserver first keeps as bytes, by type name. */
export const rawPrefixes: Readonly<Record<string, string>> = {
  'runtime.RawExtension': rawExtension,
  'runtime.Object': rawExtension,
  'meta.v1.FieldsV1': 'failed to transcode FieldsV1 to JSON: metav1.FieldsV1 cbor invalid: ',
};

const errorOf = (parsed: object) => ('error' in parsed ? String(parsed.error) : undefined);

/** Returns the error of a string that does not have the format; undefined if it has. */
export const formatErrors: Readonly<Record<string, (text: string) => string | undefined>> = {
  'date-time': (text) => errorOf(parseGoTime(text)),
  'micro-time': (text) => errorOf(parseGoTime(text, 6)),
  quantity: (text) => errorOf(parseQuantity(text.trim())),
};

/** The encoding of nil. */
export const nil = 0xf6;
/** The encoding of undefined. */
export const undefinedItem = 0xf7;
/** The tag of self-described CBOR. */
export const selfDescribed = 55799;

/** The text form of a byte string that a tag selects. */
export const encodings: Readonly<Record<number, 'base64url' | 'base64' | 'hex'>> = {
  21: 'base64url',
  22: 'base64',
  23: 'hex',
};

const formatBounds: Readonly<Record<string, readonly [bigint, bigint]>> = {
  int32: [-(2n ** 31n), 2n ** 31n - 1n],
  uint8: [0n, 255n],
};

/** Whether an integer fits in 64 bits with a sign. */
export const fitsInt64 = (value: bigint) => value >= int64Min && value <= int64Max;

/** Whether an integer is within the bounds of a format. */
export function fitsFormat(value: bigint, format = 'int64'): boolean {
  const [min, max] = formatBounds[format] ?? [int64Min, int64Max];
  return value >= min && value <= max;
}

/** Returns why an integer does not fit its type. */
export const overflow = (value: bigint | string, goType: string) => `${value} overflows ${goType}`;

/** Whether the Go type is string; other types that are strings in JSON have formats. */
export const isText = (schema: Schema) => schema.type === 'string' && schema.format !== 'byte';

/** Whether a type accepts arbitrary values. */
export const isRaw = (schema: Schema) =>
  schema.type === undefined ||
  (schema.type === 'object' &&
    schema.properties === undefined &&
    schema.additionalProperties === undefined);
