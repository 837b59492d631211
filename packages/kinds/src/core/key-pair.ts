import { createPrivateKey, createPublicKey, type KeyObject, X509Certificate } from 'node:crypto';
import { type PemBlock, pemBlocks } from '@wheelhouse/codec';

const typesOf = (blocks: readonly PemBlock[]) => `[${blocks.map(({ type }) => type).join(' ')}]`;

/**
 * What keeps a certificate and a private key, both in PEM, from being a pair, in the words of Go's
 * library; undefined when they are one.
 */
export function keyPairProblem(certificatePem: string, keyPem: string): string | undefined {
  const certificates = pemBlocks(certificatePem);
  const certificate = certificates.find(({ type }) => type === 'CERTIFICATE');
  if (certificate === undefined) return noCertificate(certificates);
  const keys = pemBlocks(keyPem);
  const key = keys.find(({ type }) => type.endsWith('PRIVATE KEY'));
  if (key === undefined) return noKey(keys);
  let publicKey: KeyObject;
  try {
    publicKey = new X509Certificate(certificate.text).publicKey;
  } catch {
    return 'x509: malformed certificate';
  }
  let privateKey: KeyObject;
  try {
    privateKey = createPrivateKey(key.text);
  } catch {
    return 'tls: failed to parse private key';
  }
  if (publicKey.asymmetricKeyType !== privateKey.asymmetricKeyType) {
    return 'tls: private key type does not match public key type';
  }
  const isPair = createPublicKey(privateKey).equals(publicKey);
  return isPair ? undefined : 'tls: private key does not match public key';
}

function noCertificate(blocks: readonly PemBlock[]): string {
  const [first, ...more] = blocks;
  if (first === undefined) return 'tls: failed to find any PEM data in certificate input';
  if (more.length === 0 && first.type.endsWith('PRIVATE KEY')) {
    return (
      'tls: failed to find certificate PEM data in certificate input, but did find a private key; ' +
      'PEM inputs may have been switched'
    );
  }
  return (
    'tls: failed to find "CERTIFICATE" PEM block in certificate input after skipping PEM blocks of ' +
    `the following types: ${typesOf(blocks)}`
  );
}

function noKey(blocks: readonly PemBlock[]): string {
  const [first, ...more] = blocks;
  if (first === undefined) return 'tls: failed to find any PEM data in key input';
  if (more.length === 0 && first.type === 'CERTIFICATE') {
    return 'tls: found a certificate rather than a key in the PEM for the private key';
  }
  return (
    'tls: failed to find PEM block with type ending in "PRIVATE KEY" in key input after skipping ' +
    `PEM blocks of the following types: ${typesOf(blocks)}`
  );
}
