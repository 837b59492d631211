import { isObject, type JsonArray, type JsonObject, member, textsOf } from '@wheelhouse/machinery';
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
 * Converts a decoded `openAPIV3Schema` to a Schema, which separates structure and value
 * validations. Accepts any input; parts of the wrong type are omitted.
 */
export function schemaFromOpenApi(props: JsonObject): Schema {
  const schema = structureFrom(props);
  const items = objectIn(props, 'items');
  const additional = member(props, 'additionalProperties');
  const properties = propertiesFrom(props);
  const validation = validationFrom(props);
  if (properties !== undefined) schema.properties = properties;
  if (isObject(additional)) schema.additionalProperties = schemaFromOpenApi(additional);
  else if (typeof additional === 'boolean') {
    schema.additionalProperties = additional ? anySchema : noSchema;
  }
  if (items !== undefined) schema.items = schemaFromOpenApi(items);
  if (validation !== undefined) schema.validation = validation;
  return schema;
}

/**
 * A schema under construction. Its members are set one by one for speed: a large definition has ten
 * thousand schemas.
 */
type Draft = { -readonly [Name in keyof Schema]: Schema[Name] };

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

function structureFrom(props: JsonObject): Draft {
  const schema: Draft = {};
  const type = textIn(props, 'type');
  if (type !== undefined) schema.type = type as NonNullable<Schema['type']>;
  for (const name of ['format', 'title', 'description'] as const) {
    const text = textIn(props, name);
    if (text !== undefined) schema[name] = text;
  }
  const required = listIn(props, 'required');
  if (required !== undefined) schema.required = textsOf(required);
  if (props['nullable'] === true) schema.nullable = true;
  const standard = member(props, 'default');
  if (standard !== undefined && standard !== null) schema.default = standard;
  if (props['x-kubernetes-int-or-string'] === true) schema.intOrString = true;
  if (props['x-kubernetes-preserve-unknown-fields'] === true) schema.preserveUnknownFields = true;
  if (props['x-kubernetes-embedded-resource'] === true) schema.embeddedResource = true;
  const listType = textIn(props, 'x-kubernetes-list-type');
  if (listType !== undefined) schema.listType = listType as NonNullable<Schema['listType']>;
  const keys = listIn(props, 'x-kubernetes-list-map-keys');
  if (keys !== undefined) schema.listMapKeys = textsOf(keys);
  const mapType = textIn(props, 'x-kubernetes-map-type');
  if (mapType !== undefined) schema.mapType = mapType as NonNullable<Schema['mapType']>;
  const rules = rulesFrom(props);
  if (rules !== undefined) schema.rules = rules;
  return schema;
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
    const value = props[name];
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

/** Converts a schema inside allOf, anyOf, oneOf, or not, which has only validations. */
function nestedFromOpenApi(props: JsonObject): NestedValidation {
  const type = textIn(props, 'type');
  const items = objectIn(props, 'items');
  const additional = objectIn(props, 'additionalProperties');
  const propertySchemas = objectIn(props, 'properties');
  const required = listIn(props, 'required');
  const properties = Object.entries(propertySchemas ?? {}).map(
    ([name, child]) => [name, nestedFromOpenApi(isObject(child) ? child : {})] as const,
  );
  return {
    ...validationFrom(props),
    ...(required === undefined ? {} : { required: textsOf(required) }),
    ...(type === undefined ? {} : { type: type as NonNullable<Schema['type']> }),
    ...(props['nullable'] === true ? { nullable: true } : {}),
    ...(props['x-kubernetes-int-or-string'] === true ? { intOrString: true } : {}),
    ...(properties.length === 0 ? {} : { properties: new Map(properties) }),
    ...(additional === undefined ? {} : { additionalProperties: nestedFromOpenApi(additional) }),
    ...(member(props, 'additionalProperties') === false ? { closed: true } : {}),
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
