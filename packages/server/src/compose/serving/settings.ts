import { isIP } from 'node:net';
import { join } from 'node:path';
import { getCiphers } from 'node:tls';
import type { SecureVersion } from '../../serving/node-servers.ts';
import type { Feature } from '../feature.ts';
import { type FlagDefinition, FlagError, type FlagTable, type FlagValues } from '../flags/flags.ts';

type TlsVersion = NonNullable<SecureServing['minVersion']>;

const versions: Readonly<Record<string, TlsVersion>> = {
  VersionTLS10: 'TLSv1',
  VersionTLS11: 'TLSv1.1',
  VersionTLS12: 'TLSv1.2',
  VersionTLS13: 'TLSv1.3',
};

/** Suites of TLS 1.3, which no list leaves out: that version has no others. */
const suitesOfTls13 = [
  'TLS_AES_128_GCM_SHA256',
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
];

/** Suites by upstream's names, with what the library calls them. */
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

/** How clients are spoken with over TLS. */
export interface SecureServing {
  readonly http2: 'on' | 'off';
  /** OpenSSL's list. */
  readonly ciphers?: string;
  readonly minVersion?: SecureVersion;
  /** PEM files of certificates for clients that ask for certain names: the certificate's own if none. */
  readonly named?: readonly {
    readonly certFile: string;
    readonly keyFile: string;
    readonly names: readonly string[];
  }[];
}

/** Where the server listens, and how it speaks with clients. Times in milliseconds. */
export interface ServingSettings {
  readonly listen: {
    readonly host: string;
    /** 0 takes a free port. */
    readonly port: number;
    readonly tls:
      | { readonly certDir: string }
      | { readonly certFile: string; readonly keyFile: string }
      | 'plaintext';
    /** How HTTPS is spoken; the usual way when absent. */
    readonly secure?: SecureServing;
  };
  /** The address clients are told in discovery; the listening one when absent. */
  readonly advertiseAddress?: string;
  /** `host` or `host:port` that clients are told; the advertised address when absent. */
  readonly externalHost?: string;
  /** What is said around answers and at the end of connections; nothing more when absent. */
  readonly traffic?: {
    /** Which part of HTTP/2's requests ends its connection. */
    readonly goAwayChance?: number;
    /** Value of the header Strict-Transport-Security. */
    readonly strictTransport?: string;
    /** Regular expressions of origins whose pages may use the API. */
    readonly allowedOrigins?: readonly string[];
    /** Over which time a stop spreads the ends of watches. */
    readonly watchGraceMs?: number;
    /** What new requests meet while a stop waits for others. */
    readonly whileStopping?: 'refuse' | 'close';
  };
}

/** Flags of how TLS is spoken. */
const tlsFlags = {
  'tls-cipher-suites': {
    group: 'Secure serving',
    type: 'list',
    default: '',
    help: 'Cipher suites for TLS 1.2 and older; those of TLS 1.3 are always there. Suites with forward secrecy and authenticated encryption when empty. Known are:',
    choices: [
      ...Object.keys(preferredSuites),
      ...Object.keys(insecureSuites).map((name) => `${name} (insecure)`),
    ],
  },
  'tls-min-version': {
    group: 'Secure serving',
    type: 'string',
    default: '',
    help: `The oldest version of TLS that is spoken: ${Object.keys(versions).join(', ')}. VersionTLS12 when empty.`,
  },
  'tls-sni-cert-key': {
    group: 'Secure serving',
    type: 'each',
    default: '',
    help: 'Files of a certificate and its key for clients that ask for certain names: cert.crt,cert.key, and :*.example.com,example.com behind it for other names than the certificate’s. May be repeated; exact names go before those with a star.',
  },
  'disable-http2-serving': {
    group: 'Secure serving',
    type: 'bool',
    default: 'false',
    help: 'Serve HTTP/1.1 alone.',
  },
} as const satisfies FlagTable;

/** Flags of the socket. */
export const servingFlags = {
  'bind-address': {
    group: 'Secure serving',
    type: 'string',
    default: '0.0.0.0',
    help: 'The IP address to listen on for --secure-port. The unspecified address (0.0.0.0 or ::) takes all interfaces.',
  },
  'secure-port': {
    group: 'Secure serving',
    type: 'int',
    range: 'port',
    default: '6443',
    help: 'The port to serve HTTPS on, with authentication and authorization. 0 takes any free port.',
  },
  'cert-dir': {
    group: 'Secure serving',
    type: 'string',
    default: '',
    help: 'Directory with the serving certificate apiserver.crt and its key apiserver.key, used when --tls-cert-file and --tls-private-key-file are not given. Where it holds neither, the server makes a pair and a CA there; it never changes files that it did not make. Within --data-dir when empty.',
  },
  'tls-cert-file': {
    group: 'Secure serving',
    type: 'string',
    file: 'certificates',
    default: '',
    help: 'File with the x509 certificate for HTTPS, followed by its CA chain if any.',
  },
  'tls-private-key-file': {
    group: 'Secure serving',
    type: 'string',
    file: 'private key',
    keyOf: 'tls-cert-file',
    default: '',
    help: 'File with the private key of --tls-cert-file.',
  },
  ...tlsFlags,
  'insecure-port': {
    group: 'Secure serving',
    type: 'int',
    default: '0',
    only: 'there is no port without authentication; --plain-http-port serves plain HTTP',
    hidden: true,
    help: 'The port without TLS and authentication that older releases had. 0 is off.',
  },
  'plain-http-port': {
    group: 'Secure serving',
    type: 'int',
    default: '-1',
    stage: 'own',
    help: 'Serve plain HTTP on this port of 127.0.0.1 instead of HTTPS, with the same authentication and authorization. 0 takes any free port, -1 is off.',
  },
  'permit-address-sharing': {
    group: 'Secure serving',
    type: 'bool',
    default: 'false',
    help: 'Listen although connections of an earlier server linger on the port. So it is either way: the runtime always asks for SO_REUSEADDR.',
  },
  'permit-port-sharing': {
    group: 'Secure serving',
    type: 'bool',
    default: 'false',
    only: 'this runtime cannot share a port (SO_REUSEPORT)',
    help: 'Upstream’s listening of several servers on one port, which this runtime does not have.',
  },
  'advertise-address': {
    group: 'Generic',
    type: 'string',
    default: '',
    help: 'The IP address at which others reach the server; a name of the serving certificate. The bind address when empty.',
  },
  'external-hostname': {
    group: 'Generic',
    after: 'service-node-port-range',
    type: 'string',
    default: '',
    help: 'The host, or host:port, that discovery and the issuer of tokens tell clients. The advertised address when empty.',
  },
  'cors-allowed-origins': {
    group: 'Generic',
    after: 'shutdown-delay-duration',
    type: 'list',
    default: '',
    help: "Regular expressions of the origins whose pages browsers let use the API (CORS). Each must say where the host begins, by ^ or //, and where it ends, by $ or :, as '^https://example\\.com(:|$)' does. None when empty.",
  },
  'strict-transport-security-directives': {
    group: 'Generic',
    type: 'list',
    default: '',
    help: 'Directives of the header Strict-Transport-Security that goes with every answer over TLS: max-age=SECONDS, includeSubDomains, preload. No header when empty.',
  },
  'goaway-chance': {
    group: 'Generic',
    type: 'float',
    default: '0',
    help: 'Which part of requests over HTTP/2 ends its connection (GOAWAY) once all on it is answered, so that clients spread over servers behind a load balancer. 0 is none, 0.02 the most.',
  },
  'shutdown-send-retry-after': {
    group: 'Generic',
    type: 'bool',
    default: 'false',
    help: 'After --shutdown-delay-duration go on listening until all requests in flight but watches are answered, and answer new ones 429 with Retry-After.',
  },
  'shutdown-watch-termination-grace-period': {
    group: 'Generic',
    type: 'duration',
    default: '0s',
    help: 'The time over which a stop spreads the ends of watches, 200 a second at least. All end at once when 0.',
  },
} as const satisfies FlagTable;

type Values = FlagValues<typeof servingFlags>;

/** The socket: addresses, TLS, and what is said around answers. */
export const servingFeature: Feature<typeof servingFlags, ServingSettings, DataDirectoryFlag> = {
  flags: servingFlags,
  settings(values, { specifiedFlags }) {
    checkPlainHttp(values, specifiedFlags);
    for (const name of ['bind-address', 'advertise-address'] as const) {
      if (values[name] !== '' && isIP(values[name]) === 0) {
        throw new FlagError(`--${name} ${JSON.stringify(values[name])} is not an IP address`);
      }
    }
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

/** The certificates that the server makes itself are in the data directory. */
type DataDirectoryFlag = {
  readonly 'data-dir': { readonly type: 'string' } & FlagDefinition;
};

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
  const wrong = (what: string) =>
    new FlagError(
      `invalid argument ${JSON.stringify(text)} for "--tls-sni-cert-key" flag: ${what}`,
    );
  const colon = text.indexOf(':');
  const listed = colon < 0 ? undefined : text.slice(colon + 1).trim();
  if (listed === '') throw wrong('empty names list is not allowed');
  const names = (listed?.split(',') ?? []).map((name) => name.trim());
  const files = (colon < 0 ? text : text.slice(0, colon)).trim().split(',');
  const [certFile, keyFile] = files.map((file) => file.trim());
  if (files.length !== 2 || certFile === undefined || keyFile === undefined) {
    throw wrong('expected comma separated certificate and key file paths');
  }
  const address = names.find((name) => isIP(name) !== 0);
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
    ...(origins.length === 0 ? {} : { allowedOrigins: origins }),
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
