import { getOrMake, parseJson } from '@wheelhouse/machinery';
import { type Property, resolved, type Schema, shortTypeName } from '@wheelhouse/schema';
import {
  type FieldFacts,
  type FieldMarks,
  hasStructFacts,
  splitTypeName,
  structFacts,
  versionFacts,
} from './facts.ts';

/** Types with a JSON encoding that does not follow from their Go fields. */
const specialTypes: Readonly<Record<string, Schema>> = {
  'meta.v1.Time': { type: 'string', format: 'date-time', nullable: true },
  'meta.v1.MicroTime': { type: 'string', format: 'micro-time', nullable: true },
  'meta.v1.Duration': { type: 'string', format: 'duration' },
  'meta.v1.FieldsV1': { type: 'object', preserveUnknownFields: true, mapType: 'atomic' },
  'resource.Quantity': { type: 'string', format: 'quantity' },
  'intstr.IntOrString': { intOrString: true, format: 'int-or-string' },
  'runtime.RawExtension': { preserveUnknownFields: true, mapType: 'atomic' },
  'runtime.Object': { preserveUnknownFields: true, mapType: 'atomic' },
};

const scalarTypes: Readonly<Record<string, Schema>> = {
  string: { type: 'string', typed: true },
  bool: { type: 'boolean', typed: true },
  int32: { type: 'integer', format: 'int32', typed: true },
  int64: { type: 'integer', format: 'int64', typed: true },
  uint8: { type: 'integer', format: 'int32', typed: true },
  float64: { type: 'number', format: 'double', typed: true },
  bytes: { type: 'string', format: 'byte', typed: true },
};

/** Schemas by type name. */
const built = new Map<string, Schema>();
/** Schemas by type expression. */
const typeSchemas = new Map<string, Schema>();

/**
 * The schema of a built-in type by its full name: `core.v1.ConfigMap`, `meta.v1.ObjectMeta`. Built
 * on first use; types that it refers to are resolved on demand. In protobuf, named lists with a
 * `typeName` (`authentication.v1.ExtraValue`, `meta.v1.Verbs`) are messages with the list in field
 * 1. Throws for unknown names.
 */
export function schemaOf(typeName: string): Schema {
  return getOrMake(built, typeName, build);
}

function build(typeName: string): Schema {
  if (Object.hasOwn(specialTypes, typeName))
    return { ...specialTypes[typeName], typed: true, typeName };
  const { groupVersion, name } = splitTypeName(typeName);
  const facts = versionFacts(groupVersion);
  const values = facts?.enums.get(name);
  if (values !== undefined)
    return {
      type: 'string',
      typed: true,
      validation: { enum: [...values] },
      goName: shortTypeName(typeName),
    };
  const alias = facts?.aliases.get(name);
  if (alias !== undefined) return { ...resolved(typeSchema(alias)), typeName };
  return structSchema(typeName);
}

/** Lists that stay empty, instead of becoming absent, if a client sends them empty. */
const nilable: Readonly<Record<string, readonly string[]>> = {
  'autoscaling.v2.HPAScalingRules': ['policies'],
  'autoscaling.v2beta2.HPAScalingRules': ['policies'],
};

/**
 * Members for which the specification distinguishes absent from zero, although Go's types do not:
 * they are required, or only an absent one is defaulted.
 */
const distinctWhenAbsent: Readonly<Record<string, readonly string[]>> = {
  'flowcontrol.v1beta3.LimitedPriorityLevelConfiguration': ['nominalConcurrencyShares'],
  'storage.v1.CSIDriver': ['spec'],
  'storage.v1.TokenRequest': ['audience'],
};

const membersOf = (table: Readonly<Record<string, readonly string[]>>, typeName: string) =>
  Object.hasOwn(table, typeName) ? (table[typeName] ?? []) : [];

function structSchema(typeName: string): Schema {
  const struct = structFacts(typeName);
  if (struct === undefined) throw new Error(`no facts about type ${typeName}`);
  const properties = new Map<string, Property>();
  const required: string[] = [];
  if (struct.isKind) {
    properties.set('apiVersion', { schema: scalarTypes['string']!, omitEmpty: true });
    properties.set('kind', { schema: scalarTypes['string']!, omitEmpty: true });
  }
  collect(struct.fields, { properties, required, inlineIn: [] });
  for (const name of membersOf(nilable, typeName)) {
    const property = properties.get(name);
    if (property !== undefined) properties.set(name, { ...property, pointer: true });
  }
  for (const name of membersOf(distinctWhenAbsent, typeName)) {
    const property = properties.get(name);
    if (property === undefined) continue;
    properties.set(name, { ...property, pointer: true, omitEmpty: true, isPlainUpstream: true });
  }
  return {
    type: 'object',
    typed: true,
    typeName,
    properties,
    ...(required.length === 0 ? {} : { required }),
    ...(struct.structType === 'atomic' ? { mapType: 'atomic' as const } : {}),
  };
}

interface Collected {
  readonly properties: Map<string, Property>;
  readonly required: string[];
  readonly inlineIn: readonly number[];
}

/** Adds fields in declaration order; those of an embedded struct take its position. */
function collect(fields: readonly FieldFacts[], into: Collected): void {
  for (const field of fields) {
    if (field.type === 'meta.v1.TypeMeta') continue;
    if (field.name === '') {
      const inlineIn =
        field.number === undefined ? into.inlineIn : [...into.inlineIn, field.number];
      const embedded = structFacts(field.type.replace('*', ''))?.fields ?? [];
      collect(embedded, { ...into, inlineIn });
      continue;
    }
    into.properties.set(field.name, propertyOf(field, into.inlineIn));
    const { required, omitEmpty, optional } = field.marks;
    if (required || !(omitEmpty || optional)) into.required.push(field.name);
  }
}

function propertyOf(field: FieldFacts, inlineIn: readonly number[]): Property {
  const { number, type } = field;
  const schema = fieldSchema(field);
  // Go's omitempty does not omit structs.
  const omitEmpty = field.marks.omitEmpty && !isPlainStruct(type);
  const isPointer = type.startsWith('*');
  if (number !== undefined && inlineIn.length === 0 && !isPointer) {
    return omitEmpty ? { schema, number, omitEmpty } : { schema, number };
  }
  return {
    schema,
    ...(number === undefined ? {} : { number }),
    ...(inlineIn.length === 0 ? {} : { inlineIn }),
    ...(omitEmpty ? { omitEmpty } : {}),
    ...(isPointer ? { pointer: true } : {}),
  };
}

function isPlainStruct(type: string): boolean {
  if (isComposed(type) || Object.hasOwn(scalarTypes, type)) return false;
  return Object.hasOwn(specialTypes, type) || hasStructFacts(type);
}

/** Whether a type is a pointer, a list, or a map of another. */
function isComposed(type: string): boolean {
  return type.startsWith('*') || type.startsWith('[') || type.startsWith('{');
}

/** The schema of a field: that of its type, overridden by the field's own marks. */
function fieldSchema(field: FieldFacts): Schema {
  const type = field.type.startsWith('*') ? field.type.slice(1) : field.type;
  const plain = () => namedSchema(type, field.marks.goName);
  if (field.default === undefined && !hasTopologyMarks(field.marks)) return plain();
  const overrides = overridesOf(field);
  if (Object.keys(overrides).length === 0) return plain();
  if (isComposed(type) || Object.hasOwn(scalarTypes, type)) return { ...plain(), ...overrides };
  let merged: Schema | undefined;
  return {
    resolve: () => {
      merged ??= { ...schemaOf(type), ...overrides };
      return merged;
    },
  };
}

function hasTopologyMarks(marks: FieldMarks): boolean {
  const { listType, mapType, patchStrategies, patchMergeKey } = marks;
  return (
    listType !== undefined ||
    mapType !== undefined ||
    patchStrategies.length > 0 ||
    patchMergeKey !== undefined
  );
}

function overridesOf(field: FieldFacts): Partial<Schema> {
  const { mapType, patchStrategies, patchMergeKey } = field.marks;
  const isList = isListType(field.type);
  return {
    ...(field.default === undefined ? {} : { default: parseJson(field.default) }),
    ...(isList ? listTopology(field.marks) : markedAtomic(field.marks)),
    ...(isList ? {} : mapTopology(mapType)),
    ...(patchStrategies.length === 0
      ? {}
      : { patchStrategies: patchStrategies as NonNullable<Schema['patchStrategies']> }),
    ...(patchMergeKey === undefined ? {} : { patchMergeKey }),
  };
}

/** The mark of a field overrides that of its type: a field can make an atomic type granular. */
function mapTopology(mapType: string | undefined): Partial<Schema> {
  return mapType === 'atomic' || mapType === 'granular' ? { mapType } : {};
}

/** Bytes are a list in Go, and carry the marks of one. */
function markedAtomic({ listType }: FieldMarks): Partial<Schema> {
  return listType === 'atomic' ? { listType } : {};
}

function isListType(type: string): boolean {
  if (type.startsWith('[]')) return true;
  const { groupVersion, name } = splitTypeName(type);
  return versionFacts(groupVersion)?.aliases.get(name)?.startsWith('[]') ?? false;
}

/** Without a listType, a patch strategy of `merge` implies one (MF-6). */
function listTopology(marks: FieldMarks): Partial<Schema> {
  if (marks.listType === 'map') return { listType: 'map', listMapKeys: marks.listMapKeys };
  if (marks.listType === 'set') return { listType: 'set' };
  if (marks.listType === 'atomic') return { listType: 'atomic' };
  if (!marks.patchStrategies.includes('merge')) return {};
  if (marks.patchMergeKey === undefined) return { listType: 'set' };
  return { listType: 'map', listMapKeys: [marks.patchMergeKey] };
}

/** Schemas by type expression and Go name. */
const namedSchemas = new Map<string, Schema>();

/** The schema of a type expression under its Go name, and its items under theirs. */
function namedSchema(type: string, goName: string | undefined): Schema {
  if (goName === undefined) return typeSchema(type);
  const key = `${type} ${goName}`;
  let schema = namedSchemas.get(key);
  if (schema === undefined) {
    schema = { ...typeSchema(type), goName, ...innerOf(type, goName) };
    namedSchemas.set(key, schema);
  }
  return schema;
}

function innerOf(type: string, goName: string): Partial<Schema> {
  if (!isComposed(type)) return {};
  const inner = namedSchema(type.slice(2), goName.slice(goName.indexOf(']') + 1));
  return type.startsWith('[]') ? { items: inner } : { additionalProperties: inner };
}

/** The schema of a type expression, shared by all fields of the type; structs resolve on demand. */
function typeSchema(type: string): Schema {
  let schema = typeSchemas.get(type);
  if (schema === undefined) {
    schema = newTypeSchema(type);
    typeSchemas.set(type, schema);
  }
  return schema;
}

function newTypeSchema(type: string): Schema {
  if (type.startsWith('*')) return typeSchema(type.slice(1));
  if (type.startsWith('[]'))
    return { type: 'array', typed: true, items: typeSchema(type.slice(2)) };
  if (type.startsWith('{}'))
    return { type: 'object', typed: true, additionalProperties: typeSchema(type.slice(2)) };
  if (Object.hasOwn(scalarTypes, type)) return scalarTypes[type]!;
  if (Object.hasOwn(specialTypes, type)) return schemaOf(type);
  return { resolve: () => schemaOf(type) };
}
