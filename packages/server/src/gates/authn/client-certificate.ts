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
  type Clock,
  type Connection,
  type Dialect,
  type Exchange,
  largest,
  smallest,
  type UserInfo,
} from '@wheelhouse/machinery';
import type { Authenticator } from './contract.ts';

/** The parts of a request that identify the site that sent it. */
type Request = Pick<Exchange, 'method' | 'header'>;

/**
 * Whether a page of another site sent the request from a browser, which attaches its user's
 * certificate without asking (CLIENT-4, TRUST-6). Navigation is excluded: the user initiates it,
 * and it changes nothing. Clients other than browsers send neither `Sec-Fetch-Site` nor, with an
 * upgrade, `Origin`.
 * @param mayUpgradeFrom other origins whose pages may open WebSockets with a certificate
 */
function isCrossSite(request: Request, mayUpgradeFrom: (origin: string) => boolean): boolean {
  // A browser's WebSocket handshake states no site, but always an origin.
  if (request.header('upgrade') !== undefined) return isCrossOriginUpgrade(request, mayUpgradeFrom);
  const site = request.header('sec-fetch-site');
  if (site !== 'cross-site' && site !== 'same-site') return false;
  return request.method !== 'GET' || request.header('sec-fetch-mode') !== 'navigate';
}

function isCrossOriginUpgrade(
  request: Request,
  mayUpgradeFrom: (origin: string) => boolean,
): boolean {
  const origin = request.header('origin');
  return (
    origin !== undefined && !isSameOrigin(origin, request.header('host')) && !mayUpgradeFrom(origin)
  );
}

/** Whether an origin is the requested host over TLS, the only scheme with client certificates. */
function isSameOrigin(origin: string, host = ''): boolean {
  const own = `https://${host}`;
  if (!URL.canParse(origin) || !URL.canParse(own)) return false;
  return new URL(origin).origin === new URL(own).origin;
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
    error = failure instanceof Error ? failure : new Error(String(failure));
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
