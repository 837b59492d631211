import { silentLogger } from '@wheelhouse/machinery';
import { expect, test } from 'vitest';
import { openTestApi } from '../../compose/testing.ts';
import { createObjectWriter, type ObjectWriter } from '../tools.ts';
import { startApiServices } from './api-services.ts';

test('an APIService is created after its first creation failed', async () => {
  const { api, clock, dialect, def, close } = await openTestApi();
  const { registry, catalogue } = api;
  const { caches } = registry;
  const writer = createObjectWriter({ registry, controller: 'test' });
  let failures = 0;
  const failingOnce: ObjectWriter = {
    ...writer,
    create(at, object) {
      if (at.name !== 'v1.apps' || failures > 0) return writer.create(at, object);
      failures += 1;
      return Promise.reject(new Error('the store fails'));
    },
  };
  const apiServices = def('apiservices', dialect.group('apiregistration'));
  const tools = { caches, writer: failingOnce, clock, logger: silentLogger };
  const controller = startApiServices({ ...tools, apiServices, catalogue, dialect });
  const cache = caches.of(apiServices);
  const isCreated = () => {
    clock.advance(1000);
    return cache.peek('v1.apps') !== undefined;
  };
  await expect.poll(isCreated).toBe(true);
  expect(failures).toBe(1);
  await controller.close();
  await close();
});
