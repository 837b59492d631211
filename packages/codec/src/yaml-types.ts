import { int64Max, int64Min, type JsonValue, uint64Max } from '@wheelhouse/machinery';

/** The plain scalars that are booleans or null, in each of their spellings. */
const words = new Map<string, JsonValue>();
for (const word of ['y', 'yes', 'true', 'on']) addWord(word, true);
for (const word of ['n', 'no', 'false', 'off']) addWord(word, false);
addWord('null', null);
words.set('', null);
words.set('~', null);

/** Adds a word in lower case, capitalized, and in upper case. */
function addWord(word: string, value: JsonValue): void {
  const upper = word.toUpperCase();
  for (const form of [word, upper, upper.slice(0, 1) + word.slice(1)]) words.set(form, value);
}

const infinities = /^[-+]?\.(?:inf|Inf|INF)$/;
const notNumbers = new Set(['.nan', '.NaN', '.NAN']);
const integerPattern = /^[-+]?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]*)$/;
const floatPattern = /^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$/;
/** A day, or a moment, which has a zone exactly if it has no blank. */
const timePattern = new RegExp(
  '^(\\d{4})-(\\d\\d?)-(\\d\\d?)' +
    '(?:(?:[Tt](?=.*[Z+-])| (?!.*[Z+-]))(\\d\\d?):(\\d\\d?):(\\d\\d?)' +
    '(?:[.,]\\d+)?(?:Z|[-+](\\d\\d):(\\d\\d))?)?$',
);
const base60Pattern = /^[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?$/;
const numberDigitsMax = 400;

/** Whether a text is a valid time in one of the forms of kube-apiserver's library. */
export function isTime(text: string): boolean {
  const match = timePattern.exec(text);
  if (match === null) return false;
  const [year = 0, month = 0, day = 0, ...parts] = match.slice(1).map((part) => Number(part ?? 0));
  const last = new Date(0);
  last.setUTCFullYear(year, month, 0);
  if (month < 1 || month > 12 || day < 1 || day > last.getUTCDate()) return false;
  return [23, 59, 59, 24, 60].every((max, index) => (parts[index] ?? 0) <= max);
}

/**
 * Returns the value of a plain scalar by the rules of kube-apiserver's library: YAML 1.1 for
 * booleans and numbers, without base 60; times are strings. The result may be infinite or NaN.
 */
export function plainScalar(text: string): JsonValue {
  const word = words.get(text);
  if (word !== undefined) return word;
  const first = text.charAt(0);
  if (first === '.') return dottedScalar(text);
  if (first !== '-' && first !== '+' && (first < '0' || first > '9')) return text;
  if (infinities.test(text)) return first === '-' ? -Infinity : Infinity;
  if (text.length > numberDigitsMax || isTime(text)) return text;
  const digits = text.replaceAll('_', '');
  const integer = integerPattern.test(digits) ? exactInteger(digits) : undefined;
  if (integer !== undefined) return integer;
  return floatPattern.test(digits) ? finiteOr(text, Number(digits)) : text;
}

function dottedScalar(text: string): JsonValue {
  if (notNumbers.has(text)) return Number.NaN;
  if (infinities.test(text)) return Infinity;
  return floatPattern.test(text) ? finiteOr(text, Number(text)) : text;
}

/** A number beyond the range of a double is a string, such as the abbreviated hash `12e4567`. */
function finiteOr(text: string, value: number): JsonValue {
  return Number.isFinite(value) ? value : text;
}

/**
 * Parses `0x1f`, `0b1`, `0o17`, `017`, and decimals; a bigint only if a number would be inexact.
 * Undefined for more than 64 bits: decimal digits are then a float, and others a string.
 */
function exactInteger(digits: string): number | bigint | undefined {
  const isNegative = digits.startsWith('-');
  const bare = digits.replace(/^[-+]/, '');
  const octal = /^0[oO]?([0-7]+)$/.exec(bare);
  const size = BigInt(octal === null ? bare.toLowerCase() : `0o${octal[1]}`);
  const value = isNegative ? -size : size;
  const max = digits.startsWith('+') ? int64Max : uint64Max;
  if (value < int64Min || value > max) return undefined;
  const near = Number(value);
  return Number.isSafeInteger(near) ? near + 0 : value;
}

/** Whether a string must be quoted because it would be another value as a plain scalar. */
export function readsAsOther(text: string): boolean {
  if (text === '<<' || isTime(text) || base60Pattern.test(text)) return true;
  return typeof plainScalar(text) !== 'string';
}
