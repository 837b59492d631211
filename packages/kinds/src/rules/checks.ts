import {
  appendAll,
  duplicate,
  type FieldError,
  flatMapSteps,
  goItems,
  goQuoted,
  invalid,
  invalidGo,
  isLight,
  isObject,
  type JsonObject,
  type JsonValue,
  joined,
  jsonEqual,
  notSupported,
  parseQuantity,
  qualifiedName,
  required,
  ruleErrors,
  runInOnePiece,
  Stride,
  seenBefore,
  tooLong,
} from '@wheelhouse/machinery';
import { textAt } from '../cells.ts';
import type { Condition } from '../gen/types/meta/v1.ts';
import type { Findings, Stored } from '../resource-def.ts';

export { flatMapSteps, someSteps } from '@wheelhouse/machinery';

/** Checks that many kinds share. */

/**
 * Validates conditions of the common form (`meta.v1.Condition`), whose types must be unique, in
 * steps (TRUST-2).
 */
export function validateConditions(
  conditions: readonly JsonObject[],
  path: string,
): Generator<void, FieldError[]> {
  const types = new Set<string>();
  return flatMapSteps(conditions, (condition, index) => {
    const type = textAt(condition, 'type');
    const at = `${path}[${index}]`;
    const repeated = types.has(type) ? [duplicate(`${at}.type`, type)] : [];
    types.add(type);
    return [...repeated, ...validateCondition(condition, at)];
  });
}

/** The values of a condition's `status`, in the order of messages. */
export const conditionStatuses: readonly string[] = ['False', 'True', 'Unknown'];

const messageBytesMax = 32 * 1024;

function validateCondition(condition: Stored<Condition>, path: string): FieldError[] {
  const errors = ruleErrors(`${path}.type`, condition.type ?? '', qualifiedName);
  const status = condition.status ?? '';
  if (!conditionStatuses.includes(status)) {
    errors.push(notSupported(`${path}.status`, status, conditionStatuses));
  }
  const generation = Number(condition.observedGeneration ?? 0);
  if (generation < 0) {
    const detail = 'must be greater than or equal to zero';
    errors.push(invalid(`${path}.observedGeneration`, generation, detail));
  }
  if ((condition.lastTransitionTime ?? '') === '') {
    errors.push(required(`${path}.lastTransitionTime`, 'must be set'));
  }
  appendAll(errors, validateReason(condition.reason ?? '', `${path}.reason`));
  if (Buffer.byteLength(condition.message ?? '') > messageBytesMax) {
    errors.push(tooLong(`${path}.message`, messageBytesMax));
  }
  return errors;
}

const reasonBytesMax = 1024;

const reasonForm = '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?';
const reasonDetail =
  'a condition reason must start with alphabetic character, optionally followed by a string of ' +
  "alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. " +
  "'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex " +
  `used for validation is '${reasonForm}')`;

function validateReason(reason: string, field: string): FieldError[] {
  if (reason === '') return [required(field, 'must be set')];
  const isFormed = /^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$/.test(reason);
  const isLong = Buffer.byteLength(reason) > reasonBytesMax;
  return [
    ...(isFormed ? [] : [invalid(field, reason, reasonDetail)]),
    ...(isLong ? [tooLong(field, reasonBytesMax)] : []),
  ];
}

/** Where a value is: the name of its member, and the name of the member that holds the object. */
export interface MemberPlace {
  readonly holder: string;
  readonly name: string;
}

/** The place of a value that is no quantity, such as the items of a list. */
export const anywhere: MemberPlace = { holder: '', name: '' };

/**
 * Equal as JSON values, except that quantities are compared by value; absent equals undefined.
 * @param place where the values are, which tells quantities from other texts
 */
export function same(
  left: JsonValue | undefined,
  right: JsonValue | undefined,
  place: MemberPlace = anywhere,
): boolean {
  return sameAt(left, right, place.holder, place.name);
}

/** `same` in steps, for values that may be large. */
export function* sameSteps(
  left: JsonValue | undefined,
  right: JsonValue | undefined,
): Generator<void, boolean> {
  if (isLight(left)) return same(left, right);
  return yield* samePartsSteps(left, right, { stride: new Stride(), name: '' });
}

/** Compares heavy values. */
function* samePartsSteps(
  left: JsonValue | undefined,
  right: JsonValue | undefined,
  { stride, name }: { readonly stride: Stride; readonly name: string },
): Generator<void, boolean> {
  if (left === right) return true;
  if (Array.isArray(left)) {
    if (!Array.isArray(right) || left.length !== right.length) return false;
    for (let index = 0; index < left.length; index += 1) {
      const weight = stride.weigh(left[index]);
      if (stride.isOver) yield;
      const areSame =
        weight === 'light'
          ? sameAt(left[index], right[index], '', '')
          : yield* samePartsSteps(left[index], right[index], { stride, name: '' });
      if (!areSame) return false;
    }
    return true;
  }
  if (!isObject(left) || !isObject(right)) return false;
  // Weighing or listing a map of thousands of members takes milliseconds.
  yield;
  const keys = Object.keys(left);
  stride.count(keys.length);
  if (stride.isOver) yield;
  let shared = 0;
  for (const key of keys) {
    const part = left[key];
    const weight = stride.weigh(part);
    if (stride.isOver) yield;
    if (!Object.hasOwn(right, key)) {
      if (part !== undefined) return false;
      continue;
    }
    const areSame =
      weight === 'light'
        ? sameAt(part, right[key], name, key)
        : yield* samePartsSteps(part, right[key], { stride, name: key });
    if (!areSame) return false;
    shared += 1;
  }
  stride.count(shared);
  if (stride.isOver) yield;
  return hasNoMore(right, left, shared);
}

/** Whether all members of an object are absent in another one, except the `shared` ones. */
function hasNoMore(object: JsonObject, other: JsonObject, shared: number): boolean {
  const keys = Object.keys(object);
  if (keys.length === shared) return true;
  return keys.every((key) => object[key] === undefined || Object.hasOwn(other, key));
}

/** Does the work of `same` without an object for the place of each member. */
function sameAt(
  left: JsonValue | undefined,
  right: JsonValue | undefined,
  holder: string,
  name: string,
): boolean {
  if (left === right) return true;
  if (Array.isArray(left) && Array.isArray(right)) {
    if (left.length !== right.length) return false;
    for (let index = 0; index < left.length; index += 1) {
      if (!sameAt(left[index], right[index], '', '')) return false;
    }
    return true;
  }
  if (!isObject(left) || !isObject(right)) {
    return isQuantity(holder, name) && sameAmount(left, right);
  }
  let shared = 0;
  for (const key of Object.keys(left)) {
    if (Object.hasOwn(right, key)) {
      if (!sameAt(left[key], right[key], name, key)) return false;
      shared += 1;
    } else if (left[key] !== undefined) return false;
  }
  return hasNoMore(right, left, shared);
}

/** The maps of quantities in specs, and other members that are quantities. */
const quantityMaps = new Set(['limits', 'requests', 'overhead']);
const quantities = new Set(['emptyDir.sizeLimit', 'resourceFieldRef.divisor']);

const isQuantity = (holder: string, name: string) =>
  quantityMaps.has(holder) || quantities.has(`${holder}.${name}`);

function sameAmount(left: JsonValue | undefined, right: JsonValue | undefined): boolean {
  if (typeof left !== 'string' || typeof right !== 'string') return false;
  const [leftQuantity, rightQuantity] = [parseQuantity(left), parseQuantity(right)];
  return (
    'nano' in leftQuantity && 'nano' in rightQuantity && leftQuantity.nano === rightQuantity.nano
  );
}

/** Equal, except that a top-level null or empty list, map, or string equals an absent value. */
export function sameOrEmpty(left: JsonValue | undefined, right: JsonValue | undefined): boolean {
  return (isEmpty(left) && isEmpty(right)) || same(left, right);
}

/** `sameOrEmpty` in steps, for values that may be large. */
export function* sameOrEmptySteps(
  left: JsonValue | undefined,
  right: JsonValue | undefined,
): Generator<void, boolean> {
  return isLight(left) ? sameOrEmpty(left, right) : yield* sameSteps(left, right);
}

function isEmpty(value: JsonValue | undefined): boolean {
  if (value === undefined || value === null || value === '') return true;
  return Array.isArray(value)
    ? value.length === 0
    : isObject(value) && Object.keys(value).length === 0;
}

/** Equal as JSON values, except that null equals an absent value. */
export function sameOrAbsent(left: JsonValue | undefined, right: JsonValue | undefined): boolean {
  return same(left ?? null, right ?? null);
}

/** Rejects a change of an immutable field, even if it only respells a quantity. */
export function immutable(
  field: string,
  value: JsonValue | undefined,
  old: JsonValue | undefined,
): FieldError[] {
  const isSame = (isEmpty(value) && isEmpty(old)) || jsonEqual(value, old);
  return isSame ? [] : [invalid(field, value, 'field is immutable')];
}

/**
 * Repeats errors. kube-apiserver validates a changed object of many kinds twice, on its own and as
 * part of the change; messages omit the duplicates, but the causes of a 422 contain them.
 */
export const reportedTwice = (errors: readonly FieldError[]): FieldError[] =>
  joined(errors, errors);

/** Returns the total size of the names and texts of a map, in bytes. */
export const mapBytes = (map: JsonObject | undefined): number =>
  Object.keys(map ?? {}).reduce(
    (sum, name) => sum + Buffer.byteLength(name) + Buffer.byteLength(textAt(map, name)),
    0,
  );

/** The items of a list; empty if it is absent or null, as Go encodes an empty one. */
export function items<T>(list: readonly T[] | null | undefined): readonly T[] {
  return list ?? [];
}

/** Member names in sorted order, so that the order of errors does not depend on the client. */
export function sortedKeys(
  map: Readonly<Record<string, unknown>> | null | undefined,
): readonly string[] {
  return Object.keys(map ?? {}).sort();
}

/**
 * Rejects a list in which `*`, which matches everything, is not the only value.
 * @param what plural noun for the values in the error
 */
export function validateStar(values: readonly string[], field: string, what: string): FieldError[] {
  if (values.length < 2 || !values.includes('*')) return [];
  const detail = `if '*' is present, must not specify other ${what}`;
  return [invalidGo(field, () => goStrings(values), detail)];
}

/** `path[key]`, the path of a map's member. */
export const keyed = (path: string, key: string) => `${path}[${key}]`;

/** A list of strings as Go prints it with `%#v`. */
export function goStrings(values: readonly string[]): string {
  return `[]string{${goItems(values, goQuoted)}}`;
}

/** A list as Go prints it with `%#v`: `[]core.IPFamily{"IPv4"}`, and an absent one as nil. */
export function goList(type: string, values: readonly string[] | undefined): string {
  if (values === undefined) return `[]${type}(nil)`;
  return `[]${type}{${goItems(values, goQuoted)}}`;
}

/** Rejects each text of a list that equals an earlier one, in steps (TRUST-2). */
export function duplicateErrors(
  texts: readonly string[],
  field: string,
): Generator<void, FieldError[]> {
  const isRepeated = seenBefore();
  return flatMapSteps(texts, (text, index) =>
    isRepeated(text) ? [duplicate(`${field}[${index}]`, text)] : [],
  );
}

/** The parts of a text between separators, one at a time: splitting a long text takes long. */
export function* partsOf(text: string, separator: string): Generator<string> {
  let from = 0;
  for (let end = text.indexOf(separator); end >= 0; end = text.indexOf(separator, from)) {
    yield text.slice(from, end);
    from = end + separator.length;
  }
  yield text.slice(from);
}

/** The errors that a kind's rules find, in one piece. */
export function foundErrors(findings: Findings | undefined): readonly FieldError[] {
  return runInOnePiece(errorSteps(findings));
}

/** `foundErrors` in steps, for rules that wrap those of a kind. */
export function* errorSteps(
  findings: Findings | undefined,
): Generator<void, readonly FieldError[]> {
  if (findings === undefined) return [];
  return 'next' in findings ? yield* findings : findings;
}

/** Number of items that one step validates if each contains an expression to compile. */
export const expressionsPerStep = 1;

/** Number of items that one step validates if each may contain a selector of 1,000 values. */
export const selectorsPerStep = 1;

/** Validates how long a requested token of a service account is valid, in seconds. */
export function tokenLifetimeErrors(field: string, seconds: number | bigint): FieldError[] {
  if (seconds < 600) {
    return [invalid(field, seconds, 'may not specify a duration less than 10 minutes')];
  }
  return seconds > 2 ** 32
    ? [invalid(field, seconds, 'may not specify a duration larger than 2^32 seconds')]
    : [];
}
