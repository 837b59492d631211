import { isObject, type JsonObject, type JsonValue } from '@wheelhouse/machinery';

/**
 * Empty lists and maps that a decoder omits because their members are `omitempty`. kube-apiserver
 * also neither shows nor stores them, but its rules see them: a member that must not be set must
 * not be empty either.
 */

/** An omitted member. */
export interface OmittedMember {
  /** The parts of the path of its object, as in strict errors: `spec`, `.containers`, `[0]`. */
  readonly steps: readonly string[];
  readonly name: string;
  readonly isList: boolean;
}

/** The number of members of one object that are remembered, which bounds memory. */
const rememberedMax = 1000;

const omittedIn = new WeakMap<JsonObject, readonly OmittedMember[]>();

/** Adds an omitted member to `found`, up to a maximum. */
export function noteOmitted(
  found: OmittedMember[],
  member: { readonly steps: readonly string[]; readonly name: string; readonly value: JsonValue },
): void {
  if (found.length >= rememberedMax) return;
  const { steps, name, value } = member;
  found.push({ steps: [...steps], name, isList: Array.isArray(value) });
}

/** Remembers the members that were omitted from a decoded object. */
export function rememberOmitted(object: JsonObject, found: readonly OmittedMember[]): void {
  if (found.length > 0) omittedIn.set(object, found);
}

/** Remembers the members that were omitted from an object for its copy, too. */
export function copyOmitted(object: JsonObject, copy: JsonObject): void {
  const found = omittedIn.get(object);
  if (found !== undefined) omittedIn.set(copy, found);
}

/**
 * Adds the empty lists and maps that the decoder of an object omitted, in place, so that rules see
 * them. Members that have a value since are not changed.
 */
export function restoreOmitted(object: JsonObject): void {
  for (const { steps, name, isList } of omittedIn.get(object) ?? []) {
    const holder = holderAt(object, steps);
    if (holder !== undefined && holder[name] === undefined) holder[name] = isList ? [] : {};
  }
}

/** Removes the members that `restoreOmitted` added and that are still empty. */
export function removeOmitted(object: JsonObject): void {
  for (const { steps, name } of omittedIn.get(object) ?? []) {
    const holder = holderAt(object, steps);
    const value = holder?.[name];
    if (holder !== undefined && value !== undefined && isEmptyCollection(value)) {
      delete holder[name];
    }
  }
}

/** Whether an empty list or map was omitted from the object at the given place. */
export function isOmittedEmpty(
  object: JsonObject,
  place: { readonly parent: string; readonly name: string },
): boolean {
  const found = omittedIn.get(object) ?? [];
  return found.some(({ steps, name }) => name === place.name && steps.join('') === place.parent);
}

function holderAt(object: JsonObject, steps: readonly string[]): JsonObject | undefined {
  let at: JsonValue | undefined = object;
  for (const [index, step] of steps.entries()) {
    if (Array.isArray(at)) at = at[Number(step.slice(1, -1))];
    else if (isObject(at)) at = ownMember(at, index === 0 ? step : step.slice(1));
    else return undefined;
  }
  return isObject(at) ? at : undefined;
}

/** Returns a member, but none of the prototype: a map may have lost its key `__proto__`. */
const ownMember = (object: JsonObject, name: string) =>
  Object.hasOwn(object, name) ? object[name] : undefined;

/** Whether a value is null, an empty list, or an object without members. */
export function isEmptyCollection(value: JsonValue): boolean {
  if (value === null || Array.isArray(value)) return value === null || value.length === 0;
  return typeof value === 'object' && Object.keys(value).length === 0;
}
