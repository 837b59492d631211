import { type JsonObject, type JsonValue, setMember } from '@wheelhouse/machinery';
import { showDuration, showTimestamp } from './library/time-text.ts';
import {
  CelError,
  Duration,
  isMapValue,
  kindOf,
  List,
  Optional,
  Timestamp,
  Uint,
  type Value,
} from './values.ts';

/** A value as JSON. Throws CelError for what JSON has no form for. */
export function toJson(value: Value): JsonValue {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value;
  if (typeof value === 'number') return value;
  if (typeof value === 'bigint') return integer(value);
  if (value instanceof Uint) return integer(value.value);
  if (value instanceof List) return value.items.map(toJson);
  if (isMapValue(value)) {
    const object: JsonObject = {};
    for (const key of value.keys()) {
      if (typeof key !== 'string') {
        throw new CelError(`map key ${String(key)} is of type ${kindOf(key)}, not string`);
      }
      const entryValue = value.get(key);
      if (entryValue !== undefined) setMember(object, key, toJson(entryValue));
    }
    return object;
  }
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64');
  if (value instanceof Timestamp) return showTimestamp(value);
  if (value instanceof Duration) return showDuration(value.nanos);
  if (value instanceof Optional && value.value !== undefined) return toJson(value.value);
  throw new CelError(`unsupported type in JSON: ${kindOf(value)}`);
}

/** As a number where that is exact. */
function integer(value: bigint): JsonValue {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}
