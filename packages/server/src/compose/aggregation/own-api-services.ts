import type { Dialect } from '@wheelhouse/machinery';
import {
  type ApiServicesOptions,
  createApiServices,
} from '../../controllers/aggregation/api-services.ts';
import { createInside } from '../../controllers/inside.ts';
import type { Api } from '../api.ts';
import type { ServerConfig } from '../config.ts';
import { controllerSelection } from '../controllers/controller-selection.ts';

interface RegistrationOptions {
  readonly config: ServerConfig;
  readonly dialect: Dialect;
  readonly api: Api;
}

/** Connects what keeps the APIServices of the group versions that are served. */
export function wiredRegistration({
  config,
  dialect,
  api,
}: RegistrationOptions): ApiServicesOptions {
  const { registry, catalogue } = api;
  const apiServices = catalogue.snapshot().builtin(dialect.group('apiregistration'), 'apiservices');
  if (apiServices === undefined) throw new Error('the catalogue has no apiservices');
  return {
    apiServices,
    catalogue,
    caches: registry.caches,
    inside: createInside({
      registry,
      controller: 'autoregister-controller',
      groups: ['system:masters'],
    }),
    dialect,
    clock: config.clock,
    logger: config.logger,
    queues: api.queues,
  };
}

/** Creates the absent APIServices where `--controllers` lets the server keep them. */
export async function createOwnApiServices(options: RegistrationOptions): Promise<void> {
  const { controllers = ['*'] } = options.config;
  if (!controllerSelection(controllers)('autoregister-controller')) return;
  await options.api.customKindsReady();
  await createApiServices(wiredRegistration(options));
}
