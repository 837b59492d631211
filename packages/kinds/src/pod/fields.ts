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
  parseIpAddress,
  portName,
  qualifiedName,
  required,
  ruleErrors,
  runInOnePiece,
  tooLong,
} from '@wheelhouse/machinery';
import { at, textAt } from '../cells.ts';
import type { HorizontalPodAutoscalerStatus } from '../gen/types/autoscaling/v2.ts';
import type { CronJobSpec } from '../gen/types/batch/v1.ts';
import type { EndpointPort, PodSecurityContext, SecurityContext } from '../gen/types/core/v1.ts';
import type { EndpointSlice } from '../gen/types/discovery/v1.ts';
import type { PodDisruptionBudgetStatus } from '../gen/types/policy/v1.ts';
import type { VolumeNodeResources } from '../gen/types/storage/v1.ts';
import { eachError, sortedKeys } from '../rules/checks.ts';
import { objectAt } from '../rules/fill.ts';
import type { Stored } from '../stored.ts';

const lengthMax = 63;

/** Validates the name of a CSI driver: a short DNS subdomain in any letter case. */
export function driverName(name: string, field: string): FieldError[] {
  return [
    ...(name === '' ? [required(field)] : []),
    ...(name.length > lengthMax ? [tooLong(field, lengthMax)] : []),
    ...dnsSubdomain(name.toLowerCase()).map((message) => invalid(field, name, message)),
  ];
}

/** Validation of single fields, for pods and the kinds that make pods. */

export const negative = 'must be greater than or equal to 0';
export const notPositive = 'must be greater than zero';

/** When a node pulls an image. */
export const pullPolicies = ['Always', 'IfNotPresent', 'Never'];

/** Whether a member is present: neither absent nor null. */
export function isSet(object: JsonObject | undefined, name: string): boolean {
  const value = at(object, name);
  return value !== undefined && value !== null;
}

/** The whole number in a member; undefined if there is none. */
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
  const value = at(object, ...path);
  return Array.isArray(value) ? value.filter((one) => typeof one === 'string') : [];
}

/** The text of a member; undefined if absent, which for some members differs from empty. */
export function optionalText(object: JsonObject | undefined, name: string): string | undefined {
  const value = at(object, name);
  return typeof value === 'string' ? value : undefined;
}

const under = (path: string, name: string) => (path === '' ? name : `${path}.${name}`);

/** The member at the end of `field` must be one of `allowed`; empty counts as missing. */
export function oneOf(
  object: Stored<CronJobSpec | EndpointSlice | EndpointPort>,
  field: string,
  allowed: readonly string[],
): FieldError[] {
  const dot = field.lastIndexOf('.');
  return choice(object, field.slice(0, Math.max(dot, 0)), field.slice(dot + 1), allowed);
}

/** Like `oneOf`, for the member `name` of the object at `path`. */
export function choice(
  object: JsonObject,
  path: string,
  name: string,
  allowed: readonly string[],
): FieldError[] {
  const value = textAt(object, name);
  if (allowed.includes(value)) return [];
  const field = under(path, name);
  return value === '' ? [required(field)] : [notSupported(field, value, allowed)];
}

/** Like `choice`, but the member may be absent; an empty one is not supported. */
export function oneOfIfSet(
  object: JsonObject | undefined,
  path: string,
  name: string,
  allowed: readonly string[],
): FieldError[] {
  const value = optionalText(object, name);
  if (value === undefined || allowed.includes(value)) return [];
  return [notSupported(under(path, name), value, allowed)];
}

/** The number at the end of `field` must not be negative, if present. */
export function notNegative(
  object: Stored<HorizontalPodAutoscalerStatus | PodDisruptionBudgetStatus | VolumeNodeResources>,
  field: string,
): FieldError[] {
  const dot = field.lastIndexOf('.');
  return noneNegative(object, field.slice(0, Math.max(dot, 0)), field.slice(dot + 1));
}

/** The numbers `names` of the object at `path` must not be negative, if present. */
export function noneNegative(
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

/** The number `name` of the object at `path` must lie within bounds, if present. */
export function within(
  object: JsonObject | undefined,
  path: string,
  name: string,
  [low, high]: readonly [number, number],
): FieldError[] {
  const value = intAt(object, name);
  if (value === undefined) return [];
  return inRange(value, low, high).map((message) => invalid(under(path, name), value, message));
}

/** Requires texts, named by paths below `path`. */
export function needed(object: JsonObject, path: string, ...names: string[]): FieldError[] {
  const missing = names.filter((name) => textAt(object, ...name.split('.')) === '');
  return missing.map((name) => required(`${path}.${name}`));
}

/** Rejects members that are present, whatever their value. */
export function refuseSet(
  object: JsonObject | undefined,
  names: readonly string[],
  options: { path: string; why: string },
): FieldError[] {
  return names
    .filter((name) => isSet(object, name))
    .map((name) => forbiddenField(`${options.path}.${name}`, options.why));
}

/** A port number within 1 to 65535. */
export function portNumber(field: string, number: number): FieldError[] {
  return inRange(number, 1, 65535).map((message) => invalid(field, number, message));
}

/** A port as a number, or as the name that a container gives it. */
export function portNumberOrName(field: string, port: JsonValue | undefined): FieldError[] {
  if (typeof port === 'string') return ruleErrors(field, port, portName);
  return portNumber(field, Number(port ?? 0));
}

/** The error for a reference that the object itself does not resolve. */
export function notFoundValue(field: string, value: string): FieldError {
  return {
    type: 'FieldValueNotFound',
    field,
    message: `Not found: ${JSON.stringify(value)}`,
  };
}

/** An `Invalid value` error without the value, as kube-apiserver prints some. */
export function invalidUnshown(field: string, detail: string): FieldError {
  return { type: 'FieldValueInvalid', field, message: `Invalid value: ${detail}` };
}

/** Like `notSupported`, for a value in Go's notation. */
export function notSupportedGo(
  field: string,
  goText: string,
  allowed: readonly string[],
): FieldError {
  const list = allowed.map((one) => JSON.stringify(one)).join(', ');
  const message = `Unsupported value: ${goText}: supported values: ${list}`;
  return { type: 'FieldValueNotSupported', field, message };
}

/** An IP address of either family. */
export function validateIp(field: string, value: string): FieldError[] {
  if (parseIpAddress(value) !== undefined) return [];
  const detail = 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)';
  return [invalid(field, value, detail)];
}

/** Validates labels outside an object's own metadata, which the registry validates. */
export function validateLabels(labels: JsonObject | undefined, path: string): FieldError[] {
  return runInOnePiece(labelErrorSteps(labels, path));
}

/** The same in steps (TRUST-2). */
export function labelErrorSteps(
  labels: JsonObject | undefined,
  path: string,
): Generator<void, FieldError[]> {
  return eachError(sortedKeys(labels), (key) => [
    ...ruleErrors(path, key, qualifiedName),
    ...ruleErrors(path, textAt(labels, key), labelValue),
  ]);
}

/** Upper bound of an object's annotations in total. */
const annotationBytesMax = 256 * 1024;

/** Validates annotations outside an object's own metadata. */
export function validateAnnotations(
  annotations: JsonObject | undefined,
  path: string,
): FieldError[] {
  const keys = sortedKeys(annotations);
  const errors = keys.flatMap((key) =>
    qualifiedName(key.toLowerCase()).map((message) => invalid(path, key, message)),
  );
  const bytes = keys.reduce(
    (sum, key) => sum + Buffer.byteLength(key) + Buffer.byteLength(textAt(annotations, key)),
    0,
  );
  if (bytes <= annotationBytesMax) return errors;
  const message = `Too long: may not be more than ${annotationBytesMax} bytes`;
  return [...errors, { type: 'FieldValueTooLong', field: path, message }];
}

const highestId = 2 ** 31 - 1;

/** Validates user and group IDs, if present. */
export function validateIds(
  object: Stored<PodSecurityContext | SecurityContext>,
  path: string,
  names: readonly string[],
) {
  return names.flatMap((name) => within(object, path, name, [0, highestId]));
}

/** Validates a list of group IDs. */
export function* validateGroupIds(
  object: Stored<PodSecurityContext>,
  path: string,
): Generator<void, FieldError[]> {
  const list = object.supplementalGroups;
  if (!Array.isArray(list)) return [];
  return yield* eachError(list, (id, index) =>
    inRange(Number(id), 0, highestId).map((message) =>
      invalid(`${path}.supplementalGroups[${index}]`, Number(id), message),
    ),
  );
}

/** Whether the value at a path is `true`. */
export const isTrue = (object: JsonValue | undefined, ...path: readonly string[]): boolean =>
  at(object, ...path) === true;

/** A path inside a directory: relative, and without `..`. */
export function descendingPath(field: string, path: string): FieldError[] {
  const errors = path.startsWith('/') ? [invalid(field, path, 'must be a relative path')] : [];
  return [...errors, ...noBacksteps(field, path)];
}

/** Rejects paths with a part `..`. */
export function noBacksteps(field: string, path: string): FieldError[] {
  return path.split('/').includes('..') ? [invalid(field, path, "must not contain '..'")] : [];
}

/**
 * Like `descendingPath`; also rejects names that start with `..`, which the volume writer
 * reserves.
 */
export function plainPath(field: string, path: string): FieldError[] {
  const errors = descendingPath(field, path);
  if (path.startsWith('..') && !path.startsWith('../')) {
    errors.push(invalid(field, path, "must not start with '..'"));
  }
  return errors;
}

/** The annotations of a pod or template. */
export const annotationsOf = (holder: JsonObject | undefined): JsonObject =>
  objectAt(holder, 'metadata', 'annotations') ?? {};
