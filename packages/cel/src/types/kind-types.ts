import { type Property, resolved, type Schema } from '@wheelhouse/schema';
import { namesOf, seen, typeOfSchema, withTypeMeta } from './schema-types.ts';
import { dynType, listType, mapType, stringType, type Type, timestampType } from './types.ts';

/**
 * The type of a kind's objects by its schema, as upstream has it from what it publishes of the kind;
 * undefined where that says nothing. `metadata` stands for what a custom kind says of it, which is
 * published as of any other. Members of types that are published as one of several, as quantities are,
 * are not in it, and what holds itself has no members there.
 */
export function typeOfKind(
  schema: Schema,
  { name, metadata }: { readonly name: string; readonly metadata: Property | undefined },
): Type | undefined {
  const plain = resolved(schema);
  if (metadata === undefined) return typeOf(withTypeMeta(plain), name, new Set());
  const published = [
    ['apiVersion', { schema: text }],
    ['kind', { schema: text }],
    ['metadata', metadata],
  ] as const;
  const properties = new Map([...(plain.properties ?? []), ...published]);
  return typeOf({ ...plain, properties }, name, new Set());
}

const text: Schema = { type: 'string' };
/** Texts whose format says more, or nothing, where kinds are built in. */
const textTypes: ReadonlyMap<string, Type | undefined> = new Map([
  ['quantity', undefined],
  ['int-or-string', dynType],
  ['micro-time', timestampType],
]);

/** @param open schemas that this one is a part of */
function typeOf(declaredSchema: Schema, name: string, open: ReadonlySet<Schema>): Type | undefined {
  const schema = seen(declaredSchema);
  if (schema.intOrString === true) return dynType;
  if (schema.alternatives !== undefined) return undefined;
  if (schema.type === 'array') {
    const item =
      schema.items === undefined ? undefined : typeOf(schema.items, `${name}.@idx`, open);
    return item === undefined ? undefined : listType(item);
  }
  // Its content is of any kind, and published as an object without members.
  const isObject = schema.type === 'object' || schema.typeName === 'runtime.RawExtension';
  if (isObject) return objectType(schema, name, { declaredSchema, open });
  const { format = '' } = schema;
  if (schema.type === 'string' && textTypes.has(format)) return textTypes.get(format);
  // That of built-in kinds is published as a text like any other.
  if (schema.typed === true && format === 'duration') return stringType;
  return typeOfSchema(schema, name);
}

function objectType(
  schema: Schema,
  name: string,
  at: { readonly declaredSchema: Schema; readonly open: ReadonlySet<Schema> },
): Type | undefined {
  const own = resolved(at.declaredSchema);
  const fields = new Map<string, Type>();
  const type: Type = { name, args: [], fields };
  if (at.open.has(own)) return type;
  const inside = new Set([...at.open, own]);
  if (schema.additionalProperties !== undefined) {
    const value = typeOf(schema.additionalProperties, `${name}.@elem`, inside);
    return value === undefined ? undefined : mapType(stringType, value);
  }
  for (const [member, property] of schema.properties ?? []) {
    const found = typeOf(property.schema, `${name}.${member}`, inside);
    if (found !== undefined) for (const one of namesOf(member)) fields.set(one, found);
  }
  return type;
}
