import { type Property, resolved, type Schema } from '@wheelhouse/schema';
import { namesOf, typeOfSchema, visibleSchema, withTypeMeta } from './schema-types.ts';
import { dynType, listType, mapType, stringType, type Type, timestampType } from './types.ts';

/**
 * The type of a kind's objects, which kube-apiserver derives from the published schema; undefined
 * if that has no type. `metadata` replaces a custom kind's own schema of metadata, as in the
 * published schema. Members that are published with alternative types, such as quantities, are
 * omitted, and recursive types have no members at the recursion.
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
/** Types of string formats in built-in kinds. */
const textTypes: ReadonlyMap<string, Type | undefined> = new Map([
  ['quantity', undefined],
  ['int-or-string', dynType],
  ['micro-time', timestampType],
]);

/** @param open enclosing schemas */
function typeOf(declaredSchema: Schema, name: string, open: ReadonlySet<Schema>): Type | undefined {
  const schema = visibleSchema(declaredSchema);
  if (schema.intOrString === true) return dynType;
  if (schema.alternatives !== undefined) return undefined;
  if (schema.type === 'array') {
    const item =
      schema.items === undefined ? undefined : typeOf(schema.items, `${name}.@idx`, open);
    return item === undefined ? undefined : listType(item);
  }
  // A raw extension is published as an object without members.
  const isObject = schema.type === 'object' || schema.typeName === 'runtime.RawExtension';
  if (isObject) return objectType(schema, name, { declaredSchema, open });
  const { format = '' } = schema;
  if (schema.type === 'string' && textTypes.has(format)) return textTypes.get(format);
  // In built-in kinds it is published as a plain string.
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
    const fieldType = typeOf(property.schema, `${name}.${member}`, inside);
    if (fieldType !== undefined) for (const alias of namesOf(member)) fields.set(alias, fieldType);
  }
  return type;
}
