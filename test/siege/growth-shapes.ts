import { cloneJson, isObject, type JsonObject, type JsonValue } from '@wheelhouse/machinery';
import { resolved, type Schema } from '@wheelhouse/schema';

/** The relation between the items of a collection. */
export const variants = ['equal', 'distinct', 'invalid', 'unknown'] as const;
export type Variant = (typeof variants)[number];

/** One place in a kind, by the steps to it; 0 is a list's first item. */
export interface Place {
  readonly steps: readonly (string | 0)[];
  readonly schema: Schema;
}

/** A list, map, or open object. */
export type Collection = Place;

/** What long texts repeat: characters with a meaning in some format or encoding. */
export const units = [
  ...['a', '1', '.', '-', '/', ':', ' ', '%', '=', '*', '(', '[', '{', '$(', "'", '<', '\\', '\n'],
  ...['\u0001', 'é', 'A', 'a.', '1.', '1:', 'a-', '/a', 'a=b,', '1e', '%41'],
];

/** Maximum depth of the search for collections, which ends at types that contain themselves. */
const depthMax = 10;

/** Every collection of a kind, so that later fields are covered too. */
export const collectionsOf = (root: Schema): readonly Collection[] =>
  placesOf(root).filter(
    ({ schema: { type, items, properties } }) =>
      items !== undefined || type === 'object' || properties !== undefined,
  );

/** Every text of a kind. */
export const textsOf = (root: Schema): readonly Place[] =>
  placesOf(root).filter(({ schema }) => schema.type === 'string' || schema.intOrString === true);

function placesOf(root: Schema): readonly Place[] {
  const places: Place[] = [];
  const visit = (given: Schema, steps: readonly (string | 0)[], outer: readonly Schema[]): void => {
    const schema = resolved(given);
    if (outer.filter((ancestor) => ancestor === schema).length > 1 || steps.length > depthMax)
      return;
    const around = [...outer, schema];
    places.push({ steps, schema });
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
  return places;
}

/** The example with `count` items in one collection. */
export function filled(
  example: JsonObject,
  collection: Collection,
  fill: { readonly variant: Variant; readonly count: number },
): JsonObject {
  const { steps, schema } = collection;
  return replaced(example, steps, (present) => collectionOf(schema, present, fill));
}

/** The example with a value at a place. */
export function replaced(
  example: JsonObject,
  place: Place['steps'],
  make: (present: JsonValue | undefined) => JsonValue,
): JsonObject {
  const object = cloneJson(example);
  const put = (at: JsonValue | undefined, steps: Place['steps']): JsonValue => {
    const [step, ...rest] = steps;
    if (step === undefined) return make(at);
    if (step === 0) return [put(Array.isArray(at) ? at[0] : undefined, rest)];
    const holder: JsonObject = isObject(at) ? at : {};
    holder[step] = put(holder[step], rest);
    return holder;
  };
  return put(object, place) as JsonObject;
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
