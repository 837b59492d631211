import { expect } from 'vitest';
import type { Loose, TestServer } from '../support/harness.ts';

/** The OpenAPI 3 document of one group-version, such as `apis/apps/v1`. */
export async function openApiPart(server: TestServer, name: string): Promise<Loose> {
  const answer = await server.get(`/openapi/v3/${name}`);
  expect(answer.status, name).toBe(200);
  return answer.body;
}
