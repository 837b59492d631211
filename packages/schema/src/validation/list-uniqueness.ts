import {
  canonicalJson,
  duplicate,
  type FieldError,
  getOrMake,
  invalidGo,
  isObject,
  itemAt,
  type JsonArray,
  type JsonObject,
  type JsonValue,
  member,
} from '@wheelhouse/machinery';
import { childPath, indexPath, keyPath } from '../field-paths.ts';
import { goBadValue } from '../go-wording.ts';
import { anySchema, isBooleanSchema, type Property, resolved, type Schema } from '../schema.ts';

type Check = (value: JsonValue, path: string, errors: FieldError[]) => void;
const checks = new WeakMap<Schema, Check | null>();

/**
 * Validates that the items of lists of type `set` and the keys of lists of type `map` are unique.
 * Returns one error for each value that occurs more than once.
 */
export function validateUniqueness(schema: Schema, object: JsonValue): readonly FieldError[] {
  const check = checkOf(resolved(schema));
  if (check === undefined) return [];
  const errors: FieldError[] = [];
  check(object, '', errors);
  return errors;
}

/** Returns the check of a schema; undefined if no list in it has one of these types. */
function checkOf(schema: Schema): Check | undefined {
  if (isBooleanSchema(schema)) return undefined;
  const make = () => eitherCheck(membersCheck(schema), listCheck(schema)) ?? null;
  return getOrMake(checks, schema, make) ?? undefined;
}

/** Combines the checks of a schema for objects and lists; each ignores values of the other type. */
function eitherCheck(members: Check | undefined, list: Check | undefined): Check | undefined {
  if (members === undefined || list === undefined) return members ?? list;
  return (value, path, errors) => {
    const check = Array.isArray(value) ? list : members;
    check(value, path, errors);
  };
}

function membersCheck(schema: Schema): Check | undefined {
  const named = new Map<string, Check>();
  for (const [name, property] of schema.properties ?? new Map<string, Property>()) {
    const check = checkOf(resolved(property.schema));
    if (check !== undefined) named.set(name, check);
  }
  const { additionalProperties } = schema;
  const additional =
    additionalProperties === undefined ? undefined : checkOf(resolved(additionalProperties));
  if (named.size === 0 && additional === undefined) return undefined;
  return (value, path, errors) => {
    if (!isObject(value)) return;
    for (const name of Object.keys(value)) {
      const child = value[name];
      if (typeof child !== 'object' || child === null) continue;
      named.get(name)?.(child, childPath(path, name), errors);
      additional?.(child, keyPath(path, name), errors);
    }
  };
}

function listCheck(schema: Schema): Check | undefined {
  const items = checkOf(resolved(schema.items ?? anySchema));
  const { listType, listMapKeys = [] } = schema;
  const isTyped = listType === 'set' || listType === 'map';
  if (items === undefined && !isTyped) return undefined;
  return (value, path, errors) => {
    if (!Array.isArray(value)) return;
    if (listType === 'set') checkSet(value, path, errors);
    if (listType === 'map') checkMap(value, { path, keys: listMapKeys, errors });
    if (items === undefined) return;
    value.forEach((item, index) => {
      items(item, indexPath(path, index), errors);
    });
  };
}

/** A key that is equal exactly for equal values: a scalar itself, a text for containers. */
type Identity = string | number | bigint | boolean | undefined;

function identity(value: JsonValue): Identity {
  if (typeof value === 'string') return `"${value}`;
  return typeof value === 'object' ? canonicalJson(value) : value;
}

function keyIdentity(item: JsonValue, keys: readonly string[]): Identity {
  if (keys.length !== 1) return canonicalJson(keysOf(item, keys));
  const value = isObject(item) ? member(item, keys[0] ?? '') : undefined;
  return value === undefined ? undefined : identity(value);
}

/** Returns the indexes at which a value occurs for the second time. */
function repeatedIndexes(values: readonly Identity[]): number[] {
  const counts = new Map<Identity, number>();
  const indexes: number[] = [];
  values.forEach((value, index) => {
    const count = (counts.get(value) ?? 0) + 1;
    counts.set(value, count);
    if (count === 2) indexes.push(index);
  });
  return indexes;
}

function checkSet(list: JsonArray, path: string, errors: FieldError[]): void {
  if (list.length < 2) return;
  for (const index of repeatedIndexes(list.map(identity))) {
    errors.push(duplicate(indexPath(path, index), list[index], goBadValue));
  }
}

function checkMap(
  list: JsonArray,
  at: { path: string; keys: readonly string[]; errors: FieldError[] },
): void {
  const wrong = list.findIndex((item) => item !== null && !isObject(item));
  if (wrong >= 0) {
    const detail = 'must be an object for an array of list-type map';
    at.errors.push(invalidGo(indexPath(at.path, wrong), () => goBadValue(list[wrong]), detail));
    return;
  }
  if (list.length < 2) return;
  for (const index of repeatedIndexes(list.map((item) => keyIdentity(item, at.keys)))) {
    const keys = keysOf(itemAt(list, index), at.keys);
    at.errors.push(duplicate(indexPath(at.path, index), keys, goBadValue));
  }
}

function keysOf(item: JsonValue, names: readonly string[]): JsonObject {
  const keys: JsonObject = {};
  for (const name of names) {
    const value = isObject(item) ? member(item, name) : undefined;
    if (value !== undefined) keys[name] = value;
  }
  return keys;
}
