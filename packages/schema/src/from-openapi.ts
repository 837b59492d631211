import {
  isObject,
  type JsonArray,
  type JsonObject,
  type JsonValue,
  member,
} from '@wheelhouse/machinery';
import {
  anySchema,
  type CelRule,
  type NestedValidation,
  noSchema,
  type Property,
  type Schema,
  type ValueValidation,
} from './schema.ts';

/**
 * Makes the schema of an `openAPIV3Schema` (a JSONSchemaProps, already decoded and accepted by the
 * CustomResourceDefinition's validation): structure and value validations apart. Gives a schema for
 * anything: what is not structural is left out.
 */
export function schemaFromOpenApi(props: JsonObject): Schema {
  const items = objectIn(props, 'items');
  const additional = member(props, 'additionalProperties');
  const properties = propertiesFrom(props);
  const validation = validationFrom(props);
  return {
    ...structureFrom(props),
    ...(properties === undefined ? {} : { properties }),
    ...(isObject(additional) ? { additionalProperties: schemaFromOpenApi(additional) } : {}),
    ...(additional === true ? { additionalProperties: anySchema } : {}),
    ...(additional === false ? { additionalProperties: noSchema } : {}),
    ...(items === undefined ? {} : { items: schemaFromOpenApi(items) }),
    ...(validation === undefined ? {} : { validation }),
  };
}

function propertiesFrom(props: JsonObject): ReadonlyMap<string, Property> | undefined {
  const propertySchemas = objectIn(props, 'properties');
  if (propertySchemas === undefined || Object.keys(propertySchemas).length === 0) return undefined;
  const properties = new Map<string, Property>();
  for (const name of Object.keys(propertySchemas)) {
    const child = propertySchemas[name];
    properties.set(name, { schema: isObject(child) ? schemaFromOpenApi(child) : {} });
  }
  return properties;
}

function structureFrom(props: JsonObject): Schema {
  const type = textIn(props, 'type');
  const listType = textIn(props, 'x-kubernetes-list-type');
  const mapType = textIn(props, 'x-kubernetes-map-type');
  const keys = listIn(props, 'x-kubernetes-list-map-keys');
  const rules = rulesFrom(props);
  const standard = member(props, 'default');
  return {
    ...(type === undefined ? {} : { type: type as NonNullable<Schema['type']> }),
    ...textMembers(props),
    ...(strings(member(props, 'required')) ?? {}),
    ...(props['nullable'] === true ? { nullable: true } : {}),
    ...(standard === undefined || standard === null ? {} : { default: standard }),
    ...(props['x-kubernetes-int-or-string'] === true ? { intOrString: true } : {}),
    ...(props['x-kubernetes-preserve-unknown-fields'] === true
      ? { preserveUnknownFields: true }
      : {}),
    ...(props['x-kubernetes-embedded-resource'] === true ? { embeddedResource: true } : {}),
    ...(listType === undefined ? {} : { listType: listType as NonNullable<Schema['listType']> }),
    ...(keys === undefined ? {} : { listMapKeys: keys as string[] }),
    ...(mapType === undefined ? {} : { mapType: mapType as NonNullable<Schema['mapType']> }),
    ...(rules === undefined ? {} : { rules }),
  };
}

function textMembers(props: JsonObject): Pick<Schema, 'format' | 'title' | 'description'> {
  const format = textIn(props, 'format');
  const title = textIn(props, 'title');
  const description = textIn(props, 'description');
  return {
    ...(format === undefined ? {} : { format }),
    ...(title === undefined ? {} : { title }),
    ...(description === undefined ? {} : { description }),
  };
}

function strings(value: JsonValue | undefined): { required: readonly string[] } | undefined {
  return Array.isArray(value) && value.length > 0 ? { required: value as string[] } : undefined;
}

function rulesFrom(props: JsonObject): readonly CelRule[] | undefined {
  const rules = listIn(props, 'x-kubernetes-validations');
  return rules as readonly CelRule[] | undefined;
}

const numbers = [
  'minimum',
  'maximum',
  'multipleOf',
  'minLength',
  'maxLength',
  'minItems',
  'maxItems',
  'minProperties',
  'maxProperties',
] as const;
const flags = ['exclusiveMinimum', 'exclusiveMaximum', 'uniqueItems'] as const;
const lists = ['allOf', 'anyOf', 'oneOf'] as const;

function validationFrom(props: JsonObject): ValueValidation | undefined {
  const validation: { -readonly [key in keyof ValueValidation]: ValueValidation[key] } = {};
  for (const name of numbers) {
    const value = member(props, name);
    if (typeof value === 'number' || typeof value === 'bigint') validation[name] = Number(value);
  }
  for (const name of flags) if (props[name] === true) validation[name] = true;
  for (const name of ['pattern', 'format'] as const) {
    const value = textIn(props, name);
    if (value !== undefined) validation[name] = value;
  }
  const values = listIn(props, 'enum');
  if (values !== undefined) validation.enum = values;
  for (const name of lists) {
    const parts = listIn(props, name);
    if (parts !== undefined) {
      validation[name] = parts.map((part) => nestedFromOpenApi(isObject(part) ? part : {}));
    }
  }
  const not = objectIn(props, 'not');
  if (not !== undefined) validation.not = nestedFromOpenApi(not);
  return Object.keys(validation).length === 0 ? undefined : validation;
}

/** A schema inside allOf, anyOf, oneOf or not: validations only. */
export function nestedFromOpenApi(props: JsonObject): NestedValidation {
  const type = textIn(props, 'type');
  const items = objectIn(props, 'items');
  const additional = objectIn(props, 'additionalProperties');
  const propertySchemas = objectIn(props, 'properties');
  const properties = Object.entries(propertySchemas ?? {}).map(
    ([name, child]) => [name, nestedFromOpenApi(isObject(child) ? child : {})] as const,
  );
  return {
    ...validationFrom(props),
    ...(strings(member(props, 'required')) ?? {}),
    ...(type === undefined ? {} : { type: type as NonNullable<Schema['type']> }),
    ...(props['nullable'] === true ? { nullable: true } : {}),
    ...(props['x-kubernetes-int-or-string'] === true ? { intOrString: true } : {}),
    ...(properties.length === 0 ? {} : { properties: new Map(properties) }),
    ...(additional === undefined ? {} : { additionalProperties: nestedFromOpenApi(additional) }),
    ...(items === undefined ? {} : { items: nestedFromOpenApi(items) }),
  };
}

function textIn(props: JsonObject, name: string): string | undefined {
  const value = member(props, name);
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function objectIn(props: JsonObject, name: string): JsonObject | undefined {
  const value = member(props, name);
  return isObject(value) ? value : undefined;
}

function listIn(props: JsonObject, name: string): JsonArray | undefined {
  const value = member(props, name);
  return Array.isArray(value) && value.length > 0 ? value : undefined;
}
