import { requiredKind } from '../../catalogue/catalogue.ts';
import {
  type ApiServicesOptions,
  createApiServices,
} from '../../controllers/aggregation/api-services.ts';
import { controllerTools } from '../../controllers/inside.ts';
import type { Around } from '../context.ts';
import { controllerSelection } from '../controllers/controller-selection.ts';

/** Connects what keeps the APIServices of the group versions that are served. */
export function wiredRegistration(around: Around): ApiServicesOptions {
  const { dialect } = around;
  const { catalogue } = around.api;
  const group = dialect.group('apiregistration');
  return {
    ...controllerTools(around, {
      controller: 'autoregister-controller',
      groups: ['system:masters'],
    }),
    apiServices: requiredKind(catalogue.snapshot(), group, 'apiservices'),
    catalogue,
    dialect,
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
