import { compareText, isObject, type JsonValue } from '@wheelhouse/machinery';

/**
 * A value as Go's templates see it. `none` is no value at all (a missing key), `nil` a null. `boxed`
 * values come out of a map or list, which Go knows as `interface {}` until they are looked at.
 */
export interface GoValue {
  readonly kind: 'none' | 'nil' | 'bool' | 'int' | 'int64' | 'float64' | 'string' | 'list' | 'map';
  readonly value: JsonValue;
  readonly boxed: boolean;
}

export const none: GoValue = { kind: 'none', value: null, boxed: false };

/** A part of an object: boxed. */
export function boxedValue(value: JsonValue): GoValue {
  return { kind: kindOf(value), value, boxed: true };
}

/** A value of its own type. A null out of its box is no value. */
export function unboxed(value: GoValue): GoValue {
  if (value.kind === 'nil') return none;
  return value.boxed ? { ...value, boxed: false } : value;
}

export const goText = (value: string): GoValue => ({ kind: 'string', value, boxed: false });
export const goInt = (value: number): GoValue => ({ kind: 'int', value, boxed: false });
export const goBool = (value: boolean): GoValue => ({ kind: 'bool', value, boxed: false });

function kindOf(value: JsonValue): GoValue['kind'] {
  if (value === null) return 'nil';
  if (typeof value === 'string') return 'string';
  if (typeof value === 'boolean') return 'bool';
  if (typeof value === 'bigint') return 'int64';
  if (typeof value === 'number') return Number.isInteger(value) ? 'int64' : 'float64';
  return Array.isArray(value) ? 'list' : 'map';
}

const typeNames: Readonly<Record<GoValue['kind'], string>> = {
  none: '<nil>',
  nil: 'interface {}',
  bool: 'bool',
  int: 'int',
  int64: 'int64',
  float64: 'float64',
  string: 'string',
  list: '[]interface {}',
  map: 'map[string]interface {}',
};

/** Go's name of a value's own type. */
export const typeName = (value: GoValue): string => typeNames[value.kind];

/** Go's name of the type a value is known by. */
export const staticType = (value: GoValue): string =>
  value.boxed ? 'interface {}' : typeNames[value.kind];

export const isInteger = ({ kind }: GoValue): boolean => kind === 'int' || kind === 'int64';

/** Whether `if` takes a value for true. */
export function isTrue({ kind, value }: GoValue): boolean {
  if (kind === 'none' || kind === 'nil') return false;
  if (Array.isArray(value)) return value.length > 0;
  if (isObject(value)) return Object.keys(value).length > 0;
  return typeof value === 'bigint' ? value !== 0n : Boolean(value);
}

/** Names of a map's members in the order in which Go walks and prints them. */
export function sortedNames(map: JsonValue): string[] {
  if (!isObject(map)) return [];
  return Object.keys(map)
    .filter((name) => map[name] !== undefined)
    .sort(compareText);
}

/** How Go prints a JSON value with `%v`. */
export function plain(value: JsonValue): string {
  if (value === null) return '<nil>';
  if (typeof value === 'number' && !Number.isInteger(value)) return plainFloat(value);
  if (Array.isArray(value)) return `[${value.map(plain).join(' ')}]`;
  if (!isObject(value)) return String(value);
  const members = sortedNames(value).map((name) => `${name}:${plain(value[name] ?? null)}`);
  return `map[${members.join(' ')}]`;
}

/** How Go prints a value with `%v`. */
export function plainValue({ kind, value }: GoValue): string {
  if (kind === 'none' || kind === 'nil') return '<nil>';
  return kind === 'float64' ? plainFloat(Number(value)) : plain(value);
}

/** Go's `%g` with as many digits as it takes. */
export function plainFloat(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value > 0 ? '+Inf' : '-Inf';
  const [mantissa = '', power = '0'] = value.toExponential().split('e');
  const exponent = Number(power);
  const isLong = value !== 0 && (exponent < -4 || exponent >= 6);
  return isLong ? `${mantissa}e${goExponent(exponent)}` : String(value);
}

/** At least two digits, and a sign. */
export function goExponent(exponent: number): string {
  const digits = String(Math.abs(exponent)).padStart(2, '0');
  return `${exponent < 0 ? '-' : '+'}${digits}`;
}
