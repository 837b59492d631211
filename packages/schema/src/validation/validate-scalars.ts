import {
  canonicalJson,
  type FieldError,
  goFloat,
  invalid,
  type JsonValue,
  notSupported,
  showValue,
  tooLong,
  typeInvalid,
} from '@wheelhouse/machinery';
import { goBadValue } from '../go-wording.ts';
import type { ValueValidation } from '../schema.ts';
import { formatCheck } from './formats.ts';
import type { Result, ValidationWork } from './validation-result.ts';

/**
 * Checks of one value. Messages say `in body`, because kube-apiserver's validator was written for
 * requests.
 */
export type ValueCheck = (value: JsonValue, path: string, errors: FieldError[]) => void;

/** The check of a string, whose pattern may be expensive. */
export type TextCheck = (text: string, path: string, result: Result) => void;

/** The field of an error, without the leading dot of a member of the root. */
export function fieldOf(path: string): string {
  return path.startsWith('.') ? path.slice(1) : path;
}

/** Errors without a field have a path that Go prints as `<nil>`. */
export const noField = '<nil>';

/** An error about the alternatives that a whole value fails. */
export function compositeError(message: string): FieldError {
  return invalid(noField, '', message);
}

/**
 * The JSON type of a value in messages. A number that does not fit int64, or that has a fraction or
 * exponent and exceeds the exact integers of float64, is not an integer.
 */
function typeOfValue(value: JsonValue): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'bigint') return BigInt.asIntN(64, value) === value ? 'integer' : 'number';
  if (typeof value === 'number') return Number.isSafeInteger(value) ? 'integer' : 'number';
  return typeof value;
}

/** The format that kube-apiserver's decoder would assign to a value; only numbers have one. */
function formatOfValue(value: JsonValue): string {
  const type = typeOfValue(value);
  if (type === 'integer') return 'int64';
  return type === 'number' ? 'float64' : '';
}

function wrongType(path: string, want: string, got: string): FieldError {
  const message = `${path} in body must be of type ${want}: ${JSON.stringify(got)}`;
  return typeInvalid(fieldOf(path), got, message);
}

/** Checks the type of a value. Returns whether it is valid. */
export type TypeCheck = (value: JsonValue, path: string, errors: FieldError[]) => boolean;

export function typeCheck(node: {
  readonly types: readonly string[];
  readonly nullable: boolean;
  readonly format: string;
}): TypeCheck {
  const { types, nullable, format } = node;
  const numeric = types.includes('number') || types.includes('integer');
  const want = types.join(',');
  const holds = (type: string) =>
    types.includes(type) || (type === 'integer' && types.includes('number'));
  return (value, path, errors) => {
    const type = typeOfValue(value);
    if (value === null) {
      if (types.length === 0 || nullable) return true;
      errors.push(wrongType(path, want, 'null'));
      return false;
    }
    const isText = type === 'string' || type === 'array';
    if (format !== '') {
      if (isText && !numeric) return true;
      if (!isText && !holds(type) && formatOfValue(value) !== format) {
        errors.push(wrongType(path, format, formatOfValue(value)));
        return false;
      }
    }
    if (holds(type)) return true;
    errors.push(wrongType(path, want, type));
    return false;
  };
}

/** The length of a string in code points. */
function codePoints(text: string): number {
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}

/** Checks length and pattern; reports the first failure. */
export function stringCheck(
  validation: ValueValidation,
  patternTest: ((text: string, work: ValidationWork) => boolean) | undefined,
): TextCheck | undefined {
  const { maxLength, minLength, pattern } = validation;
  if (maxLength === undefined && minLength === undefined && patternTest === undefined) {
    return undefined;
  }
  return (text, path, { errors, work }) => {
    const field = fieldOf(path);
    if (maxLength !== undefined && text.length > maxLength && codePoints(text) > maxLength) {
      errors.push(tooLong(field, maxLength));
    } else if (minLength !== undefined && codePoints(text) < minLength) {
      const message = `${path} in body should be at least ${minLength} chars long`;
      errors.push(invalid(field, text, message));
    } else if (patternTest !== undefined && !patternTest(text, work)) {
      errors.push(invalid(field, text, `${path} in body should match '${pattern}'`));
    }
  };
}

export function formatValueCheck(format: string): ValueCheck | undefined {
  const holds = format === '' ? undefined : formatCheck(format);
  if (holds === undefined) return undefined;
  return (value, path, errors) => {
    if (!holds(value as string)) errors.push(wrongType(path, format, value as string));
  };
}

export function enumCheck(allowed: readonly JsonValue[] | undefined): ValueCheck | undefined {
  if (allowed === undefined || allowed.length === 0) return undefined;
  const names = allowed.map((one) => (typeof one === 'string' ? one : showValue(one)));
  const isStructured = (value: JsonValue) => typeof value === 'object' && value !== null;
  const scalars = new Set(allowed.filter((one) => !isStructured(one)));
  const structured = new Set(allowed.filter(isStructured).map(canonicalJson));
  const isAllowed = (value: JsonValue) =>
    isStructured(value)
      ? structured.size > 0 && structured.has(canonicalJson(value))
      : value !== null && scalars.has(value);
  return (value, path, errors) => {
    if (isAllowed(value)) return;
    errors.push(notSupported(fieldOf(path), value, names, goBadValue));
  };
}

/**
 * Checks bounds and multiples. The limit of an integer is truncated to an integer, as in
 * kube-apiserver. Formats (`int32`, `float`) imply no bounds: in 1.32 they are only documentation.
 */
export function numberCheck(validation: ValueValidation): ValueCheck | undefined {
  const { maximum, minimum, multipleOf } = validation;
  if ([maximum, minimum, multipleOf].every((one) => one === undefined)) return undefined;
  return (value, path, errors) => {
    if (typeof value !== 'number' && typeof value !== 'bigint') return;
    const number = value;
    const whole = typeof number === 'bigint' || Number.isSafeInteger(number);
    const limit = (one: number) => (whole ? Math.trunc(one) : one);
    const field = fieldOf(path);
    const shown = (one: number) => (whole ? String(one) : goFloat(one));
    if (multipleOf !== undefined) checkMultiple(number, limit(multipleOf), { path, shown, errors });
    if (minimum !== undefined) {
      const exclusive = validation.exclusiveMinimum === true;
      const least = limit(minimum);
      const words = exclusive ? 'greater than' : 'greater than or equal to';
      if (exclusive ? number <= least : number < least) {
        errors.push(invalid(field, number, `${path} in body should be ${words} ${shown(least)}`));
      }
    }
    if (maximum !== undefined) {
      const exclusive = validation.exclusiveMaximum === true;
      const most = limit(maximum);
      const words = exclusive ? 'less than' : 'less than or equal to';
      if (exclusive ? number >= most : number > most) {
        errors.push(invalid(field, number, `${path} in body should be ${words} ${shown(most)}`));
      }
    }
  };
}

function checkMultiple(
  value: number | bigint,
  factor: number,
  at: { path: string; shown: (one: number) => string; errors: FieldError[] },
): void {
  const field = fieldOf(at.path);
  if (factor <= 0) {
    // The factor of an integer is truncated to an integer, which may be 0.
    const why = `factor MultipleOf declared for ${at.path} must be positive: ${at.shown(factor)}`;
    at.errors.push(invalid(field, factor, why));
  } else if (!isMultiple(value, factor)) {
    const message = `${at.path} in body should be a multiple of ${at.shown(factor)}`;
    at.errors.push(invalid(field, value, message));
  }
}

function isMultiple(value: number | bigint, factor: number): boolean {
  if (typeof value === 'bigint') return value % BigInt(factor) === 0n;
  if (Number.isSafeInteger(value)) return value % factor === 0;
  const quotient = factor < 1 ? (1 / factor) * value : value / factor;
  const nearest = Math.round(quotient);
  if (quotient === nearest) return true;
  const difference = Math.abs(quotient - nearest);
  if (nearest === 0) return difference < 1e-9 * Number.MIN_VALUE;
  return difference / (Math.abs(quotient) + Math.abs(nearest)) < 1e-9;
}
