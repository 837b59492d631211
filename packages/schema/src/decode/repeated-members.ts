import {
  isObject,
  type JsonObject,
  type JsonValue,
  member,
  Stride,
  setMember,
} from '@wheelhouse/machinery';
import { resolved, type Schema } from '../schema.ts';

/** The earlier values of members that occur repeatedly in a JSON text, by object and name. */
export type EarlierValues = ReadonlyMap<JsonObject, ReadonlyMap<string, readonly JsonValue[]>>;

/**
 * Merges the values of members that occur repeatedly, as Go decodes each of them into the same
 * variable: structs and maps are merged, lists item by item, and other values are replaced, except
 * that null does not replace a value that cannot be nil. Modifies and returns `value`. Values of
 * another type than the schema's are left to the decoder.
 * @param value a decoded JSON text, in which the last values are members
 */
export function* mergeRepeatedSteps(
  schema: Schema,
  value: JsonObject,
  earlier: EarlierValues,
): Generator<void, JsonObject> {
  yield* settle(value, schema, { earlier, stride: new Stride() });
  return value;
}

interface Merging {
  readonly earlier: EarlierValues;
  readonly stride: Stride;
}

/** Merges the repeated members within a value of a type. */
function* settle(value: JsonValue, schema: Schema, merging: Merging): Generator<void, void> {
  const { earlier, stride } = merging;
  stride.count();
  if (stride.isOver) yield;
  if (typeof value !== 'object' || value === null) return;
  const at = resolved(schema);
  if (Array.isArray(value)) {
    if (at.items === undefined) return;
    for (const item of value) yield* settle(item, at.items, merging);
    return;
  }
  const repeated = at.properties === undefined ? undefined : earlier.get(value);
  for (const name of Object.keys(value)) {
    const property = at.properties?.get(name);
    const inner = property?.schema ?? at.additionalProperties;
    if (inner === undefined) continue;
    const occurrences = [...(repeated?.get(name) ?? []), value[name] ?? null];
    let merged: JsonValue | undefined;
    for (const next of occurrences) {
      yield* settle(next, inner, merging);
      const into = { schema: inner, pointer: property?.pointer === true, stride };
      merged = merged === undefined ? next : yield* merge(merged, next, into);
    }
    if (occurrences.length > 1) setMember(value, name, merged ?? null);
  }
}

/** The variable into which a value is decoded. */
interface Variable {
  readonly schema: Schema;
  readonly pointer: boolean;
  readonly stride: Stride;
}

/** Returns the value of a variable that holds `before` after `next` is decoded into it. */
function* merge(before: JsonValue, next: JsonValue, into: Variable): Generator<void, JsonValue> {
  const { schema, pointer, stride } = into;
  stride.count();
  if (stride.isOver) yield;
  const at = resolved(schema);
  if (next === null) return pointer || isNilable(at) ? null : before;
  if (Array.isArray(next)) {
    const { items } = at;
    if (!Array.isArray(before) || items === undefined) return next;
    const both = Math.min(before.length, next.length);
    const variable = { schema: items, pointer: false, stride };
    for (let index = 0; index < both; index += 1) {
      next[index] = yield* merge(before[index] ?? null, next[index] ?? null, variable);
    }
    return next;
  }
  if (!isObject(next) || !isObject(before)) return next;
  if (at.properties === undefined && at.additionalProperties === undefined) return next;
  for (const name of Object.keys(next)) {
    const [earlier, value = null] = [member(before, name), next[name]];
    const property = at.properties?.get(name);
    const variable = {
      schema: property?.schema ?? {},
      pointer: property?.pointer === true,
      stride,
    };
    const isNew = earlier === undefined || property === undefined;
    setMember(before, name, isNew ? value : yield* merge(earlier, value, variable));
  }
  return before;
}

/** Whether null sets a value of the type: lists, maps, and types with decoders of their own. */
const isNilable = ({ type, properties, format, intOrString }: Schema) =>
  (type === 'object' && properties === undefined) ||
  type === 'array' ||
  type === undefined ||
  intOrString === true ||
  (type === 'string' && format !== undefined);
