import {
  canonical,
  type FieldError,
  goFloat,
  invalid,
  type JsonValue,
  notSupported,
  showValue,
  tooLong,
  typeInvalid,
  type WorkBudget,
} from '@wheelhouse/machinery';
import { goBadValue } from '../go-wording.ts';
import type { ValueValidation } from '../schema.ts';
import { formatCheck } from './formats.ts';
import type { Result } from './validation-result.ts';

/**
 * Checks of one value. They say `in body` because upstream's validator was written for requests.
 */
export type ValueCheck = (value: JsonValue, path: string, errors: FieldError[]) => void;

/** The check of a text, whose pattern may cost much. */
export type TextCheck = (text: string, path: string, result: Result) => void;

/** The field of an error: upstream trims the dot a member of the root gets. */
export function fieldOf(path: string): string {
  return path.startsWith('.') ? path.slice(1) : path;
}

/** Errors about no single field stand at a path Go prints as `<nil>`. */
export const noField = '<nil>';

/** An error about a value as a whole: which alternatives it fails. */
export function compositeError(message: string): FieldError {
  return invalid(noField, '', message);
}

/**
 * JSON's type of a value as messages have it. What fits no int64, and what is written with a fraction
 * or an exponent and is beyond what a float64 counts one by one, is no integer.
 */
export function typeOfValue(value: JsonValue): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'bigint') return BigInt.asIntN(64, value) === value ? 'integer' : 'number';
  if (typeof value === 'number') return Number.isSafeInteger(value) ? 'integer' : 'number';
  return typeof value;
}

/** The format upstream's decoder would give a value: numbers have one. */
function formatOfValue(value: JsonValue): string {
  const type = typeOfValue(value);
  if (type === 'integer') return 'int64';
  return type === 'number' ? 'float64' : '';
}

function wrongType(path: string, want: string, got: string): FieldError {
  const message = `${path} in body must be of type ${want}: ${JSON.stringify(got)}`;
  return typeInvalid(fieldOf(path), got, message);
}

/** Judges the type; gives whether it holds. */
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

/** Characters as upstream counts them: code points. */
export function codePoints(text: string): number {
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}

/** Length and pattern: the first that fails is told. */
export function stringCheck(
  validation: ValueValidation,
  patternTest: ((text: string, work: WorkBudget) => boolean) | undefined,
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
  const structured = new Set(allowed.filter(isStructured).map(canonical));
  const isAllowed = (value: JsonValue) =>
    isStructured(value)
      ? structured.size > 0 && structured.has(canonical(value))
      : value !== null && scalars.has(value);
  return (value, path, errors) => {
    if (isAllowed(value)) return;
    errors.push(notSupported(fieldOf(path), value, names, goBadValue));
  };
}

/**
 * Bounds and multiples; a limit on an integer is cut to one, as upstream's comparison does. A format
 * (`int32`, `float`) bounds nothing: 1.32 has it for documentation.
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
    // An integer's factor is cut to one, which may leave nothing of it.
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
