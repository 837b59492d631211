import { readFileSync, type Stats, statSync } from 'node:fs';
import path from 'node:path';
import { hostInUrl } from '@wheelhouse/machinery';
import type { ClientConfig, Credential, CredentialSource } from '../kubeconfig/client-config.ts';
import { KubeconfigError, readProblem } from '../kubeconfig/kubeconfig.ts';

/**
 * Returns a function that reads a token from a file. While the file is missing or empty, for
 * example during its renewal, it returns the last token.
 * @param options.fallback token until the file has one; without it, throws KubeconfigError for an
 * unreadable or empty file, since requests without a token would be anonymous
 */
export function tokenFileSource(options: {
  readonly file: string;
  readonly fallback?: string | undefined;
}): () => string | undefined {
  let last = options.fallback;
  const read = (): void => {
    const token = readFileSync(options.file, 'utf8').trim();
    if (token !== '') last = token;
  };
  try {
    read();
  } catch (error) {
    if (last === undefined) throw new KubeconfigError(readProblem(options.file, error));
  }
  if (last === undefined) {
    throw new KubeconfigError(`read empty token from file ${JSON.stringify(options.file)}`);
  }
  return () => {
    try {
      read();
    } catch {
      // The file may be missing while it is being replaced; the next request reads it again.
    }
    return last;
  };
}

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
  const namespace = options.env['POD_NAMESPACE'] || readText(options, 'namespace')?.trim();
  return {
    client: {
      server: `https://${hostInUrl(host)}:${port}`,
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

/** The files of a client certificate and its key. */
interface CertificateFiles {
  readonly certificate: string;
  readonly key: string;
}

/**
 * The source of a certificate and its key in files, which are read again once they have changed.
 * While a file is missing or does not match the other, for example during their renewal, the last
 * pair remains.
 * @param first the pair that the files contain now
 */
export function certificateFileSource(
  files: CertificateFiles,
  first: Credential,
): CredentialSource {
  let last = first;
  let lastState = stateOf(files);
  const read = async (): Promise<Credential> => {
    const state = stateOf(files);
    if (state === undefined || state === lastState) return last;
    try {
      const { checkPair } = await import('./exec-credential.ts');
      const certificatePem = readFileSync(files.certificate, 'utf8');
      const keyPem = readFileSync(files.key, 'utf8');
      checkPair(certificatePem, keyPem);
      last = { certificatePem, keyPem };
      lastState = state;
    } catch {
      // The next request reads the files again.
    }
    return last;
  };
  return {
    current: read,
    renew: read,
    // A client notices the change with the next request.
    onCertificateChange: () => () => {},
  };
}

/** A text that differs once a file has changed; undefined while one is missing. */
function stateOf({ certificate, key }: CertificateFiles): string | undefined {
  try {
    return [certificate, key].map((file) => versionOf(statSync(file))).join(' ');
  } catch {
    return undefined;
  }
}

const versionOf = ({ ino, size, mtimeMs }: Stats): string => `${ino}:${size}:${mtimeMs}`;
