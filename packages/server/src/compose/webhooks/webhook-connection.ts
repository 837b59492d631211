import {
  type ClientConfig,
  type InClusterPlace,
  inClusterConfig,
  loadKubeconfig,
  resolveContext,
  textMember,
} from '@wheelhouse/client';
import { type Dialect, errorText } from '@wheelhouse/machinery';
import { hostRoots } from '../files/followed-files.ts';

/**
 * How to reach the webhook that a kubeconfig's current context names. Rejects, naming the file, when
 * it cannot be read or names no server.
 */
export async function webhookOfKubeconfig(file: string): Promise<ClientConfig> {
  try {
    const config = await loadKubeconfig({ files: [file], required: true });
    const { client } = resolveContext(config);
    const context = config.contexts.get(config.currentContext)?.body ?? {};
    const cluster = textMember(context, 'cluster') ?? '';
    const entry = config.clusters.get(cluster);
    // Programs for people fall back on a server of their own machine.
    if (entry === undefined || textMember(entry.body, 'server') === undefined) {
      const shown = JSON.stringify(cluster);
      throw new Error(`invalid configuration: no server found for cluster ${shown}`);
    }
    return withHostRoots(client);
  } catch (error) {
    const why = errorText(error);
    throw new Error(`webhook kubeconfig ${file}: ${why}`, { cause: error });
  }
}

/** Trusts what the host trusts, where the kubeconfig names no authority. */
function withHostRoots(client: ClientConfig): ClientConfig {
  if (client.caPem !== undefined || client.insecureSkipTlsVerify === true) return client;
  return client.server.startsWith('https:') ? { ...client, caPem: hostRoots() } : client;
}

/**
 * How a workload of another server reaches that one's reviews of access. Throws where this process
 * is none: this server's own reviews would ask themselves.
 */
export function webhookInCluster(
  reviewApi: { readonly dialect: Dialect; readonly version: string },
  place: InClusterPlace = {
    env: process.env,
    folder: `/var/run/secrets/${reviewApi.dialect.label('serviceaccount')}`,
  },
): ClientConfig {
  const { client } = inClusterConfig(place);
  const group = reviewApi.dialect.group('authorization');
  const path = `/apis/${group}/${reviewApi.version}/subjectaccessreviews`;
  return { ...client, server: client.server + path };
}
