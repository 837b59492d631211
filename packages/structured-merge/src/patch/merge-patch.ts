import {
  inOnePiece,
  isObject,
  type JsonObject,
  type JsonValue,
  member,
  Stride,
  setMember,
} from '@wheelhouse/machinery';

/** RFC 7386: a new document; shares untouched parts with `document`, which stays as it was. */
export function applyMergePatch(document: JsonValue | undefined, patch: JsonValue): JsonValue {
  return inOnePiece(mergePatchSteps(document, patch));
}

/** `applyMergePatch` in steps. */
export function mergePatchSteps(
  document: JsonValue | undefined,
  patch: JsonValue,
): Generator<void, JsonValue> {
  return patchSteps(document, patch, new Stride());
}

function* patchSteps(
  document: JsonValue | undefined,
  patch: JsonValue,
  stride: Stride,
): Generator<void, JsonValue> {
  if (!isObject(patch)) return isObject(document) ? patch : yield* withoutNullsSteps(patch, stride);
  const merged: JsonObject = {};
  const base: JsonObject = isObject(document) ? document : {};
  for (const name of Object.keys(base)) {
    stride.count();
    if (stride.isOver) yield;
    const value = member(base, name);
    if (value !== undefined && !Object.hasOwn(patch, name)) setMember(merged, name, value);
    else if (value !== undefined && patch[name] !== null) setMember(merged, name, value);
  }
  for (const name of Object.keys(patch)) {
    const value = member(patch, name);
    if (value === undefined || value === null) continue;
    stride.count();
    if (stride.isOver) yield;
    const isScalar = typeof value !== 'object';
    const made = isScalar ? value : yield* patchSteps(member(base, name), value, stride);
    setMember(merged, name, made);
  }
  return merged;
}

/** `withoutNulls` in steps. */
function* withoutNullsSteps(patch: JsonValue, stride: Stride): Generator<void, JsonValue> {
  if (stride.weigh(patch) === 'light') return withoutNulls(patch);
  if (Array.isArray(patch)) {
    const items: JsonValue[] = [];
    for (const item of patch) {
      items.push(yield* withoutNullsSteps(item, stride));
      if (stride.isOver) yield;
    }
    return items;
  }
  if (!isObject(patch)) return patch;
  const kept: JsonObject = {};
  for (const name of Object.keys(patch)) {
    const value = member(patch, name);
    if (value === undefined || value === null) continue;
    setMember(kept, name, yield* withoutNullsSteps(value, stride));
    if (stride.isOver) yield;
  }
  return kept;
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
