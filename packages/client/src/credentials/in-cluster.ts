import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { ClientConfig } from '../kubeconfig/client-config.ts';
import { KubeconfigError } from '../kubeconfig/kubeconfig.ts';
import { tokenFileSource } from './token-file.ts';

/** Where a workload finds its service account. */
export interface InClusterPlace {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The folder with `token`, `ca.crt`, and `namespace`. */
  readonly folder: string;
}

/**
 * The configuration of a program that runs in a Pod, from `<PREFIX>_SERVICE_HOST` and
 * `<PREFIX>_SERVICE_PORT` in the environment and the files of the service account. The token is
 * read again for every request. Throws KubeconfigError outside a Pod.
 */
export function inClusterConfig(place: InClusterPlace): {
  readonly client: ClientConfig;
  readonly namespace: string;
} {
  const host = serviceVariable(place.env, 'HOST');
  const port = serviceVariable(place.env, 'PORT');
  if (host === undefined || port === undefined) {
    throw new KubeconfigError(
      'unable to load in-cluster configuration: the service host and port must be defined',
    );
  }
  const shownHost = host.includes(':') ? `[${host}]` : host;
  const namespace = place.env['POD_NAMESPACE'] || readText(place, 'namespace')?.trim();
  return {
    client: {
      server: `https://${shownHost}:${port}`,
      // Without the file, the client trusts the CAs of the system.
      caPem: readText(place, 'ca.crt'),
      token: tokenFileSource({ file: path.join(place.folder, 'token') }),
    },
    namespace: namespace || 'default',
  };
}

function serviceVariable(env: InClusterPlace['env'], what: 'HOST' | 'PORT'): string | undefined {
  return env[`SVC_SERVICE_${what}`] || env[`KUBERNETES_SERVICE_${what}`] || undefined;
}

function readText(place: InClusterPlace, name: string): string | undefined {
  try {
    return readFileSync(path.join(place.folder, name), 'utf8');
  } catch {
    return undefined;
  }
}
