import {
  CelError,
  Duration,
  isMapValue,
  kindOf,
  List,
  type MapValue,
  Timestamp,
  Uint,
  type Value,
} from '../values.ts';

/**
 * Casts arguments to the types in the signatures of functions. An overload runs only for arguments
 * of its kinds, so these throw `CelError` only for items of untyped lists.
 */
export function asText(value: Value | undefined): string {
  if (typeof value !== 'string') throw misfit(value, 'string');
  return value;
}

/** A signed 64-bit integer; unlike `asUint`, no unsigned one. Throws `CelError`, like `asText`. */
export function asInt(value: Value | undefined): bigint {
  if (typeof value !== 'bigint') throw misfit(value, 'int');
  return value;
}

/** The number in an unsigned integer. Throws `CelError`, like `asText`. */
export function asUint(value: Value | undefined): bigint {
  if (!(value instanceof Uint)) throw misfit(value, 'uint');
  return value.value;
}

/** A double, which may be NaN or infinite. Throws `CelError`, like `asText`. */
export function asDouble(value: Value | undefined): number {
  if (typeof value !== 'number') throw misfit(value, 'double');
  return value;
}

/** The argument itself, not a copy. Throws `CelError`, like `asText`. */
export function asBytes(value: Value | undefined): Uint8Array {
  if (!(value instanceof Uint8Array)) throw misfit(value, 'bytes');
  return value;
}

/** A list, whose items may have any type. Throws `CelError`, like `asText`. */
export function asList(value: Value | undefined): List {
  if (!(value instanceof List)) throw misfit(value, 'list');
  return value;
}

/** A map or an object, which functions treat alike. Throws `CelError`, like `asText`. */
export function asMap(value: Value | undefined): MapValue {
  if (value === undefined || !isMapValue(value)) throw misfit(value, 'map');
  return value;
}

/** A timestamp, not a duration. Throws `CelError`, like `asText`. */
export function asTimestamp(value: Value | undefined): Timestamp {
  if (!(value instanceof Timestamp)) throw misfit(value, 'timestamp');
  return value;
}

/** The nanoseconds of a timestamp or duration. */
export function asNanos(value: Value | undefined): bigint {
  if (value instanceof Timestamp || value instanceof Duration) return value.nanos;
  throw misfit(value, 'duration');
}

/** The error of a function for an argument of the wrong kind. */
export function misfit(value: Value | undefined, typeName: string): CelError {
  const actual = value === undefined ? 'nothing' : kindOf(value);
  return new CelError(`no such overload: ${actual} in the place of ${typeName}`);
}
