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

test('a document whose creation fails is created again', async () => {
  const { api, dialect, clock } = server;
  let failures = 3;
  const documents = documentsOf({
    version: {},
    dialect,
    catalogue: api.catalogue,
    features: defaultGates,
    plainPaths: () => {
      if (failures === 0) return [];
      failures -= 1;
      throw new Error('no paths');
    },
    clock,
  });
  for (const read of [() => documents.index(), () => documents.whole()]) {
    failures = 1;
    await expect(read()).rejects.toThrow('no paths');
    expect((await read()).json.length).toBeGreaterThan(1000);
  }
});

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
