import { resolved, type Schema } from '../schema/schema.ts';
import { namesOf, seen, typeOfSchema, withTypeMeta } from './schema-types.ts';
import { dynType, listType, mapType, stringType, type Type } from './types.ts';

/**
 * The type of a kind's objects by its schema, the whole of it; dyn where a part says nothing, or
 * holds itself. Unlike that of rules it has members that hold anything.
 */
export function typeOfKind(schema: Schema, name: string): Type {
  return typeOf(withTypeMeta(resolved(schema)), name, new Set());
}

/** @param open schemas that this one is a part of */
function typeOf(given: Schema, name: string, open: ReadonlySet<Schema>): Type {
  const schema = seen(given);
  if (schema.intOrString === true || open.has(resolved(given))) return dynType;
  const inside = new Set([...open, resolved(given)]);
  if (schema.type === 'array') {
    const { items } = schema;
    return listType(items === undefined ? dynType : typeOf(items, `${name}.@idx`, inside));
  }
  if (schema.type !== 'object') return typeOfSchema(schema, name) ?? dynType;
  if (schema.additionalProperties !== undefined) {
    return mapType(stringType, typeOf(schema.additionalProperties, `${name}.@elem`, inside));
  }
  if (schema.preserveUnknownFields === true || schema.properties === undefined) return dynType;
  const fields = new Map<string, Type>();
  for (const [member, property] of schema.properties) {
    const type = typeOf(property.schema, `${name}.${member}`, inside);
    for (const one of namesOf(member)) fields.set(one, type);
  }
  return { name, args: [], fields };
}
