import {
  isBooleanSchema,
  noSchema,
  type Property,
  resolved,
  type Schema,
} from '@wheelhouse/schema';
import {
  boolType,
  bytesType,
  doubleType,
  durationType,
  dynType,
  intType,
  listType,
  mapType,
  stringType,
  type Type,
  timestampType,
} from './types.ts';

const keywords = new Set(
  (
    'true false null in as break const continue else for function if import let loop package ' +
    'namespace return var void while'
  ).split(' '),
);

/** Escapes a member's name for expressions; undefined if that is impossible. */
export function escapeName(name: string): string | undefined {
  if (keywords.has(name)) return `__${name}__`;
  if (!/^[a-zA-Z_.\-/][a-zA-Z0-9_.\-/]*$/.test(name)) return undefined;
  return name
    .replaceAll('__', '__underscores__')
    .replaceAll('.', '__dot__')
    .replaceAll('-', '__dash__')
    .replaceAll('/', '__slash__');
}

/** Keywords of the grammar; other reserved words are allowed after a dot. */
const literals = new Set(['true', 'false', 'null', 'in']);

/** All names of a member in expressions; none if it cannot be accessed. */
export function namesOf(member: string): readonly string[] {
  const escaped = escapeName(member);
  if (escaped === undefined) return [];
  return keywords.has(member) && !literals.has(member) ? [escaped, member] : [escaped];
}

const text: Schema = { type: 'string' };
/** The size of names is estimated as if they could fill a request, as in 1.32. */
const metadata: Schema = {
  type: 'object',
  properties: new Map([
    ['name', { schema: text }],
    ['generateName', { schema: text }],
  ]),
};
const typeMeta: readonly (readonly [string, Property])[] = [
  ['apiVersion', { schema: text }],
  ['kind', { schema: text }],
  ['metadata', { schema: metadata }],
];

/**
 * Adds the type and name of an object, which rules see even if its schema does not declare them.
 */
export function withTypeMeta(schema: Schema): Schema {
  if (declaresTypeMeta(schema)) return { ...schema, embeddedResource: false };
  const properties = new Map([...(schema.properties ?? []), ...typeMeta]);
  return { ...schema, properties, embeddedResource: false };
}

/** Returns a schema that declares all of it unchanged, including its metadata. */
function declaresTypeMeta({ properties }: Schema): boolean {
  const metadataSchema = properties?.get('metadata')?.schema;
  const meta = metadataSchema === undefined ? undefined : resolved(metadataSchema);
  const isText = (property: Property | undefined) =>
    property !== undefined && resolved(property.schema).type === 'string';
  return (
    isText(properties?.get('apiVersion')) &&
    isText(properties?.get('kind')) &&
    meta?.type === 'object' &&
    isText(meta.properties?.get('name')) &&
    isText(meta.properties?.get('generateName'))
  );
}

const withMeta = new WeakMap<Schema, Schema>();

/** The schema that rules see; embedded objects include their type and name. */
export function visibleSchema(schema: Schema): Schema {
  const plain = resolved(schema);
  if (plain.embeddedResource !== true) return plain;
  const cachedSchema = withMeta.get(plain);
  if (cachedSchema !== undefined) return cachedSchema;
  const schemaWithMeta = withTypeMeta(plain);
  withMeta.set(plain, schemaWithMeta);
  return schemaWithMeta;
}

/**
 * The type of a value by its schema; undefined if nothing is declared, so that rules cannot access
 * it. `name` is the name of the object type, derived from its path.
 */
export function typeOfSchema(declaredSchema: Schema, name: string): Type | undefined {
  const schema = visibleSchema(declaredSchema);
  if (schema.intOrString === true) return dynType;
  switch (schema.type) {
    case 'boolean':
      return boolType;
    case 'integer':
      return intType;
    case 'number':
      return doubleType;
    case 'string':
      return stringFormats[schema.format ?? ''] ?? stringType;
    case 'array': {
      if (schema.items === undefined) return undefined;
      const item = typeOfSchema(schema.items, `${name}.@idx`);
      return item === undefined ? undefined : listType(item);
    }
    case 'object':
      return objectType(schema, name);
    default:
      return undefined;
  }
}

const stringFormats: Readonly<Record<string, Type | undefined>> = Object.assign(
  Object.create(null),
  { byte: bytesType, duration: durationType, date: timestampType, 'date-time': timestampType },
);

/**
 * The schema of a map's values; undefined for a map of arbitrary or no values, which rules see as
 * an object.
 */
export function schemaOfValues({ additionalProperties: values }: Schema): Schema | undefined {
  return values === undefined || isBooleanSchema(values) || values === noSchema
    ? undefined
    : values;
}

function objectType(schema: Schema, name: string): Type | undefined {
  const additional = schemaOfValues(schema);
  if (additional !== undefined) {
    const value = typeOfSchema(additional, `${name}.@elem`);
    return value === undefined ? undefined : mapType(stringType, value);
  }
  const fields = new Map<string, Type>();
  for (const [member, property] of schema.properties ?? []) {
    const names = namesOf(member);
    if (names.length === 0) continue;
    const type = typeOfSchema(property.schema, `${name}.${names[0]}`);
    if (type !== undefined) for (const alias of names) fields.set(alias, type);
  }
  return { name, args: [], fields };
}

/**
 * The maximum sizes of the values of a schema, from its declarations and the maximum request size.
 */
export interface DeclaredSize {
  /** Maximum number of items, members, characters, or bytes; 0 for types of fixed size. */
  readonly max: number;
  /** Minimum size of a value in bytes of JSON. */
  readonly jsonBytesMin: number;
  readonly item?: DeclaredSize | undefined;
  /** Size of the keys of a map; if absent, keys have no size. */
  readonly key?: DeclaredSize;
  /** Members that are not in `fields`. */
  readonly others?: DeclaredSize;
  /** For a root: its variable. If absent, values of loops over calls also count as it. */
  readonly variable?: string;
  /** Members of an object by their names in expressions. */
  readonly fields?: ReadonlyMap<string, DeclaredSize>;
}

/** The maximum request size that kube-apiserver assumes, bytes. */
const requestBytesMax = 3 * 1024 * 1024;

/** How many values of at least this size fit into a request, each followed by a comma. */
export function timesInRequest(size: DeclaredSize): number {
  return Math.floor(requestBytesMax / (size.jsonBytesMin + 1));
}

/** The sizes of the parts of a schema that rules see; undefined if nothing is declared. */
export function declaredSize(declaredSchema: Schema): DeclaredSize | undefined {
  const schema = visibleSchema(declaredSchema);
  if (schema.intOrString === true) return { max: requestBytesMax - 2, jsonBytesMin: 1 };
  switch (schema.type) {
    case 'boolean':
      return { max: 0, jsonBytesMin: 4 };
    case 'integer':
    case 'number':
      return { max: 0, jsonBytesMin: 1 };
    case 'string':
      return stringSize(schema);
    case 'array':
      return listSize(schema);
    case 'object':
      return schemaOfValues(schema) === undefined ? objectSize(schema) : mapSize(schema);
    default:
      return undefined;
  }
}

const longestTime = 32;
const dateSize = 12;

function stringSize(schema: Schema): DeclaredSize {
  switch (schema.format) {
    case 'byte':
      return {
        max: Math.max(schema.validation?.maxLength ?? requestBytesMax - 2, 0),
        jsonBytesMin: 2,
      };
    case 'duration':
      return { max: longestTime, jsonBytesMin: 3 };
    case 'date':
      return { max: dateSize, jsonBytesMin: dateSize };
    case 'date-time':
      return { max: longestTime, jsonBytesMin: 21 };
  }
  const { enum: allowed = [], maxLength } = schema.validation ?? {};
  if (maxLength !== undefined || allowed.length === 0) return textSize(schema);
  const lengths = allowed.map((value) =>
    typeof value === 'string' ? Buffer.byteLength(value) : 0,
  );
  const max = lengths.reduce((longest, length) => Math.max(longest, length));
  return { max, jsonBytesMin: 2 };
}

/** A character may take four bytes. */
function textSize({ validation }: Schema): DeclaredSize {
  const { maxLength } = validation ?? {};
  const max = maxLength === undefined ? requestBytesMax - 2 : Math.max(maxLength, 0) * 4;
  return { max, jsonBytesMin: 2 };
}

function listSize(schema: Schema): DeclaredSize | undefined {
  const item = schema.items === undefined ? undefined : declaredSize(schema.items);
  if (item === undefined) return undefined;
  const fitting = Math.floor((requestBytesMax - 2) / (item.jsonBytesMin + 1));
  return { max: Math.max(schema.validation?.maxItems ?? fitting, 0), jsonBytesMin: 2, item };
}

/** Every member takes six more bytes: quotes, colon, comma, and the shortest key. */
function mapSize(schema: Schema): DeclaredSize | undefined {
  const { additionalProperties } = schema;
  const item = additionalProperties === undefined ? undefined : declaredSize(additionalProperties);
  if (item === undefined) return undefined;
  const fitting = Math.floor((requestBytesMax - 2) / (item.jsonBytesMin + 6));
  return { max: Math.max(schema.validation?.maxProperties ?? fitting, 0), jsonBytesMin: 2, item };
}

function objectSize(schema: Schema): DeclaredSize {
  const fields = new Map<string, DeclaredSize>();
  let jsonBytesMin = 2;
  const required = new Set(schema.required ?? []);
  for (const [name, property] of schema.properties ?? []) {
    const size = declaredSize(property.schema);
    if (size === undefined) continue;
    for (const alias of namesOf(name)) fields.set(alias, size);
    if (!required.has(name) || resolved(property.schema).default !== undefined) continue;
    jsonBytesMin += Buffer.byteLength(name) + size.jsonBytesMin + 4;
  }
  return { max: 0, jsonBytesMin, fields };
}
