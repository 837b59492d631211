import { startGarbageCollector } from '../controllers/garbage-collector.ts';
import { createInside } from '../controllers/inside.ts';
import { startNamespaceDeletion } from '../controllers/namespace-deletion.ts';
import type { Dialect } from '../dialect.ts';
import type { Api } from './api.ts';
import type { ServerConfig } from './config.ts';

/** Starts the loops that keep the API's promises after a request is answered. */
export function startControllers(options: {
  readonly config: ServerConfig;
  readonly dialect: Dialect;
  readonly api: Api;
}): { close(): Promise<void> } {
  const { config, dialect, api } = options;
  const { clock, logger } = config;
  const { catalogue, registry } = api;
  const { caches } = registry;
  const namespaces = catalogue.snapshot().find('', 'v1', 'namespaces')?.def;
  if (namespaces === undefined) throw new Error('the catalogue has no namespaces');
  const started = [
    startNamespaceDeletion({
      catalogue,
      caches,
      inside: createInside({ registry, controller: 'namespace-controller' }),
      clock,
      logger,
      namespaces,
      finalizer: dialect.productName,
    }),
    startGarbageCollector({
      catalogue,
      caches,
      inside: createInside({ registry, controller: 'generic-garbage-collector' }),
      clock,
      logger,
    }),
  ];
  return {
    async close() {
      await Promise.all(started.map((controller) => controller.close()));
    },
  };
}
