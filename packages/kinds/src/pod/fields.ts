import {
  dnsSubdomain,
  type FieldError,
  forbiddenField,
  inRange,
  invalid,
  type JsonObject,
  type JsonValue,
  labelValue,
  notSupported,
  portName,
  qualifiedName,
  required,
  ruleErrors,
  stringsOf,
  tooLong,
} from '@wheelhouse/machinery';
import { at, textAt } from '../cells.ts';
import type { PodSecurityContext, SecurityContext } from '../gen/types/core/v1.ts';
import type { Stored } from '../resource-def.ts';
import { flatMapSteps, sortedKeys } from '../rules/checks.ts';
import { objectAt } from '../rules/fill.ts';

const driverNameBytesMax = 63;

/** Validates the name of a CSI driver: a short DNS subdomain in any letter case. */
export function validateDriverName(name: string, field: string): FieldError[] {
  return [
    ...(name === '' ? [required(field)] : []),
    ...(Buffer.byteLength(name) > driverNameBytesMax ? [tooLong(field, driverNameBytesMax)] : []),
    ...dnsSubdomain(name.toLowerCase()).map((message) => invalid(field, name, message)),
  ];
}

/** The detail of the error about a negative number. */
export const negative = 'must be greater than or equal to 0';
/** The detail of the error about a number that must be positive. */
export const notPositive = 'must be greater than zero';

/** The values of `imagePullPolicy`. */
export const pullPolicies = ['Always', 'IfNotPresent', 'Never'];

/** Whether a member is present: neither absent nor null. */
export function isSet(object: JsonObject | undefined, name: string): boolean {
  const value = at(object, name);
  return value !== undefined && value !== null;
}

/** The number at a path; undefined if there is none. */
export function intAt(
  object: JsonObject | undefined,
  ...path: readonly string[]
): number | undefined {
  const value = at(object, ...path);
  return typeof value === 'number' || typeof value === 'bigint' ? Number(value) : undefined;
}

/** The strings of the list at a path. */
export function textsAt(
  object: JsonValue | undefined,
  ...path: readonly string[]
): readonly string[] {
  return stringsOf(at(object, ...path));
}

/** The string in a member; undefined if there is none. */
export function optionalText(object: JsonObject | undefined, name: string): string | undefined {
  const value = at(object, name);
  return typeof value === 'string' ? value : undefined;
}

const under = (path: string, name: string) => (path === '' ? name : `${path}.${name}`);

/** Validates that `value` is one of `allowed`; an empty one is missing. */
export function validateChoice(
  field: string,
  value: string,
  allowed: readonly string[],
): FieldError[] {
  if (allowed.includes(value)) return [];
  return value === '' ? [required(field)] : [notSupported(field, value, allowed)];
}

/** Validates that the member `name` of the object at `path` is one of `allowed`. */
export const validateChoiceIn = (
  object: JsonObject,
  path: string,
  name: string,
  allowed: readonly string[],
): FieldError[] => validateChoice(under(path, name), textAt(object, name), allowed);

/** Validates that the member `name` of the object at `path`, if present, is one of `allowed`. */
export function validateOptionalChoice(
  object: JsonObject | undefined,
  path: string,
  name: string,
  allowed: readonly string[],
): FieldError[] {
  const value = optionalText(object, name);
  if (value === undefined || allowed.includes(value)) return [];
  return [notSupported(under(path, name), value, allowed)];
}

/** Validates that the numbers `names` of the object at `path`, if present, are not negative. */
export function validateNonNegative(
  object: JsonObject,
  path: string,
  ...names: readonly string[]
): FieldError[] {
  const errors: FieldError[] = [];
  for (const name of names) {
    const value = intAt(object, name);
    if (value === undefined || value >= 0) continue;
    errors.push(invalid(under(path, name), value, negative));
  }
  return errors;
}

/**
 * Validates that the number `name` of the object at `path`, if present, is within the bounds, both
 * inclusive.
 */
export function validateRange(
  object: JsonObject | undefined,
  path: string,
  name: string,
  [low, high]: readonly [number, number],
): FieldError[] {
  const value = intAt(object, name);
  if (value === undefined) return [];
  return inRange(value, low, high).map((message) => invalid(under(path, name), value, message));
}

/** Requires the texts at `names`, which are paths below `path`, such as `secretRef.name`. */
export function requireTexts(object: JsonObject, path: string, ...names: string[]): FieldError[] {
  const missing = names.filter((name) => textAt(object, ...name.split('.')) === '');
  return missing.map((name) => required(`${path}.${name}`));
}

/** Rejects the members of the object at `options.path` that are present with any value. */
export function forbidPresent(
  object: JsonObject | undefined,
  names: readonly string[],
  options: { path: string; why: string },
): FieldError[] {
  return names
    .filter((name) => isSet(object, name))
    .map((name) => forbiddenField(`${options.path}.${name}`, options.why));
}

/** Validates that a port number is within 1 to 65535. */
export function validatePortNumber(field: string, number: number): FieldError[] {
  return inRange(number, 1, 65535).map((message) => invalid(field, number, message));
}

/** Validates a port: a number, or the name of a port of a container. */
export function validatePortNumberOrName(field: string, port: JsonValue | undefined): FieldError[] {
  if (typeof port === 'string') return ruleErrors(field, port, portName);
  return validatePortNumber(field, Number(port ?? 0));
}

/** Returns the error for a reference that the object itself does not resolve. */
export function notFoundValue(field: string, value: string): FieldError {
  return {
    type: 'FieldValueNotFound',
    field,
    message: `Not found: ${JSON.stringify(value)}`,
  };
}

/** Returns an `Invalid value` error without the value, as kube-apiserver prints some. */
export function invalidUnshown(field: string, detail: string): FieldError {
  return { type: 'FieldValueInvalid', field, message: `Invalid value: ${detail}` };
}

/** Returns the error of `duplicate` for a value in Go's notation. */
export const duplicateGo = (field: string, goText: string): FieldError => ({
  type: 'FieldValueDuplicate',
  field,
  message: `Duplicate value: ${goText}`,
});

/** Returns the error of `notSupported` for a value in Go's notation. */
export function notSupportedGo(
  field: string,
  goText: string,
  allowed: readonly string[],
): FieldError {
  const list = allowed.map((value) => JSON.stringify(value)).join(', ');
  const message = `Unsupported value: ${goText}: supported values: ${list}`;
  return { type: 'FieldValueNotSupported', field, message };
}

/** Validates labels outside an object's own metadata, in steps (TRUST-2). */
export function labelErrorSteps(
  labels: JsonObject | undefined,
  path: string,
): Generator<void, FieldError[]> {
  return flatMapSteps(sortedKeys(labels), (key) => [
    ...ruleErrors(path, key, qualifiedName),
    ...ruleErrors(path, textAt(labels, key), labelValue),
  ]);
}

const highestId = 2 ** 31 - 1;

/** Validates user and group IDs, if present. */
export function validateIds(
  object: Stored<PodSecurityContext | SecurityContext>,
  path: string,
  names: readonly string[],
) {
  return names.flatMap((name) => validateRange(object, path, name, [0, highestId]));
}

/** Validates `supplementalGroups` in steps. */
export function* validateGroupIds(
  object: Stored<PodSecurityContext>,
  path: string,
): Generator<void, FieldError[]> {
  const list = object.supplementalGroups;
  if (!Array.isArray(list)) return [];
  return yield* flatMapSteps(list, (id, index) =>
    inRange(Number(id), 0, highestId).map((message) =>
      invalid(`${path}.supplementalGroups[${index}]`, Number(id), message),
    ),
  );
}

/** Whether the value at a path is `true`. */
export const isTrue = (object: JsonValue | undefined, ...path: readonly string[]): boolean =>
  at(object, ...path) === true;

/** Validates a path inside a directory: relative, and without `..`. */
export function validateDescendingPath(field: string, path: string): FieldError[] {
  const errors = path.startsWith('/') ? [invalid(field, path, 'must be a relative path')] : [];
  return [...errors, ...validateNoBacksteps(field, path)];
}

/** Rejects a path with a part `..`. */
export function validateNoBacksteps(field: string, path: string): FieldError[] {
  return path.split('/').includes('..') ? [invalid(field, path, "must not contain '..'")] : [];
}

/**
 * Validates the path of a file in a volume: relative, without `..`, and without a first name that
 * starts with `..`, which the node reserves.
 */
export function validatePlainPath(field: string, path: string): FieldError[] {
  const errors = validateDescendingPath(field, path);
  if (path.startsWith('..') && !path.startsWith('../')) {
    errors.push(invalid(field, path, "must not start with '..'"));
  }
  return errors;
}

/** The annotations of a pod or template; empty if there are none. */
export const annotationsOf = (holder: JsonObject | undefined): JsonObject =>
  objectAt(holder, 'metadata', 'annotations') ?? {};
