import { X509Certificate } from 'node:crypto';
import type { SecureContext } from 'node:tls';

/** PEM texts of a certificate (with its chain) and its key. */
export interface CertificatePair {
  readonly certificate: string | Buffer;
  readonly key: string | Buffer;
}

/** Gives node the certificate of a handshake, or the error that ends it. */
export type NameAnswer = (error: Error | null, context?: SecureContext) => void;

/**
 * Picks the certificate that a client gets by the name it asks for (SNI): the one kept for the name,
 * for all of its domain (`*.example.com`), the usual one when it is good for the name, one that is
 * good for it although not kept for it, or else the usual one.
 */
export function createNameChoice(options: {
  readonly named: ReadonlyMap<string, CertificatePair>;
  readonly usual: CertificatePair;
  readonly contextOf: (pair: CertificatePair) => SecureContext;
}): (serverName: string, answer: NameAnswer) => void {
  const pairs = new Set(options.named.values());
  const kept = [...pairs].map((pair) => ({
    pair,
    certificate: new X509Certificate(pair.certificate),
    context: options.contextOf(pair),
  }));
  const contexts = new Map(
    [...options.named].map(([name, pair]) => [
      name,
      kept.find((one) => one.pair === pair)?.context,
    ]),
  );
  const usual = new X509Certificate(options.usual.certificate);
  return (serverName, answer) => {
    const name = serverName.toLowerCase();
    const own = contexts.get(name) ?? contexts.get(name.replace(/^[^.]*/, '*'));
    if (own !== undefined || usual.checkHost(name) !== undefined) answer(null, own);
    else answer(null, kept.find((one) => one.certificate.checkHost(name) !== undefined)?.context);
  };
}
