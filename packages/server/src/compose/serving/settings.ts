import { join } from 'node:path';
import { getCiphers } from 'node:tls';
import { cut, errorText, ipVersion } from '@wheelhouse/machinery';
import { Pattern } from '@wheelhouse/schema';
import { type FlagDefinition, FlagError, type FlagValues, flagsIn } from '../../flags/flags.ts';
import type { SecureVersion } from '../../serving/node-servers.ts';
import type { Feature } from '../feature.ts';

type TlsVersion = NonNullable<SecureServing['minVersion']>;

const versions: Readonly<Record<string, TlsVersion>> = {
  VersionTLS10: 'TLSv1',
  VersionTLS11: 'TLSv1.1',
  VersionTLS12: 'TLSv1.2',
  VersionTLS13: 'TLSv1.3',
};

/** TLS 1.3 suites, which are always enabled. */
const suitesOfTls13 = [
  'TLS_AES_128_GCM_SHA256',
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
];

/** Cipher suites by Go's names, with OpenSSL's names. */
const preferredSuites: Readonly<Record<string, string>> = {
  ...Object.fromEntries(suitesOfTls13.map((name) => [name, name])),
  TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA: 'ECDHE-ECDSA-AES128-SHA',
  TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256: 'ECDHE-ECDSA-AES128-GCM-SHA256',
  TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA: 'ECDHE-ECDSA-AES256-SHA',
  TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384: 'ECDHE-ECDSA-AES256-GCM-SHA384',
  TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305: 'ECDHE-ECDSA-CHACHA20-POLY1305',
  TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256: 'ECDHE-ECDSA-CHACHA20-POLY1305',
  TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA: 'ECDHE-RSA-AES128-SHA',
  TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256: 'ECDHE-RSA-AES128-GCM-SHA256',
  TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA: 'ECDHE-RSA-AES256-SHA',
  TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384: 'ECDHE-RSA-AES256-GCM-SHA384',
  TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305: 'ECDHE-RSA-CHACHA20-POLY1305',
  TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256: 'ECDHE-RSA-CHACHA20-POLY1305',
};
const insecureSuites: Readonly<Record<string, string>> = {
  TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256: 'ECDHE-ECDSA-AES128-SHA256',
  TLS_ECDHE_ECDSA_WITH_RC4_128_SHA: 'ECDHE-ECDSA-RC4-SHA',
  TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA: 'ECDHE-RSA-DES-CBC3-SHA',
  TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256: 'ECDHE-RSA-AES128-SHA256',
  TLS_ECDHE_RSA_WITH_RC4_128_SHA: 'ECDHE-RSA-RC4-SHA',
  TLS_RSA_WITH_3DES_EDE_CBC_SHA: 'DES-CBC3-SHA',
  TLS_RSA_WITH_AES_128_CBC_SHA: 'AES128-SHA',
  TLS_RSA_WITH_AES_128_CBC_SHA256: 'AES128-SHA256',
  TLS_RSA_WITH_AES_128_GCM_SHA256: 'AES128-GCM-SHA256',
  TLS_RSA_WITH_AES_256_CBC_SHA: 'AES256-SHA',
  TLS_RSA_WITH_AES_256_GCM_SHA384: 'AES256-GCM-SHA384',
  TLS_RSA_WITH_RC4_128_SHA: 'RC4-SHA',
};

/** Settings of TLS. */
export interface SecureServing {
  readonly http2: 'on' | 'off';
  /** A cipher list in OpenSSL's syntax. */
  readonly ciphers?: string;
  readonly minVersion?: SecureVersion;
  /** PEM files of certificates selected by SNI; without names, those of the certificate apply. */
  readonly named?: readonly {
    readonly certFile: string;
    readonly keyFile: string;
    readonly names: readonly string[];
  }[];
}

/** Where and how the server listens. Times are in milliseconds. */
export interface ServingSettings {
  readonly listen: {
    readonly host: string;
    /** 0 picks a free port. */
    readonly port: number;
    readonly tls:
      | { readonly certDir: string }
      | { readonly certFile: string; readonly keyFile: string }
      | 'plaintext';
    /** Settings of TLS; the defaults when absent. */
    readonly secure?: SecureServing;
  };
  /** The address that discovery reports; the listening one when absent. */
  readonly advertiseAddress?: string;
  /** `host` or `host:port` that discovery reports; the advertised address when absent. */
  readonly externalHost?: string;
  /** Settings of connections and response headers; none when absent. */
  readonly traffic?: {
    /** Fraction of HTTP/2 requests that end their connection. */
    readonly goAwayChance?: number;
    /** Value of the header Strict-Transport-Security. */
    readonly strictTransport?: string;
    /** Whether CORS allows an origin; none when absent. */
    readonly allowsOrigin?: (origin: string) => boolean;
    /** The time over which a shutdown spreads the ends of watches. */
    readonly watchGraceMs?: number;
    /** What happens to new requests while a shutdown waits for others. */
    readonly whileStopping?: 'refuse' | 'close';
  };
}

/** Flags of TLS. */
const tlsFlags = flagsIn('Secure serving', {
  'tls-cipher-suites': {
    type: 'list',
    help: 'Cipher suites for TLS 1.2 and older; those of TLS 1.3 are always enabled. When empty, suites with forward secrecy and authenticated encryption. Known suites:',
    choices: [
      ...Object.keys(preferredSuites),
      ...Object.keys(insecureSuites).map((name) => `${name} (insecure)`),
    ],
  },
  'tls-min-version': {
    type: 'string',
    help: `Minimum TLS version: ${Object.keys(versions).join(', ')}; VersionTLS12 when empty.`,
  },
  'tls-sni-cert-key': {
    type: 'each',
    help: 'Certificate and key files selected by SNI: cert.crt,cert.key, optionally followed by :*.example.com,example.com to override the names in the certificate. May be repeated; exact names take precedence over wildcards.',
  },
  'disable-http2-serving': { type: 'bool', help: 'Serve HTTP/1.1 only.' },
});

/** Flags of the listener. */
const servingFlags = flagsIn('Secure serving', {
  'bind-address': {
    type: 'ip',
    default: '0.0.0.0',
    help: 'The IP address to listen on for --secure-port; 0.0.0.0 and :: listen on all interfaces.',
  },
  'secure-port': {
    type: 'int',
    range: 'port',
    default: '6443',
    help: 'The port to serve HTTPS on, with authentication and authorization; 0 picks a free port.',
  },
  'cert-dir': {
    type: 'string',
    help: 'Directory of the serving certificate apiserver.crt and its key apiserver.key, used without --tls-cert-file and --tls-private-key-file; in --data-dir when empty. If it holds neither, the server generates a pair and a CA there; it never changes files that it did not generate.',
  },
  'tls-cert-file': {
    type: 'string',
    file: 'certificates',
    help: 'File with the X.509 certificate for HTTPS, followed by its CA chain, if any.',
  },
  'tls-private-key-file': {
    type: 'string',
    file: 'private key',
    keyOf: 'tls-cert-file',
    help: 'File with the private key of --tls-cert-file.',
  },
  ...tlsFlags,
  'insecure-port': {
    type: 'int',
    only: 'every port requires authentication; --plain-http-port serves plain HTTP',
    hidden: true,
    help: 'The port without TLS and authentication of older releases; only 0 (off) is supported.',
  },
  'plain-http-port': {
    type: 'int',
    default: '-1',
    stage: 'own',
    help: 'Serve plain HTTP on this port of 127.0.0.1 instead of HTTPS, with the same authentication and authorization; 0 picks a free port, -1 means off.',
  },
  'permit-address-sharing': {
    type: 'bool',
    help: 'Listen even if connections of an earlier server linger on the port; always on, since Node.js sets SO_REUSEADDR.',
  },
  'permit-port-sharing': {
    type: 'bool',
    only: 'Node.js 20 cannot share a port (SO_REUSEPORT)',
    help: 'Let several servers listen on one port; not supported, since Node.js 20 cannot.',
  },
  'advertise-address': {
    group: 'Generic',
    type: 'ip',
    help: 'The IP address at which others reach the server, added to the serving certificate; the bind address when empty.',
  },
  'external-hostname': {
    group: 'Generic',
    after: 'service-node-port-range',
    type: 'string',
    help: 'The host, or host:port, that discovery and the token issuer report to clients; the advertised address when empty.',
  },
  'cors-allowed-origins': {
    group: 'Generic',
    after: 'shutdown-delay-duration',
    type: 'list',
    help: "Regular expressions of the origins that CORS allows; none when empty. Each must anchor the start of the host with ^ or // and its end with $ or :, as '^https://example\\.com(:|$)' does.",
  },
  'strict-transport-security-directives': {
    group: 'Generic',
    type: 'list',
    help: 'Directives of the header Strict-Transport-Security of every response over TLS: max-age=SECONDS, includeSubDomains, preload; no header when empty.',
  },
  'goaway-chance': {
    group: 'Generic',
    type: 'float',
    help: 'Fraction of HTTP/2 requests whose connection is closed gracefully (GOAWAY), so that clients spread over the servers behind a load balancer; from 0 (none) to 0.02.',
  },
  'shutdown-send-retry-after': {
    group: 'Generic',
    type: 'bool',
    help: 'After --shutdown-delay-duration, keep listening until all requests in flight except watches are answered, and answer new ones 429 with Retry-After.',
  },
  'shutdown-watch-termination-grace-period': {
    group: 'Generic',
    type: 'duration',
    help: 'The time over which a shutdown spreads the closing of watches, at least 200 per second; 0 closes all at once.',
  },
});

type Values = FlagValues<typeof servingFlags>;

/** The listener: addresses, TLS, and connection handling. */
export const servingFeature: Feature<typeof servingFlags, ServingSettings, DataDirectoryFlag> = {
  flags: servingFlags,
  settings(values, { specifiedFlags }) {
    checkPlainHttp(values, specifiedFlags);
    const advertised = values['advertise-address'];
    const externalHost = values['external-hostname'];
    return {
      listen: listenSettings(values, specifiedFlags),
      ...(advertised === '' ? {} : { advertiseAddress: advertised }),
      ...(externalHost === '' ? {} : { externalHost }),
      traffic: trafficSettings(values),
    };
  },
  files(values) {
    const flag = 'tls-sni-cert-key';
    return values[flag].map(namedPair).flatMap(({ certFile, keyFile }) => [
      { flag, path: certFile, content: 'certificates' as const },
      {
        flag,
        path: keyFile,
        content: 'private key' as const,
        keyOf: { path: certFile, name: certFile },
      },
    ]);
  },
};

/** Generated certificates are in the data directory. */
type DataDirectoryFlag = { readonly 'data-dir': { readonly type: 'string' } & FlagDefinition };

function checkPlainHttp(values: Values, specifiedFlags: ReadonlySet<string>): void {
  const port = values['plain-http-port'];
  if (port < -1 || port > 65_535) {
    throw new FlagError(`--plain-http-port ${port} must be between -1 and 65535, inclusive`);
  }
  const clash = [...secureOnly, ...Object.keys(tlsFlags)].find((name) => specifiedFlags.has(name));
  if (port < 0 || clash === undefined) return;
  throw new FlagError(`--plain-http-port serves no HTTPS, so --${clash} contradicts it`);
}

const secureOnly = ['secure-port', 'bind-address', 'cert-dir', 'tls-cert-file', 'client-ca-file'];

function listenSettings(
  values: Values & FlagValues<DataDirectoryFlag>,
  specifiedFlags: ReadonlySet<string>,
): ServingSettings['listen'] {
  if (values['plain-http-port'] >= 0) {
    return { host: '127.0.0.1', port: values['plain-http-port'], tls: 'plaintext' };
  }
  const certFile = values['tls-cert-file'];
  const tls =
    certFile === ''
      ? { certDir: values['cert-dir'] || join(values['data-dir'], 'certificates') }
      : { certFile, keyFile: values['tls-private-key-file'] };
  const hasTlsFlags = Object.keys(tlsFlags).some((flag) => specifiedFlags.has(flag));
  return {
    host: values['bind-address'],
    port: values['secure-port'],
    tls,
    ...(hasTlsFlags ? { secure: secureSettings(values) } : {}),
  };
}

function secureSettings(values: Values): SecureServing {
  const suites = values['tls-cipher-suites'];
  const minVersion = minVersionOf(values['tls-min-version']);
  const http2 = values['disable-http2-serving'] ? 'off' : 'on';
  const named = values['tls-sni-cert-key'].map(namedPair);
  if (suites.length > 0 && http2 === 'on' && minVersion !== 'TLSv1.3') checkHttp2Suite(suites);
  return {
    http2,
    ...(minVersion === undefined ? {} : { minVersion }),
    ...(suites.length === 0 ? {} : { ciphers: ciphersOf(suites) }),
    ...(named.length === 0 ? {} : { named }),
  };
}

function minVersionOf(name: string): TlsVersion | undefined {
  if (name === '') return undefined;
  const version = Object.hasOwn(versions, name) ? versions[name] : undefined;
  if (version === undefined) throw new FlagError(`unknown tls version ${JSON.stringify(name)}`);
  return version;
}

function ciphersOf(suites: readonly string[]): string {
  const cipherBySuite = { ...preferredSuites, ...insecureSuites };
  const had = new Set(getCiphers());
  const chosen = suites.map((name) => {
    const cipher = Object.hasOwn(cipherBySuite, name) ? cipherBySuite[name] : undefined;
    if (cipher === undefined) {
      throw new FlagError(`Cipher suite ${name} not supported or doesn't exist`);
    }
    if (had.has(cipher.toLowerCase())) return cipher;
    throw new FlagError(`--tls-cipher-suites: this runtime's TLS library has no ${name}`);
  });
  return [...new Set([...suitesOfTls13, ...chosen])].join(':');
}

const http2Suites = [
  'TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256',
  'TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256',
];

function checkHttp2Suite(suites: readonly string[]): void {
  if (suites.some((name) => http2Suites.includes(name))) return;
  ciphersOf(suites);
  throw new FlagError(
    `error configuring http2: http2: TLSConfig.CipherSuites is missing an HTTP/2-required AES_128_GCM_SHA256 cipher (need at least one of ${http2Suites.join(' or ')})`,
  );
}

/** `cert,key` or `cert,key:name,name`. */
function namedPair(text: string): NonNullable<SecureServing['named']>[number] {
  const wrong = (problem: string) =>
    new FlagError(
      `invalid argument ${JSON.stringify(text)} for "--tls-sni-cert-key" flag: ${problem}`,
    );
  const [fileTexts, nameTexts] = cut(text, ':');
  const listed = nameTexts?.trim();
  if (listed === '') throw wrong('empty names list is not allowed');
  const names = (listed?.split(',') ?? []).map((name) => name.trim());
  const files = fileTexts.trim().split(',');
  const [certFile, keyFile] = files.map((file) => file.trim());
  if (files.length !== 2 || certFile === undefined || keyFile === undefined) {
    throw wrong('expected comma separated certificate and key file paths');
  }
  const address = names.find((name) => ipVersion(name) !== 0);
  if (address !== undefined) {
    throw wrong(`this server picks certificates by name only, not by the address ${address}`);
  }
  return { certFile, keyFile, names };
}

function trafficSettings(values: Values): NonNullable<ServingSettings['traffic']> {
  const chance = values['goaway-chance'];
  if (chance < 0 || chance > 0.02) {
    throw new FlagError('--goaway-chance can not be less than 0 or greater than 0.02');
  }
  const grace = values['shutdown-watch-termination-grace-period'];
  if (grace < 0) {
    throw new FlagError(
      'shutdown-watch-termination-grace-period, if provided, can not be a negative value',
    );
  }
  const directives = values['strict-transport-security-directives'];
  for (const directive of directives) checkDirective(directive);
  const origins = values['cors-allowed-origins'];
  return {
    watchGraceMs: grace,
    whileStopping: values['shutdown-send-retry-after'] ? 'refuse' : 'close',
    ...(chance > 0 && !values['disable-http2-serving'] ? { goAwayChance: chance } : {}),
    ...(directives.length === 0 ? {} : { strictTransport: directives.join('; ') }),
    ...(origins.length === 0 ? {} : { allowsOrigin: originTest(origins) }),
  };
}

function checkDirective(directive: string): void {
  if (directive.trim() === '') {
    throw new FlagError('empty value in strict-transport-security-directives');
  }
  if (directive === 'includeSubDomains' || directive === 'preload') return;
  if (/^max-age=[^=]*$/.test(directive)) return;
  throw new FlagError(
    '--strict-transport-security-directives invalid, allowed values: max-age=expireTime, includeSubDomains, preload. see https://tools.ietf.org/html/rfc6797#section-6.1 for more information',
  );
}

/** Throws FlagError for patterns that are invalid or not anchored to the host. */
function originTest(patterns: readonly string[]): (origin: string) => boolean {
  const tests = patterns.map(readPattern);
  return (origin) => tests.some((test) => test(origin));
}

function readPattern(pattern: string): (origin: string) => boolean {
  if (pattern === '') throw new FlagError('empty value in --cors-allowed-origins');
  const invalidPattern = (problem: string) =>
    new FlagError(`--cors-allowed-origins has an invalid regular expression: ${problem}`);
  let compiled: Pattern;
  try {
    compiled = new Pattern(pattern);
  } catch (error) {
    throw invalidPattern(errorText(error));
  }
  if (/\^|\/\//.test(pattern) && /[$:]/.test(pattern)) return (origin) => compiled.test(origin);
  throw invalidPattern('regular expression does not pin to start/end of host in the origin header');
}
