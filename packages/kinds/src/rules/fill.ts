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

/** The object member of a name, made when it is absent. */
export function ensure(object: JsonObject, name: string): JsonObject {
  const present = object[name];
  if (isObject(present)) return present;
  const made: JsonObject = {};
  object[name] = made;
  return made;
}
