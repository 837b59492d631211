import { jsonText } from '@wheelhouse/codec';
import {
  type Descriptions,
  hasStructFacts,
  schemaOf,
  type TypeDescriptions,
} from '@wheelhouse/kinds';
import {
  type Dialect,
  getOrMake,
  isObject,
  type JsonArray,
  type JsonObject,
  type JsonValue,
  jsonEqual,
  setMember,
} from '@wheelhouse/machinery';
import {
  anySchema,
  isBooleanSchema,
  type Property,
  resolved,
  type Schema,
} from '@wheelhouse/schema';
import { objectText } from './json-text.ts';
import { definitionName } from './openapi-names.ts';
import { validationJson } from './openapi-validation.ts';

/** The OpenAPI version of a document. */
export type OpenApiForm = 'v2' | 'v3';

/** The state that the schemas of one document share. */
export interface SchemaContext {
  readonly form: OpenApiForm;
  readonly dialect: Dialect;
  readonly enums: 'omitted' | undefined;
  /** Descriptions of types and fields. */
  readonly descriptions: Descriptions;
  /** Called for each named type that a schema refers to, which the document must define. */
  readonly refer: (name: string, type: Schema) => void;
  /** Cached schemas and references: most fields of a document have one of a few. */
  readonly inlineSchemas: Map<Schema, JsonObject>;
  /** Their texts, and those of fields that are always present. */
  readonly texts: {
    readonly inline: Map<Schema, string>;
    readonly requiredFields: Map<Schema, string>;
  };
}

/** Creates the state for the schemas of a new document. */
export function schemaContext(
  options: Omit<SchemaContext, 'inlineSchemas' | 'texts'>,
): SchemaContext {
  const texts = { inline: new Map<Schema, string>(), requiredFields: new Map<Schema, string>() };
  return { ...options, inlineSchemas: new Map(), texts };
}

/** The prefix of references to definitions. */
const referencePrefixes = { v2: '#/definitions/', v3: '#/components/schemas/' } as const;

/** A reference to a definition, by its name in the document. */
export function refTo(form: OpenApiForm, name: string): JsonObject {
  return { $ref: referencePrefixes[form] + name };
}

const text: Schema = { type: 'string', typed: true };
const versionFields = [
  ...['major', 'minor', 'gitVersion', 'gitCommit', 'gitTreeState'],
  ...['buildDate', 'goVersion', 'compiler', 'platform'],
];

/** Types without a table: the body of a PATCH, and the response of `/version`. */
const ownTypes: ReadonlyMap<string, Schema> = new Map<string, Schema>([
  ['meta.v1.Patch', { type: 'object', typed: true, typeName: 'meta.v1.Patch' }],
  [
    'version.Info',
    {
      type: 'object',
      typed: true,
      typeName: 'version.Info',
      properties: new Map(versionFields.map((name) => [name, { schema: text }])),
      required: versionFields,
    },
  ],
]);

/** A reference to a built-in type, by its name in the tables (`meta.v1.ObjectMeta`). */
export function typeRef(context: SchemaContext, typeName: string): JsonObject {
  return schemaJson(context, namedSchema(typeName));
}

/** The JSON text of `typeRef`. */
export function typeRefText(context: SchemaContext, typeName: string): string {
  return schemaText(context, namedSchema(typeName));
}

function namedSchema(typeName: string): Schema {
  return ownTypes.get(typeName) ?? schemaOf(typeName);
}

/** A reference to a named type, or the inline schema of another type. */
export function schemaJson(context: SchemaContext, schema: Schema): JsonObject {
  const at = resolved(schema);
  return getOrMake(context.inlineSchemas, at, () =>
    isNamed(at) ? reference(context, at) : inlineJson(context, at),
  );
}

/** The JSON text of `schemaJson`. */
export function schemaText(context: SchemaContext, schema: Schema): string {
  const at = resolved(schema);
  return getOrMake(context.texts.inline, at, () => jsonText(schemaJson(context, at)));
}

/**
 * Whether a type has a definition. Only named structs and scalars do; lists and maps are inline.
 */
function isNamed(schema: Schema): schema is Schema & { readonly typeName: string } {
  return (
    schema.typeName !== undefined &&
    schema.type !== 'array' &&
    schema.additionalProperties === undefined
  );
}

function reference(
  context: SchemaContext,
  schema: Schema & { readonly typeName: string },
): JsonObject {
  const { typeName } = schema;
  const name = definitionName(context.dialect, typeName);
  const base = hasStructFacts(typeName) ? schemaOf(typeName) : schema;
  context.refer(name, base);
  const extras = {
    ...(schema.default === undefined || schema === base ? {} : { default: schema.default }),
    ...(schema.mapType === base.mapType ? {} : mapTypeJson(schema)),
    ...(schema.listType === base.listType ? {} : listJson(schema)),
    ...patchJson(schema),
  };
  return withRef(context, refTo(context.form, name), extras);
}

/**
 * Adds members to a reference. In OpenAPI 3.0, which forbids them beside it, it moves to `allOf`.
 */
export function withRef(
  context: SchemaContext,
  ref: JsonObject,
  { default: standard, ...rest }: JsonObject,
): JsonObject {
  const extras: JsonObject =
    standard === undefined || context.form === 'v2' ? rest : { default: standard, ...rest };
  if (Object.keys(extras).length === 0) return ref;
  return context.form === 'v2' ? { ...ref, ...extras } : { allOf: [ref], ...extras };
}

/** The JSON text of a type's definition, followed by `more`. */
export function definitionText(context: SchemaContext, schema: Schema, more: JsonObject): string {
  const { typed, properties } = schema;
  const { type, ...rest } = inlineJson(context, schema);
  const texts = context.descriptions.ofType(schema.typeName ?? '');
  const description = descriptionMember(texts.text);
  if (typed !== true || properties === undefined || properties.size === 0) {
    const typeJson: JsonObject = type === undefined ? {} : { type };
    return jsonText({ ...description, ...typeJson, ...rest, ...more });
  }
  const followingMembers = Object.entries({ ...rest, ...more });
  return objectText({
    description: texts.text && jsonText(texts.text),
    type: jsonText(type),
    properties: typedProperties(context, texts, properties),
    ...Object.fromEntries(followingMembers.map(([name, value]) => [name, jsonText(value)])),
  });
}

/** The inline schema of a type, without the properties of a built-in one. */
export function inlineJson(context: SchemaContext, schema: Schema): JsonObject {
  if (schema.typed !== true) return customJson(context, schema);
  const leaf = leafJson(context.form, schema);
  if (leaf !== undefined) return leaf;
  const json: JsonObject = {};
  const { additionalProperties, items } = schema;
  if (schema.type !== undefined) json['type'] = schema.type;
  if (schema.format !== undefined) json['format'] = schema.format;
  if (schema.default !== undefined && context.form === 'v3') json['default'] = schema.default;
  const values = context.enums === 'omitted' ? undefined : schema.validation?.enum;
  if (values !== undefined) json['enum'] = [...values];
  if (schema.required !== undefined) json['required'] = [...schema.required];
  if (items !== undefined) json['items'] = elementJson(context, items);
  if (additionalProperties !== undefined) {
    json['additionalProperties'] = elementJson(context, additionalProperties);
  }
  return Object.assign(json, listJson(schema), mapTypeJson(schema), patchJson(schema));
}

/** The schema of a type with a custom JSON encoding in Go; undefined for others. */
function leafJson(form: OpenApiForm, schema: Schema): JsonObject | undefined {
  if (schema.alternatives !== undefined) return {};
  if (schema.preserveUnknownFields === true) {
    // Raw JSON has no type; RawExtension and custom objects are objects.
    const isObject = schema.type === 'object' || (schema.typeName ?? '').startsWith('runtime.');
    return isObject ? { type: 'object' } : {};
  }
  if (schema.intOrString === true) {
    const format = { format: 'int-or-string' };
    return form === 'v2'
      ? { type: 'string', ...format }
      : { oneOf: [{ type: 'integer' }, { type: 'string' }], ...format };
  }
  if (schema.format === 'quantity') {
    return form === 'v2' ? { type: 'string' } : { oneOf: [{ type: 'string' }, { type: 'number' }] };
  }
  if (schema.format === 'micro-time') return { type: 'string', format: 'date-time' };
  return schema.format === 'duration' ? { type: 'string' } : undefined;
}

function typedProperties(
  context: SchemaContext,
  texts: TypeDescriptions,
  properties: ReadonlyMap<string, Property>,
): string {
  let text = '';
  for (const [name, property] of properties) {
    const schema = resolved(property.schema);
    const isOmittedWhenEmpty = property.omitEmpty === true && !isStruct(schema);
    const isOptional = isOmittedWhenEmpty || property.pointer === true;
    const value = isOptional ? schemaText(context, schema) : requiredFieldText(context, schema);
    const described = withDescription(context, value, texts.field(name));
    text += `${text === '' ? '{' : ','}"${name}":${described}`;
  }
  return `${text}}`;
}

/** The JSON text of a schema with a description. */
function withDescription(
  { form }: SchemaContext,
  text: string,
  description: string | undefined,
): string {
  if (description === undefined) return text;
  const first = `{"description":${jsonText(description)}`;
  if (text === '{}') return `${first}}`;
  const isBare = form === 'v3' && text.startsWith('{"$ref"');
  return isBare ? `${first},"allOf":[${text}]}` : `${first},${text.slice(1)}`;
}

/** The JSON text of the schema of a field that Go never omits. */
function requiredFieldText(context: SchemaContext, schema: Schema): string {
  return getOrMake(context.texts.requiredFields, schema, () =>
    jsonText(withDefault(context, schemaJson(context, schema), zeroOf(schema))),
  );
}

function elementJson(context: SchemaContext, schema: Schema): JsonObject {
  return withDefault(context, schemaJson(context, schema), zeroOf(resolved(schema)));
}

/** The schema with a default, which for a field that Go never omits is its zero value. */
function withDefault(
  context: SchemaContext,
  json: JsonObject,
  standard: JsonValue | undefined,
): JsonObject {
  if (standard === undefined || context.form === 'v2' || json['default'] !== undefined) return json;
  if (json['$ref'] !== undefined) return withRef(context, json, { default: standard });
  return { ...json, default: standard };
}

const zeros: Readonly<Record<string, JsonValue>> = {
  string: '',
  integer: 0,
  number: 0,
  boolean: false,
};

function isStruct(schema: Schema): boolean {
  return schema.typeName !== undefined && schema.properties !== undefined;
}

function zeroOf(schema: Schema): JsonValue | undefined {
  if (isStruct(schema)) return {};
  const isScalar = schema.typeName === undefined && schema.typed === true;
  if (!isScalar || schema.format === 'byte' || schema.format === 'date-time') return undefined;
  return schema.type === undefined ? undefined : zeros[schema.type];
}

const noMembers: JsonObject = {};

function listJson(schema: Schema): JsonObject {
  const { listType, listMapKeys } = schema;
  if (listType === undefined && listMapKeys === undefined) return noMembers;
  return {
    ...(listType === undefined ? {} : { 'x-kubernetes-list-type': listType }),
    ...(listMapKeys === undefined ? {} : { 'x-kubernetes-list-map-keys': [...listMapKeys] }),
  };
}

function mapTypeJson(schema: Schema): JsonObject {
  return schema.mapType === undefined ? noMembers : { 'x-kubernetes-map-type': schema.mapType };
}

function patchJson(schema: Schema): JsonObject {
  const { patchStrategies, patchMergeKey } = schema;
  if (patchStrategies === undefined && patchMergeKey === undefined) return noMembers;
  return {
    ...(patchStrategies === undefined
      ? {}
      : { 'x-kubernetes-patch-strategy': patchStrategies.join(',') }),
    ...(patchMergeKey === undefined ? {} : { 'x-kubernetes-patch-merge-key': patchMergeKey }),
  };
}

/** The schema of a custom kind, or of a part of it. */
function customJson(context: SchemaContext, schema: Schema): JsonObject {
  if (isBooleanSchema(schema)) return {};
  const structure = structureOf(context.form, schema);
  const validation = validationJson(context.form, schema.validation);
  return {
    ...(schema.title === undefined ? {} : { title: schema.title }),
    ...(schema.description === undefined ? {} : { description: schema.description }),
    ...(structure.type === undefined ? {} : { type: structure.type }),
    ...(schema.format === undefined ? {} : { format: schema.format }),
    ...(schema.default === undefined || context.form === 'v2' ? {} : { default: schema.default }),
    ...(schema.nullable === true && context.form === 'v3' ? { nullable: true } : {}),
    ...validation,
    ...(schema.intOrString === true ? intOrStringJson(context.form, validation) : {}),
    ...customProperties(context, structure),
    ...(structure.items === undefined ? {} : { items: schemaJson(context, structure.items) }),
    ...additionalJson(context, schema),
    ...listJson(schema),
    ...mapTypeJson(schema),
    ...(schema.preserveUnknownFields === true
      ? { 'x-kubernetes-preserve-unknown-fields': true }
      : {}),
    ...(schema.embeddedResource === true ? { 'x-kubernetes-embedded-resource': true } : {}),
    ...(schema.rules === undefined
      ? {}
      : { 'x-kubernetes-validations': schema.rules.map((rule) => ({ ...rule })) }),
  };
}

type Structure = {
  readonly [Name in 'type' | 'properties' | 'required' | 'items' | 'embeddedResource']?:
    | Schema[Name]
    | undefined;
};

/**
 * The structural part of a schema. OpenAPI 2 cannot describe a value that is nullable or has
 * unknown members beside known ones, and its clients reject such values, so the type and structure
 * are omitted.
 */
function structureOf(form: OpenApiForm, schema: Schema): Structure {
  if (form === 'v3') return schema;
  const { type, nullable, additionalProperties, embeddedResource } = schema;
  const isNullableMap = additionalProperties?.nullable === true;
  const required = isNullableMap ? undefined : schema.required;
  const isOpen = schema.preserveUnknownFields === true;
  if (isOpen || nullable === true) {
    const keepsType = nullable !== true && type !== 'object' && type !== 'array';
    return {
      type: keepsType ? type : undefined,
      required,
      embeddedResource: isOpen ? undefined : embeddedResource,
    };
  }
  return type === 'array' && schema.items === undefined ? { required } : { ...schema, required };
}

const integerOrString: JsonArray = [{ type: 'integer' }, { type: 'string' }];

/**
 * The keywords of an int-or-string with a validation. OpenAPI 3 names both types, unless the
 * validation does at one of the two places that a structural schema allows.
 */
function intOrStringJson(form: OpenApiForm, { anyOf, allOf }: JsonObject): JsonObject {
  const mark: JsonObject = { 'x-kubernetes-int-or-string': true };
  const first = Array.isArray(allOf) ? allOf[0] : undefined;
  const namesTypes =
    isIntegerOrString(anyOf) || (isObject(first) && isIntegerOrString(first['anyOf']));
  if (form === 'v2' || namesTypes) return mark;
  if (anyOf === undefined) return { anyOf: integerOrString, ...mark };
  const others = Array.isArray(allOf) ? allOf : [];
  return { allOf: [{ anyOf: integerOrString }, ...others], ...mark };
}

const isIntegerOrString = (anyOf: JsonValue | undefined): boolean =>
  anyOf !== undefined && jsonEqual(anyOf, integerOrString);

function customProperties(context: SchemaContext, structure: Structure): JsonObject {
  const written: JsonObject = {};
  const optional = new Set<string>();
  for (const [name, { schema }] of structure.properties ?? []) {
    setMember(written, name, schemaJson(context, schema));
    if (context.form === 'v2' && schema.nullable === true) optional.add(name);
  }
  let required = (structure.required ?? []).filter((name) => !optional.has(name));
  if (structure.embeddedResource === true) {
    Object.assign(written, objectMembers(context));
    required = [...new Set([...required, 'kind', 'apiVersion'])];
  }
  return {
    ...(Object.keys(written).length === 0 ? {} : { properties: written }),
    ...(required.length === 0 ? {} : { required }),
  };
}

/** The properties that all objects have, for schemas of custom kinds. */
export function objectMembers(context: SchemaContext): JsonObject {
  return {
    ...typeMembers(context),
    metadata: withRef(
      context,
      typeRef(context, 'meta.v1.ObjectMeta'),
      descriptionMember(context.descriptions.ofKind('metadata')),
    ),
  };
}

/** The properties `apiVersion` and `kind`. */
export function typeMembers(context: SchemaContext): JsonObject {
  const { descriptions } = context;
  return {
    apiVersion: { ...descriptionMember(descriptions.ofKind('apiVersion')), type: 'string' },
    kind: { ...descriptionMember(descriptions.ofKind('kind')), type: 'string' },
  };
}

/** An object with the member `description`; empty if it is undefined. */
export function descriptionMember(description: string | undefined): JsonObject {
  return description === undefined ? {} : { description };
}

function additionalJson(context: SchemaContext, schema: Schema): JsonObject {
  const { additionalProperties } = schema;
  if (additionalProperties === undefined) return {};
  if (isBooleanSchema(additionalProperties)) {
    return { additionalProperties: additionalProperties === anySchema };
  }
  return { additionalProperties: schemaJson(context, additionalProperties) };
}
