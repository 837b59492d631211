import { createInside } from '../controllers/inside.ts';
import { startRootCaPublisher, startServiceAccounts } from '../controllers/service-accounts.ts';
import type { Dialect } from '../dialect.ts';
import type { Api } from './api.ts';
import type { ServerConfig } from './config.ts';
import { controllerSelection } from './controller-selection.ts';

/** Starts the controllers that `--controllers` selects: those of accounts, tokens and trust. */
export function startIdentityControllers(options: {
  readonly config: ServerConfig;
  readonly dialect: Dialect;
  readonly api: Api;
  readonly caPem: string | undefined;
}): { close(): Promise<void> }[] {
  const { config, dialect, api, caPem } = options;
  const { clock, logger } = config;
  const { registry } = api;
  const runs = controllerSelection(config.controllers ?? ['*']);
  const core = (resource: string) => {
    const found = api.catalogue.snapshot().find('', 'v1', resource);
    if (found === undefined) throw new Error(`the catalogue has no ${resource}`);
    return found.def;
  };
  const inside = (controller: string) => createInside({ registry, controller });
  const tools = { namespaces: core('namespaces'), caches: registry.caches, clock, logger };
  const started: { close(): Promise<void> }[] = [];
  if (runs('serviceaccount-controller')) {
    const serviceAccounts = core('serviceaccounts');
    started.push(
      startServiceAccounts({
        ...tools,
        inside: inside('service-account-controller'),
        serviceAccounts,
      }),
    );
  }
  if (caPem !== undefined && runs('root-ca-certificate-publisher-controller')) {
    const configMaps = core('configmaps');
    started.push(
      startRootCaPublisher({
        ...tools,
        inside: inside('root-ca-cert-publisher'),
        configMaps,
        dialect,
        caPem,
      }),
    );
  }
  return started;
}
