import type { Property, Schema } from '@wheelhouse/schema';
import { schemaOf } from '../schema-of.ts';

/** Versions of CustomResourceDefinition. */
type CrdVersionName = 'v1' | 'v1beta1';

/** The members of a printer column that both versions share. */
const columnDefinition = `CustomResourceColumnDefinition
name 1 string
type 2 string
format? 3 string
description? 4 string
priority? 5 int32`;

/** Types of v1beta1 that differ from v1. */
const earlierTable = `
CustomResourceDefinitionSpec
group 1 string
version? 2 string
names 3 CustomResourceDefinitionNames
scope 4 string:ResourceScope
validation? 5 *CustomResourceValidation
subresources? 6 *CustomResourceSubresources
versions? 7 []CustomResourceDefinitionVersion
additionalPrinterColumns? 8 []CustomResourceColumnDefinition
selectableFields? 11 []SelectableField
conversion? 9 *CustomResourceConversion
preserveUnknownFields? 10 *bool

CustomResourceConversion
strategy 1 string:ConversionStrategyType
webhookClientConfig? 2 *WebhookClientConfig
conversionReviewVersions? 3 []string

${columnDefinition}
JSONPath 6 string
`;

/**
 * The types of apiextensions v1, which has no generated facts. Each line is `name number type`:
 * `?` marks omitempty, `*` a pointer, `[]` a list, `{}` a map, `:` the Go name. The key of a list
 * of type `map` follows the type.
 */
const table = `
CustomResourceDefinition
metadata 1 ObjectMeta
spec 2 CustomResourceDefinitionSpec
status 3 CustomResourceDefinitionStatus

CustomResourceDefinitionSpec
group 1 string
names 3 CustomResourceDefinitionNames
scope 4 string:ResourceScope
versions 7 []CustomResourceDefinitionVersion
conversion? 9 *CustomResourceConversion
preserveUnknownFields? 10 bool

CustomResourceConversion
strategy 1 string:ConversionStrategyType
webhook? 2 *WebhookConversion

WebhookConversion
clientConfig? 2 *WebhookClientConfig
conversionReviewVersions 3 []string

WebhookClientConfig
url? 3 *string
service? 1 *ServiceReference
caBundle? 2 bytes

ServiceReference
namespace 1 string
name 2 string
path? 3 *string
port? 4 *int32

CustomResourceDefinitionVersion
name 1 string
served 2 bool
storage 3 bool
deprecated? 7 bool
deprecationWarning? 8 *string
schema? 4 *CustomResourceValidation
subresources? 5 *CustomResourceSubresources
additionalPrinterColumns? 6 []CustomResourceColumnDefinition
selectableFields? 9 []SelectableField

SelectableField
jsonPath 1 string

${columnDefinition}
jsonPath 6 string

CustomResourceDefinitionNames
plural 1 string
singular? 2 string
shortNames? 3 []string
kind 4 string
listKind? 5 string
categories? 6 []string

CustomResourceDefinitionCondition
type 1 string:CustomResourceDefinitionConditionType
status 2 string:ConditionStatus
lastTransitionTime 3 time
reason? 4 string
message? 5 string

CustomResourceDefinitionStatus
conditions 1 []CustomResourceDefinitionCondition type
acceptedNames 2 CustomResourceDefinitionNames
storedVersions 3 []string

CustomResourceValidation
openAPIV3Schema? 1 *JSONSchemaProps

CustomResourceSubresources
status? 1 *CustomResourceSubresourceStatus
scale? 2 *CustomResourceSubresourceScale

CustomResourceSubresourceStatus

CustomResourceSubresourceScale
specReplicasPath 1 string
statusReplicasPath 2 string
labelSelectorPath? 3 *string

JSONSchemaProps
id? 1 string
$schema? 2 string:JSONSchemaURL
$ref? 3 *string
description? 4 string
type? 5 string
format? 6 string
title? 7 string
default? 8 *JSON
maximum? 9 *float64
exclusiveMaximum? 10 bool
minimum? 11 *float64
exclusiveMinimum? 12 bool
maxLength? 13 *int64
minLength? 14 *int64
pattern? 15 string
maxItems? 16 *int64
minItems? 17 *int64
uniqueItems? 18 bool
multipleOf? 19 *float64
enum? 20 []JSON
maxProperties? 21 *int64
minProperties? 22 *int64
required? 23 []string
items? 24 *JSONSchemaPropsOrArray
allOf? 25 []JSONSchemaProps
oneOf? 26 []JSONSchemaProps
anyOf? 27 []JSONSchemaProps
not? 28 *JSONSchemaProps
properties? 29 {}JSONSchemaProps
additionalProperties? 30 *JSONSchemaPropsOrBool
patternProperties? 31 {}JSONSchemaProps
dependencies? 32 {}JSONSchemaPropsOrStringArray:JSONSchemaDependencies
additionalItems? 33 *JSONSchemaPropsOrBool
definitions? 34 {}JSONSchemaProps:JSONSchemaDefinitions
externalDocs? 35 *ExternalDocumentation
example? 36 *JSON
nullable? 37 bool
x-kubernetes-preserve-unknown-fields? 38 *bool
x-kubernetes-embedded-resource? 39 bool
x-kubernetes-int-or-string? 40 bool
x-kubernetes-list-map-keys? 41 []string
x-kubernetes-list-type? 42 *string
x-kubernetes-map-type? 43 *string
x-kubernetes-validations? 44 []ValidationRule:ValidationRules rule

ValidationRule
rule 1 string
message? 2 string
messageExpression? 3 string
reason? 4 *string:FieldValueErrorReason
fieldPath? 5 string
optionalOldSelf? 6 *bool

ExternalDocumentation
description? 1 string
url? 2 string
`;

const prefixOf = (version: CrdVersionName) => `apiextensions.${version}.`;
const text: Schema = { type: 'string', typed: true };
const opaque = { typed: true, preserveUnknownFields: true, mapType: 'atomic' } as const;

/** Types that are not structs. */
function leavesOf(version: CrdVersionName): Readonly<Record<string, Schema>> {
  const typePrefix = prefixOf(version);
  const props = (): Schema => structOf('JSONSchemaProps', version);
  return {
    string: text,
    bool: { type: 'boolean', typed: true },
    int32: { type: 'integer', format: 'int32', typed: true },
    int64: { type: 'integer', format: 'int64', typed: true },
    float64: { type: 'number', format: 'double', typed: true },
    bytes: { type: 'string', format: 'byte', typed: true },
    time: schemaOf('meta.v1.Time'),
    JSON: { ...opaque, typeName: `${typePrefix}JSON` },
    JSONSchemaPropsOrArray: {
      ...opaque,
      typeName: `${typePrefix}JSONSchemaPropsOrArray`,
      alternatives: {
        object: { resolve: props },
        list: { type: 'array', typed: true, items: { resolve: props } },
      },
    },
    JSONSchemaPropsOrBool: {
      ...opaque,
      typeName: `${typePrefix}JSONSchemaPropsOrBool`,
      alternatives: {
        object: { resolve: props },
        boolean: true,
        otherwise: 'boolean or JSON schema expected',
      },
    },
    JSONSchemaPropsOrStringArray: {
      ...opaque,
      typeName: `${typePrefix}JSONSchemaPropsOrStringArray`,
      alternatives: {
        object: { resolve: props },
        list: { type: 'array', typed: true, items: text },
      },
    },
  };
}

/** Values of `reason` in a validation rule. */
const reasons = {
  enum: ['FieldValueDuplicate', 'FieldValueForbidden', 'FieldValueInvalid', 'FieldValueRequired'],
};

/** Schemas by full type name. */
const built = new Map<string, Schema>();
/** Tables by version. */
const sources = new Map<CrdVersionName, Source>();

interface Source {
  readonly lines: ReadonlyMap<string, readonly string[]>;
  readonly leaves: Readonly<Record<string, Schema>>;
}

function sourceOf(version: CrdVersionName): Source {
  let source = sources.get(version);
  if (source === undefined) {
    const texts = version === 'v1' ? [table] : [table, earlierTable];
    const blocks = texts.flatMap((content) => content.trim().split('\n\n'));
    const lines = blocks.map((block): [string, readonly string[]] => {
      const [head = '', ...fields] = block.split('\n');
      return [head, fields];
    });
    source = { lines: new Map(lines), leaves: leavesOf(version) };
    sources.set(version, source);
  }
  return source;
}

function structOf(name: string, version: CrdVersionName): Schema {
  const typeName = `${prefixOf(version)}${name}`;
  const cachedSchema = built.get(typeName);
  if (cachedSchema !== undefined) return cachedSchema;
  const properties = new Map<string, Property>();
  const source = sourceOf(version);
  for (const line of source.lines.get(name) ?? []) {
    addField(properties, line, (type) => typeOf(type, version));
  }
  const required = requiredIn(name, properties);
  const schema: Schema = {
    type: 'object',
    typed: true,
    typeName,
    properties,
    ...(required.length === 0 ? {} : { required }),
  };
  built.set(typeName, schema);
  return schema;
}

/** Members without omitempty that clients may omit. */
const notRequired: Readonly<Record<string, readonly string[]>> = {
  CustomResourceDefinition: ['metadata', 'status'],
  CustomResourceDefinitionCondition: ['lastTransitionTime'],
  CustomResourceDefinitionStatus: ['acceptedNames', 'conditions', 'storedVersions'],
};

function requiredIn(name: string, properties: ReadonlyMap<string, Property>): readonly string[] {
  const optional = notRequired[name] ?? [];
  return [...properties]
    .filter(([field, { omitEmpty }]) => omitEmpty !== true && !optional.includes(field))
    .map(([field]) => field);
}

/** A list of items with a key; strategic merge patches merge only the lists of rules. */
function keyedList(schema: Schema, key: string): Schema {
  const merged = key === 'rule' ? { patchStrategies: ['merge' as const], patchMergeKey: key } : {};
  return { ...schema, listType: 'map', listMapKeys: [key], ...merged };
}

function addField(
  properties: Map<string, Property>,
  line: string,
  schemaFor: (type: string) => Schema,
): void {
  const [name = '', number = '', type = '', key] = line.split(' ');
  const schema = schemaFor(type.replace('*', ''));
  properties.set(name.replace('?', ''), {
    schema: key === undefined ? schema : keyedList(schema, key),
    number: Number(number),
    ...(name.endsWith('?') ? { omitEmpty: true } : {}),
    ...(type.startsWith('*') ? { pointer: true } : {}),
  });
}

function typeOf(type: string, version: CrdVersionName): Schema {
  const [bare = '', goName] = type.split(':');
  if (goName !== undefined) {
    const named = { ...typeOf(bare, version), goName: `${version}.${goName}` };
    return goName === 'FieldValueErrorReason' ? { ...named, validation: reasons } : named;
  }
  if (type.startsWith('[]')) {
    const items = typeOf(type.slice(2), version);
    return { type: 'array', typed: true, items, listType: 'atomic' };
  }
  if (type.startsWith('{}')) {
    const additionalProperties = typeOf(type.slice(2), version);
    return { type: 'object', typed: true, additionalProperties };
  }
  if (type === 'ObjectMeta') return { resolve: () => schemaOf('meta.v1.ObjectMeta') };
  return sourceOf(version).leaves[type] ?? { resolve: () => structOf(type, version) };
}

/** The schema of CustomResourceDefinition in a version. */
export function crdSchema(version: CrdVersionName = 'v1'): Schema {
  const key = `${version} `;
  const cachedSchema = built.get(key);
  if (cachedSchema !== undefined) return cachedSchema;
  const bare = structOf('CustomResourceDefinition', version);
  const typeMeta: [string, Property][] = ['apiVersion', 'kind'].map((name) => [
    name,
    { schema: text, omitEmpty: true },
  ]);
  const schema = { ...bare, properties: new Map([...typeMeta, ...(bare.properties ?? [])]) };
  built.set(key, schema);
  return schema;
}
