import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { ClientConfig } from '../kubeconfig/client-config.ts';
import { KubeconfigError } from '../kubeconfig/kubeconfig.ts';
import { tokenFileSource } from './token-file.ts';

/** The environment and the service account of a workload. */
export interface InClusterOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The folder with `token`, `ca.crt`, and `namespace`. */
  readonly folder: string;
}

/**
 * Creates the configuration of a program that runs in a Pod, from `<PREFIX>_SERVICE_HOST` and
 * `<PREFIX>_SERVICE_PORT` in the environment and the files of the service account. The client reads
 * the token again for every request. Throws KubeconfigError outside a Pod.
 */
export function inClusterConfig(options: InClusterOptions): {
  readonly client: ClientConfig;
  readonly namespace: string;
} {
  const host = serviceVariable(options.env, 'HOST');
  const port = serviceVariable(options.env, 'PORT');
  if (host === undefined || port === undefined) {
    throw new KubeconfigError(
      'unable to load in-cluster configuration: the service host and port must be defined',
    );
  }
  const urlHost = host.includes(':') ? `[${host}]` : host;
  const namespace = options.env['POD_NAMESPACE'] || readText(options, 'namespace')?.trim();
  return {
    client: {
      server: `https://${urlHost}:${port}`,
      // Without the file, the client trusts the CAs of the system.
      caPem: readText(options, 'ca.crt'),
      token: tokenFileSource({ file: path.join(options.folder, 'token') }),
    },
    namespace: namespace || 'default',
  };
}

function serviceVariable(env: InClusterOptions['env'], what: 'HOST' | 'PORT'): string | undefined {
  return env[`SVC_SERVICE_${what}`] || env[`KUBERNETES_SERVICE_${what}`] || undefined;
}

function readText(options: InClusterOptions, name: string): string | undefined {
  try {
    return readFileSync(path.join(options.folder, name), 'utf8');
  } catch {
    return undefined;
  }
}
