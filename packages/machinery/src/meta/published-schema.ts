import { isObject, type JsonObject, type JsonValue, objectOf } from '../base/json.ts';

/**
 * Reads the schemas of a published OpenAPI v3 document (`components.schemas`), as clients do. All
 * functions accept any input and return an empty result for malformed parts.
 */

/** Maximum nesting of lists and maps that is resolved. */
const depthMax = 20;

/** Returns the schema of a kind; undefined if the document has none. */
export function schemaOfKind(
  schemas: JsonObject,
  of: { readonly group: string; readonly version: string; readonly kind: string },
): JsonObject | undefined {
  for (const schema of Object.values(schemas)) {
    if (!isObject(schema)) continue;
    const types = schema['x-kubernetes-group-version-kind'];
    const isKind = (type: JsonValue) =>
      isObject(type) &&
      type.group === of.group &&
      type.version === of.version &&
      type.kind === of.kind;
    if (Array.isArray(types) && types.some(isKind)) return schema;
  }
  return undefined;
}

/** Resolves a reference, either a plain one or an `allOf` with one element. */
export function dereference(schemas: JsonObject, schema: JsonObject): JsonObject {
  const name = refOf(schema);
  return objectOf(name === undefined ? schema : schemas[name]);
}

function refOf(schema: JsonObject): string | undefined {
  const { allOf } = schema;
  const [only] = Array.isArray(allOf) ? allOf : [];
  const ref = schema.$ref ?? (isObject(only) ? only.$ref : undefined);
  return typeof ref === 'string' ? ref.slice(ref.lastIndexOf('/') + 1) : undefined;
}

/**
 * Returns the schema of the innermost element of nested lists and maps, or of the object itself.
 */
export function itemOf(schemas: JsonObject, schema: JsonObject): JsonObject {
  let at = dereference(schemas, schema);
  for (let depth = 0; depth < depthMax; depth += 1) {
    const inner = at.items ?? at.additionalProperties;
    if (!isObject(inner)) return at;
    at = dereference(schemas, inner);
  }
  return at;
}

/** Returns the properties of an object, by name. */
export function propertiesOf(schema: JsonObject): JsonObject {
  return objectOf(schema.properties);
}

/**
 * Returns the name of a type for display: `string`, `[]Container`, `map[string]Quantity`, `Object`.
 */
export function typeName(schemas: JsonObject, schema: JsonObject): string {
  const ref = refOf(schema);
  if (ref !== undefined) return ref.slice(ref.lastIndexOf('.') + 1);
  if (isObject(schema.items)) return `[]${typeName(schemas, schema.items)}`;
  if (isObject(schema.additionalProperties)) {
    return `map[string]${typeName(schemas, schema.additionalProperties)}`;
  }
  if (schema['x-kubernetes-int-or-string'] === true) return 'IntOrString';
  return typeof schema.type === 'string' && schema.type !== 'object' ? schema.type : 'Object';
}

/** Returns the description of a schema; empty if there is none. */
export function descriptionOf(schema: JsonObject): string {
  return typeof schema.description === 'string' ? schema.description : '';
}
