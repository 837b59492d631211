import { isObject, type JsonValue } from '../base/json.ts';
import { goFloat } from '../base/numbers.ts';
import { shownValueMax, truncateText } from './answer-bounds.ts';
import { goQuoted } from './go-values.ts';
import type { FieldErrorType } from './status-reasons.ts';

/** A validation error of one field of an object: a cause of a 422. */
export interface FieldError {
  readonly type: FieldErrorType;
  /**
   * Path of the field, such as `spec.rules[0].verbs` or `data[key]`; empty for the whole object.
   */
  readonly field: string;
  /**
   * The message without the field: `Required value`, `Invalid value: "x": must be …`. Rendered on
   * first access, because a response shows only the first errors of a body (TRUST-3).
   */
  readonly message: string;
}

/**
 * Prints a value for an `Invalid value:` message as Go does: strings quoted, objects as JSON. Shows
 * at most `shownValueMax` characters, in time independent of the rest.
 */
export function showValue(value: JsonValue | undefined): string {
  if (typeof value === 'string') return goQuoted(truncateText(value, shownValueMax));
  if (typeof value === 'bigint') return String(value);
  if (typeof value === 'number') return isInt64(value) ? String(BigInt(value)) : goFloat(value);
  return showHead(value ?? null, (head) =>
    JSON.stringify(head, (_, member) => (typeof member === 'bigint' ? Number(member) : member)),
  );
}

const isInt64 = (value: number) => Number.isInteger(value) && Math.abs(value) < 2 ** 63;

/** Prints a value, truncated to `shownValueMax` characters. */
export function showHead(value: JsonValue, print: (value: JsonValue) => string): string {
  const budget = { left: shownValueMax };
  const head = truncateValue(value, budget);
  if (budget.left >= 0) return truncateText(print(value), shownValueMax);
  return `${print(head).slice(0, shownValueMax)}...`;
}

/** Returns a prefix of a value with about as many characters of JSON as the budget. */
function truncateValue(value: JsonValue, budget: { left: number }): JsonValue {
  budget.left -= 1;
  if (typeof value === 'string') {
    budget.left -= value.length;
    return budget.left < 0 ? value.slice(0, shownValueMax) : value;
  }
  if (Array.isArray(value)) {
    const items: JsonValue[] = [];
    for (const item of value) {
      if (budget.left < 0) break;
      items.push(truncateValue(item, budget));
    }
    return items;
  }
  if (!isObject(value)) return value;
  const members: [string, JsonValue][] = [];
  for (const name of Object.keys(value)) {
    if (budget.left < 0) break;
    budget.left -= name.length;
    members.push([name.slice(0, shownValueMax), truncateValue(value[name] ?? null, budget)]);
  }
  return Object.fromEntries(members);
}

/** kube-apiserver shows null as a quoted string. */
const showInvalid = (value: JsonValue | undefined) =>
  value === undefined || value === null ? '"null"' : showValue(value);

const withDetail = (head: string, detail: string) => (detail === '' ? head : `${head}: ${detail}`);

/**
 * An error whose message is rendered on first access. A class, because an object literal with a
 * getter takes a hundred times as long to create, and a body may have tens of thousands of errors.
 */
class LazyError implements FieldError {
  readonly type: FieldErrorType;
  readonly field: string;
  #render: (() => string) | undefined;
  #message = '';

  constructor(type: FieldErrorType, field: string, render: () => string) {
    this.type = type;
    this.field = field;
    this.#render = render;
  }

  get message(): string {
    if (this.#render !== undefined) {
      this.#message = this.#render();
      this.#render = undefined;
    }
    return this.#message;
  }
}

/** Returns the same error for another field. */
export function withField(error: FieldError, field: string): FieldError {
  return new LazyError(error.type, field, () => error.message);
}

/** Creates a `Required value` error. */
export function required(field: string, detail = ''): FieldError {
  return { type: 'FieldValueRequired', field, message: withDetail('Required value', detail) };
}
/** Creates an `Invalid value` error. */
export function invalid(field: string, value: JsonValue | undefined, detail: string): FieldError {
  return new LazyError('FieldValueInvalid', field, () =>
    withDetail(`Invalid value: ${showInvalid(value)}`, detail),
  );
}
/**
 * Creates an `Invalid value` error with a value in Go syntax.
 * @param show prints the value on first access; many errors may each show a whole list
 */
export function invalidGo(field: string, show: () => string, detail: string): FieldError {
  return new LazyError('FieldValueInvalid', field, () => {
    const text = show();
    const shown = text.length > shownValueMax ? `${text.slice(0, shownValueMax)}...` : text;
    return withDetail(`Invalid value: ${shown}`, detail);
  });
}
/** Prints the items of a list as Go does, up to the limit of a response. */
export function goItems<Item>(items: readonly Item[], print: (item: Item) => string): string {
  const texts: string[] = [];
  let length = 0;
  for (const item of items) {
    const text = print(item);
    texts.push(text);
    length += text.length;
    if (length > shownValueMax) break;
  }
  return texts.join(', ');
}
/** Creates an `Invalid value` error for a value of the wrong type. */
export function typeInvalid(
  field: string,
  value: JsonValue | undefined,
  detail: string,
): FieldError {
  return new LazyError('FieldValueTypeInvalid', field, () =>
    withDetail(`Invalid value: ${showInvalid(value)}`, detail),
  );
}
/**
 * Creates a `Duplicate value` error.
 * @param show prints the value if its JSON is not suitable
 */
export function duplicate(
  field: string,
  value: JsonValue | undefined,
  show: (value: JsonValue | undefined) => string = showInvalid,
): FieldError {
  return new LazyError('FieldValueDuplicate', field, () => `Duplicate value: ${show(value)}`);
}
/**
 * Creates an `Unsupported value` error that lists the allowed values.
 * @param show prints the value if its JSON is not suitable
 */
export function notSupported(
  field: string,
  value: JsonValue | undefined,
  allowed: readonly string[],
  show: (value: JsonValue | undefined) => string = showInvalid,
): FieldError {
  return new LazyError('FieldValueNotSupported', field, () => {
    const list = allowed.map((allowedValue) => JSON.stringify(allowedValue)).join(', ');
    return `Unsupported value: ${show(value)}: supported values: ${list}`;
  });
}
/** Creates a `Forbidden` error. */
export function forbiddenField(field: string, detail: string): FieldError {
  return { type: 'FieldValueForbidden', field, message: withDetail('Forbidden', detail) };
}
/** Creates an `Internal error`, which is not caused by the value. */
export function internal(field: string, detail: string): FieldError {
  return { type: 'InternalError', field, message: withDetail('Internal error', detail) };
}
/** Creates a `Too long` error. */
export function tooLong(field: string, maxBytes: number): FieldError {
  return {
    type: 'FieldValueTooLong',
    field,
    message: `Too long: may not be more than ${maxBytes} bytes`,
  };
}
/** Creates a `Too many` error. */
export function tooMany(field: string, count: number, max: number): FieldError {
  return {
    type: 'FieldValueTooMany',
    field,
    message: `Too many: ${count}: must have at most ${max} items`,
  };
}
