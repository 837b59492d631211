import {
  compareText,
  goQuoted,
  isObject,
  type JsonObject,
  type JsonValue,
} from '@wheelhouse/machinery';

function rankOf(value: JsonValue): number {
  if (typeof value === 'number' || typeof value === 'bigint') return 0;
  if (typeof value === 'string') return 1;
  if (typeof value === 'boolean') return 2;
  if (value === null) return 5;
  return Array.isArray(value) ? 3 : 4;
}

/** A total order of JSON values: numbers, strings, booleans, lists, objects, null. */
export function compareValues(one: JsonValue, other: JsonValue): number {
  const rank = rankOf(one) - rankOf(other);
  if (rank !== 0) return rank;
  if (typeof one === 'string') return compareText(one, other as string);
  if (typeof one === 'number' || typeof one === 'bigint') {
    const number = other as number | bigint;
    return one < number ? -1 : one > number ? 1 : 0;
  }
  if (typeof one === 'boolean') return Number(one) - Number(other);
  if (Array.isArray(one)) return compareLists(one, other as JsonValue[]);
  if (one === null) return 0;
  return compareObjects(one, other as JsonObject);
}

function compareLists(one: readonly JsonValue[], other: readonly JsonValue[]): number {
  const length = Math.min(one.length, other.length);
  for (let at = 0; at < length; at += 1) {
    const order = compareValues(one[at]!, other[at]!);
    if (order !== 0) return order;
  }
  return one.length - other.length;
}

function compareObjects(one: JsonObject, other: JsonObject): number {
  const left = Object.keys(one).sort(compareText);
  const right = Object.keys(other).sort(compareText);
  const length = Math.min(left.length, right.length);
  for (let at = 0; at < length; at += 1) {
    const name = left[at]!;
    const order =
      compareText(name, right[at]!) || compareValues(one[name] ?? null, other[name] ?? null);
    if (order !== 0) return order;
  }
  return left.length - right.length;
}

/** A value inside a path of a message: strings quoted, the rest bare. */
export function showGoValue(value: JsonValue): string {
  if (value === null) return 'null';
  if (typeof value === 'string') return goQuoted(value);
  if (Array.isArray(value)) return `[${value.map(showGoValue).join(',')}]`;
  if (!isObject(value)) return String(value);
  const names = Object.keys(value).sort(compareText);
  return names.map((name) => `${name}=${showGoValue(value[name] ?? null)}`).join('');
}
