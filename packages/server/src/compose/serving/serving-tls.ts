import { createPrivateKey, X509Certificate } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { isIPv4 } from 'node:net';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { bundleCertificates } from '@wheelhouse/codec';
import { defaultServiceRanges, readServiceRanges } from '@wheelhouse/kinds';
import { type Clock, dialectOf, dnsSubdomain, ipVersion } from '@wheelhouse/machinery';
import {
  type FileAtStart,
  followCertificates,
  type ReloadedFile,
  readConfigurationFile,
  readTlsPair,
  writeFileAtomically,
} from '../../files/followed-files.ts';
import { type IssuedCertificate, issueCertificate } from '../../serving/generated-certificates.ts';
import type { CertificatePair, ServingTls } from '../../serving/node-servers.ts';
import type { HttpServer } from '../../serving/server.ts';
import type { ServerConfig } from '../config.ts';
import type { SecureServing } from './settings.ts';

/** A certificate that clients select by SNI, and the names configured for it. */
interface NamedPair {
  readonly pair: CertificatePair;
  readonly names: readonly string[];
}

type NamedFiles = NonNullable<SecureServing['named']>[number];

function readNamedPair({ certFile, keyFile, names }: NamedFiles): NamedPair {
  const certificate = readFileSync(certFile);
  return { pair: { certificate, key: readFileSync(keyFile) }, names };
}

/**
 * The pairs by name. The first certificate for a name wins, and explicit names take precedence over
 * those in certificates. Throws if a certificate cannot be parsed.
 */
function pairsByName(pairs: readonly NamedPair[]): ReadonlyMap<string, CertificatePair> {
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

/**
 * The common name, if it can be a host name, and the DNS names; clients never request addresses.
 */
function namesOf(certificate: X509Certificate): readonly string[] {
  const common = /^CN=(.*)$/m.exec(certificate.subject)?.[1] ?? '';
  const isName = common === '*' || dnsSubdomain(common.replace(/^\*\./, '')).length === 0;
  const listed = certificate.subjectAltName?.split(', ') ?? [];
  const names = listed.flatMap((entry) => (entry.startsWith('DNS:') ? [entry.slice(4)] : []));
  return isName && ipVersion(common) === 0 ? [common, ...names] : names;
}

/** The TLS configuration of a listener. */
type Tls = ServingTls | 'plaintext';

/** Serving certificates, which follow their files once a server listens. */
export interface OpenServingTls {
  readonly tls: Tls;
  /** The CA of a certificate that the server generated. */
  readonly caPem: string | undefined;
  /**
   * Lets new handshakes use the current files, so that certificates are renewed without a restart.
   * While files do not match, as between two writes, the old pair stays in use.
   */
  follow(server: HttpServer): void;
  close(): void;
}

/** What is read from files. */
interface Contents {
  readonly pair: CertificatePair;
  readonly named: readonly NamedPair[];
  readonly authorities: readonly string[];
}

/** Files that are only usable together, and how they change the contents. */
interface FileGroup {
  readonly files: readonly string[];
  readonly read: (before: Contents) => Partial<Contents>;
}

/** Reads or generates the serving certificates. Throws when a file is unusable. */
export function openServingTls(config: ServerConfig): OpenServingTls {
  const { clock, logger, listen } = config;
  const source = listen.tls;
  if (source === 'plaintext') return { tls: source, caPem: undefined, follow() {}, close() {} };
  const { ciphers, minVersion, named } = listen.secure ?? {};
  // Read before they are used, so that later changes are noticed.
  const groups = fileGroups(config).map(({ files, read }) => {
    return { read, texts: files.map((file) => ({ file, text: readConfigurationFile(file) })) };
  });
  const { caPem, ...pair } =
    'certFile' in source ? { ...readTlsPair(source), caPem: undefined } : ownPair(config, source);
  let contents: Contents = {
    pair,
    named: (named ?? []).map(readNamedPair),
    authorities: bundleFiles(config).map(readBundle),
  };
  const tlsOf = (from: Contents): ServingTls => ({
    ...from.pair,
    clientAuthorities: from.authorities,
    ...(named === undefined ? {} : { named: pairsByName(from.named) }),
    ...(ciphers === undefined ? {} : { ciphers }),
    ...(minVersion === undefined ? {} : { minVersion }),
  });
  let followed: readonly ReloadedFile[] = [];
  return {
    tls: tlsOf(contents),
    caPem,
    follow(server) {
      followed = groups.flatMap(({ texts, read }) => {
        const load = () => {
          const changed = { ...contents, ...read(contents) };
          server.replaceCertificate(tlsOf(changed));
          contents = changed;
        };
        return texts.map((text) => followCertificates({ ...text, load, clock, logger }));
      });
    },
    close() {
      for (const file of followed) file.stop();
    },
  };
}

/**
 * The files to follow. Each group keeps its last usable contents, so that a broken file does not
 * prevent the renewal of certificates in others.
 */
function fileGroups(config: ServerConfig): readonly FileGroup[] {
  const { tls, secure } = config.listen;
  const replaced = <T>(list: readonly T[], at: number, item: T) =>
    list.map((before, index) => (index === at ? item : before));
  const serving =
    tls !== 'plaintext' && 'certFile' in tls
      ? [{ files: [tls.certFile, tls.keyFile], read: () => ({ pair: readTlsPair(tls) }) }]
      : [];
  const named = (secure?.named ?? []).map((files, at) => ({
    files: [files.certFile, files.keyFile],
    read: (before: Contents) => ({ named: replaced(before.named, at, readNamedPair(files)) }),
  }));
  const bundles = bundleFiles(config).map((file, at) => ({
    files: [file],
    read: ({ authorities }: Contents) => ({
      authorities: replaced(authorities, at, readBundle(file)),
    }),
  }));
  return [...serving, ...named, ...bundles];
}

/** Names and addresses by which clients in the cluster reach the server's own Service. */
function ownServiceHosts(config: ServerConfig): string[] {
  const { serviceRanges = defaultServiceRanges } = config;
  const ranges = readServiceRanges(serviceRanges);
  const { productName: name } = dialectOf(config.dialect);
  const names = [name, `${name}.default`, `${name}.default.svc`];
  return 'error' in ranges ? names : [...names, ranges.addresses[0].addressOf(0)];
}

function ownPair(config: ServerConfig, { certDir }: { readonly certDir: string }) {
  const { host } = config.listen;
  const listening = host === '0.0.0.0' || host === '::' ? [] : [host];
  const advertised = config.advertiseAddress === undefined ? [] : [config.advertiseAddress];
  const local = ['localhost', '127.0.0.1', '::1', hostname()];
  const hosts = [...local, ...ownServiceHosts(config), ...listening, ...advertised];
  const issued = ensureServingCertificates({
    certDir,
    hosts: [...new Set(hosts)],
    clock: config.clock,
    atStart: config.embedding?.files,
  });
  return { certificate: issued.certificatePem, key: issued.keyPem, caPem: issued.caPem };
}

function readBundle(file: string): string {
  const bundle = readConfigurationFile(file);
  if (bundleCertificates(bundle).length === 0) throw new Error(`${file} contains no certificate`);
  return bundle;
}

function bundleFiles({ authentication }: ServerConfig): readonly string[] {
  const { clientCaFile, requestHeader } = authentication;
  return [clientCaFile, requestHeader?.clientCaFile].filter((file) => file !== undefined);
}

/** The settings with the pair that a user placed in the certificate directory, if there is one. */
export async function listenSettings(
  listen: ServerConfig['listen'],
): Promise<ServerConfig['listen']> {
  const { tls } = listen;
  const pair = tls !== 'plaintext' && 'certDir' in tls ? suppliedPair(tls.certDir) : undefined;
  if (pair === undefined) return listen;
  const { checkFiles } = await import('../../flags/flag-files.ts');
  const { certFile, keyFile } = pair;
  const flag = 'cert-dir';
  checkFiles([
    { flag, path: certFile, content: 'certificates' },
    { flag, path: keyFile, content: 'private key', keyOf: { path: certFile, name: certFile } },
  ]);
  return { ...listen, tls: pair };
}

/** The serving certificate and the CA that clients need to trust it. */
interface ServingCertificates {
  readonly certificatePem: string;
  readonly keyPem: string;
  readonly caPem: string;
}

const dayMs = 24 * 60 * 60 * 1000;
const caLifetimeMs = 3650 * dayMs;
const serverLifetimeMs = 365 * dayMs;
/** A certificate is renewed at the start if less than this is left of its lifetime. */
const renewBeforeMs = 30 * dayMs;
/** Allowance for clock differences between client and server. */
const clockSkewMs = 60 * 60 * 1000;

/** A certificate and its key, as files. */
interface PairFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

const serverName = 'wheelhouse';
const authorityName = /^CN=wheelhouse-ca@\d+$/;

/**
 * Finds a pair that a user placed in `certDir` under kube-apiserver's names, `apiserver.crt` and
 * `apiserver.key` (PLANE-1). Every file there belongs to the user unless it is a certificate that
 * this server generated, or the key next to one. The files may be incomplete or malformed.
 */
export function suppliedPair(certDir: string): PairFiles | undefined {
  const { certFile, keyFile } = filesOf(certDir, 'apiserver');
  if (!existsSync(certFile) && !existsSync(keyFile)) return undefined;
  const certificate = readCertificate(certFile)?.certificate;
  const isSelfMade = certificate !== undefined && isServerCertificate(certificate);
  return isSelfMade ? undefined : { certFile, keyFile };
}

/**
 * The generated CA (`ca.crt`, `ca.key`) and server certificate (`apiserver.crt`, `apiserver.key`)
 * of `certDir`, for which `suppliedPair` finds none. They are reused unless incomplete, near
 * expiry, not valid yet (the clock was ahead when they were generated), or issued for other hosts.
 * The CA outlives server certificates, so that kubeconfigs stay valid. Throws when `certDir` holds
 * another CA, which is never overwritten.
 */
export function ensureServingCertificates(options: {
  certDir: string;
  hosts: readonly string[];
  clock: Clock;
  atStart?: FileAtStart | undefined;
}): ServingCertificates {
  const now = options.clock.now();
  const { atStart, hosts } = options;
  const ca = ensureCa(options.certDir, now, { atStart });
  const caPem = ca.certificatePem;
  const files = filesOf(options.certDir, 'apiserver');
  const existing = readPair(files, readCertificate(files.certFile));
  if (existing !== undefined && stillServes(existing.certificate, { ca, hosts, now })) {
    return { certificatePem: existing.certificatePem, keyPem: existing.keyPem, caPem };
  }
  const issued = issueCertificate({
    commonName: serverName,
    usage: 'server',
    hosts,
    notBefore: now - clockSkewMs,
    notAfter: Math.min(now + serverLifetimeMs, Date.parse(ca.certificate.validTo)),
    issuer: ca,
  });
  const chained = { ...issued, certificatePem: issued.certificatePem + caPem };
  writePair(files, chained, atStart);
  return { ...chained, caPem };
}

/** Issues a client certificate for `user` with `groups`, which is valid for a year. */
export function issueClientCertificate(options: {
  ca: IssuedCertificate;
  user: string;
  groups?: readonly string[];
  clock: Clock;
}): IssuedCertificate {
  const now = options.clock.now();
  return issueCertificate({
    commonName: options.user,
    organizations: options.groups ?? [],
    usage: 'client',
    notBefore: now - clockSkewMs,
    notAfter: now + serverLifetimeMs,
    issuer: options.ca,
  });
}

/**
 * The CA of `certDir`, generated if absent. Its key signs the administrator's client certificate.
 * Throws when this server did not generate the existing files.
 */
export function ensureCa(
  certDir: string,
  now: number,
  options: { readonly atStart?: FileAtStart | undefined } = {},
): ParsedPair {
  const files = filesOf(certDir, 'ca');
  const { certFile, keyFile } = files;
  const found = readCertificate(certFile);
  const isPresent = existsSync(certFile) || existsSync(keyFile);
  if (isPresent && (found === undefined || !isAuthority(found.certificate))) {
    throw new Error(
      `${certFile} and ${keyFile} are not a CA that this server made, and are left alone: use another --cert-dir, or put apiserver.crt and apiserver.key next to them`,
    );
  }
  const existing = readPair(files, found);
  if (existing !== undefined && isInForce(existing.certificate, now)) return existing;
  const issued = issueCertificate({
    commonName: `wheelhouse-ca@${Math.floor(now / 1000)}`,
    usage: 'ca',
    notBefore: now - clockSkewMs,
    notAfter: now + caLifetimeMs,
  });
  writePair(files, issued, options.atStart);
  return { ...issued, certificate: new X509Certificate(issued.certificatePem) };
}

function filesOf(certDir: string, name: string): PairFiles {
  return { certFile: join(certDir, `${name}.crt`), keyFile: join(certDir, `${name}.key`) };
}

/** A certificate file. A start reads and parses each one once. */
interface CertificateText {
  readonly certificatePem: string;
  /** The first certificate of the text. */
  readonly certificate: X509Certificate;
}

type ParsedPair = IssuedCertificate & CertificateText;

/** Undefined if a file is absent or malformed. */
function readCertificate(certFile: string): CertificateText | undefined {
  try {
    const certificatePem = readFileSync(certFile, 'utf8');
    return { certificatePem, certificate: new X509Certificate(certificatePem) };
  } catch {
    return undefined;
  }
}

const isAuthority = ({ subject, issuer }: X509Certificate) =>
  subject === issuer && authorityName.test(subject);

const isServerCertificate = ({ subject, issuer }: X509Certificate) =>
  subject === `CN=${serverName}` && authorityName.test(issuer);

/** Undefined for a pair that is incomplete, or whose key a crash left outdated. */
function readPair(
  { keyFile }: PairFiles,
  found: CertificateText | undefined,
): ParsedPair | undefined {
  if (found === undefined) return undefined;
  try {
    const keyPem = readFileSync(keyFile, 'utf8');
    const isOfKey = found.certificate.checkPrivateKey(createPrivateKey(keyPem));
    return isOfKey ? { ...found, keyPem } : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Writes the certificate first: after a crash, it shows the next start that this server generated
 * both files.
 */
function writePair(
  { certFile, keyFile }: PairFiles,
  pair: IssuedCertificate,
  atStart: FileAtStart | undefined,
): void {
  writeFileAtomically({ path: certFile, text: pair.certificatePem, mode: 0o644, atStart });
  writeFileAtomically({ path: keyFile, text: pair.keyPem, mode: 0o600, atStart });
}

/** Whether a certificate is valid and not about to expire. */
function isInForce({ validFrom, validTo }: X509Certificate, now: number): boolean {
  return Date.parse(validFrom) <= now && Date.parse(validTo) - now > renewBeforeMs;
}

function stillServes(
  certificate: X509Certificate,
  options: { readonly ca: ParsedPair; readonly hosts: readonly string[]; readonly now: number },
): boolean {
  const authority = options.ca.certificate;
  if (!isInForce(certificate, options.now)) return false;
  if (!certificate.checkIssued(authority) || !certificate.verify(authority.publicKey)) return false;
  return options.hosts.every((host) => covers(certificate, host));
}

function covers(certificate: X509Certificate, host: string): boolean {
  const isAddress = host.includes(':') || isIPv4(host);
  const matchedName = isAddress ? certificate.checkIP(host) : certificate.checkHost(host);
  return matchedName !== undefined;
}
