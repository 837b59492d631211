import type { JsonObject } from '@wheelhouse/machinery';
import { expect } from 'vitest';
import type { ResponseBody, TestServer } from '../support/harness.ts';

/** The OpenAPI 3 document of one group-version, such as `apis/apps/v1`. */
export async function openApiPart(server: TestServer, name: string): Promise<OpenApiV3> {
  const answer = await server.get(`/openapi/v3/${name}`);
  expect(answer.status, name).toBe(200);
  return answer.body as OpenApiV3;
}

/** A part of the OpenAPI 3 document. */
export interface OpenApiV3 extends ResponseBody {
  readonly openapi: string;
  readonly info: { readonly title: string; readonly version: string };
  readonly paths: ResponseBody['paths'];
}

/** The members of the OpenAPI 2 document that tests read. */
export interface OpenApiV2 {
  readonly swagger: string;
  readonly paths: object;
  readonly definitions: Readonly<Record<string, object>>;
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
  readonly standard: { readonly string: string };
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
