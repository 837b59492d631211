import { checkServerIdentity, type PeerCertificate } from 'node:tls';

/** Certificates in PEM or DER. */
type Authorities = string | Buffer | readonly (string | Buffer)[];

/**
 * Returns the TLS options of a client that trusts every certificate of a bundle, self-signed or
 * not. A bundle may contain an intermediate CA or the server's own certificate, which Go accepts as
 * trust anchors and OpenSSL rejects by default. Without a bundle the system's CAs are trusted.
 */
export function trustOptions(bundle: Authorities | undefined): {
  ca?: string | Buffer | (string | Buffer)[];
  allowPartialTrustChain?: true;
} {
  if (bundle === undefined) return {};
  const ca = typeof bundle === 'string' || Buffer.isBuffer(bundle) ? bundle : [...bundle];
  return { ca, allowPartialTrustChain: true };
}

/** The error code for a certificate that names its server only in the common name. */
export const legacyNameCode = 'LEGACY_COMMON_NAME';

/**
 * Checks that a server's certificate is valid for `host`. As in Go, the common name is ignored, so
 * a certificate without subject alternative names is valid for no host.
 * @returns the error with which to reject the connection; undefined if the certificate is valid
 */
export function checkServerNames(host: string, certificate: PeerCertificate): Error | undefined {
  if (certificate.subjectaltname !== undefined) return checkServerIdentity(host, certificate);
  const why = 'x509: certificate relies on legacy Common Name field, use SANs instead';
  return Object.assign(new Error(why), { code: legacyNameCode });
}
