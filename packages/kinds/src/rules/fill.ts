import { inThousandths, isObject, type JsonObject, type JsonValue } from '@wheelhouse/machinery';
import { at, listAt } from '../cells.ts';

/** Defaulting in place. */

/** Sets each member that is absent or null: of those whose empty string is a value, if a bad one. */
export function fillAbsent(object: JsonObject | undefined, defaults: JsonObject): void {
  if (object === undefined) return;
  for (const [name, value] of Object.entries(defaults)) object[name] ??= value;
}

/** Sets each member that is absent, null or an empty string. */
export function fill(object: JsonObject | undefined, defaults: JsonObject): void {
  if (object === undefined) return;
  for (const [name, value] of Object.entries(defaults)) {
    const present = object[name];
    if (present === undefined || present === null || present === '') object[name] = value;
  }
}

/** Rounds what a list of amounts tells more finely than in thousandths. */
export function fillAmounts(amounts: JsonObject | undefined): void {
  for (const [name, amount] of Object.entries(amounts ?? {})) {
    const rounded = typeof amount === 'string' ? inThousandths(amount) : amount;
    if (amounts !== undefined && rounded !== amount) amounts[name] = rounded;
  }
}

/** The object at a path; undefined when there is none. */
export function objectAt(
  object: JsonValue | undefined,
  ...path: readonly string[]
): JsonObject | undefined {
  const value = at(object, ...path);
  return isObject(value) ? value : undefined;
}

/** The objects of the list at a path. */
export function objectsAt(
  object: JsonValue | undefined,
  ...path: readonly string[]
): readonly JsonObject[] {
  return listAt(object, ...path).filter(isObject);
}

/** Whether the member of a name is a list, be it an empty one. */
export const isList = (object: JsonObject, name: string): boolean => Array.isArray(object[name]);

/** What a member holds if it is an object: any object where its type is not stated. */
type ObjectMember<M> = string extends M ? JsonObject : NonNullable<M>;

/** The object member of a name, made when it is absent. */
export function ensure<O extends object, Name extends keyof O>(
  object: O,
  name: Name,
): ObjectMember<O[Name]> {
  const present = object[name];
  const member = isObject(present) ? present : {};
  if (member !== present) object[name] = member as O[Name];
  return member as ObjectMember<O[Name]>;
}

/** The whole number of a 64-bit member, which can be beyond what a `number` holds exactly. */
export const wholeNumber = (value: number | bigint | null | undefined): number | undefined =>
  value === null || value === undefined ? undefined : Number(value);
