import type { JsonObject } from '@wheelhouse/machinery';
import { expect } from 'vitest';
import type { Loose, TestServer } from '../support/harness.ts';

/** The OpenAPI 3 document of one group-version, such as `apis/apps/v1`. */
export async function openApiPart(server: TestServer, name: string): Promise<Loose> {
  const answer = await server.get(`/openapi/v3/${name}`);
  expect(answer.status, name).toBe(200);
  return answer.body;
}

/** The members of the OpenAPI 2 document that tests read. */
export interface OpenApiV2 {
  readonly swagger: string;
  readonly paths: object;
  readonly definitions: Readonly<Record<string, object>>;
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
