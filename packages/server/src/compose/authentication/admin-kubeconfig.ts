import type { IssuedCertificate } from '../certificates/certificates-x509.ts';
import { writeFileAtomically } from '../files/followed-files.ts';

/**
 * Writes the administrator's kubeconfig, readable by its owner alone. The content is JSON, which
 * every YAML reader accepts, so a start loads no YAML library. The file is replaced atomically.
 */
export function writeAdminKubeconfig(options: {
  path: string;
  /** `https://127.0.0.1:6443` */
  server: string;
  /** Absent for plain HTTP. */
  caPem?: string;
  credential:
    | { readonly token: string }
    | { readonly clientCertificate: IssuedCertificate }
    | 'none';
  /** Name of the context, the cluster and the user. */
  context: string;
}): void {
  const { path, server, caPem, credential, context: name } = options;
  const authority = caPem === undefined ? {} : { 'certificate-authority-data': base64(caPem) };
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name, cluster: { server, ...authority } }],
    users: [{ name, user: userOf(credential) }],
    contexts: [{ name, context: { cluster: name, user: name } }],
    'current-context': name,
    preferences: {},
  };
  const text = `${JSON.stringify(config, undefined, 2)}\n`;
  writeFileAtomically({ path, text, mode: 0o600, atStart: 'remade' });
}

function userOf(
  credential: Parameters<typeof writeAdminKubeconfig>[0]['credential'],
): Record<string, string> {
  if (credential === 'none') return {};
  if ('token' in credential) return { token: credential.token };
  return {
    'client-certificate-data': base64(credential.clientCertificate.certificatePem),
    'client-key-data': base64(credential.clientCertificate.keyPem),
  };
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}
