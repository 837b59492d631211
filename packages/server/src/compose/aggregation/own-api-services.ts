import {
  type ApiServicesOptions,
  createApiServices,
} from '../../controllers/aggregation/api-services.ts';
import { createInside } from '../../controllers/inside.ts';
import type { Around } from '../context.ts';
import { controllerSelection } from '../controllers/controller-selection.ts';

/** Connects what keeps the APIServices of the group versions that are served. */
export function wiredRegistration({ config, dialect, api }: Around): ApiServicesOptions {
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
export async function createOwnApiServices(
  options: Around & { readonly customKindsReady: () => Promise<void> },
): Promise<void> {
  const { controllers = ['*'] } = options.config;
  if (!controllerSelection(controllers)('autoregister-controller')) return;
  await options.customKindsReady();
  await createApiServices(wiredRegistration(options));
}
