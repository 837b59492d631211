import {
  isObject,
  type JsonObject,
  type JsonValue,
  jsonEqual,
  member,
  runInOnePiece,
  Stride,
  setMember,
} from '@wheelhouse/machinery';
import type { ThreeWayObjects } from './strategic-diff.ts';

/**
 * Applies a merge patch (RFC 7386). Returns a new document that shares unchanged parts with
 * `document`.
 */
export function applyMergePatch(document: JsonValue | undefined, patch: JsonValue): JsonValue {
  return runInOnePiece(mergePatchSteps(document, patch));
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
    if (value !== undefined && member(patch, name) !== null) setMember(merged, name, value);
  }
  for (const name of Object.keys(patch)) {
    const value = member(patch, name);
    if (value === undefined || value === null) continue;
    stride.count();
    if (stride.isOver) yield;
    const isScalar = typeof value !== 'object';
    const patched = isScalar ? value : yield* patchSteps(member(base, name), value, stride);
    setMember(merged, name, patched);
  }
  return merged;
}

/** `withoutNulls` in steps. */
function* withoutNullsSteps(patch: JsonValue, stride: Stride): Generator<void, JsonValue> {
  if (Array.isArray(patch)) {
    const items: JsonValue[] = [];
    for (const item of patch) {
      stride.count();
      if (stride.isOver) yield;
      items.push(typeof item === 'object' ? yield* withoutNullsSteps(item, stride) : item);
    }
    return items;
  }
  return isObject(patch) ? yield* patchSteps(undefined, patch, stride) : patch;
}

/**
 * The value without nulls, at every depth. Like kube-apiserver, it also drops nulls of objects in
 * lists, which RFC 7386 does not mention, unless the list replaces an object.
 */
export function withoutNulls(patch: JsonValue): JsonValue {
  return runInOnePiece(withoutNullsSteps(patch, new Stride()));
}

/** The JSON merge patch (RFC 7386) that transforms `before` into `after`. */
export function mergePatchBetween(before: JsonObject, after: JsonObject): JsonObject {
  const patch: JsonObject = {};
  for (const name of Object.keys(before)) {
    if (before[name] !== undefined && member(after, name) === undefined)
      setMember(patch, name, null);
  }
  for (const name of Object.keys(after)) {
    const value = after[name];
    const previous = member(before, name);
    if (value === undefined || jsonEqual(previous, value)) continue;
    const areObjects = isObject(value) && isObject(previous);
    setMember(patch, name, areObjects ? mergePatchBetween(previous, value) : value);
  }
  return patch;
}

/**
 * The JSON merge patch of a client-side apply. It sets what `desired` sets differently from `live`,
 * and deletes what `last` set and `desired` omits or sets to null. It leaves everything else alone.
 */
export function threeWayMergePatch({ last, desired, live }: ThreeWayObjects): JsonObject {
  const added = withoutDeletions(mergePatchBetween(live, desired));
  const deleted = deletionsOf(mergePatchBetween(last, desired));
  return overlaid(deleted, added);
}

/**
 * The patch without its nulls and without objects that hold nothing else. An object that is empty
 * in the patch itself is a value and stays.
 */
function withoutDeletions(patch: JsonObject): JsonObject {
  const kept: JsonObject = {};
  for (const [name, value] of Object.entries(patch)) {
    if (value === undefined || value === null) continue;
    const inner =
      isObject(value) && Object.keys(value).length > 0 ? withoutDeletions(value) : value;
    const isEmptied = inner !== value && Object.keys(inner).length === 0;
    if (!isEmptied) setMember(kept, name, Array.isArray(inner) ? withoutNulls(inner) : inner);
  }
  return kept;
}

/** The deletions of a patch. */
function deletionsOf(patch: JsonObject): JsonObject {
  const kept: JsonObject = {};
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) setMember(kept, name, null);
    if (!isObject(value)) continue;
    const inner = deletionsOf(value);
    if (Object.keys(inner).length > 0) setMember(kept, name, inner);
  }
  return kept;
}

/** Merges two patches; where both set a member, the second wins. */
function overlaid(first: JsonObject, second: JsonObject): JsonObject {
  const merged: JsonObject = { ...first };
  for (const [name, value] of Object.entries(second)) {
    const previous = member(merged, name);
    if (value === undefined) continue;
    const areObjects = isObject(value) && isObject(previous);
    setMember(merged, name, areObjects ? overlaid(previous, value) : value);
  }
  return merged;
}
