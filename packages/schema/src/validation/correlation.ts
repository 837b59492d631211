import { isObject, type JsonArray, type JsonValue, jsonEqual, member } from '@wheelhouse/machinery';
import { resolved, type Schema } from '../schema.ts';

/**
 * Ratcheting (CRD-3): an update is not refused for what it does not change. A correlation pairs a
 * value with the one that stood in its place before: members by name, items of a map-type list by
 * their keys. Items of other lists have no place of their own and so no pair.
 */
export interface Correlation {
  readonly old: JsonValue;
  readonly value: JsonValue;
  readonly schema: Schema;
  /** Known once asked for. */
  equal?: boolean;
  /** Old items by their keys, made when first asked for. */
  byKey?: ReadonlyMap<string, JsonValue>;
}

export function correlate(pair: { old: JsonValue; value: JsonValue; schema: Schema }): Correlation {
  return { ...pair, schema: resolved(pair.schema) };
}

/** The pair of a member, if both objects have it and its schema is known. */
export function correlateMember(
  at: Correlation | undefined,
  name: string,
): Correlation | undefined {
  if (at === undefined || !isObject(at.old) || !isObject(at.value)) return undefined;
  const schema = at.schema.properties?.get(name)?.schema ?? at.schema.additionalProperties;
  const old = member(at.old, name);
  const value = member(at.value, name);
  if (schema === undefined || old === undefined || value === undefined) return undefined;
  return correlate({ old, value, schema });
}

/** The pair of an item: of a map-type list only. */
export function correlateItem(at: Correlation | undefined, index: number): Correlation | undefined {
  if (at === undefined || at.schema.listType !== 'map' || at.schema.items === undefined) {
    return undefined;
  }
  if (!Array.isArray(at.old) || !Array.isArray(at.value)) return undefined;
  const value = at.value[index];
  if (!isObject(value)) return undefined;
  at.byKey ??= itemsByKey(at.old, at.schema.listMapKeys ?? []);
  const old = at.byKey.get(keyOf(value, at.schema.listMapKeys ?? []));
  return old === undefined ? undefined : correlate({ old, value, schema: at.schema.items });
}

/**
 * Whether the value is what it was, as upstream sees it: the order of a map-type list does not
 * count, and an object with a member that its schema does not name is never unchanged.
 */
export function isUnchanged(at: Correlation): boolean {
  at.equal ??= staysInPlace(at);
  return at.equal;
}

function staysInPlace(at: Correlation): boolean {
  const { old, value, schema } = at;
  if (Array.isArray(old) && Array.isArray(value)) {
    if (old.length !== value.length) return false;
    if (schema.listType !== 'map') return jsonEqual(old, value);
    return value.every((_, index) => isPairUnchanged(correlateItem(at, index)));
  }
  if (isObject(old) && isObject(value)) {
    const names = Object.keys(value);
    if (names.length !== Object.keys(old).length) return false;
    return names.every((name) => isPairUnchanged(correlateMember(at, name)));
  }
  return jsonEqual(old, value);
}

const isPairUnchanged = (pair: Correlation | undefined) => pair !== undefined && isUnchanged(pair);

function itemsByKey(list: JsonArray, keys: readonly string[]): ReadonlyMap<string, JsonValue> {
  const items = new Map<string, JsonValue>();
  for (const item of list) {
    if (!isObject(item)) continue;
    const key = keyOf(item, keys);
    if (!items.has(key)) items.set(key, item);
  }
  return items;
}

/** The values of the key members as one string; a member that is not there counts as null. */
export function keyOf(item: JsonValue, keys: readonly string[]): string {
  return JSON.stringify(
    keys.map((key) => (isObject(item) ? (member(item, key) ?? null) : null)),
    (_, value: unknown) => (typeof value === 'bigint' ? `int:${value}` : value),
  );
}
