import { X509Certificate } from 'node:crypto';
import {
  bundleCertificates,
  type Certificate,
  CertificateError,
  indexRoots,
  parseCertificate,
  parseChain,
  type TrustedRoots,
  verifyChain,
} from '@wheelhouse/codec';
import {
  asError,
  type Clock,
  type Connection,
  type Dialect,
  type Exchange,
  isOfOtherSite,
  isOwnOrigin,
  largest,
  type SiteRequest,
  smallest,
  type UserInfo,
} from '@wheelhouse/machinery';
import type { Authenticator, Credentials } from './contract.ts';
import { headerText } from './credentials.ts';
import { unescapeHeaderKey } from './impersonation.ts';

/**
 * Whether a page of another site sent the request from a browser, which attaches its user's
 * certificate without asking (CLIENT-4, TRUST-6).
 * @param mayUpgradeFrom other origins whose pages may open WebSockets with a certificate
 */
function isCrossSite(request: SiteRequest, mayUpgradeFrom: (origin: string) => boolean): boolean {
  if (request.header('upgrade') === undefined) return isOfOtherSite(request, 'https');
  // A browser's WebSocket handshake states no site, but always an origin.
  const origin = request.header('origin');
  if (origin === undefined || mayUpgradeFrom(origin)) return false;
  return !isOwnOrigin(origin, 'https', request.header('host'));
}

/** An authenticator whose authorities can be replaced. */
export interface CertificateAuthenticator extends Authenticator {
  /** Replaces the bundle, for open connections too. Throws if it is malformed. */
  trust(bundlePem: string): void;
}

type Unnamed = 'ignored' | 'accepted';

interface Verified {
  /** The bundle that the chain was verified against. */
  readonly authorities: () => Authorities;
  readonly user: UserInfo | undefined;
  readonly error: Error | undefined;
  /** The period in which the verdict is valid, in milliseconds since the epoch. */
  readonly fromMs: number;
  readonly untilMs: number;
  /** When the client's own certificate expires; undefined without one. */
  readonly endMs?: number;
}

/**
 * Authenticates TLS client certificates against a bundle of authorities (AUTHN-2): CN is the user,
 * every O a group. A chain is verified once per connection, and again only when one of its
 * certificates becomes valid or expires. Throws immediately for a malformed bundle; the certificate
 * reader is loaded with the first client certificate.
 */
export function createClientCertificateAuthenticator(options: {
  readonly bundlePem: string;
  readonly clock: Clock;
  readonly dialect: Dialect;
  /** Called with the remaining seconds of a request's certificate. */
  readonly onLifetime?: (seconds: number) => void;
  /**
   * Origins besides the server's own whose pages may open WebSockets with a certificate, none if
   * absent; or `no browser`: programs alone have the certificates, whatever headers they forward.
   */
  readonly mayUpgradeFrom?: ((origin: string) => boolean) | 'no browser';
  /** Certificates without a common name: `ignored` (the default), or users with an empty name. */
  readonly unnamed?: Unnamed;
}): CertificateAuthenticator {
  let authorities = authoritiesOf(options.bundlePem);
  const memoKey = Symbol('client-certificate');
  const { clock, dialect, unnamed = 'ignored', mayUpgradeFrom = () => false } = options;

  return {
    name: 'client-certificate',
    trust(bundlePem) {
      authorities = authoritiesOf(bundlePem);
    },
    authenticate(exchange: Exchange): UserInfo | undefined {
      const { connection } = exchange;
      const nowMs = clock.now();
      let verified = connection.memo.get(memoKey) as Verified | undefined;
      if (
        verified?.authorities !== authorities ||
        nowMs < verified.fromMs ||
        nowMs >= verified.untilMs
      ) {
        verified = verify(connection, { authorities, nowMs, dialect, unnamed });
        connection.memo.set(memoKey, verified);
      }
      if (verified.endMs !== undefined) options.onLifetime?.((verified.endMs - nowMs) / 1000);
      if (verified.error !== undefined) throw verified.error;
      if (verified.user === undefined || mayUpgradeFrom === 'no browser') return verified.user;
      return isCrossSite(exchange, mayUpgradeFrom) ? undefined : verified.user;
    },
  };
}

interface Authorities {
  readonly certificates: readonly Certificate[];
  readonly roots: TrustedRoots;
}

/** Validates the bundle now; the returned function parses its certificates on its first call. */
function authoritiesOf(bundlePem: string): () => Authorities {
  const encoded = bundleCertificates(bundlePem);
  if (encoded.length === 0) throw new Error('no certificate in the client CA bundle');
  for (const der of encoded) new X509Certificate(der);
  let read: Authorities | undefined;
  return () => {
    if (read === undefined) {
      const certificates = encoded.map((der) => parseCertificate(der));
      read = { certificates, roots: indexRoots(certificates) };
    }
    return read;
  };
}

function verify(
  connection: Connection,
  options: {
    readonly authorities: () => Authorities;
    readonly nowMs: number;
    readonly dialect: Dialect;
    readonly unnamed: Unnamed;
  },
): Verified {
  const { nowMs, dialect, authorities, unnamed } = options;
  const always = { fromMs: Number.NEGATIVE_INFINITY, untilMs: Number.POSITIVE_INFINITY };
  const encoded = connection.peerCertificates();
  if (encoded.length === 0) {
    return { authorities: authorities, user: undefined, error: undefined, ...always };
  }
  let span: Partial<Verified> = always;
  let user: UserInfo | undefined;
  let error: Error | undefined;
  try {
    const { certificates, roots } = authorities();
    const [leaf, ...intermediates] = parseChain(encoded);
    if (leaf === undefined) throw new CertificateError('no certificate');
    const all = [leaf, ...intermediates, ...certificates];
    span = { ...unchangedPeriod(all, nowMs), endMs: leaf.notAfterMs };
    verifyChain({ leaf, intermediates, roots, nowMs, usage: 'client' });
    if (leaf.subject.commonName !== '' || unnamed === 'accepted') user = userOf(leaf, dialect);
  } catch (failure) {
    error = asError(failure);
  }
  return { authorities: authorities, user, error, ...always, ...span };
}

/**
 * The period around `nowMs` in which no certificate becomes valid or expires, so that verification
 * has the same result.
 */
function unchangedPeriod(
  certificates: readonly Certificate[],
  nowMs: number,
): { readonly fromMs: number; readonly untilMs: number } {
  // A certificate is still valid in the millisecond at which it ends.
  const changes = certificates.flatMap((certificate) => [
    certificate.notBeforeMs,
    certificate.notAfterMs + 1,
  ]);
  return {
    fromMs: largest(
      Number.NEGATIVE_INFINITY,
      changes.filter((ms) => ms <= nowMs),
    ),
    untilMs: smallest(
      Number.POSITIVE_INFINITY,
      changes.filter((ms) => ms > nowMs),
    ),
  };
}

/** The user that a certificate names. */
function userOf({ subject, sha256 }: Certificate, dialect: Dialect): UserInfo {
  return {
    name: subject.commonName,
    uid: '',
    groups: subject.organizations,
    extra: { [dialect.label('credential-id', 'authentication')]: [`X509SHA256=${sha256}`] },
  };
}

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
      return userInHeaders(credentials, headers);
    },
  };
}

function userInHeaders(
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
