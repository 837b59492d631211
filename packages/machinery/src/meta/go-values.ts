import { isObject, type JsonValue } from '../base/json.ts';
import { goFloat } from './field-error.ts';

/** Where UTF-8 sorts differently from UTF-16: surrogates come after the rest of the first plane. */
function weight(unit: number): number {
  if (unit >= 0xe000) return unit - 0x800;
  return unit >= 0xd800 ? unit + 0x2000 : unit;
}

/** Orders strings by their UTF-8 bytes, as upstream's comparisons do. */
export function compareText(one: string, other: string): number {
  if (one === other) return 0;
  const length = Math.min(one.length, other.length);
  for (let at = 0; at < length; at += 1) {
    const left = one.charCodeAt(at);
    const right = other.charCodeAt(at);
    if (left !== right) return weight(left) - weight(right);
  }
  return one.length - other.length;
}

/** What a backslash makes of these characters in Go, beside quotes. */
export const goEscapes: Readonly<Record<string, string>> = {
  a: '\x07',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
  '\\': '\\',
};

const goScalar = (value: JsonValue): string =>
  typeof value === 'number' && !Number.isSafeInteger(value) ? goFloat(value) : String(value);

/** How Go prints a JSON value with `%v`. */
export function goPlain(value: JsonValue | undefined): string {
  if (value === null || value === undefined) return '<nil>';
  if (Array.isArray(value)) return `[${value.map(goPlain).join(' ')}]`;
  if (!isObject(value)) return goScalar(value);
  const names = Object.keys(value).sort(compareText);
  return `map[${names.map((name) => `${name}:${goPlain(value[name])}`).join(' ')}]`;
}

/** How Go prints a JSON value with `%s`, which is for texts: `%!s(int64=5)`. */
export function goText(value: JsonValue): string {
  if (typeof value === 'string') return value;
  if (value === null) return '%!s(<nil>)';
  if (Array.isArray(value)) return `[${value.map(goText).join(' ')}]`;
  if (!isObject(value)) return `%!s(${goTypeName(value)}=${goScalar(value)})`;
  const names = Object.keys(value).sort(compareText);
  return `map[${names.map((name) => `${name}:${goText(value[name] ?? null)}`).join(' ')}]`;
}

/** How Go prints a JSON value with `%#v`. */
export function goSyntax(value: JsonValue | undefined): string {
  if (value === null || value === undefined) return 'interface {}(nil)';
  if (typeof value === 'string') return JSON.stringify(value);
  if (Array.isArray(value)) return `[]interface {}{${value.map(goSyntax).join(', ')}}`;
  if (!isObject(value)) return goScalar(value);
  const names = Object.keys(value).sort(compareText);
  const members = names.map((name) => `${JSON.stringify(name)}:${goSyntax(value[name])}`);
  return `map[string]interface {}{${members.join(', ')}}`;
}

/** Go's name of a JSON value's type. */
export function goTypeName(value: JsonValue | undefined): string {
  if (value === null || value === undefined) return '<nil>';
  if (typeof value === 'string') return 'string';
  if (typeof value === 'boolean') return 'bool';
  if (Array.isArray(value)) return '[]interface {}';
  if (isObject(value)) return 'map[string]interface {}';
  return Number.isInteger(Number(value)) ? 'int64' : 'float64';
}

/** What Go calls a JSON value in `cannot unmarshal <this> into`. */
export function goValue(value: JsonValue): string {
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'boolean') return 'bool';
  if (typeof value === 'bigint') return 'number';
  return typeof value;
}
