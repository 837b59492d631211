import { goFloat } from '@wheelhouse/machinery';
import { codePointCount, parseGoDuration, printGoDuration } from '@wheelhouse/schema';
import { type CallContext, type Library, oneStepEach } from '../types/functions.ts';
import {
  CelError,
  Duration,
  kindOf,
  longTypeName,
  Opaque,
  Optional,
  Timestamp,
  TypeValue,
  Uint,
  Unreadable,
  type Value,
} from '../values.ts';
import {
  asBytes,
  asDouble,
  asInt,
  asList,
  asMap,
  asNanos,
  asText,
  asTimestamp,
  asUint,
} from './arguments.ts';
import { callCost, duration, int64, textSize, timestamp, uint64 } from './arithmetic.ts';
import { parseTimestamp, showDuration, showTimestamp, zoneOf } from './times.ts';

/** Formats a double like Go's shortest lossless `%g`. */
export function showDouble(value: number): string {
  return Object.is(value, -0) ? '-0' : goFloat(value);
}

/** A value in an error: a scalar as Go prints it, or the name of another value's type. */
export function showValue(value: Value): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'number') return showDouble(value);
  if (typeof value === 'bigint' || typeof value === 'boolean') return String(value);
  if (value instanceof Uint) return String(value.value);
  return value instanceof Unreadable ? value.message : longTypeName(kindOf(value));
}

/** A key of a map in an error, as Go prints it. */
export function showKey(key: Value): string {
  if (key === null) return '0';
  if (key instanceof Duration) return printGoDuration(key.nanos);
  if (key instanceof TypeValue) return key.name;
  if (key instanceof Opaque && key.text !== undefined) return key.text;
  if (key instanceof Optional && key.value === undefined) return 'optional.none()';
  if (!(key instanceof Timestamp)) return showValue(key);
  const zone = (_: string, offset: string) => {
    const digits = offset.replace(':', '');
    return offset === 'Z' ? ' +0000 UTC' : ` ${digits} ${digits}`;
  };
  return showTimestamp(key)
    .replace('T', ' ')
    .replace(/(Z|[+-]\d\d:\d\d)$/, zone);
}

function conversionError(from: string, to: string): CelError {
  return new CelError(`type conversion error from '${from}' to '${to}'`);
}

/** An integer of neither type, for other texts and those of more digits, which are slow to read. */
const beyond = 2n ** 64n;

function intFromText(text: string): bigint {
  const [, sign, digits] = /^([+-]?)0*(\d{1,19})$/.exec(text) ?? [];
  const value = BigInt(`${sign === '-' ? '-' : ''}${digits ?? beyond}`);
  if (BigInt.asIntN(64, value) !== value) throw conversionError('string', 'int');
  return value;
}

function uintFromText(text: string): Uint {
  const value = BigInt(/^0*(\d{1,20})$/.exec(text)?.[1] ?? beyond);
  if (BigInt.asUintN(64, value) !== value) throw conversionError('string', 'uint');
  return new Uint(value);
}

const digits = '\\d(?:_?\\d)*';
const hexes = '[0-9a-fA-F](?:_?[0-9a-fA-F])*';
// Digits after a digit without a point between them would match in a quadratic number of ways.
const decimalForm = new RegExp(
  `^[+-]?(?:${digits}(?:\\.(?:${digits})?)?|\\.${digits})(?:[eE][+-]?${digits})?$`,
);
const hexForm = new RegExp(
  `^([+-]?)0[xX](?:_?(${hexes})(?:\\.(${hexes})?)?|\\.(${hexes}))[pP]([+-]?${digits})$`,
);
/** Powers of two beyond which every number of a text is zero or infinite. */
const exponentMax = 100_000;

/** The number that a text is in Go's syntax; undefined for other texts. */
function parseGoFloat(text: string): number | undefined {
  const plain = () => text.replaceAll('_', '');
  if (decimalForm.test(text)) return Number(plain());
  if (!hexForm.test(text)) return undefined;
  const [, sign, whole = '', fraction = '', only = '', power] = hexForm.exec(plain()) ?? [];
  const mantissa = Number(`0x${whole}${fraction}${only}`);
  const shift = Number(power) - 4 * (fraction + only).length;
  const exponent = Math.max(-exponentMax, Math.min(exponentMax, shift));
  const half = Math.trunc(exponent / 2);
  const value = mantissa === 0 ? 0 : mantissa * 2 ** half * 2 ** (exponent - half);
  return sign === '-' ? -value : value;
}

function doubleFromText(text: string): number {
  if (/^nan$/i.test(text)) return Number.NaN;
  if (/^[+-]?inf(?:inity)?$/i.test(text)) {
    return text.startsWith('-') ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
  }
  const value = parseGoFloat(text);
  if (value === undefined || !Number.isFinite(value)) throw conversionError('string', 'double');
  return value;
}

function boolFromText(text: string): boolean {
  if (['true', 'True', 'TRUE', 't', 'T', '1'].includes(text)) return true;
  if (['false', 'False', 'FALSE', 'f', 'F', '0'].includes(text)) return false;
  throw conversionError('string', 'bool');
}

function intFromDouble(value: number): bigint {
  const isInside = Number.isFinite(value) && value > -(2 ** 63) && value < 2 ** 63;
  if (!isInside) throw new CelError('integer overflow');
  return BigInt(Math.trunc(value));
}

function uintFromDouble(value: number): Uint {
  const isInside = Number.isFinite(value) && value >= 0 && value < 2 ** 64;
  if (!isInside) throw new CelError('unsigned integer overflow');
  return new Uint(BigInt(Math.trunc(value)));
}

function textFromBytes(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new CelError('invalid UTF-8 in bytes, cannot convert to string');
  }
}

const opaqueText = (value: Value | undefined) =>
  (value instanceof Opaque ? value.text : undefined) ?? '';

const same = ([value = null]: readonly Value[]) => value;
const seconds = (nanos: bigint) => {
  const whole = nanos / 1_000_000_000n;
  return nanos % 1_000_000_000n < 0n ? whole - 1n : whole;
};

const numbers: Library = [
  ['int(int): int', same],
  ['int(uint): int', ([value]) => int64(asUint(value))],
  ['int(double): int', ([value]) => intFromDouble(asDouble(value))],
  ['int(string): int', ([value]) => intFromText(asText(value))],
  ['int(timestamp): int', ([value]) => seconds(asNanos(value))],
  ['int(duration): int', ([value]) => asNanos(value)],
  ['uint(uint): uint', same],
  ['uint(int): uint', ([value]) => uint64(asInt(value))],
  ['uint(double): uint', ([value]) => uintFromDouble(asDouble(value))],
  ['uint(string): uint', ([value]) => uintFromText(asText(value))],
  ['double(double): double', same],
  ['double(int): double', ([value]) => Number(asInt(value))],
  ['double(uint): double', ([value]) => Number(asUint(value))],
  ['double(string): double', ([value]) => doubleFromText(asText(value))],
  ['bool(bool): bool', same],
  ['bool(string): bool', ([value]) => boolFromText(asText(value))],
];

const texts: Library = [
  ['string(string): string', same],
  ['string(bool): string', ([value]) => String(value)],
  ['string(int): string', ([value]) => String(value)],
  ['string(uint): string', ([value]) => String(asUint(value))],
  ['string(double): string', ([value]) => showDouble(asDouble(value))],
  [
    'string(bytes): string',
    ([value], { spend }) => {
      spend(callCost(asBytes(value).length));
      return textFromBytes(asBytes(value));
    },
  ],
  ['string(timestamp): string', ([value]) => showTimestamp(asTimestamp(value))],
  ['string(duration): string', ([value]) => showDuration(asNanos(value))],
  ['string(net.IP): string', ([value]) => opaqueText(value)],
  ['string(net.CIDR): string', ([value]) => opaqueText(value)],
  ['bytes(bytes): bytes', same],
  [
    'bytes(string): bytes',
    ([value], { spend }) => {
      spend(callCost(textSize(asText(value))));
      return new TextEncoder().encode(asText(value));
    },
  ],
];

const times: Library = [
  ['timestamp(timestamp): timestamp', same],
  ['timestamp(int): timestamp', ([value]) => timestamp(asInt(value) * 1_000_000_000n)],
  [
    'timestamp(string): timestamp',
    ([value]) => {
      const nanos = parseTimestamp(asText(value));
      if (nanos === undefined) throw conversionError('string', 'google.protobuf.Timestamp');
      return timestamp(nanos, zoneOf(asText(value)));
    },
  ],
  ['duration(duration): duration', same],
  [
    // cel-go declares this overload and fails at run time.
    'duration(int): duration',
    () => {
      throw conversionError('int', 'google.protobuf.Duration');
    },
  ],
  [
    'duration(string): duration',
    ([value]) => {
      const nanos = parseGoDuration(asText(value));
      if (nanos === undefined) throw conversionError('string', 'google.protobuf.Duration');
      return duration(nanos);
    },
  ],
];

const sizes: readonly (readonly [string, (value: Value) => number])[] = [
  ['bytes', (value) => asBytes(value).length],
  ['list(A)', (value) => asList(value).items.length],
  ['map(A, B)', (value) => asMap(value).size],
  ['string', (value) => codePointCount(asText(value))],
];

/** Counting code points takes about a tenth of the time of other functions of texts. */
function countText([text]: readonly Value[], context: CallContext): void {
  if (typeof text === 'string' && text.length > 1_000) context.work(Math.ceil(text.length / 50));
}

const size: Library = sizes.flatMap(([type, count]) => {
  const run = ([value = null]: readonly Value[]) => BigInt(count(value));
  return [
    [`size(${type}): int`, type === 'string' ? oneStepEach(countText, run) : run],
    [`${type}.size(): int`, type === 'string' ? oneStepEach(countText, run) : run],
  ] as const;
});

function typeName(value: Value): string {
  return longTypeName(kindOf(value));
}

/** Conversions, `size`, `type` and `dyn`. */
export const conversions: Library = [
  ...numbers,
  ...texts,
  ...times,
  ...size,
  ['dyn(A): dyn', same],
  ['type(A): type(A)', ([value = null]) => new TypeValue(typeName(value))],
];
