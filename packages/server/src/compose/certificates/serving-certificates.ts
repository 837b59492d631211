import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { dnsSubdomain } from '@wheelhouse/machinery';
import type { CertificatePair } from '../../serving/server-names.ts';
import type { SecureServing } from '../flags/config.ts';

/**
 * Reads the certificates that clients get by the name they ask for. Of two for one name the first
 * counts, and names that were written down go before those of certificates. Throws what reading does.
 */
export function readNamedCertificates(
  named: NonNullable<SecureServing['named']>,
): ReadonlyMap<string, CertificatePair> {
  const pairs = named.map(({ certFile, keyFile, names }) => {
    const certificate = readFileSync(certFile);
    return { pair: { certificate, key: readFileSync(keyFile) }, names };
  });
  const byName = new Map<string, CertificatePair>();
  const add = (names: readonly string[], pair: CertificatePair): void => {
    for (const name of names) if (!byName.has(name)) byName.set(name, pair);
  };
  for (const { pair, names } of pairs) add(names, pair);
  for (const { pair, names } of pairs) {
    if (names.length === 0) add(namesOf(new X509Certificate(pair.certificate)), pair);
  }
  return byName;
}

/** The common name, where it may be a host's, and the DNS names; addresses are never asked for. */
function namesOf(certificate: X509Certificate): readonly string[] {
  const common = /^CN=(.*)$/m.exec(certificate.subject)?.[1] ?? '';
  const isName = common === '*' || dnsSubdomain(common.replace(/^\*\./, '')).length === 0;
  const listed = certificate.subjectAltName?.split(', ') ?? [];
  const names = listed.flatMap((entry) => (entry.startsWith('DNS:') ? [entry.slice(4)] : []));
  return isName && isIP(common) === 0 ? [common, ...names] : names;
}
