import { cloneJson, isObject, type JsonObject, type JsonValue } from '@wheelhouse/machinery';
import { resolved, type Schema } from '@wheelhouse/schema';

/** The relation between the items of a collection. */
export const variants = ['equal', 'distinct', 'invalid', 'unknown'] as const;
export type Variant = (typeof variants)[number];

/** One list, map, or open object of a kind, by the steps to it; 0 is a list's first item. */
export interface Collection {
  readonly steps: readonly (string | 0)[];
  readonly schema: Schema;
}

/** Maximum depth of the search for collections, which ends at types that contain themselves. */
const depthMax = 10;

/** Every collection of a kind, so that later fields are covered too. */
export function collectionsOf(root: Schema): readonly Collection[] {
  const collections: Collection[] = [];
  const visit = (given: Schema, steps: readonly (string | 0)[], outer: readonly Schema[]): void => {
    const schema = resolved(given);
    if (outer.filter((ancestor) => ancestor === schema).length > 1 || steps.length > depthMax)
      return;
    const around = [...outer, schema];
    const isOpen = schema.type === 'object' || schema.properties !== undefined;
    if (schema.items !== undefined || isOpen) collections.push({ steps, schema });
    if (schema.items !== undefined) visit(schema.items, [...steps, 0], around);
    for (const [name, { schema: inner }] of schema.properties ?? []) {
      if (steps.length === 0 && (name === 'apiVersion' || name === 'kind')) continue;
      visit(inner, [...steps, name], around);
    }
    if (schema.additionalProperties !== undefined) {
      visit(schema.additionalProperties, [...steps, 'a'], around);
    }
  };
  visit(root, [], []);
  return collections;
}

/** The example with `count` items in one collection. */
export function filled(
  example: JsonObject,
  collection: Collection,
  fill: { readonly variant: Variant; readonly count: number },
): JsonObject {
  const object = cloneJson(example);
  const put = (at: JsonValue | undefined, steps: readonly (string | 0)[]): JsonValue => {
    const [step, ...rest] = steps;
    if (step === undefined) return collectionOf(collection.schema, at, fill);
    if (step === 0) return [put(Array.isArray(at) ? at[0] : undefined, rest)];
    const holder: JsonObject = isObject(at) ? at : {};
    holder[step] = put(holder[step], rest);
    return holder;
  };
  return put(object, collection.steps) as JsonObject;
}

function collectionOf(
  schema: Schema,
  present: JsonValue | undefined,
  { variant, count }: { readonly variant: Variant; readonly count: number },
): JsonValue {
  const { items, additionalProperties } = schema;
  if (items !== undefined) {
    const first = Array.isArray(present) ? present[0] : undefined;
    return Array.from({ length: count }, (_, index) => itemOf(items, { first, variant, index }));
  }
  const map: JsonObject = isObject(present) ? present : {};
  for (let index = 0; index < count; index += 1) {
    const key = variant === 'invalid' ? `!${index}` : `k${index}`;
    map[key] =
      additionalProperties === undefined
        ? index
        : itemOf(additionalProperties, { first: undefined, variant, index });
  }
  return map;
}

interface Item {
  /** The first item in the example. */
  readonly first: JsonValue | undefined;
  readonly variant: Variant;
  readonly index: number;
}

function itemOf(given: Schema, item: Item): JsonValue {
  const schema = resolved(given);
  const { first, variant, index } = item;
  if (schema.items !== undefined) return [itemOf(schema.items, { ...item, first: undefined })];
  if (schema.properties === undefined && schema.additionalProperties === undefined) {
    return scalarOf(schema, variant, index);
  }
  if (variant === 'unknown') return { [`u${index}`]: index };
  const object: JsonObject = isObject(first) ? cloneJson(first) : {};
  for (const [name, { schema: inner }] of schema.properties ?? []) {
    const { type } = resolved(inner);
    const isText = type === 'string' || type === 'integer';
    const isShared = isObject(first) && (variant === 'equal' || first[name] === undefined);
    if (isText && !isShared) object[name] = scalarOf(resolved(inner), variant, index);
  }
  return object;
}

const validTexts: Readonly<Record<string, string>> = {
  quantity: '1',
  'date-time': '2020-01-01T00:00:00Z',
  'micro-time': '2020-01-01T00:00:00.000000Z',
  duration: '1s',
  byte: 'YQ==',
};

function scalarOf(schema: Schema, variant: Variant, index: number): JsonValue {
  if (variant === 'unknown') return { [`u${index}`]: index };
  const number = variant === 'distinct' ? index + 1 : variant === 'invalid' ? -1 : 1;
  if (schema.intOrString === true || schema.type === 'integer') return number;
  if (schema.type === 'number') return number;
  if (schema.type === 'boolean') return index % 2 === 0;
  const valid = validTexts[schema.format ?? ''];
  // Protobuf cannot represent an invalid time.
  const isTime = schema.format === 'date-time' || schema.format === 'micro-time';
  if (variant === 'invalid' && !isTime) return `!${index}`;
  if (valid !== undefined) return valid;
  return variant === 'distinct' ? `a${index}` : 'a';
}
