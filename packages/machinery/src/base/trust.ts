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
