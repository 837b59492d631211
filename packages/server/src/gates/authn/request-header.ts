import type { Clock, Dialect, UserInfo } from '@wheelhouse/machinery';
import {
  type CertificateAuthenticator,
  createClientCertificateAuthenticator,
} from './client-certificate.ts';
import type { Credentials } from './contract.ts';
import { headerText } from './credentials.ts';
import { unescapeHeaderKey } from './impersonation.ts';

/**
 * Authenticates the user that an authenticating proxy names in headers (AUTHN-9), if the proxy has
 * a client certificate of the bundle whose common name is in `allowedNames`, if that is not empty.
 * Throws for another certificate, so that a client cannot choose its own user. Without a user
 * header, the request has no credential.
 */
export function createRequestHeaderAuthenticator(options: {
  readonly bundlePem: string;
  readonly allowedNames: readonly string[];
  readonly usernameHeaders: readonly string[];
  readonly uidHeaders?: readonly string[];
  readonly groupHeaders: readonly string[];
  readonly extraHeaderPrefixes: readonly string[];
  readonly clock: Clock;
  readonly dialect: Dialect;
}): CertificateAuthenticator {
  const { bundlePem, clock, dialect, allowedNames } = options;
  const proxies = createClientCertificateAuthenticator({
    bundlePem,
    clock,
    dialect,
    // The proxy forwards what browsers send, and itself decides which pages may use it.
    mayUpgradeFrom: 'no browser',
    // Without a common name, a certificate is valid but in no list of names.
    unnamed: 'accepted',
  });
  const lower = (names: readonly string[]) => names.map((name) => name.toLowerCase());
  const headers = {
    usernames: lower(options.usernameHeaders),
    uids: lower(options.uidHeaders ?? []),
    groups: lower(options.groupHeaders),
    extraPrefixes: lower(options.extraHeaderPrefixes),
  };
  return {
    name: 'request-header',
    trust: (changed) => proxies.trust(changed),
    async authenticate(credentials) {
      const proxy = await proxies.authenticate(credentials);
      if (proxy === undefined) return undefined;
      if (allowedNames.length > 0 && !allowedNames.includes(proxy.name)) {
        throw new Error(`x509: subject with cn=${proxy.name} is not in the allowed list`);
      }
      return userOf(credentials, headers);
    },
  };
}

function userOf(
  credentials: Credentials,
  headers: Readonly<Record<'usernames' | 'uids' | 'groups' | 'extraPrefixes', readonly string[]>>,
): UserInfo | undefined {
  const lines = linesOf(credentials);
  const valuesOf = (header: string) =>
    lines.filter(([name]) => name === header).map(([, value]) => value);
  const first = (names: readonly string[]) =>
    names.map((header) => valuesOf(header)[0] ?? '').find((value) => value !== '');
  const name = first(headers.usernames);
  if (name === undefined) return undefined;
  const extra: Record<string, string[]> = Object.create(null);
  for (const prefix of headers.extraPrefixes) {
    for (const [header, value] of lines) {
      if (!header.startsWith(prefix)) continue;
      const key = unescapeHeaderKey(header.slice(prefix.length));
      extra[key] ??= [];
      extra[key].push(value);
    }
  }
  const groups = headers.groups.flatMap(valuesOf).filter((group) => group !== '');
  return { name, uid: first(headers.uids) ?? '', groups, extra };
}

function linesOf(credentials: Credentials): readonly (readonly [name: string, value: string])[] {
  const flat = credentials.headerLines();
  const lines: [string, string][] = [];
  for (let index = 0; index + 1 < flat.length; index += 2) {
    lines.push([(flat[index] ?? '').toLowerCase(), headerText(flat[index + 1] ?? '')]);
  }
  return lines;
}
