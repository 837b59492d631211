import { afterEach, beforeEach, expect, test } from 'vitest';
import { openTestApi, type TestApi } from '../compose/testing.ts';
import { defaultGates } from '../flags/feature-gates.ts';
import { documentsOf } from './openapi.ts';

let server: TestApi;
beforeEach(async () => {
  server = await openTestApi();
});
afterEach(() => server.close());

const open = () => {
  const { api, dialect, clock } = server;
  const { catalogue } = api;
  const features = defaultGates;
  return documentsOf({ version: {}, dialect, catalogue, features, plainPaths: () => [], clock });
};

test('concurrent requests share the documents that they create', async () => {
  const documents = open();
  const [first, second, ofCore] = await Promise.all([
    documents.index(),
    documents.index(),
    documents.part('api/v1'),
  ]);
  expect(second).toBe(first);
  expect(await documents.index()).toBe(first);
  expect(ofCore).toBeDefined();
  expect(await documents.part('api/v1')).toBe(ofCore);
});
