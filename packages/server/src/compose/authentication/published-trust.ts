import { requiredKind } from '../../catalogue/catalogue.ts';
import { startAuthenticationTrust } from '../../controllers/identity/authentication-trust.ts';
import { controllerTools } from '../../controllers/tools.ts';
import { followCertificates, readConfigurationFile } from '../../files/followed-files.ts';
import { defaultGates } from '../../flags/feature-gates.ts';
import type { AggregationSources } from '../aggregation/open-aggregation.ts';
import type { ServerConfig } from '../config.ts';

/**
 * Publishes the CAs that this server trusts in a ConfigMap of the system namespace, which follows
 * the CA files.
 */
export function publishTrust(
  sources: AggregationSources,
): Pick<ReturnType<typeof startAuthenticationTrust>, 'settled' | 'close'> {
  const { config, dialect, catalogue } = sources;
  const configMaps = requiredKind(catalogue.snapshot(), '', 'configmaps');
  const { clientCaFile, requestHeader } = config.authentication;
  const publishesUids = (config.featureGates ?? defaultGates).enabled('RemoteRequestHeaderUID');
  const bundles = followBundles([clientCaFile, requestHeader?.clientCaFile], {
    config,
    changed: () => published.changed(),
  });
  const published = startAuthenticationTrust({
    ...controllerTools(
      { config, api: sources },
      { controller: 'cluster-authentication-trust-controller', groups: ['system:masters'] },
    ),
    trust: () => ({
      clientCaPem: clientCaFile === undefined ? undefined : bundles.textOf(clientCaFile),
      requestHeader:
        requestHeader === undefined
          ? undefined
          : {
              ...requestHeader,
              clientCaPem: bundles.textOf(requestHeader.clientCaFile),
              uidHeaders: publishesUids ? (requestHeader.uidHeaders ?? []) : undefined,
            },
    }),
    configMaps,
    namespace: dialect.systemNamespace('system'),
  });
  return {
    settled: published.settled,
    close() {
      bundles.stop();
      return published.close();
    },
  };
}

/** The texts of CA files, now and after each change. */
function followBundles(
  files: readonly (string | undefined)[],
  { config, changed }: { readonly config: ServerConfig; readonly changed: () => void },
): { textOf(file: string): string; stop(): void } {
  const { clock, logger } = config;
  const texts = new Map<string, string>();
  const follow = (file: string) => {
    const text = readConfigurationFile(file);
    texts.set(file, text);
    const load = (changedText: string) => {
      texts.set(file, changedText);
      changed();
    };
    return followCertificates({ file, text, load, clock, logger });
  };
  const followed = files.filter((file) => file !== undefined).map(follow);
  return {
    textOf: (file) => texts.get(file) ?? '',
    stop() {
      for (const file of followed) file.stop();
    },
  };
}
