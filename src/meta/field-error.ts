import type { JsonValue } from '../base/json.ts';

/** Upstream's kinds of field error; the value is the `reason` of the Status cause. */
export type FieldErrorType =
  | 'FieldValueRequired'
  | 'FieldValueInvalid'
  | 'FieldValueNotSupported'
  | 'FieldValueDuplicate'
  | 'FieldValueForbidden'
  | 'FieldValueTooLong'
  | 'FieldValueTooMany'
  | 'FieldValueNotFound'
  | 'FieldValueTypeInvalid'
  | 'InternalError';

/** One complaint about one field of an object (a 422's cause). */
export interface FieldError {
  readonly type: FieldErrorType;
  /** Path as upstream writes it: `spec.rules[0].verbs`, `data[key]`; empty for the whole object. */
  readonly field: string;
  /** What stands after the field: `Required value`, `Invalid value: "x": must be …`. */
  readonly message: string;
}

const goEscapes = new Map(
  [...'abfnrtv'].map((letter, index) => ['\x07\b\f\n\r\t\v'[index], letter]),
);

/** A text in quotes as Go writes it, which escapes all that does not show. */
export function goQuoted(text: string): string {
  const escaped = text.replace(/["\\]|[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu, (character) => {
    const code = character.codePointAt(0) ?? 0;
    const letter = goEscapes.get(character);
    if (letter !== undefined) return `\\${letter}`;
    if (character === '"' || character === '\\') return `\\${character}`;
    const hex = (width: number) => code.toString(16).padStart(width, '0');
    if (code < 0x80) return `\\x${hex(2)}`;
    return code < 0x10000 ? `\\u${hex(4)}` : `\\U${hex(8)}`;
  });
  return `"${escaped}"`;
}

/** A float64 as Go's `%v` prints it: with an exponent below 1e-4 and from 1e6. */
export function goFloat(value: number): string {
  const [digits = '', exponent = '0'] = value.toExponential().split('e');
  const power = Number(exponent);
  if (power >= -4 && power < 6) return String(value);
  const width = String(Math.abs(power)).padStart(2, '0');
  return `${digits}e${power < 0 ? '-' : '+'}${width}`;
}

/** How Go prints a value inside an `Invalid value:` message: strings quoted, objects as JSON. */
export function showValue(value: JsonValue | undefined): string {
  if (typeof value === 'string') return goQuoted(value);
  if (typeof value === 'bigint') return String(value);
  if (typeof value === 'number')
    return Number.isSafeInteger(value) ? String(value) : goFloat(value);
  return JSON.stringify(value ?? null, (_, member) =>
    typeof member === 'bigint' ? Number(member) : member,
  );
}

/** Nothing is shown by a word, and quoted like any word. */
const shownBad = (value: JsonValue | undefined) =>
  value === undefined || value === null ? '"null"' : showValue(value);

const withDetail = (head: string, detail: string) => (detail === '' ? head : `${head}: ${detail}`);

export function required(field: string, detail = ''): FieldError {
  return { type: 'FieldValueRequired', field, message: withDetail('Required value', detail) };
}
export function invalid(field: string, value: JsonValue | undefined, detail: string): FieldError {
  const message = withDetail(`Invalid value: ${shownBad(value)}`, detail);
  return { type: 'FieldValueInvalid', field, message };
}
export function typeInvalid(
  field: string,
  value: JsonValue | undefined,
  detail: string,
): FieldError {
  const message = withDetail(`Invalid value: ${shownBad(value)}`, detail);
  return { type: 'FieldValueTypeInvalid', field, message };
}
/** @param shown the value as the message has it, where that is not its JSON */
export function duplicate(
  field: string,
  value: JsonValue | undefined,
  shown: string = shownBad(value),
): FieldError {
  return { type: 'FieldValueDuplicate', field, message: `Duplicate value: ${shown}` };
}
/** @param shown as for `duplicate` */
export function notSupported(
  field: string,
  value: JsonValue | undefined,
  allowed: readonly string[],
  shown: string = shownBad(value),
): FieldError {
  const list = allowed.map((one) => JSON.stringify(one)).join(', ');
  const message = `Unsupported value: ${shown}: supported values: ${list}`;
  return { type: 'FieldValueNotSupported', field, message };
}
export function forbiddenField(field: string, detail: string): FieldError {
  return { type: 'FieldValueForbidden', field, message: withDetail('Forbidden', detail) };
}
/** What went wrong is not the value's fault, by upstream's account. */
export function internal(field: string, detail: string): FieldError {
  return { type: 'InternalError', field, message: withDetail('Internal error', detail) };
}
/** @param unit `bytes` (default), or what upstream counts in (`characters`) */
export function tooLong(field: string, maxBytes: number): FieldError {
  return {
    type: 'FieldValueTooLong',
    field,
    message: `Too long: may not be more than ${maxBytes} bytes`,
  };
}
export function tooMany(field: string, count: number, max: number): FieldError {
  return {
    type: 'FieldValueTooMany',
    field,
    message: `Too many: ${count}: must have at most ${max} items`,
  };
}
