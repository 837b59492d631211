import { jsonText } from '@wheelhouse/codec';
import {
  type Descriptions,
  hasStructFacts,
  schemaOf,
  type TypeDescriptions,
} from '@wheelhouse/kinds';
import { type Dialect, type JsonObject, type JsonValue, setMember } from '@wheelhouse/machinery';
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

/** The OpenAPI version to write. */
export type OpenApiForm = 'v2' | 'v3';

/** State shared by the schemas of one document. */
export interface SchemaContext {
  readonly form: OpenApiForm;
  readonly dialect: Dialect;
  readonly enums: 'left-out' | undefined;
  /** Descriptions of types and fields. */
  readonly descriptions: Descriptions;
  /** Called for each named type that a schema references and the document must define. */
  readonly refer: (name: string, type: Schema) => void;
  /** Cached inline schemas: most fields of a document have one of a few. */
  readonly written: Map<Schema, JsonObject>;
  /** The same as text, and the texts of fields that are always present. */
  readonly texts: { readonly inPlace: Map<Schema, string>; readonly always: Map<Schema, string> };
}

/** Creates the state for the schemas of a new document. */
export function schemaContext(options: Omit<SchemaContext, 'written' | 'texts'>): SchemaContext {
  const texts = { inPlace: new Map<Schema, string>(), always: new Map<Schema, string>() };
  return { ...options, written: new Map(), texts };
}

/** Prefix of references to definitions. */
const places = { v2: '#/definitions/', v3: '#/components/schemas/' } as const;

/** `{"$ref": …}` of a definition by its name in the document. */
export function refTo(form: OpenApiForm, name: string): JsonObject {
  return { $ref: places[form] + name };
}

const text: Schema = { type: 'string', typed: true };
const versionFields = [
  ...['major', 'minor', 'gitVersion', 'gitCommit', 'gitTreeState'],
  ...['buildDate', 'goVersion', 'compiler', 'platform'],
];

/** Types without a table: the body of a PATCH, and the answer of `/version`. */
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

/** A reference to a built-in type by its name in the tables (`meta.v1.ObjectMeta`). */
export function typeRef(context: SchemaContext, typeName: string): JsonObject {
  return schemaJson(context, namedSchema(typeName));
}

/** The text of `typeRef`. */
export function typeRefText(context: SchemaContext, typeName: string): string {
  return schemaText(context, namedSchema(typeName));
}

function namedSchema(typeName: string): Schema {
  return ownTypes.get(typeName) ?? schemaOf(typeName);
}

/** An inline schema of a document: named types become references. */
export function schemaJson(context: SchemaContext, schema: Schema): JsonObject {
  const at = resolved(schema);
  let json = context.written.get(at);
  if (json === undefined) {
    json = isNamed(at) ? reference(context, at) : inlineJson(context, at);
    context.written.set(at, json);
  }
  return json;
}

/** The text of `schemaJson`. */
export function schemaText(context: SchemaContext, schema: Schema): string {
  const at = resolved(schema);
  const { inPlace } = context.texts;
  let text = inPlace.get(at);
  if (text === undefined) {
    text = jsonText(schemaJson(context, at));
    inPlace.set(at, text);
  }
  return text;
}

/** Whether a named type has a definition: only structs and leaves; lists and maps are inlined. */
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

/** Wraps a reference in `allOf`, because OpenAPI 3.0 allows no members next to a reference. */
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

/**
 * The JSON text of a type's definition, followed by `more`. Most of a document consists of these
 * properties.
 */
export function definitionText(context: SchemaContext, schema: Schema, more: JsonObject): string {
  const { typed, properties } = schema;
  const { type, ...rest } = inlineJson(context, schema);
  const texts = context.descriptions.ofType(schema.typeName ?? '');
  const description = described(texts.text);
  if (typed !== true || properties === undefined || properties.size === 0) {
    const typeJson: JsonObject = type === undefined ? {} : { type };
    return jsonText({ ...description, ...typeJson, ...rest, ...more });
  }
  const behind = Object.entries({ ...rest, ...more });
  return objectText({
    description: texts.text && jsonText(texts.text),
    type: jsonText(type),
    properties: typedProperties(context, texts, properties),
    ...Object.fromEntries(behind.map(([name, value]) => [name, jsonText(value)])),
  });
}

/** A full schema, except the properties of a built-in type. */
export function inlineJson(context: SchemaContext, schema: Schema): JsonObject {
  if (schema.typed !== true) return customJson(context, schema);
  const leaf = leafJson(context.form, schema);
  if (leaf !== undefined) return leaf;
  const json: JsonObject = {};
  const { additionalProperties, items } = schema;
  if (schema.type !== undefined) json['type'] = schema.type;
  if (schema.format !== undefined) json['format'] = schema.format;
  if (schema.default !== undefined && context.form === 'v3') json['default'] = schema.default;
  const values = context.enums === 'left-out' ? undefined : schema.validation?.enum;
  if (values !== undefined) json['enum'] = [...values];
  if (schema.required !== undefined) json['required'] = [...schema.required];
  if (items !== undefined) json['items'] = elementJson(context, items);
  if (additionalProperties !== undefined) {
    json['additionalProperties'] = elementJson(context, additionalProperties);
  }
  return Object.assign(json, listJson(schema), mapTypeJson(schema), patchJson(schema));
}

/** Types with custom JSON encoding in Go. */
function leafJson(form: OpenApiForm, schema: Schema): JsonObject | undefined {
  if (schema.alternatives !== undefined) return {};
  if (schema.preserveUnknownFields === true) {
    // Raw JSON has no type; the other two are always objects.
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
    const isLeftOut = property.omitEmpty === true && !isStruct(schema);
    const mayLack = isLeftOut || property.pointer === true;
    const value = mayLack ? schemaText(context, schema) : givenText(context, schema);
    const described = withDescription(context, value, texts.field(name));
    text += `${text === '' ? '{' : ','}"${name}":${described}`;
  }
  return `${text}}`;
}

/** The text of a schema with a description. */
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

/** The text of a field that Go never omits. */
function givenText(context: SchemaContext, schema: Schema): string {
  const { always } = context.texts;
  let text = always.get(schema);
  if (text === undefined) {
    text = jsonText(withDefault(context, schemaJson(context, schema), zeroOf(schema)));
    always.set(schema, text);
  }
  return text;
}

function elementJson(context: SchemaContext, schema: Schema): JsonObject {
  return withDefault(context, schemaJson(context, schema), zeroOf(resolved(schema)));
}

/** The default of a field that Go never omits: its zero value. */
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

const nothing: JsonObject = {};

function listJson(schema: Schema): JsonObject {
  const { listType, listMapKeys } = schema;
  if (listType === undefined && listMapKeys === undefined) return nothing;
  return {
    ...(listType === undefined ? {} : { 'x-kubernetes-list-type': listType }),
    ...(listMapKeys === undefined ? {} : { 'x-kubernetes-list-map-keys': [...listMapKeys] }),
  };
}

function mapTypeJson(schema: Schema): JsonObject {
  return schema.mapType === undefined ? nothing : { 'x-kubernetes-map-type': schema.mapType };
}

function patchJson(schema: Schema): JsonObject {
  const { patchStrategies, patchMergeKey } = schema;
  if (patchStrategies === undefined && patchMergeKey === undefined) return nothing;
  return {
    ...(patchStrategies === undefined
      ? {}
      : { 'x-kubernetes-patch-strategy': patchStrategies.join(',') }),
    ...(patchMergeKey === undefined ? {} : { 'x-kubernetes-patch-merge-key': patchMergeKey }),
  };
}

/** The full schema of a custom kind, or a part of it. */
function customJson(context: SchemaContext, schema: Schema): JsonObject {
  if (isBooleanSchema(schema)) return {};
  const shape = shapeOf(context.form, schema);
  return {
    ...(schema.title === undefined ? {} : { title: schema.title }),
    ...(schema.description === undefined ? {} : { description: schema.description }),
    ...(shape.type === undefined ? {} : { type: shape.type }),
    ...(schema.format === undefined ? {} : { format: schema.format }),
    ...(schema.default === undefined || context.form === 'v2' ? {} : { default: schema.default }),
    ...(schema.nullable === true && context.form === 'v3' ? { nullable: true } : {}),
    ...validationJson(context.form, schema.validation),
    ...intOrStringJson(context.form, schema),
    ...customProperties(context, shape),
    ...(shape.items === undefined ? {} : { items: schemaJson(context, shape.items) }),
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

type Shape = Pick<Schema, 'type' | 'properties' | 'required' | 'items' | 'embeddedResource'>;

/**
 * OpenAPI 2 has neither null nor unknown members next to known ones, and its clients reject both,
 * so such a value has neither type nor structure there.
 */
function shapeOf(form: OpenApiForm, schema: Schema): Shape {
  if (form === 'v3') return schema;
  const isOpen = schema.preserveUnknownFields === true;
  if (isOpen || schema.nullable === true) {
    const keepsType =
      schema.nullable !== true && schema.type !== 'object' && schema.type !== 'array';
    return {
      ...(keepsType && schema.type !== undefined ? { type: schema.type } : {}),
      ...(schema.required === undefined ? {} : { required: schema.required }),
    };
  }
  if (schema.type !== 'array' || schema.items !== undefined) return schema;
  return { ...(schema.required === undefined ? {} : { required: schema.required }) };
}

function intOrStringJson(form: OpenApiForm, schema: Schema): JsonObject {
  if (schema.intOrString !== true) return {};
  const says = schema.validation?.anyOf ?? schema.validation?.allOf;
  const either = says === undefined ? { anyOf: [{ type: 'integer' }, { type: 'string' }] } : {};
  return { ...(form === 'v3' ? either : {}), 'x-kubernetes-int-or-string': true };
}

function customProperties(context: SchemaContext, shape: Shape): JsonObject {
  const written: JsonObject = {};
  const optional = new Set<string>();
  for (const [name, { schema }] of shape.properties ?? []) {
    setMember(written, name, schemaJson(context, schema));
    if (context.form === 'v2' && schema.nullable === true) optional.add(name);
  }
  let required = (shape.required ?? []).filter((name) => !optional.has(name));
  if (shape.embeddedResource === true) {
    Object.assign(written, objectMembers(context));
    required = [...new Set([...required, 'kind', 'apiVersion'])];
  }
  return {
    ...(Object.keys(written).length === 0 ? {} : { properties: written }),
    ...(required.length === 0 ? {} : { required }),
  };
}

/** The members of every object, for schemas of custom kinds. */
export function objectMembers(context: SchemaContext): JsonObject {
  return {
    ...typeMembers(context),
    metadata: withRef(
      context,
      typeRef(context, 'meta.v1.ObjectMeta'),
      described(context.descriptions.ofKind('metadata')),
    ),
  };
}

/** `apiVersion` and `kind`. */
export function typeMembers(context: SchemaContext): JsonObject {
  const { descriptions } = context;
  return {
    apiVersion: { ...described(descriptions.ofKind('apiVersion')), type: 'string' },
    kind: { ...described(descriptions.ofKind('kind')), type: 'string' },
  };
}

/** The member `description`, if there is a text. */
export function described(description: string | undefined): JsonObject {
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
