import {
  base64ErrorAt,
  canonicalBase64,
  int64Max,
  int64Min,
  isWrittenTime,
  type JsonValue,
  parseGoTime,
  parseQuantity,
  printGoTime,
  problemText,
  type Stride,
} from '@wheelhouse/machinery';
import { goDurationError, parseGoDuration, printGoDuration } from '../go-wording.ts';
import type { Schema } from '../schema.ts';
import {
  type DecodeContext,
  fail,
  failFinally,
  failType,
  failTypeFinally,
  numberText,
} from './decode-context.ts';

/** Decodes a value that is not null. The result is valid only if the context has no error. */
type Decoder = (value: JsonValue, context: DecodeContext) => JsonValue;

/** Decodes a value that is not null in steps. */
export type StepDecoder = (
  value: JsonValue,
  context: DecodeContext,
  stride: Stride,
) => Generator<void, JsonValue>;

/** How Go decodes one type: its decoder, its zero value, and which values are empty. */
export interface TypedWalker {
  readonly decode: Decoder;
  /** `decode` in steps, for types whose values contain others. */
  readonly decodeSteps?: StepDecoder;
  /** Returns a new zero value. */
  readonly zero: () => JsonValue;
  /** Whether `omitempty` omits the value if it is not behind a pointer. */
  readonly isEmpty: (value: JsonValue) => boolean;
  /** False for scalars, which contain no unknown members, so that no path is needed. */
  readonly nested: boolean;
}

const never = () => false;

/** Returns the walker of a scalar schema; undefined for objects, lists, and opaque values. */
export function scalarWalker(schema: Schema): TypedWalker | undefined {
  if (schema.intOrString === true) return scalar(decodeIntOrString, 0, never);
  switch (schema.type) {
    case 'string':
      return stringWalker(schema);
    case 'integer':
      return scalar(integerDecoder(schema), 0, (value) => value === 0);
    case 'number':
      return scalar(numberDecoder(schema), 0, (value) => value === 0);
    case 'boolean':
      return scalar(booleanDecoder(schema), false, (value) => value === false);
    default:
      return undefined;
  }
}

function scalar(
  decode: Decoder,
  zero: JsonValue,
  isEmpty: (value: JsonValue) => boolean,
): TypedWalker {
  return { decode, zero: () => zero, isEmpty, nested: false };
}

function stringWalker(schema: Schema): TypedWalker {
  const empty = (value: JsonValue) => value === '' || value === null;
  switch (schema.format) {
    case 'date-time':
      return scalar(timeDecoder(0), null, never);
    case 'micro-time':
      return scalar(timeDecoder(6), null, never);
    case 'duration':
      return scalar(decodeDuration, '0s', never);
    case 'quantity':
      return scalar(decodeQuantity, '0', never);
    case 'byte':
      return scalar(bytesDecoder(schema), null, empty);
    default:
      return scalar(plainStringDecoder(schema), '', empty);
  }
}

function plainStringDecoder(schema: Schema): Decoder {
  return (value, context) => {
    if (typeof value !== 'string') failType(context, value, { schema });
    return value;
  };
}

function booleanDecoder(schema: Schema): Decoder {
  return (value, context) => {
    if (typeof value !== 'boolean') failType(context, value, { schema });
    return value;
  };
}

function numberDecoder(schema: Schema): Decoder {
  return (value, context) => {
    if (typeof value === 'bigint') return Number(value);
    if (typeof value !== 'number') failType(context, value, { schema });
    return value;
  };
}

function isInt32(value: JsonValue): boolean {
  return typeof value === 'number' && value === (value | 0);
}

function isInt64(value: JsonValue): boolean {
  if (typeof value === 'bigint') return value >= int64Min && value <= int64Max;
  return Number.isSafeInteger(value);
}

function integerDecoder(schema: Schema): Decoder {
  const fits = schema.format === 'int32' ? isInt32 : isInt64;
  return (value, context) => {
    if (fits(value)) return value;
    // Go's map converter truncates numbers that are too large.
    if (context.source === 'map' && isInt64(value)) {
      return typeof value === 'bigint' ? Number(BigInt.asIntN(32, value)) : Number(value) | 0;
    }
    const isNumber = typeof value === 'number' || typeof value === 'bigint';
    failType(context, value, { schema, ...(isNumber ? { what: numberText(context, value) } : {}) });
    return value;
  };
}

function decodeIntOrString(value: JsonValue, context: DecodeContext): JsonValue {
  if (typeof value === 'string' || isInt32(value)) return value;
  const isNumber = typeof value === 'number' || typeof value === 'bigint';
  const what = isNumber ? { what: numberText(context, value) } : {};
  failTypeFinally(context, value, { type: 'int32', ...what });
  return value;
}

function timeDecoder(digits: 0 | 6): Decoder {
  return (value, context) => {
    if (typeof value !== 'string') {
      failTypeFinally(context, value, { type: 'string' });
      return value;
    }
    if (digits === 0 && isWrittenTime(value) && !value.startsWith(firstYear)) return value;
    const time = parseGoTime(value, digits);
    if ('error' in time) {
      failFinally(context, time.error);
      return value;
    }
    return isZeroTime(time) ? null : printGoTime(time, digits);
  };
}

const firstYear = '0001';
const zeroTimeMs = Date.parse('0001-01-01T00:00:00Z');

/** Whether a time is the zero value of Go's type, which is null in JSON. */
const isZeroTime = ({ ms, micros }: { readonly ms: number; readonly micros: number }) =>
  ms === zeroTimeMs && micros === 0;

function decodeDuration(value: JsonValue, context: DecodeContext): JsonValue {
  if (typeof value !== 'string') {
    failTypeFinally(context, value, { type: 'string' });
    return value;
  }
  const duration = parseGoDuration(value);
  if (duration === undefined) {
    failFinally(context, goDurationError(value));
    return value;
  }
  return printGoDuration(duration);
}

function decodeQuantity(value: JsonValue, context: DecodeContext): JsonValue {
  const spelling = typeof value === 'number' ? context.spellings?.get(value) : undefined;
  const text = typeof value === 'object' ? '{' : (spelling ?? String(value));
  const quantity = parseQuantity(text);
  if ('error' in quantity) failFinally(context, quantity.error);
  return 'error' in quantity ? value : quantity.text;
}

function bytesDecoder(schema: Schema): Decoder {
  return (value, context) => {
    if (typeof value !== 'string') {
      if (Array.isArray(value)) return bytesOfNumbers(value, context);
      failType(context, value, { schema });
      return value;
    }
    const at = base64ErrorAt(value);
    const prefix = context.source === 'map' ? 'error decoding from json: ' : '';
    if (at !== undefined) fail(context, prefix + problemText({ code: 'base64', at }));
    return at === undefined ? canonicalBase64(value) : value;
  };
}

/** Decodes bytes from a list of numbers, as Go does, and returns them in base64. */
function bytesOfNumbers(items: readonly JsonValue[], context: DecodeContext): JsonValue {
  const isMap = context.source === 'map';
  const bytes = items.map((item) => {
    if (item === null) return 0;
    const isNumber = typeof item === 'number';
    // Go's map converter truncates a number that is too large.
    if (isNumber && (isMap || (Number.isInteger(item) && item >= 0 && item <= 255))) return item;
    if (isMap) fail(context, 'unrecognized type: uint8');
    else {
      const what = isNumber ? { what: numberText(context, item) } : {};
      failType(context, item, { type: 'uint8', ...what });
    }
    return 0;
  });
  return Buffer.from(bytes).toString('base64');
}
