import {
  isObject,
  type JsonObject,
  type JsonValue,
  jsonEqual,
  member,
  setMember,
} from '@wheelhouse/machinery';
import type { ThreeWays } from './strategic-diff.ts';

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
 * The JSON merge patch of a client-side apply: what `wanted` sets and `live` has not so, and null for
 * what `last` set and `wanted` no longer does, or sets to null. What neither names is left as it is.
 */
export function mergePatchOfThree({ last, wanted, live }: ThreeWays): JsonObject {
  const added = withoutNulls(mergePatchBetween(live, wanted));
  const deleted = nullsAlone(mergePatchBetween(last, wanted));
  return overlaid(deleted, added);
}

/** Without nulls and the objects that become empty by that; those which are empty are values. */
function withoutNulls(patch: JsonObject): JsonObject {
  const kept: JsonObject = {};
  for (const [name, value] of Object.entries(patch)) {
    if (value === undefined || value === null) continue;
    const inner = isObject(value) && Object.keys(value).length > 0 ? withoutNulls(value) : value;
    const emptied = inner !== value && Object.keys(inner).length === 0;
    if (!emptied) setMember(kept, name, Array.isArray(inner) ? inner.map(bare) : inner);
  }
  return kept;
}

/** An item of a list, which is set whole, without the nulls in its objects. */
function bare(item: JsonValue): JsonValue {
  if (Array.isArray(item)) return item.map(bare);
  if (!isObject(item)) return item;
  const kept: JsonObject = {};
  for (const [name, value] of Object.entries(item)) {
    if (value !== undefined && value !== null) setMember(kept, name, bare(value));
  }
  return kept;
}

function nullsAlone(patch: JsonObject): JsonObject {
  const kept: JsonObject = {};
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) setMember(kept, name, null);
    if (!isObject(value)) continue;
    const inner = nullsAlone(value);
    if (Object.keys(inner).length > 0) setMember(kept, name, inner);
  }
  return kept;
}

function overlaid(under: JsonObject, over: JsonObject): JsonObject {
  const both: JsonObject = { ...under };
  for (const [name, value] of Object.entries(over)) {
    const below = member(both, name);
    if (value === undefined) continue;
    const nested = isObject(value) && isObject(below);
    setMember(both, name, nested ? overlaid(below, value) : value);
  }
  return both;
}
