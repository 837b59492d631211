import { int64Max, int64Min, narrowed } from '@wheelhouse/machinery';
import { scalarAsJson } from '../json-values.ts';
import { asBytes, asInt, asText } from '../library/arguments.ts';
import { sizeCost } from '../library/arithmetic.ts';
import type { CallContext, StructType } from '../types/functions.ts';
import {
  anyType,
  boolType,
  bytesType,
  doubleType,
  durationType,
  dynType,
  intType,
  listType,
  mapType,
  stringType,
  type Type,
  timestampType,
  uintType,
  wrapperType,
} from '../types/types.ts';
import {
  CelError,
  Duration,
  EntryMap,
  isMapValue,
  kindOf,
  List,
  longTypeName,
  StructValue,
  Timestamp,
  Uint,
  type Value,
} from '../values.ts';

/**
 * Protobuf's well-known messages, the only ones that expressions can construct:
 * `google.protobuf.Int64Value{value: 1}`. By CEL's rules only `Empty` remains a message: wrappers
 * become the wrapped value, `Value`, `Struct`, and `ListValue` become their JSON value, and times
 * become timestamps and durations.
 */
type Field = { readonly type: Type } & (
  | {
      /** Converts the value of a field. Throws `CelError` without the field's name. */
      readonly convert: (value: Value) => Value;
    }
  | {
      /** Does so in steps. */
      readonly steps: (value: Value, context: CallContext) => Generator<void, Value>;
    }
);
interface Message {
  readonly type: Type;
  readonly fields: Readonly<Record<string, Field>>;
  /** The value of the message, given its converted fields. */
  readonly make: (field: (name: string) => Value | undefined, set: readonly Value[]) => Value;
}

/** Error messages by kind for a conversion to an incompatible Go type. */
const refusals: Readonly<Record<string, (type: string) => string>> = {
  int: (type) => `unsupported type conversion from 'int' to ${type}`,
  uint: (type) => `unsupported type conversion from 'uint' to ${type}`,
  double: (type) => `type conversion error from Double to '${type}'`,
  bytes: (type) => `type conversion error from Bytes to '${type}'`,
  string: (type) => `unsupported native conversion from string to '${type}'`,
};

function cannotBecome(value: Value, type: string): CelError {
  const kind = kindOf(value);
  const refusal = Object.hasOwn(refusals, kind) ? refusals[kind] : undefined;
  const from = kind === 'bool' ? 'bool' : `'${longTypeName(kind)}'`;
  return new CelError(refusal?.(type) ?? `type conversion error from ${from} to '${type}'`);
}

const signed = (bits: 32 | 64): Field => ({
  type: intType,
  convert(value) {
    if (typeof value !== 'bigint') throw cannotBecome(value, `int${bits}`);
    if (BigInt.asIntN(bits, value) !== value) throw new CelError('integer overflow');
    return value;
  },
});
const unsigned = (bits: 32 | 64): Field => ({
  type: uintType,
  convert(value) {
    if (!(value instanceof Uint)) throw cannotBecome(value, `uint${bits}`);
    const isInside = BigInt.asUintN(bits, value.value) === value.value;
    if (!isInside) throw new CelError('unsigned integer overflow');
    return value;
  },
});
const floating = (bits: 32 | 64): Field => ({
  type: doubleType,
  convert(value) {
    if (typeof value !== 'number') throw cannotBecome(value, `float${bits}`);
    return bits === 32 ? Math.fround(value) : value;
  },
});
const bool: Field = {
  type: boolType,
  convert(value) {
    if (typeof value !== 'boolean') throw cannotBecome(value, 'bool');
    return value;
  },
};
const string: Field = {
  type: stringType,
  convert(value) {
    if (typeof value !== 'string') throw cannotBecome(value, 'string');
    return value;
  },
};
const bytes: Field = {
  type: bytesType,
  convert(value) {
    if (!(value instanceof Uint8Array)) throw cannotBecome(value, '[]uint8');
    return value;
  },
};
const list: Field = { type: listType(dynType), steps: listOfJson };
const struct: Field = { type: mapType(stringType, dynType), steps: mapOfJson };
/** The enumeration's only value is 0, which means null. */
const nullValue: Field = {
  type: intType,
  convert(value) {
    if (typeof value !== 'bigint' && value !== null) throw cannotBecome(value, 'int32');
    return null;
  },
};

function wrapper(value: Field, zero: Value): Message {
  const make: Message['make'] = (field) => field('value') ?? zero;
  return { type: wrapperType(value.type), fields: { value }, make };
}

const billion = 1_000_000_000n;
const secondsAndNanos = { seconds: signed(64), nanos: signed(32) };

/** Go's durations are limited to 64 bits of nanoseconds. */
function nanosOf(field: (name: string) => Value | undefined): bigint {
  return asInt(field('seconds') ?? 0n) * billion + asInt(field('nanos') ?? 0n);
}

function clamped(nanos: bigint): bigint {
  if (nanos > int64Max) return int64Max;
  return nanos < int64Min ? int64Min : nanos;
}

const prefix = 'google.protobuf.';
const emptyName = `${prefix}Empty`;

const messages: Readonly<Record<string, Message>> = {
  BoolValue: wrapper(bool, false),
  BytesValue: wrapper(bytes, new Uint8Array()),
  DoubleValue: wrapper(floating(64), 0),
  FloatValue: wrapper(floating(32), 0),
  Int32Value: wrapper(signed(32), 0n),
  Int64Value: wrapper(signed(64), 0n),
  StringValue: wrapper(string, ''),
  UInt32Value: wrapper(unsigned(32), new Uint(0n)),
  UInt64Value: wrapper(unsigned(64), new Uint(0n)),
  Timestamp: {
    type: timestampType,
    fields: secondsAndNanos,
    make: (field) => new Timestamp(nanosOf(field)),
  },
  Duration: {
    type: durationType,
    fields: secondsAndNanos,
    make: (field) => new Duration(clamped(nanosOf(field))),
  },
  ListValue: {
    type: list.type,
    fields: { values: list },
    make: (field) => field('values') ?? new List([]),
  },
  Struct: {
    type: struct.type,
    fields: { fields: struct },
    make: (field) => field('fields') ?? new EntryMap(new Map()),
  },
  Value: {
    type: dynType,
    fields: {
      null_value: nullValue,
      number_value: floating(64),
      string_value: string,
      bool_value: bool,
      struct_value: struct,
      list_value: list,
    },
    // A oneof: the last field that is set wins.
    make: (_, set) => set.at(-1) ?? null,
  },
  Any: { type: anyType, fields: { type_url: string, value: bytes }, make: unknownAny },
  Empty: {
    type: { name: emptyName, args: [], fields: new Map() },
    fields: {},
    make: () => new StructValue(emptyName, new Map()),
  },
};

/** Full names of the messages with their CEL types. */
export const messageTypes: readonly (readonly [string, Type])[] = Object.entries(messages).map(
  ([name, { type }]) => [prefix + name, type],
);

const withValue = new Set(['Timestamp', 'Duration', 'Empty']);

/** Names of types that Kubernetes declares in addition to those of their messages. */
export const shortTypeNames = ['duration', 'timestamp'] as const;

/**
 * Types whose names exist for the checker but not at evaluation: `type(x) == google.….Struct`.
 */
export const typesWithoutValue: ReadonlySet<string> = new Set([
  ...Object.keys(messages)
    .filter((name) => !withValue.has(name))
    .map((name) => prefix + name),
  ...shortTypeNames,
]);

/** Enumeration values by name. */
export const enumValues: ReadonlyMap<string, bigint> = new Map([
  [`${prefix}NullValue.NULL_VALUE`, 0n],
]);

/** The well-known message with a full name; undefined for other names. */
export function messageStruct(name: string): StructType | undefined {
  const short = name.startsWith(prefix) ? name.slice(prefix.length) : '';
  const message = Object.hasOwn(messages, short) ? messages[short] : undefined;
  if (message === undefined) return undefined;
  const fieldOf = (fieldName: string) =>
    Object.hasOwn(message.fields, fieldName) ? message.fields[fieldName] : undefined;
  return {
    type: message.type,
    field: (fieldName) => fieldOf(fieldName)?.type,
    *make(entries, context) {
      const converted = new Map<string, Value>();
      for (const [fieldName, value] of entries) {
        const field = fieldOf(fieldName);
        if (field === undefined) throw new CelError(`no such field: ${fieldName}`);
        try {
          const result =
            'steps' in field ? yield* field.steps(value, context) : field.convert(value);
          converted.set(fieldName, result);
        } catch (error) {
          // A CelCostError is rethrown unchanged.
          if (!(error instanceof CelError) || error.constructor !== CelError) throw error;
          const what = `field type conversion error for ${name}.${fieldName} value type`;
          throw new CelError(`${what}: ${error.message}`);
        }
      }
      return message.make((fieldName) => converted.get(fieldName), [...converted.values()]);
    },
  };
}

function* listOfJson(value: Value, context: CallContext): Generator<void, List> {
  if (!(value instanceof List)) throw cannotBecome(value, '[]*structpb.Value');
  context.spend(1 + sizeCost(value.items.length));
  const items: Value[] = [];
  for (const item of value.items) items.push(yield* jsonOf(item, context));
  return new List(items);
}

function* mapOfJson(value: Value, context: CallContext): Generator<void, EntryMap> {
  if (!isMapValue(value)) throw cannotBecome(value, 'map[string]*structpb.Value');
  context.spend(1 + sizeCost(value.size));
  const entries = new Map<string, readonly [Value, Value]>();
  for (const key of value.keys()) {
    if (typeof key !== 'string') throw cannotBecome(key, 'string');
    entries.set(`s${key}`, [key, yield* jsonOf(value.get(key) ?? null, context)]);
  }
  return new EntryMap(entries);
}

/**
 * A value as JSON, in steps: numbers are doubles; integers that a double cannot represent, and
 * times, are strings.
 */
function* jsonOf(value: Value, context: CallContext): Generator<void, Value> {
  context.work(1);
  if (context.isStepOver()) yield;
  const scalar = scalarAsJson(value, jsonInteger);
  if (scalar !== undefined) return scalar;
  if (value instanceof List) return yield* listOfJson(value, context);
  if (isMapValue(value)) return yield* mapOfJson(value, context);
  throw cannotBecome(value, '*structpb.Value');
}

function jsonInteger(value: bigint): number | string {
  const exact = narrowed(value);
  return typeof exact === 'number' ? exact : String(exact);
}

/** No type URLs are known, so an `Any` cannot be unpacked. */
function unknownAny(field: (name: string) => Value | undefined): never {
  const url = asText(field('type_url') ?? '');
  const value = asBytes(field('value') ?? new Uint8Array());
  const parts = [
    url === '' ? [] : [`type_url:${JSON.stringify(url)}`],
    value.length === 0 ? [] : [`value:"${escapedBytes(value)}"`],
  ].flat();
  throw new CelError(`unsupported conversion to ref.Val: (*dynamicpb.Message)${parts.join('  ')}`);
}

const escapes: Readonly<Record<number, string>> = {
  9: '\\t',
  10: '\\n',
  13: '\\r',
  34: '\\"',
  92: '\\\\',
};

function escapedBytes(value: Uint8Array): string {
  const shown = [...value.subarray(0, shownBytesMax)].map((byte) => {
    const plain = byte >= 32 && byte < 127 ? String.fromCharCode(byte) : undefined;
    return escapes[byte] ?? plain ?? `\\x${byte.toString(16).padStart(2, '0')}`;
  });
  return shown.join('');
}

/** Maximum length of the content of an `Any` in messages. */
const shownBytesMax = 1024;
