import { createPrivateKey, X509Certificate } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { isIPv4 } from 'node:net';
import { join } from 'node:path';
import type { Clock } from '@wheelhouse/machinery';
import { writeFileAtomically } from '../files/followed-files.ts';
import { type IssuedCertificate, issueCertificate } from './certificates-x509.ts';

/** What the server serves with, and the CA a client needs to trust it. */
export interface ServingCertificates {
  readonly certificatePem: string;
  readonly keyPem: string;
  readonly caPem: string;
}

const dayMs = 24 * 60 * 60 * 1000;
const caLifetimeMs = 3650 * dayMs;
const serverLifetimeMs = 365 * dayMs;
/** A certificate with less life than this left is made anew at start. */
const renewBeforeMs = 30 * dayMs;
/** Clocks of client and server may differ. */
const clockSkewMs = 60 * 60 * 1000;

/** A certificate and its key, as files. */
export interface PairFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

const serverName = 'wheelhouse';
const authorityName = /^CN=wheelhouse-ca@\d+$/;

/**
 * Finds the pair that a user put into `certDir` under upstream's names, `apiserver.crt` and
 * `apiserver.key` (PLANE-1). Every file there counts as the user's unless it is a certificate of
 * this server's own making, or a key next to one. The files may be incomplete or malformed.
 */
export function suppliedPair(certDir: string): PairFiles | undefined {
  const { certFile, keyFile } = filesOf(certDir, 'apiserver');
  if (!existsSync(certFile) && !existsSync(keyFile)) return undefined;
  return isSelfMade(certFile, isServerCertificate) ? undefined : { certFile, keyFile };
}

/**
 * The self-made CA (`ca.crt`, `ca.key`) and server certificate (`apiserver.crt`, `apiserver.key`,
 * upstream's names) of `certDir`, for which `suppliedPair` finds none. Kept for later starts unless
 * incomplete, near expiry, not valid yet (the clock was ahead when they were made), or made for
 * other hosts; the CA outlives server certificates so that clients' kubeconfigs stay good. Throws
 * when `certDir` holds another CA, which it never overwrites.
 */
export function ensureServingCertificates(options: {
  certDir: string;
  hosts: readonly string[];
  clock: Clock;
}): ServingCertificates {
  const now = options.clock.now();
  const ca = ensureCa(options.certDir, now);
  const files = filesOf(options.certDir, 'apiserver');
  const kept = readPair(files);
  if (kept !== undefined && stillServes({ pair: kept, ca, hosts: options.hosts, now })) {
    return { ...kept, caPem: ca.certificatePem };
  }
  const made = issueCertificate({
    commonName: serverName,
    usage: 'server',
    hosts: options.hosts,
    notBefore: now - clockSkewMs,
    notAfter: Math.min(now + serverLifetimeMs, expiryOf(ca)),
    issuer: ca,
  });
  const chained = { ...made, certificatePem: made.certificatePem + ca.certificatePem };
  writePair(files, chained);
  return { ...chained, caPem: ca.certificatePem };
}

/** A client certificate of the CA in `certDir`: the user is `user`, its groups `groups`. */
export function issueClientCertificate(options: {
  ca: IssuedCertificate;
  user: string;
  groups?: readonly string[];
  clock: Clock;
  lifetimeMs?: number;
}): IssuedCertificate {
  const now = options.clock.now();
  return issueCertificate({
    commonName: options.user,
    organizations: options.groups ?? [],
    usage: 'client',
    notBefore: now - clockSkewMs,
    notAfter: now + (options.lifetimeMs ?? serverLifetimeMs),
    issuer: options.ca,
  });
}

/**
 * The CA of `certDir`, made when absent. Its key signs the administrator's client certificate.
 * Throws when the files there are not of this server's making.
 */
export function ensureCa(certDir: string, now: number): IssuedCertificate {
  const files = filesOf(certDir, 'ca');
  const { certFile, keyFile } = files;
  const isPresent = existsSync(certFile) || existsSync(keyFile);
  if (isPresent && !isSelfMade(certFile, isAuthority)) {
    throw new Error(
      `${certFile} and ${keyFile} are not a CA that this server made, and are left alone: use another --cert-dir, or put apiserver.crt and apiserver.key next to them`,
    );
  }
  const kept = readPair(files);
  if (kept !== undefined && isInForce(certificateOf(kept), now)) return kept;
  const made = issueCertificate({
    commonName: `wheelhouse-ca@${Math.floor(now / 1000)}`,
    usage: 'ca',
    notBefore: now - clockSkewMs,
    notAfter: now + caLifetimeMs,
  });
  writePair(files, made);
  return made;
}

function filesOf(certDir: string, name: string): PairFiles {
  return { certFile: join(certDir, `${name}.crt`), keyFile: join(certDir, `${name}.key`) };
}

/** Whether a file holds a certificate of this server's making. */
function isSelfMade(certFile: string, isMade: (certificate: X509Certificate) => boolean): boolean {
  try {
    return isMade(new X509Certificate(readFileSync(certFile)));
  } catch {
    return false;
  }
}

const isAuthority = ({ subject, issuer }: X509Certificate) =>
  subject === issuer && authorityName.test(subject);

const isServerCertificate = ({ subject, issuer }: X509Certificate) =>
  subject === `CN=${serverName}` && authorityName.test(issuer);

/** Undefined for a pair of which a part is absent or which a crash left with an older key. */
function readPair({ certFile, keyFile }: PairFiles): IssuedCertificate | undefined {
  try {
    const pair = {
      certificatePem: readFileSync(certFile, 'utf8'),
      keyPem: readFileSync(keyFile, 'utf8'),
    };
    return certificateOf(pair).checkPrivateKey(createPrivateKey(pair.keyPem)) ? pair : undefined;
  } catch {
    return undefined;
  }
}

/** The certificate first: it tells the next start, after a crash, who made the files. */
function writePair({ certFile, keyFile }: PairFiles, pair: IssuedCertificate): void {
  writeFileAtomically({ path: certFile, text: pair.certificatePem, mode: 0o644 });
  writeFileAtomically({ path: keyFile, text: pair.keyPem, mode: 0o600 });
}

function expiryOf(pair: IssuedCertificate): number {
  return Date.parse(certificateOf(pair).validTo);
}

const certificateOf = (pair: IssuedCertificate) => new X509Certificate(pair.certificatePem);

/** Whether a certificate is valid, and not about to expire. */
function isInForce({ validFrom, validTo }: X509Certificate, now: number): boolean {
  return Date.parse(validFrom) <= now && Date.parse(validTo) - now > renewBeforeMs;
}

function stillServes(options: {
  pair: IssuedCertificate;
  ca: IssuedCertificate;
  hosts: readonly string[];
  now: number;
}): boolean {
  const certificate = certificateOf(options.pair);
  const authority = certificateOf(options.ca);
  if (!isInForce(certificate, options.now)) return false;
  if (!certificate.checkIssued(authority) || !certificate.verify(authority.publicKey)) return false;
  return options.hosts.every((host) => covers(certificate, host));
}

function covers(certificate: X509Certificate, host: string): boolean {
  const isAddress = host.includes(':') || isIPv4(host);
  const found = isAddress ? certificate.checkIP(host) : certificate.checkHost(host);
  return found !== undefined;
}
