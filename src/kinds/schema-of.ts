import type { JsonValue } from '../base/json.ts';
import { type Property, resolved, type Schema } from '../engines/schema/schema.ts';
import { type FieldFacts, splitTypeName, structFacts, versionFacts } from './facts.ts';

/** Types that are written by hand upstream, so that their Go fields say nothing about their JSON. */
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

const built = new Map<string, Schema>();
const standIns = new Map<string, Schema>();

/**
 * The schema of a built-in type by its full name: `core.v1.ConfigMap`, `meta.v1.ObjectMeta`. Built on
 * first use; the types it refers to stand behind `resolve` until somebody walks there. Named lists
 * with a `typeName` (`authentication.v1.ExtraValue`, `meta.v1.Verbs`) are messages with the list in
 * field 1 when written as protobuf. Throws for a name the tables do not hold.
 */
export function schemaOf(typeName: string): Schema {
  const known = built.get(typeName);
  if (known !== undefined) return known;
  const schema = build(typeName);
  built.set(typeName, schema);
  return schema;
}

function build(typeName: string): Schema {
  if (Object.hasOwn(specialTypes, typeName))
    return { ...specialTypes[typeName], typed: true, typeName };
  const { groupVersion, name } = splitTypeName(typeName);
  const facts = versionFacts(groupVersion);
  const values = facts?.enums.get(name);
  if (values !== undefined)
    return { type: 'string', typed: true, validation: { enum: [...values] } };
  const alias = facts?.aliases.get(name);
  if (alias !== undefined) return { ...resolved(typeSchema(alias)), typeName };
  return structSchema(typeName);
}

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

/** Adds fields in declaration order; those of an embedded struct stand where it stands. */
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
    if (field.required || (!field.omitEmpty && !field.optional)) into.required.push(field.name);
  }
}

function propertyOf(field: FieldFacts, inlineIn: readonly number[]): Property {
  return {
    schema: fieldSchema(field),
    ...(field.number === undefined ? {} : { number: field.number }),
    ...(inlineIn.length === 0 ? {} : { inlineIn }),
    // Go's omitempty never leaves a struct out.
    ...(field.omitEmpty && !isPlainStruct(field.type) ? { omitEmpty: true } : {}),
    ...(field.type.startsWith('*') ? { pointer: true } : {}),
  };
}

function isPlainStruct(type: string): boolean {
  if (/^[*[{]/.test(type) || Object.hasOwn(scalarTypes, type)) return false;
  if (Object.hasOwn(specialTypes, type)) return true;
  return structFacts(type) !== undefined;
}

/** The schema of a field: its type's, with what the field's own markers say on top. */
function fieldSchema(field: FieldFacts): Schema {
  const overrides = overridesOf(field);
  const type = field.type.replace('*', '');
  if (overrides === noOverrides || Object.keys(overrides).length === 0) return typeSchema(type);
  if (/^[[{]/.test(type) || Object.hasOwn(scalarTypes, type))
    return { ...typeSchema(type), ...overrides };
  let merged: Schema | undefined;
  return {
    resolve: () => {
      merged ??= { ...schemaOf(type), ...overrides };
      return merged;
    },
  };
}

const noOverrides: Partial<Schema> = {};

function overridesOf(field: FieldFacts): Partial<Schema> {
  if (!isMarked(field)) return noOverrides;
  const isList = listTypeName(field.type);
  return {
    ...(field.default === undefined ? {} : { default: JSON.parse(field.default) as JsonValue }),
    ...(isList ? listTopology(field) : {}),
    ...(!isList && field.mapType === 'atomic' ? { mapType: 'atomic' as const } : {}),
    ...(field.patchStrategies.length === 0
      ? {}
      : { patchStrategies: field.patchStrategies as NonNullable<Schema['patchStrategies']> }),
    ...(field.patchMergeKey === undefined ? {} : { patchMergeKey: field.patchMergeKey }),
  };
}

function isMarked(field: FieldFacts): boolean {
  return (
    field.default !== undefined ||
    field.listType !== undefined ||
    field.mapType !== undefined ||
    field.patchStrategies.length > 0 ||
    field.patchMergeKey !== undefined
  );
}

function listTypeName(type: string): boolean {
  if (type.startsWith('[]')) return true;
  const { groupVersion, name } = splitTypeName(type);
  return versionFacts(groupVersion)?.aliases.get(name)?.startsWith('[]') ?? false;
}

/** Without a listType, a patch strategy of merge says the same (MF-6). */
function listTopology(field: FieldFacts): Partial<Schema> {
  if (field.listType === 'map') return { listType: 'map', listMapKeys: field.listMapKeys };
  if (field.listType === 'set') return { listType: 'set' };
  if (field.listType === 'atomic') return { listType: 'atomic' };
  if (!field.patchStrategies.includes('merge')) return {};
  if (field.patchMergeKey === undefined) return { listType: 'set' };
  return { listType: 'map', listMapKeys: [field.patchMergeKey] };
}

/** A type expression's schema; structs stand behind one shared stand-in each. */
function typeSchema(type: string): Schema {
  if (type.startsWith('*')) return typeSchema(type.slice(1));
  if (type.startsWith('[]'))
    return { type: 'array', typed: true, items: typeSchema(type.slice(2)) };
  if (type.startsWith('{}'))
    return { type: 'object', typed: true, additionalProperties: typeSchema(type.slice(2)) };
  if (Object.hasOwn(scalarTypes, type)) return scalarTypes[type]!;
  if (Object.hasOwn(specialTypes, type)) return schemaOf(type);
  let standIn = standIns.get(type);
  if (standIn === undefined) {
    standIn = { resolve: () => schemaOf(type) };
    standIns.set(type, standIn);
  }
  return standIn;
}
