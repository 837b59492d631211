import { noSchema, type Property, resolved, type Schema, saysNothing } from '@wheelhouse/schema';
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

/** How a member's name is written in expressions; undefined for one that cannot be. */
export function escapeName(name: string): string | undefined {
  if (keywords.has(name)) return `__${name}__`;
  if (!/^[a-zA-Z_.\-/][a-zA-Z0-9_.\-/]*$/.test(name)) return undefined;
  return name
    .replaceAll('__', '__underscores__')
    .replaceAll('.', '__dot__')
    .replaceAll('-', '__dash__')
    .replaceAll('/', '__slash__');
}

/** Words that the grammar itself needs; the others may stand behind a dot as they are. */
const literals = new Set(['true', 'false', 'null', 'in']);

/** All names of a member in expressions; none for one that cannot be written. */
export function namesOf(member: string): readonly string[] {
  const escaped = escapeName(member);
  if (escaped === undefined) return [];
  return keywords.has(member) && !literals.has(member) ? [escaped, member] : [escaped];
}

const text: Schema = { type: 'string' };
/** Names, too, are estimated as if they could fill a request: later releases alone know better. */
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

/** What rules see of a whole object: its type and its name, also where its schema has neither. */
export function withTypeMeta(schema: Schema): Schema {
  if (declaresTypeMeta(schema)) return { ...schema, embeddedResource: false };
  const properties = new Map([...(schema.properties ?? []), ...typeMeta]);
  return { ...schema, properties, embeddedResource: false };
}

/** A schema with all of it is left as it is, with what else it says of metadata. */
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

/** The schema rules see: that of an embedded object has its type and name. */
export function seen(schema: Schema): Schema {
  const plain = resolved(schema);
  if (plain.embeddedResource !== true) return plain;
  const cachedSchema = withMeta.get(plain);
  if (cachedSchema !== undefined) return cachedSchema;
  const made = withTypeMeta(plain);
  withMeta.set(plain, made);
  return made;
}

/**
 * The type of a value by its schema; undefined where nothing is declared, so that rules cannot see
 * it. `name` is that of the object type, by its path.
 */
export function typeOfSchema(declaredSchema: Schema, name: string): Type | undefined {
  const schema = seen(declaredSchema);
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

/** The schema of a map's values; a map of anything, or of nothing, is an object to rules. */
export function schemaOfValues({ additionalProperties: values }: Schema): Schema | undefined {
  return values === undefined || saysNothing(values) || values === noSchema ? undefined : values;
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
    if (type !== undefined) for (const one of names) fields.set(one, type);
  }
  return { name, args: [], fields };
}
