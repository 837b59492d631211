import {
  isObject,
  type JsonObject,
  type JsonValue,
  member,
  setMember,
} from '@wheelhouse/machinery';

/** RFC 7386: a new document; shares untouched parts with `document`, which stays as it was. */
export function applyMergePatch(document: JsonValue | undefined, patch: JsonValue): JsonValue {
  if (!isObject(patch)) return isObject(document) ? patch : withoutNulls(patch);
  const merged: JsonObject = {};
  const base: JsonObject = isObject(document) ? document : {};
  for (const name of Object.keys(base)) {
    const value = member(base, name);
    if (value !== undefined && !Object.hasOwn(patch, name)) setMember(merged, name, value);
    else if (value !== undefined && patch[name] !== null) setMember(merged, name, value);
  }
  for (const name of Object.keys(patch)) {
    const value = member(patch, name);
    if (value === undefined || value === null) continue;
    setMember(merged, name, applyMergePatch(member(base, name), value));
  }
  return merged;
}

/**
 * What is not null, at every depth. Upstream drops nulls of objects in lists too, of which RFC 7386 says
 * nothing, unless the list takes an object's place.
 */
export function withoutNulls(patch: JsonValue): JsonValue {
  if (Array.isArray(patch)) return patch.map((item) => withoutNulls(item));
  if (!isObject(patch)) return patch;
  const kept: JsonObject = {};
  for (const name of Object.keys(patch)) {
    const value = member(patch, name);
    if (value !== undefined && value !== null) setMember(kept, name, withoutNulls(value));
  }
  return kept;
}
