import { checkServerIdentity, type PeerCertificate } from 'node:tls';

/** Certificates in PEM or DER, as the host's TLS takes them. */
type Authorities = string | Buffer | readonly (string | Buffer)[];

/**
 * TLS options of a client that trusts the certificates of a bundle: each of them, whether or not it
 * is self-signed. A bundle may hold an intermediate authority or the server's own certificate, which
 * Go's TLS accepts as trust anchors and OpenSSL refuses unless told otherwise. No options for no
 * bundle: the host's own authorities then hold.
 */
export function trustIn(bundle: Authorities | undefined): {
  ca?: string | Buffer | (string | Buffer)[];
  allowPartialTrustChain?: true;
} {
  if (bundle === undefined) return {};
  const ca = typeof bundle === 'string' || Buffer.isBuffer(bundle) ? bundle : [...bundle];
  return { ca, allowPartialTrustChain: true };
}

/** The code of the error for a certificate that names its server in the common name alone. */
export const legacyNameCode = 'LEGACY_COMMON_NAME';

/**
 * Checks that a server's certificate names `host`, as Go's TLS does: a certificate without subject
 * alternative names names nobody, whatever its common name says.
 * @returns the error by which a connection is refused; undefined for a certificate that names the host
 */
export function checkServerNames(host: string, certificate: PeerCertificate): Error | undefined {
  if (certificate.subjectaltname !== undefined) return checkServerIdentity(host, certificate);
  const why = 'x509: certificate relies on legacy Common Name field, use SANs instead';
  return Object.assign(new Error(why), { code: legacyNameCode });
}
