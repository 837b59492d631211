import type { JsonObject, JsonValue } from '@wheelhouse/machinery';
import { expect } from 'vitest';
import type { TestServer } from '../support/harness.ts';

/** The OpenAPI 3 document of one group-version, such as `apis/apps/v1`. */
export async function openApiPart(server: TestServer, name: string): Promise<OpenApiV3> {
  const answer = await server.get<OpenApiV3>(`/openapi/v3/${name}`);
  expect(answer.status, name).toBe(200);
  return answer.body;
}

/** The members of a part of the OpenAPI 3 document that tests read, as if all were present. */
export interface OpenApiV3 {
  readonly openapi: string;
  readonly info: { readonly title: string; readonly version: string };
  readonly paths: Readonly<Record<string, OpenApiPath>>;
  readonly components: { readonly schemas: OpenApiSchemas };
}

/** The list of the parts of the OpenAPI 3 document. */
export interface OpenApiIndex {
  readonly paths: Readonly<Record<string, { readonly serverRelativeURL: string }>>;
}

/** The members of the OpenAPI 2 document that tests read. */
export interface OpenApiV2 {
  readonly swagger: string;
  readonly paths: Readonly<Record<string, OpenApiPath>>;
  readonly definitions: OpenApiSchemas;
}

/** Schemas by name. */
export type OpenApiSchemas = Readonly<Record<string, OpenApiSchema>>;

/** The members of a schema that tests read, as if all were present. */
export interface OpenApiSchema {
  readonly description: string;
  readonly required: readonly string[];
  readonly enum: readonly string[];
  readonly allOf: readonly { readonly $ref: string }[];
  readonly properties: OpenApiSchemas;
  readonly additionalProperties: OpenApiSchema;
  readonly items: OpenApiSchema;
  readonly $ref: string;
  readonly [extension: `x-${string}`]: JsonValue;
}

/** The operations at a path. */
export type OpenApiPath = Readonly<Record<OpenApiMethod, OpenApiOperation>> & {
  readonly parameters: readonly OpenApiParameter[];
};

export type OpenApiMethod = 'get' | 'put' | 'post' | 'delete' | 'options' | 'head' | 'patch';

type OpenApiParameter = { readonly name: string; readonly in: string; readonly required: boolean };
type OpenApiContent = Readonly<Record<string, { readonly schema: OpenApiSchema }>>;

/** The members of an operation that tests read, as if all were present. */
interface OpenApiOperation {
  readonly operationId: string;
  readonly parameters: readonly OpenApiParameter[];
  readonly requestBody: { readonly content: OpenApiContent };
  readonly responses: Readonly<Record<string, { readonly content: OpenApiContent }>>;
  readonly consumes: readonly string[];
  readonly [extension: `x-${string}`]: JsonValue;
}

/** A part of the document that the protobuf form lists by name. */
export type Named<Value = unknown> = { readonly name: string; readonly value: Value };
type Parameter = { readonly parameter: { readonly nonBody?: { readonly query?: Named } } };
type NamedList<Value> = { readonly named: readonly Named<Value>[] };
/** Extensions, whose values are YAML. */
export type Extensions = readonly Named<{ readonly yaml: string }>[];

/** A schema in the protobuf form of version 3. */
interface SchemaV3 {
  readonly type: string;
  readonly standard: { readonly kind: string; readonly string: string };
  readonly properties: NamedList<{ readonly schema: SchemaV3 }>;
  readonly allOf: readonly { readonly reference: { readonly ref: string } }[];
  readonly extension: Extensions;
}

/** What the tests read of the document in the protobuf form of version 3. */
export interface DocumentV3 {
  readonly openapi: string;
  readonly info: { readonly title: string; readonly version: string };
  readonly paths: { readonly path: readonly Named[] };
  readonly components: { readonly schemas: NamedList<{ readonly schema: SchemaV3 }> };
}

/** A schema in the protobuf form of version 2. */
interface SchemaV2 {
  readonly type: { readonly value: readonly string[] };
  readonly required: readonly string[];
  readonly properties: NamedList<SchemaV2>;
}

/** What the tests read of the document in the protobuf form of version 2. */
export interface DocumentV2 {
  readonly swagger: string;
  readonly paths: { readonly path: readonly Named<PathItemV2>[] };
  readonly definitions: NamedList<SchemaV2>;
}

interface PathItemV2 {
  readonly patch: {
    readonly operationId: string;
    readonly parameters: readonly Parameter[];
    readonly extension: Extensions;
  };
}

const methods = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch'];

/** The operations of an OpenAPI document. */
export function operationsOf(document: {
  readonly paths: object;
}): { path: string; method: string; operation: JsonObject }[] {
  return Object.entries<JsonObject>({ ...document.paths }).flatMap(([path, item]) =>
    Object.entries(item)
      .filter((entry): entry is [string, JsonObject] => methods.includes(entry[0]))
      .map(([method, operation]) => ({ path, method, operation })),
  );
}

/** Every value of a member, anywhere in a document. */
export function* valuesOf(member: string, value: unknown): Generator<string> {
  if (typeof value !== 'object' || value === null) return;
  for (const [name, held] of Object.entries(value)) {
    if (name === member && typeof held === 'string') yield held;
    yield* valuesOf(member, held);
  }
}
