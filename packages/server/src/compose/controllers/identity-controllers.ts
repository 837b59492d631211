import type { Dialect, JsonObject } from '@wheelhouse/machinery';
import {
  clusterInfoName,
  startBootstrapSigner,
  startTokenCleaner,
} from '../../controllers/identity/bootstrap-tokens.ts';
import { startLegacyTokens } from '../../controllers/identity/legacy-tokens.ts';
import {
  startRootCaPublisher,
  startServiceAccounts,
} from '../../controllers/identity/service-accounts.ts';
import { createInside } from '../../controllers/inside.ts';
import type { Api } from '../api.ts';
import type { ServerConfig } from '../flags/config.ts';
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
    const def = api.catalogue.snapshot().builtin('', resource);
    if (def === undefined) throw new Error(`the catalogue has no ${resource}`);
    return def;
  };
  const inside = (controller: string) => createInside({ registry, controller });
  const followed = { namespaces: core('namespaces'), caches: registry.caches };
  const tools = { ...followed, clock, logger, queues: api.queues };
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
  const { issueLegacy } = api.endpoints.tokens;
  if (runs('serviceaccount-token-controller') && issueLegacy !== undefined) {
    started.push(
      startLegacyTokens({
        ...tools,
        inside: inside('tokens-controller'),
        secrets: core('secrets'),
        serviceAccounts: core('serviceaccounts'),
        dialect,
        issue: issueLegacy,
        caPem,
      }),
    );
  }
  const bootstrap = { ...tools, secrets: core('secrets'), dialect };
  if (runs('token-cleaner-controller')) {
    started.push(startTokenCleaner({ ...bootstrap, inside: inside('token-cleaner') }));
  }
  if (runs('bootstrap-signer-controller')) {
    const configMaps = core('configmaps');
    const signer = inside('bootstrap-signer');
    started.push(startBootstrapSigner({ ...bootstrap, inside: signer, configMaps }));
    started.push(openClusterInfo({ config, dialect, api }));
  }
  return started;
}

/** Lets everybody read the ConfigMap that newcomers begin with (AUTHN-5). */
function openClusterInfo(options: {
  readonly config: ServerConfig;
  readonly dialect: Dialect;
  readonly api: Api;
}): { close(): Promise<void> } {
  const { config, dialect, api } = options;
  if (!config.authorizationModes.includes('RBAC')) return { close: async () => {} };
  const group = dialect.group('rbac.authorization');
  const namespace = dialect.systemNamespace('public');
  const name = 'system:cluster-info-reader';
  const controller = 'bootstrap-signer';
  const inside = createInside({ registry: api.registry, controller, groups: ['system:masters'] });
  const create = async (resource: string, kind: string, more: JsonObject) => {
    const def = api.catalogue.snapshot().builtin(group, resource);
    if (def === undefined) throw new Error(`the catalogue has no ${resource}`);
    const object = { apiVersion: `${group}/v1`, kind, metadata: { name, namespace }, ...more };
    await inside.create({ def, namespace, name }, object);
  };
  const rule = { verbs: ['get'], apiGroups: [''], resources: ['configmaps'] };
  const created = Promise.all([
    create('roles', 'Role', { rules: [{ ...rule, resourceNames: [clusterInfoName] }] }),
    create('rolebindings', 'RoleBinding', {
      roleRef: { apiGroup: group, kind: 'Role', name },
      subjects: [{ kind: 'User', apiGroup: group, name: 'system:anonymous' }],
    }),
  ]).catch((error: unknown) =>
    config.logger.error('cluster-info could not be opened to all', { error: String(error) }),
  );
  return { close: () => created.then(() => {}) };
}
