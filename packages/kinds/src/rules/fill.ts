import {
  cloneJson,
  cloneJsonSteps,
  isLight,
  isObject,
  type JsonObject,
  type JsonValue,
  member,
  roundToThousandths,
  runInOnePiece,
  setMember,
} from '@wheelhouse/machinery';
import { at, listAt } from '../cells.ts';
import type { MaybeSteps } from '../resource-def.ts';

/** Functions that fill in defaults in place, and typed access to members. */

/** Sets members that are absent or null, and keeps empty strings, which validation rejects. */
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

/** Number of a map's members that one step fills or rounds. */
const membersPerStep = 1000;

/** Number of items that one step visits. */
const itemsPerStep = 1000;

/**
 * Calls a function for each item of a list, in steps (TRUST-2).
 * @param visit may itself take steps
 * @param perStep items that one step visits
 */
export function* forEachSteps<Item>(
  list: readonly Item[],
  visit: (item: Item) => MaybeSteps<void>,
  perStep = itemsPerStep,
): Generator<void, void> {
  let count = 0;
  for (const item of list) {
    count += 1;
    if (count % perStep === 0) yield;
    const steps = visit(item);
    if (steps) yield* steps;
  }
}

/** `fill` in steps, for maps whose names may be those of inherited members (`constructor`). */
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
export function roundAmounts(amounts: JsonObject | undefined): void {
  if (amounts !== undefined) runInOnePiece(roundAmountsSteps(amounts));
}

/** `roundAmounts` in steps (TRUST-2). */
export function* roundAmountsSteps(amounts: JsonObject): Generator<void, void> {
  let count = 0;
  // Entries take three times as long as names in a map of thousands of members.
  for (const name of Object.keys(amounts)) {
    count += 1;
    if (count % membersPerStep === 0) yield;
    const amount = amounts[name];
    if (typeof amount !== 'string') continue;
    const rounded = roundToThousandths(amount);
    if (rounded !== amount) amounts[name] = rounded;
  }
}

/**
 * Sets members of an object to copies of those of the old one, and removes those that it lacks, in
 * steps (TRUST-2).
 */
export function* keepMembers(
  object: JsonObject,
  old: JsonObject,
  names: readonly string[],
): Generator<void, void> {
  for (const name of names) {
    const value = old[name];
    if (value === undefined) delete object[name];
    else if (isLight(value)) object[name] = cloneJson(value);
    else {
      yield;
      object[name] = yield* cloneJsonSteps(value);
    }
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

/** Renames a member of the object at a path if both exist, and returns the whole object. */
export function renameAt<Whole extends JsonObject>(
  whole: Whole,
  path: readonly string[],
  { from, to }: { readonly from: string; readonly to: string },
): Whole {
  const holder = objectAt(whole, ...path);
  const value = holder?.[from];
  if (holder === undefined || value === undefined) return whole;
  delete holder[from];
  holder[to] = value;
  return whole;
}

/** The objects in the list at a path. */
export function objectsAt(
  object: JsonValue | undefined,
  ...path: readonly string[]
): readonly JsonObject[] {
  return listAt(object, ...path).filter(isObject);
}

/** Whether a member is a list, possibly empty. */
export const isList = (object: JsonObject, name: string): boolean => Array.isArray(object[name]);

/** The type of the object in a member; any object if the member's type is unknown. */
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

/** A 64-bit integer as a `number`, which rounds values beyond 2^53; undefined if absent. */
export const wholeNumber = (value: number | bigint | null | undefined): number | undefined =>
  value === null || value === undefined ? undefined : Number(value);
