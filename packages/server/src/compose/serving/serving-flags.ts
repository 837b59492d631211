import { isIP } from 'node:net';
import { getCiphers } from 'node:tls';
import type { SecureServing } from '../flags/config.ts';
import type { NamedFile } from '../flags/flag-files.ts';
import { FlagError, type FlagTable, type FlagValues } from '../flags/flags.ts';

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

/** Flags of how TLS is spoken, part of `serverFlags`. */
export const servingFlags = {
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

type Values = FlagValues<typeof servingFlags>;

/** What the flags come to. Throws FlagError for suites, versions and pairs that cannot be had. */
export function servingOptions(values: Values): SecureServing {
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

/** The files of the pairs, for `checkFiles`. */
export function servingFiles({ named = [] }: SecureServing): readonly NamedFile[] {
  const flag = 'tls-sni-cert-key';
  return named.flatMap(({ certFile, keyFile }) => [
    { flag, path: certFile, content: 'certificates' as const },
    { flag, path: keyFile, content: 'private key' as const, keyOf: certFile },
  ]);
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
