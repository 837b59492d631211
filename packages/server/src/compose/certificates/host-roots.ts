import { readFileSync } from 'node:fs';
import { env } from 'node:process';

/** Where systems keep the authorities they trust, asked in order. */
const bundles = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/ca-bundle.pem',
  '/etc/pki/tls/cacert.pem',
  '/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem',
  '/etc/ssl/cert.pem',
];

/**
 * The authorities the host trusts, in PEM, from `SSL_CERT_FILE` or where systems keep them; Node
 * itself only knows those it was built with. Undefined: none found, Node's serve instead.
 */
export function hostRoots(): string | undefined {
  const certFile = env['SSL_CERT_FILE'];
  const files = certFile === undefined || certFile === '' ? bundles : [certFile];
  for (const file of files) {
    try {
      return readFileSync(file, 'utf8');
    } catch {
      // The next one may be there.
    }
  }
  return undefined;
}
