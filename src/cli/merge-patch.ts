import {
  isObject,
  type JsonObject,
  type JsonValue,
  jsonEqual,
  member,
  setMember,
} from '../base/json.ts';

/** The JSON merge patch (RFC 7386) that makes `after` of `before`. */
export function mergePatchBetween(before: JsonObject, after: JsonObject): JsonObject {
  const patch: JsonObject = {};
  for (const name of Object.keys(before)) {
    if (before[name] !== undefined && member(after, name) === undefined)
      setMember(patch, name, null);
  }
  for (const name of Object.keys(after)) {
    const wanted = after[name];
    const had = member(before, name);
    if (wanted === undefined || jsonEqual(had, wanted)) continue;
    const nested = isObject(wanted) && isObject(had);
    setMember(patch, name, nested ? mergePatchBetween(had, wanted) : wanted);
  }
  return patch;
}

/**
 * The merge patch of a client-side apply: what `wanted` sets and `live` lacks, and null for what
 * `last` set and `wanted` no longer does. Fields nobody mentioned stay as they are.
 */
export function threeWayPatch(options: {
  readonly last: JsonObject;
  readonly wanted: JsonObject;
  readonly live: JsonObject;
}): JsonObject {
  const { last, wanted, live } = options;
  const patch: JsonObject = {};
  for (const name of Object.keys(last)) {
    if (member(wanted, name) === undefined && member(live, name) !== undefined) {
      setMember(patch, name, null);
    }
  }
  for (const name of Object.keys(wanted)) {
    const value = wanted[name];
    const current = member(live, name);
    if (value === undefined || jsonEqual(value, current)) continue;
    setMember(patch, name, fieldPatch({ value, current, before: member(last, name) }));
  }
  return withoutEmpty(patch);
}

function fieldPatch(field: {
  value: JsonValue;
  current: JsonValue | undefined;
  before: JsonValue | undefined;
}): JsonValue {
  const { value, current, before } = field;
  if (!isObject(value) || !isObject(current)) return value;
  return threeWayPatch({ last: isObject(before) ? before : {}, wanted: value, live: current });
}

/** Drops nested patches that say nothing; a value that is an empty object stays. */
function withoutEmpty(patch: JsonObject): JsonObject {
  const kept: JsonObject = {};
  for (const name of Object.keys(patch)) {
    const value = patch[name];
    if (value !== undefined && !(isObject(value) && Object.keys(value).length === 0)) {
      setMember(kept, name, value);
    }
  }
  return kept;
}
