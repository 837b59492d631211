import {
  inOnePiece,
  inThousandths,
  isObject,
  type JsonObject,
  type JsonValue,
  member,
  setMember,
} from '@wheelhouse/machinery';
import { at, listAt } from '../cells.ts';

/** Defaults, in place. */

/** Sets members that are absent or null. For members where an empty string is an invalid value. */
export function fillAbsent(object: JsonObject | undefined, defaults: JsonObject): void {
  if (object === undefined) return;
  for (const [name, value] of Object.entries(defaults)) object[name] ??= value;
}

/** Sets members that are absent, null, or an empty string. */
export function fill(object: JsonObject | undefined, defaults: JsonObject): void {
  if (object === undefined) return;
  for (const name of Object.keys(defaults)) {
    const present = object[name];
    const value = defaults[name];
    if (value === undefined) continue;
    if (present === undefined || present === null || present === '') object[name] = value;
  }
}

/** Members of a map that one step fills or rounds. */
const membersPerStep = 1000;

/**
 * `fill` in steps, for maps of arbitrary names, such as `constructor`, which objects inherit.
 */
export function* fillMapSteps(map: JsonObject, defaults: JsonObject): Generator<void, void> {
  let count = 0;
  for (const name of Object.keys(defaults)) {
    count += 1;
    if (count % membersPerStep === 0) yield;
    const present = member(map, name);
    const value = defaults[name];
    if (value === undefined) continue;
    if (present === undefined || present === null || present === '') setMember(map, name, value);
  }
}

/** Rounds the quantities of a list up to thousandths. */
export function fillAmounts(amounts: JsonObject | undefined): void {
  if (amounts !== undefined) inOnePiece(amountSteps(amounts));
}

/** The same in steps (TRUST-2). */
export function* amountSteps(amounts: JsonObject): Generator<void, void> {
  let count = 0;
  // Entries take three times as long as names in a map of thousands of members.
  for (const name of Object.keys(amounts)) {
    count += 1;
    if (count % membersPerStep === 0) yield;
    const amount = amounts[name];
    if (typeof amount !== 'string') continue;
    const rounded = inThousandths(amount);
    if (rounded !== amount) amounts[name] = rounded;
  }
}

/** The object at a path; undefined if there is none. */
export function objectAt(
  object: JsonValue | undefined,
  ...path: readonly string[]
): JsonObject | undefined {
  const value = at(object, ...path);
  return isObject(value) ? value : undefined;
}

/** The objects in the list at a path. */
export function objectsAt(
  object: JsonValue | undefined,
  ...path: readonly string[]
): readonly JsonObject[] {
  return listAt(object, ...path).filter(isObject);
}

/** Whether a member is a list, even an empty one. */
export const isList = (object: JsonObject, name: string): boolean => Array.isArray(object[name]);

/** The object in a member; any object if its type is not stated. */
type ObjectMember<M> = string extends M ? JsonObject : NonNullable<M>;

/** The object in a member; added if absent. */
export function ensure<O extends object, Name extends keyof O>(
  object: O,
  name: Name,
): ObjectMember<O[Name]> {
  const present = object[name];
  const member = isObject(present) ? present : {};
  if (member !== present) object[name] = member as O[Name];
  return member as ObjectMember<O[Name]>;
}

/** The whole number of a 64-bit member, which may exceed what a `number` represents exactly. */
export const wholeNumber = (value: number | bigint | null | undefined): number | undefined =>
  value === null || value === undefined ? undefined : Number(value);
