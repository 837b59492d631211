import { startAuthenticationTrust } from '../../controllers/identity/authentication-trust.ts';
import { createInside } from '../../controllers/inside.ts';
import type { AggregationSources } from '../aggregation/open-aggregation.ts';
import { readConfigurationFile } from '../certificates/reloaded-file.ts';
import { defaultGates } from '../flags/feature-gates.ts';

/** Tells other servers of the API whom this one trusts, by a ConfigMap of the system namespace. */
export function publishTrust(
  sources: AggregationSources,
): ReturnType<typeof startAuthenticationTrust> {
  const { config, dialect, catalogue, registry, queues } = sources;
  const { clientCaFile, requestHeader } = config.authentication;
  const configMaps = catalogue.snapshot().builtin('', 'configmaps');
  if (configMaps === undefined) throw new Error('the catalogue has no configmaps');
  const tellsUids = (config.featureGates ?? defaultGates).enabled('RemoteRequestHeaderUID');
  return startAuthenticationTrust({
    trust: {
      clientCaPem: clientCaFile === undefined ? undefined : readConfigurationFile(clientCaFile),
      requestHeader:
        requestHeader === undefined
          ? undefined
          : {
              ...requestHeader,
              clientCaPem: readConfigurationFile(requestHeader.clientCaFile),
              uidHeaders: tellsUids ? (requestHeader.uidHeaders ?? []) : undefined,
            },
    },
    configMaps,
    namespace: dialect.systemNamespace('system'),
    caches: registry.caches,
    inside: createInside({
      registry,
      controller: 'cluster-authentication-trust-controller',
      groups: ['system:masters'],
    }),
    clock: config.clock,
    logger: config.logger,
    queues,
  });
}
