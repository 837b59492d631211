import {
  canonicalJson,
  type FieldError,
  goFloat,
  invalid,
  type JsonValue,
  notSupported,
  showHead,
  showValue,
  tooLong,
  typeInvalid,
} from '@wheelhouse/machinery';
import { goBadValue } from '../go-wording.ts';
import type { ValueValidation } from '../schema.ts';
import { formatCheck } from './formats.ts';
import type { Result, ValidationWork } from './validation-result.ts';

/** Adds the errors of one value. Messages contain `in body`, as those of kube-apiserver do. */
type ValueCheck = (value: JsonValue, path: string, errors: FieldError[]) => void;

/** Adds the errors of a string, whose pattern may be expensive. */
type TextCheck = (text: string, path: string, result: Result) => void;

/** Returns the field of an error: a path without the leading dot of a member of the root. */
export function fieldOf(path: string): string {
  return path.startsWith('.') ? path.slice(1) : path;
}

/** The path of an error without a field, as Go prints it. */
export const noField = '<nil>';

/** Returns an error about anyOf, oneOf, allOf, or not. */
export function compositeError(message: string): FieldError {
  return invalid(noField, '', message);
}

/**
 * Returns the JSON type of a value in messages. A number that does not fit int64, or that has a
 * fraction or exponent and exceeds the exact integers of float64, is not an integer.
 */
function typeOfValue(value: JsonValue): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'bigint') return BigInt.asIntN(64, value) === value ? 'integer' : 'number';
  if (typeof value === 'number') return Number.isSafeInteger(value) ? 'integer' : 'number';
  return typeof value;
}

/** Returns the format that kube-apiserver's decoder assigns to a number; empty for other values. */
function formatOfValue(value: JsonValue): string {
  const type = typeOfValue(value);
  if (type === 'integer') return 'int64';
  return type === 'number' ? 'float64' : '';
}

function wrongType(path: string, expected: string, actual: string): FieldError {
  const message = `${path} in body must be of type ${expected}: ${showValue(actual)}`;
  return typeInvalid(fieldOf(path), actual, message);
}

/** Checks the type of a value, and returns whether it is valid. */
type TypeCheck = (value: JsonValue, path: string, errors: FieldError[]) => boolean;

/** Returns the check of the type of a node. */
export function typeCheck(node: {
  readonly types: readonly string[];
  readonly nullable: boolean;
  readonly format: string;
}): TypeCheck {
  const { types, nullable, format } = node;
  const numeric = types.includes('number') || types.includes('integer');
  const expected = types.join(',');
  const holds = (type: string) =>
    types.includes(type) || (type === 'integer' && types.includes('number'));
  return (value, path, errors) => {
    const type = typeOfValue(value);
    if (value === null) {
      if (types.length === 0 || nullable) return true;
      errors.push(wrongType(path, expected, 'null'));
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
    errors.push(wrongType(path, expected, type));
    return false;
  };
}

/** Returns the length of a string in code points. */
export function codePointCount(text: string): number {
  // A regular expression takes longer than the loop for short texts, and no time for Latin-1.
  if (text.length > 16 && !/[\ud800-\udbff]/.test(text)) return text.length;
  let count = text.length;
  for (let at = 0; at < text.length; at += 1) {
    if ((text.charCodeAt(at) & 0xfc00) !== 0xd800) continue;
    if ((text.charCodeAt(at + 1) & 0xfc00) !== 0xdc00) continue;
    count -= 1;
    at += 1;
  }
  return count;
}

/**
 * Returns a check of length and pattern that reports the first failure; undefined if there is
 * nothing to check.
 */
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
    if (maxLength !== undefined && text.length > maxLength && codePointCount(text) > maxLength) {
      errors.push(tooLong(field, maxLength));
    } else if (minLength !== undefined && codePointCount(text) < minLength) {
      const message = `${path} in body should be at least ${minLength} chars long`;
      errors.push(invalid(field, text, message));
    } else if (patternTest !== undefined && !patternTest(text, work)) {
      errors.push(invalid(field, text, `${path} in body should match '${pattern}'`));
    }
  };
}

/** Returns the check of a string format; undefined if the format is not checked. */
export function formatValueCheck(format: string): ValueCheck | undefined {
  const holds = format === '' ? undefined : formatCheck(format);
  if (holds === undefined) return undefined;
  return (value, path, errors) => {
    if (!holds(value as string)) errors.push(wrongType(path, format, value as string));
  };
}

/** Returns the check that a value is one of `allowed`; undefined if any value is. */
export function enumCheck(allowed: readonly JsonValue[] | undefined): ValueCheck | undefined {
  if (allowed === undefined || allowed.length === 0) return undefined;
  const isStructured = (value: JsonValue) => typeof value === 'object' && value !== null;
  const names = allowed.map((value) => {
    if (typeof value === 'string') return value;
    return isStructured(value) ? showHead(value, canonicalJson) : showValue(value);
  });
  const scalars = new Set(allowed.filter((value) => !isStructured(value)));
  const structured = new Set(allowed.filter(isStructured).map(canonicalJson));
  const isAllowed = (value: JsonValue) => {
    if (isStructured(value)) return structured.size > 0 && structured.has(canonicalJson(value));
    if (value === null) return false;
    // A fraction is truncated before it is compared with an integer, as in kube-apiserver.
    return scalars.has(typeof value === 'number' ? Math.trunc(value) : value) || scalars.has(value);
  };
  return (value, path, errors) => {
    if (isAllowed(value)) return;
    errors.push(notSupported(fieldOf(path), value, names, goBadValue));
  };
}

/**
 * Returns a check of bounds and multiples; undefined if there are none. The limit of an integer is
 * truncated to an integer, as in kube-apiserver. Formats (`int32`, `float`) imply no bounds.
 */
export function numberCheck(validation: ValueValidation): ValueCheck | undefined {
  const { maximum, minimum, multipleOf } = validation;
  if ([maximum, minimum, multipleOf].every((bound) => bound === undefined)) return undefined;
  return (value, path, errors) => {
    if (typeof value !== 'number' && typeof value !== 'bigint') return;
    const isInteger = typeof value === 'bigint' || Number.isSafeInteger(value);
    const limit = (bound: number) => (isInteger ? Math.trunc(bound) : bound);
    const field = fieldOf(path);
    const shown = (number: number) => (isInteger ? String(number) : goFloat(number));
    if (multipleOf !== undefined) checkMultiple(value, limit(multipleOf), { path, shown, errors });
    if (minimum !== undefined) {
      const exclusive = validation.exclusiveMinimum === true;
      const min = limit(minimum);
      const relation = exclusive ? 'greater than' : 'greater than or equal to';
      if (exclusive ? value <= min : value < min) {
        errors.push(invalid(field, value, `${path} in body should be ${relation} ${shown(min)}`));
      }
    }
    if (maximum !== undefined) {
      const exclusive = validation.exclusiveMaximum === true;
      const max = limit(maximum);
      const relation = exclusive ? 'less than' : 'less than or equal to';
      if (exclusive ? value >= max : value > max) {
        errors.push(invalid(field, value, `${path} in body should be ${relation} ${shown(max)}`));
      }
    }
  };
}

function checkMultiple(
  value: number | bigint,
  factor: number,
  at: { path: string; shown: (number: number) => string; errors: FieldError[] },
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
  if (Math.abs(quotient) > Number.MAX_SAFE_INTEGER) return false;
  // Compared with the next integer towards zero, as in kube-apiserver: 0.999... is no multiple.
  const whole = Math.trunc(quotient);
  const difference = Math.abs(quotient - whole);
  if (whole === 0) return difference === 0;
  return difference / (Math.abs(quotient) + Math.abs(whole)) < 1e-9;
}
