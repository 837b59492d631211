import { afterEach, beforeEach, expect, test } from 'vitest';
import { openTestApi, type TestApi } from '../testing.ts';
import { createMetrics } from './metrics.ts';

let server: TestApi;
beforeEach(async () => {
  server = await openTestApi();
});
afterEach(() => server.close());

test('metrics do not wait for a kind that loads for long, and omit it', async () => {
  const { api, config, clock } = server;
  const { caches } = api.registry;
  await caches.of(server.def('configmaps')).ready();
  const loading = new Promise<never>(() => {});
  const registry = {
    caches: {
      ...caches,
      of: (def: Parameters<typeof caches.of>[0]) =>
        def.resource === 'secrets'
          ? { ...caches.of(def), count: () => undefined, list: () => loading }
          : caches.of(def),
    },
  };
  const metrics = createMetrics({ config });
  metrics.countObjects({ catalogue: api.catalogue, registry });
  const scraping = metrics.answer('/metrics');
  clock.advance(1000);
  const { body } = (await scraping) ?? {};
  const text = String(body);
  expect(text).toContain('apiserver_storage_objects{resource="configmaps"} 0\n');
  expect(text).not.toContain('apiserver_storage_objects{resource="secrets"}');
});
