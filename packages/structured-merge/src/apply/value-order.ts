import {
  compareText,
  goQuoted,
  isObject,
  type JsonObject,
  type JsonValue,
} from '@wheelhouse/machinery';

const isNumber = (value: JsonValue): value is number | bigint =>
  typeof value === 'number' || typeof value === 'bigint';

function rankOf(value: JsonValue): number {
  if (isNumber(value)) return 0;
  if (typeof value === 'string') return 1;
  if (typeof value === 'boolean') return 2;
  if (value === null) return 5;
  return Array.isArray(value) ? 3 : 4;
}

/** A total order of JSON values: numbers, strings, booleans, lists, objects, null. */
export function compareValues(one: JsonValue, other: JsonValue): number {
  const rank = rankOf(one) - rankOf(other);
  if (rank !== 0) return rank;
  if (typeof one === 'string' && typeof other === 'string') return compareText(one, other);
  if (isNumber(one) && isNumber(other)) return one < other ? -1 : one > other ? 1 : 0;
  if (typeof one === 'boolean') return Number(one) - Number(other);
  if (Array.isArray(one) && Array.isArray(other)) return compareLists(one, other);
  return isObject(one) && isObject(other) ? compareObjects(one, other) : 0;
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
