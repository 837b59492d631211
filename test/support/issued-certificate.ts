import type { Exchange } from '@wheelhouse/machinery';
import { FakeClock } from '@wheelhouse/machinery/testing';
import 'reflect-metadata';
import { webcrypto } from 'node:crypto';
import * as x509 from '@peculiar/x509';

x509.cryptoProvider.set(webcrypto as never);
const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
/** The time at which tests issue certificates. */
export const issueClock = new FakeClock(Date.UTC(2030, 0, 1));
const day = 24 * 3600 * 1000;

/** A certificate and its keys. */
export interface Issued {
  readonly certificate: x509.X509Certificate;
  readonly keys: webcrypto.CryptoKeyPair;
}

let serial = 0;

/** Issues a certificate, which is self-signed if there is no issuer. */
export async function issue(options: {
  readonly subject: string;
  readonly issuer?: Issued;
  readonly usages?: string[];
  readonly authority?: boolean;
  readonly pathLength?: number;
  readonly fromDays?: number;
  readonly toDays?: number;
  readonly more?: x509.Extension[];
}): Promise<Issued> {
  const keys = (await webcrypto.subtle.generateKey(algorithm, true, [
    'sign',
    'verify',
  ])) as webcrypto.CryptoKeyPair;
  const { issuer } = options;
  serial += 1;
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: serial.toString(16).padStart(4, '0'),
    subject: options.subject,
    issuer: issuer?.certificate.subject ?? options.subject,
    notBefore: new Date(issueClock.now() + (options.fromDays ?? -1) * day),
    notAfter: new Date(issueClock.now() + (options.toDays ?? 10) * day),
    publicKey: keys.publicKey,
    signingKey: (issuer?.keys ?? keys).privateKey,
    signingAlgorithm: algorithm,
    extensions: [
      ...(options.authority === true
        ? [new x509.BasicConstraintsExtension(true, options.pathLength, true)]
        : []),
      ...(options.usages === undefined ? [] : [new x509.ExtendedKeyUsageExtension(options.usages)]),
      ...(options.more ?? []),
    ],
  });
  return { certificate, keys };
}

/** A request over a connection with a chain of client certificates. */
export function showing(...chain: Issued[]): Exchange {
  const certificates = chain.map(({ certificate }) => Buffer.from(certificate.rawData));
  const connection = { memo: new Map(), encrypted: true, peerCertificates: () => certificates };
  return { header: () => undefined, connection } as unknown as Exchange;
}
