import type { ResourceDef } from '@wheelhouse/kinds';
import type { Dialect } from '@wheelhouse/machinery';
import { type KeeperTools, startNamespaceKeeper } from '../namespace-keeper.ts';

/** Keeps an account `default` in every namespace, for Pods that name none (AUTHN-6). */
export function startServiceAccounts(
  options: KeeperTools & { readonly serviceAccounts: ResourceDef },
): { close(): Promise<void> } {
  const object = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default' } };
  return startNamespaceKeeper({
    ...options,
    controller: 'serviceaccount-controller',
    kept: options.serviceAccounts,
    object,
  });
}

/** Keeps a ConfigMap with the server's CA in every namespace, for clients that run there. */
export function startRootCaPublisher(
  options: KeeperTools & {
    readonly configMaps: ResourceDef;
    readonly dialect: Dialect;
    readonly caPem: string;
  },
): { close(): Promise<void> } {
  const { dialect, caPem } = options;
  const object = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: {
      name: `${dialect.namespacePrefix}root-ca.crt`,
      annotations: {
        [dialect.label('description')]: 'The CA that signs the server’s certificate.',
      },
    },
    data: { 'ca.crt': caPem },
  };
  return startNamespaceKeeper({
    ...options,
    controller: 'root-ca-certificate-publisher-controller',
    kept: options.configMaps,
    object,
  });
}
