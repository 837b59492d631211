import { isObject, type JsonObject, type JsonValue } from '../base/json.ts';
import { goFloat } from '../base/numbers.ts';
import { listedBytesMax, truncateText } from './answer-bounds.ts';

/**
 * Returns a sort key that orders UTF-16 code units like UTF-8: surrogates after the rest of the
 * BMP.
 */
function utf8Weight(unit: number): number {
  if (unit >= 0xe000) return unit - 0x800;
  return unit >= 0xd800 ? unit + 0x2000 : unit;
}

/** Compares strings by their UTF-8 bytes, as Go does. */
export function compareText(left: string, right: string): number {
  if (left === right) return 0;
  const length = Math.min(left.length, right.length);
  for (let at = 0; at < length; at += 1) {
    const leftCode = left.charCodeAt(at);
    const rightCode = right.charCodeAt(at);
    if (leftCode !== rightCode) return utf8Weight(leftCode) - utf8Weight(rightCode);
  }
  return left.length - right.length;
}

/**
 * Returns the JSON of a value with members in the order of Go's maps. The text is the same for two
 * values if and only if `jsonEqual` holds.
 */
export function canonicalJson(value: JsonValue): string {
  if (typeof value === 'bigint') return String(value);
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (!isObject(value)) return JSON.stringify(value);
  const members: string[] = [];
  for (const name of Object.keys(value).sort(compareText)) {
    const inner = value[name];
    if (inner !== undefined) members.push(`${JSON.stringify(name)}:${canonicalJson(inner)}`);
  }
  return `{${members.join(',')}}`;
}

const base64Characters = { standard: /^[A-Za-z0-9+/]*/, url: /^[A-Za-z0-9_-]*/ };

/**
 * Returns the position at which Go's decoder rejects padded base64, in which it ignores line breaks;
 * undefined for valid text.
 */
export function base64ErrorAt(
  text: string,
  alphabet: 'standard' | 'url' = 'standard',
): number | undefined {
  const digits = /[\r\n]/.test(text) ? text.replace(/[\r\n]/g, '') : text;
  const end = base64Characters[alphabet].exec(digits)?.[0].length ?? 0;
  const inQuantum = end % 4;
  if (end === digits.length) return inQuantum === 0 ? undefined : text.length - inQuantum;
  const positionOf = (index: number) => (digits === text ? index : positionIn(text, index));
  if (digits[end] !== '=' || inQuantum < 2) return positionOf(end);
  if (inQuantum === 3) return end + 1 === digits.length ? undefined : positionOf(end + 1);
  if (end + 1 === digits.length) return text.length;
  if (digits[end + 1] !== '=') return positionOf(end + 1) - 1;
  return end + 2 === digits.length ? undefined : positionOf(end + 2);
}

/**
 * Returns valid base64 as Go encodes its bytes: in one line, and with zeros in the unused bits of the
 * last character.
 */
export function canonicalBase64(text: string): string {
  const line = /[\r\n]/.test(text) ? text.replace(/[\r\n]/g, '') : text;
  const end = line.slice(-4);
  if (!end.endsWith('=')) return line;
  const canonical = Buffer.from(end, 'base64').toString('base64');
  return canonical === end ? line : line.slice(0, -4) + canonical;
}

/** The position in a text of the character that is at `index` without line breaks. */
function positionIn(text: string, index: number): number {
  const lines = /[^\r\n]+/g;
  let passed = 0;
  for (let line = lines.exec(text); line !== null; line = lines.exec(text)) {
    if (index < passed + line[0].length) return line.index + index - passed;
    passed += line[0].length;
  }
  return text.length;
}

/** The characters of Go's escape sequences by letter, without quotes. */
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

const letterOf = new Map(
  Object.entries(goEscapes).map(([letter, character]) => [character, letter]),
);

/**
 * Quotes a string as Go's `%q` does, which escapes unprintable characters. A string of more than
 * 64 KiB, which no response contains whole, is truncated: each escape takes V8 200 ns.
 */
export function goQuoted(text: string): string {
  const escaped = truncateText(text, listedBytesMax).replace(
    /["\\]|[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu,
    (character) => {
      const code = character.codePointAt(0) ?? 0;
      const letter = letterOf.get(character);
      if (letter !== undefined) return `\\${letter}`;
      if (character === '"') return '\\"';
      const hex = (width: number) => code.toString(16).padStart(width, '0');
      if (code < 0x80) return `\\x${hex(2)}`;
      return code < 0x10000 ? `\\u${hex(4)}` : `\\U${hex(8)}`;
    },
  );
  return `"${escaped}"`;
}

const goScalar = (value: JsonValue): string =>
  typeof value === 'number' && !Number.isSafeInteger(value) ? goFloat(value) : String(value);

/** Maximum number of characters of a value in a response (TRUST-3). */
const printedMax = 64 * 1024;

/** The format of JSON values under one of Go's format verbs. */
interface PrintRules {
  readonly scalar: (value: JsonValue | undefined) => string;
  readonly list: readonly [begin: string, separator: string];
  readonly map: readonly [begin: string, separator: string];
  readonly name: (name: string) => string;
  readonly end: { readonly list: string; readonly map: string };
}

/** Where the text of a value may end. */
interface PrintLimit {
  /** The number of characters after which no further part is printed; `printedMax` if absent. */
  readonly max?: number;
}

/** Prints a value and stops after `max` characters. */
function printValue(
  value: JsonValue | undefined,
  rules: PrintRules,
  { max = printedMax }: PrintLimit = {},
): string {
  let text = '';
  const add = (part: JsonValue | undefined): void => {
    if (text.length > max) return;
    if (Array.isArray(part)) addList(part);
    else if (isObject(part)) addMap(part);
    else text += rules.scalar(part);
  };
  const addList = (items: readonly JsonValue[]) => {
    const [begin, separator] = rules.list;
    text += begin;
    for (let at = 0; at < items.length && text.length <= max; at += 1) {
      if (at > 0) text += separator;
      add(items[at]);
    }
    text += rules.end.list;
  };
  const addMap = (members: JsonObject) => {
    const [begin, separator] = rules.map;
    text += begin;
    let isFirst = true;
    for (const name of Object.keys(members).sort(compareText)) {
      if (text.length > max) break;
      if (!isFirst) text += separator;
      isFirst = false;
      text += `${rules.name(name)}:`;
      add(members[name]);
    }
    text += rules.end.map;
  };
  add(value);
  return text;
}

const bracketed: Omit<PrintRules, 'scalar'> = {
  list: ['[', ' '],
  map: ['map[', ' '],
  name: (name) => name,
  end: { list: ']', map: ']' },
};

const plainRules: PrintRules = {
  ...bracketed,
  scalar: (value) => (value === null || value === undefined ? '<nil>' : goScalar(value)),
};

/** Prints a JSON value like Go's `%v`. */
export function goPlain(value: JsonValue | undefined, limit?: PrintLimit): string {
  return printValue(value, plainRules, limit);
}

const textRules: PrintRules = {
  ...bracketed,
  scalar(value) {
    if (typeof value === 'string') return value;
    if (value === null || value === undefined) return '%!s(<nil>)';
    return `%!s(${goTypeName(value)}=${goScalar(value)})`;
  },
};

/** Prints a JSON value like Go's `%s`, which expects strings: `%!s(int64=5)`. */
export function goText(value: JsonValue): string {
  return printValue(value, textRules);
}

const syntaxRules: PrintRules = {
  scalar(value) {
    if (value === null || value === undefined) return 'interface {}(nil)';
    return typeof value === 'string' ? JSON.stringify(value) : goScalar(value);
  },
  list: ['[]interface {}{', ', '],
  map: ['map[string]interface {}{', ', '],
  name: (name) => JSON.stringify(name),
  end: { list: '}', map: '}' },
};

/** Prints a JSON value like Go's `%#v`. */
export function goSyntax(value: JsonValue | undefined, limit?: PrintLimit): string {
  return printValue(value, syntaxRules, limit);
}

/** Returns the name of the Go type of a JSON value. */
export function goTypeName(value: JsonValue | undefined): string {
  if (value === null || value === undefined) return '<nil>';
  if (typeof value === 'string') return 'string';
  if (typeof value === 'boolean') return 'bool';
  if (Array.isArray(value)) return '[]interface {}';
  if (isObject(value)) return 'map[string]interface {}';
  return Number.isInteger(Number(value)) ? 'int64' : 'float64';
}
