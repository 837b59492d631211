import { resolved, type Schema } from '@wheelhouse/schema';
import { namesOf, schemaOfValues, seen } from '../types/schema-types.ts';

/** How large values of a schema can become, by what it declares and by the largest request. */
export interface DeclaredSize {
  /** Most items, members, characters or bytes; 0 for what has a fixed size. */
  readonly max: number;
  /** Fewest bytes of JSON a value takes. */
  readonly jsonBytesMin: number;
  readonly item?: DeclaredSize | undefined;
  /** What keys of a map are like; of no size when absent. */
  readonly key?: DeclaredSize;
  /** Members of any name that `fields` does not have. */
  readonly others?: DeclaredSize;
  /** Of a whole: the variable that it is. Values of loops over calls count as it too when absent. */
  readonly variable?: string;
  /** Members of an object by their names in expressions. */
  readonly fields?: ReadonlyMap<string, DeclaredSize>;
}

/** The largest request upstream reckons with, bytes. */
const requestBytesMax = 3 * 1024 * 1024;

/** How often a value of at least this size fits into a request, with a comma behind each. */
export function timesInRequest(size: DeclaredSize): number {
  return Math.floor(requestBytesMax / (size.jsonBytesMin + 1));
}

/** The sizes of what rules see of a schema; undefined where nothing is declared. */
export function declaredSize(declaredSchema: Schema): DeclaredSize | undefined {
  const schema = seen(declaredSchema);
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
  const lengths = allowed.map((one) => (typeof one === 'string' ? Buffer.byteLength(one) : 0));
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

/** Six bytes go with every member: quotes, colon, comma and the shortest key. */
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
    for (const one of namesOf(name)) fields.set(one, size);
    if (!required.has(name) || resolved(property.schema).default !== undefined) continue;
    jsonBytesMin += Buffer.byteLength(name) + size.jsonBytesMin + 4;
  }
  return { max: 0, jsonBytesMin, fields };
}
