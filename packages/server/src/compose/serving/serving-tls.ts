import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { hostname } from 'node:os';
import { defaultServiceRanges, readServiceRanges } from '@wheelhouse/kinds';
import { dialectOf, dnsSubdomain } from '@wheelhouse/machinery';
import { bundleCertificates } from '../../gates/authn/certificate.ts';
import type { CertificatePair, ServingTls } from '../../serving/node-servers.ts';
import type { HttpServer } from '../../serving/server.ts';

import { ensureServingCertificates, suppliedPair } from '../certificates/certificates.ts';
import type { ServerConfig } from '../config.ts';
import {
  followCertificates,
  type ReloadedFile,
  readConfigurationFile,
  readKeyPair,
} from '../files/followed-files.ts';
import type { SecureServing } from './settings.ts';

/**
 * Reads the certificates that clients get by the name they ask for. Of two for one name the first
 * counts, and names that were written down go before those of certificates. Throws what reading does.
 */
function readNamedCertificates(
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

/** What a server listens with. */
export type Tls = ServingTls | 'plaintext';

/** Certificates to listen with, which follow their files once somebody listens. */
export interface OpenServingTls {
  readonly tls: Tls;
  /** The authority of a certificate that the server has made itself. */
  readonly caPem: string | undefined;
  /**
   * New handshakes have what the files hold, so that certificates are renewed without a restart.
   * Files that do not fit together, as when one of two has been written, leave the old in use.
   */
  follow(server: HttpServer): void;
  close(): void;
}

/** Reads or makes the serving certificates. Throws when a file cannot be used. */
export function openServingTls(config: ServerConfig): OpenServingTls {
  const { clock, logger, listen } = config;
  const source = listen.tls;
  if (source === 'plaintext') return { tls: source, caPem: undefined, follow() {}, close() {} };
  const files = new Set([
    ...('certFile' in source ? [source.certFile, source.keyFile] : []),
    ...(listen.secure?.named ?? []).flatMap(({ certFile, keyFile }) => [certFile, keyFile]),
    ...bundleFiles(config),
  ]);
  // Before they are used, so that what changes meanwhile is seen to have changed.
  const texts = [...files].map((file) => ({ file, text: readConfigurationFile(file) }));
  const { ciphers, minVersion } = listen.secure ?? {};
  const { caPem, ...first } =
    'certFile' in source ? { ...readPair(source), caPem: undefined } : ownPair(config, source);
  const tls = {
    ...first,
    ...othersIn(config),
    ...(ciphers === undefined ? {} : { ciphers }),
    ...(minVersion === undefined ? {} : { minVersion }),
  };
  let followed: readonly ReloadedFile[] = [];
  return {
    tls,
    caPem,
    follow(server) {
      const load = () => {
        const pair = 'certFile' in source ? readPair(source) : {};
        server.replaceCertificate({ ...tls, ...pair, ...othersIn(config) });
      };
      followed = texts.map((one) => followCertificates({ ...one, load, clock, logger }));
    },
    close() {
      for (const one of followed) one.stop();
    },
  };
}

type SuppliedFiles = { readonly certFile: string; readonly keyFile: string };

function readPair(files: SuppliedFiles) {
  const { certificatePem, keyPem } = readKeyPair(files);
  return { certificate: certificatePem, key: keyPem };
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
  const made = ensureServingCertificates({
    certDir,
    hosts: [...new Set(hosts)],
    clock: config.clock,
  });
  return { certificate: made.certificatePem, key: made.keyPem, caPem: made.caPem };
}

function othersIn(config: ServerConfig): Pick<ServingTls, 'clientAuthorities' | 'named'> {
  const clientAuthorities = bundleFiles(config).map((file) => {
    const bundle = readConfigurationFile(file);
    if (bundleCertificates(bundle).length === 0) throw new Error(`${file} holds no certificate`);
    return bundle;
  });
  const { named } = config.listen.secure ?? {};
  return {
    clientAuthorities,
    ...(named === undefined ? {} : { named: readNamedCertificates(named) }),
  };
}

function bundleFiles({ authentication }: ServerConfig): readonly string[] {
  const { clientCaFile, requestHeader } = authentication;
  return [clientCaFile, requestHeader?.clientCaFile].filter((file) => file !== undefined);
}

/** Where a user put a pair into the directory for certificates, that pair is as one of flags. */
export async function listenSettings(
  listen: ServerConfig['listen'],
): Promise<ServerConfig['listen']> {
  const { tls } = listen;
  const pair = tls !== 'plaintext' && 'certDir' in tls ? suppliedPair(tls.certDir) : undefined;
  if (pair === undefined) return listen;
  const { checkFiles } = await import('../flags/flag-files.ts');
  const { certFile, keyFile } = pair;
  const flag = 'cert-dir';
  checkFiles([
    { flag, path: certFile, content: 'certificates' },
    { flag, path: keyFile, content: 'private key', keyOf: { path: certFile, name: certFile } },
  ]);
  return { ...listen, tls: pair };
}
