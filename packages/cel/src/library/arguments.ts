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

export function asInt(value: Value | undefined): bigint {
  if (typeof value !== 'bigint') throw misfit(value, 'int');
  return value;
}

export function asUint(value: Value | undefined): bigint {
  if (!(value instanceof Uint)) throw misfit(value, 'uint');
  return value.value;
}

export function asDouble(value: Value | undefined): number {
  if (typeof value !== 'number') throw misfit(value, 'double');
  return value;
}

export function asBytes(value: Value | undefined): Uint8Array {
  if (!(value instanceof Uint8Array)) throw misfit(value, 'bytes');
  return value;
}

export function asList(value: Value | undefined): List {
  if (!(value instanceof List)) throw misfit(value, 'list');
  return value;
}

export function asMap(value: Value | undefined): MapValue {
  if (value === undefined || !isMapValue(value)) throw misfit(value, 'map');
  return value;
}

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
