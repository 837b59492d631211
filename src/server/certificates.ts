import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { isIPv4 } from 'node:net';
import { join } from 'node:path';
import type { Clock } from '../base/clock.ts';
import { writeFileAtomically } from './certificates-files.ts';
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

/**
 * The self-made CA (`ca.crt`, `ca.key`) and server certificate (`apiserver.crt`, `apiserver.key`,
 * upstream's names) of `certDir`. Kept for later starts unless unreadable, near expiry, not valid
 * yet (the clock was ahead when they were made), or made for other hosts; the CA outlives server
 * certificates so that clients' kubeconfigs stay good.
 */
export function ensureServingCertificates(options: {
  certDir: string;
  hosts: readonly string[];
  clock: Clock;
}): ServingCertificates {
  const now = options.clock.now();
  const ca = ensureCa(options.certDir, now);
  const paths = pathsOf(options.certDir, 'apiserver');
  const kept = readPair(paths);
  if (kept !== undefined && stillServes({ pair: kept, ca, hosts: options.hosts, now })) {
    return { ...kept, caPem: ca.certificatePem };
  }
  const made = issueCertificate({
    commonName: 'wheelhouse',
    usage: 'server',
    hosts: options.hosts,
    notBefore: now - clockSkewMs,
    notAfter: Math.min(now + serverLifetimeMs, expiryOf(ca)),
    issuer: ca,
  });
  const chained = { ...made, certificatePem: made.certificatePem + ca.certificatePem };
  writePair(paths, chained);
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

/** The CA of `certDir`, made when absent. Its key signs the administrator's client certificate. */
export function ensureCa(certDir: string, now: number): IssuedCertificate {
  const paths = pathsOf(certDir, 'ca');
  const kept = readPair(paths);
  if (kept !== undefined && isInForce(certificateOf(kept), now)) return kept;
  const made = issueCertificate({
    commonName: `wheelhouse-ca@${Math.floor(now / 1000)}`,
    usage: 'ca',
    notBefore: now - clockSkewMs,
    notAfter: now + caLifetimeMs,
  });
  writePair(paths, made);
  return made;
}

interface PairPaths {
  readonly certificate: string;
  readonly key: string;
}

function pathsOf(certDir: string, name: string): PairPaths {
  return { certificate: join(certDir, `${name}.crt`), key: join(certDir, `${name}.key`) };
}

function readPair(paths: PairPaths): IssuedCertificate | undefined {
  try {
    const pair = {
      certificatePem: readFileSync(paths.certificate, 'utf8'),
      keyPem: readFileSync(paths.key, 'utf8'),
    };
    new X509Certificate(pair.certificatePem);
    return pair;
  } catch {
    return undefined;
  }
}

/** The key first: a certificate without its key would be taken for a whole pair. */
function writePair(paths: PairPaths, pair: IssuedCertificate): void {
  writeFileAtomically({ path: paths.key, text: pair.keyPem, mode: 0o600 });
  writeFileAtomically({ path: paths.certificate, text: pair.certificatePem, mode: 0o644 });
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
