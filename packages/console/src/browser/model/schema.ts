import { jsonObject } from '@wheelhouse/machinery';
import {
  dereference,
  descriptionOf,
  isObject,
  itemOf,
  type JsonObject,
  type JsonValue,
  propertiesOf,
  schemaOfKind,
  typeName,
} from '@wheelhouse/machinery/browser';
import type { Api } from './api.ts';
import { objectOf, textsOf } from './failure.ts';
import { apiVersionOf, type Kind } from './kinds.ts';

/** The schema of one kind, with the schemas that it references. */
export interface KindSchema {
  readonly root: JsonObject;
  readonly schemas: JsonObject;
}

/** The description of a field. */
export interface ExplainedField {
  readonly name: string;
  /** `string`, `[]Container`, `map[string]string` */
  readonly type: string;
  readonly isRequired: boolean;
  readonly description: string;
  readonly values: readonly string[];
  /** The default value as JSON; undefined if there is none. */
  readonly defaultValue: string | undefined;
  /** Constraints: `format: int32`, `minimum: 1`. */
  readonly rules: readonly string[];
  /** Whether the field has subfields. */
  readonly isNested: boolean;
}

/** A field, or the kind itself, with its subfields. */
interface Explained {
  readonly type: string;
  readonly description: string;
  /** The description of the field; undefined for the kind itself. */
  readonly field: ExplainedField | undefined;
  readonly fields: readonly ExplainedField[];
}

/** Reads schemas; caches each document, and asks the server each time whether it has changed. */
export interface SchemaSource {
  /** Undefined if the server publishes no schema for the kind. Rejects like the API. */
  of(kind: Kind): Promise<KindSchema | undefined>;
}

/** Schemas from the server's OpenAPI v3 documents, one per group and version. */
export function createSchemaSource(api: Api): SchemaSource {
  const documents = new Map<
    string,
    { readonly etag: string | undefined; readonly value: JsonObject }
  >();
  return {
    async of(kind) {
      const path = `/openapi/v3/${kind.group === '' ? 'api/v1' : `apis/${apiVersionOf(kind)}`}`;
      let document = documents.get(path);
      const { status, etag, text } = await api.send({ path, etag: document?.etag });
      if (document === undefined || status !== 304) {
        document = { etag, value: jsonObject(JSON.parse(text)) };
        documents.set(path, document);
      }
      const schemas = objectOf(objectOf(document.value, 'components'), 'schemas');
      const root = schemaOfKind(schemas, kind);
      return root === undefined ? undefined : { root, schemas };
    },
  };
}

/** Describes the field at a path; undefined if the kind has no such field. */
export function explain(
  { root, schemas }: KindSchema,
  path: readonly string[],
): Explained | undefined {
  let schema = root;
  let field: ExplainedField | undefined;
  for (const name of path) {
    const properties = propertiesOf(itemOf(schemas, schema));
    if (!Object.hasOwn(properties, name)) return undefined;
    const isRequired = textsOf(itemOf(schemas, schema), 'required').includes(name);
    schema = objectOf(properties, name);
    field = fieldOf(schemas, { name, property: schema, isRequired });
  }
  const itemSchema = itemOf(schemas, schema);
  const properties = propertiesOf(itemSchema);
  const required = textsOf(itemSchema, 'required');
  return {
    type: typeName(schemas, schema),
    description: descriptionOf(schema) || descriptionOf(itemSchema),
    field,
    fields: Object.keys(properties)
      .sort()
      .map((name) => {
        const property = objectOf(properties, name);
        return fieldOf(schemas, { name, property, isRequired: required.includes(name) });
      }),
  };
}

function fieldOf(
  schemas: JsonObject,
  of: { readonly name: string; readonly property: JsonObject; readonly isRequired: boolean },
): ExplainedField {
  const { name, property, isRequired } = of;
  const target = itemOf(schemas, property);
  const resolved = dereference(schemas, property);
  const defaultValue = property.default;
  // The default of a nested object is always `{}`, which is not worth showing.
  const isInformative =
    defaultValue !== undefined &&
    !(isObject(defaultValue) && Object.keys(defaultValue).length === 0);
  return {
    name,
    type: typeName(schemas, property),
    isRequired,
    description: descriptionOf(property) || descriptionOf(target),
    values: [...new Set([...allowed(property), ...allowed(target)].map(String))],
    defaultValue: isInformative && defaultValue !== '' ? JSON.stringify(defaultValue) : undefined,
    rules: ruleNames.flatMap((rule) => {
      const value = property[rule] ?? resolved[rule];
      return value === undefined || isObject(value) ? [] : [`${rule}: ${String(value)}`];
    }),
    isNested: Object.keys(propertiesOf(target)).length > 0,
  };
}

const ruleNames = [
  ...['format', 'pattern', 'minimum', 'maximum', 'minLength', 'maxLength'],
  ...['minItems', 'maxItems', 'minProperties', 'maxProperties', 'nullable'],
  ...['x-kubernetes-list-type', 'x-kubernetes-map-type', 'x-kubernetes-int-or-string'],
] as const;

function allowed(schema: JsonObject): JsonValue[] {
  return Array.isArray(schema.enum) ? schema.enum : [];
}
