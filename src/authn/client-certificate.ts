import type { Clock } from '../base/clock.ts';
import type { Connection, Exchange } from '../base/exchange.ts';
import type { Dialect } from '../dialect.ts';
import type { UserInfo } from '../meta/types.ts';
import { type Certificate, parseCertificate, parsePemBundle } from './certificate.ts';
import { verifyChain } from './certificate-chain.ts';
import type { Authenticator } from './contract.ts';

interface Verified {
  readonly user: UserInfo | undefined;
  readonly error: Error | undefined;
  /** Outside this span (ms since the epoch) the chain must be verified again. */
  readonly fromMs: number;
  readonly toMs: number;
  /** When the client's own certificate ends; undefined where it has shown none. */
  readonly endMs?: number;
}

/**
 * Authenticates TLS client certificates against a bundle of authorities (AUTHN-2): CN is the user,
 * every O a group. A chain is verified once per connection and again only when one of its
 * certificates begins or ceases to be valid. Throws at once when the bundle cannot be read.
 */
export function createClientCertificateAuthenticator(options: {
  readonly bundlePem: string;
  readonly clock: Clock;
  readonly dialect: Dialect;
  /** Hears how many seconds are left of the certificate of a request. */
  readonly onLifetime?: (seconds: number) => void;
}): Authenticator {
  const roots = parsePemBundle(options.bundlePem);
  if (roots.length === 0) throw new Error('no certificate in the client CA bundle');
  const memoKey = Symbol('client-certificate');
  const { clock, dialect } = options;

  return {
    name: 'client-certificate',
    authenticate(exchange: Exchange): UserInfo | undefined {
      const { connection } = exchange;
      const nowMs = clock.now();
      let verified = connection.memo.get(memoKey) as Verified | undefined;
      if (verified === undefined || nowMs < verified.fromMs || nowMs > verified.toMs) {
        verified = verify(connection, { roots, nowMs, dialect });
        connection.memo.set(memoKey, verified);
      }
      if (verified.endMs !== undefined) options.onLifetime?.((verified.endMs - nowMs) / 1000);
      if (verified.error !== undefined) throw verified.error;
      if (verified.user !== undefined && isOfAnotherSite(exchange)) return undefined;
      return verified.user;
    },
  };
}

/**
 * Whether a browser says that a page of another site made the request: it shows its user's
 * certificate by itself then too, without the user wanting anything (CLIENT-4). A link that was
 * followed is the user's own wish, and changes nothing. What is no browser does not send the header.
 */
function isOfAnotherSite(exchange: Exchange): boolean {
  const site = exchange.header('sec-fetch-site');
  if (site !== 'cross-site' && site !== 'same-site') return false;
  return exchange.method !== 'GET' || exchange.header('sec-fetch-mode') !== 'navigate';
}

function verify(
  connection: Connection,
  options: { roots: readonly Certificate[]; nowMs: number; dialect: Dialect },
): Verified {
  const ever = { fromMs: Number.NEGATIVE_INFINITY, toMs: Number.POSITIVE_INFINITY };
  const encoded = connection.peerCertificates();
  if (encoded.length === 0) return { user: undefined, error: undefined, ...ever };
  let endMs: number | undefined;
  try {
    const [leaf, ...intermediates] = encoded.slice(0, maxChainLength).map(parseCertificate);
    endMs = leaf?.notAfterMs;
    const span = verifyChain({
      leaf: leaf!,
      intermediates,
      roots: options.roots,
      nowMs: options.nowMs,
    });
    const { fromMs, toMs } = span;
    return {
      user: userOf(leaf!, options.dialect),
      error: undefined,
      fromMs,
      toMs,
      ...ending(endMs),
    };
  } catch (error) {
    const failure = error instanceof Error ? error : new Error(String(error));
    // A certificate that is not valid yet may become so while the connection stays open.
    const { nowMs } = options;
    return { user: undefined, error: failure, fromMs: nowMs, toMs: nowMs, ...ending(endMs) };
  }
}

function ending(endMs: number | undefined): { readonly endMs?: number } {
  return endMs === undefined ? {} : { endMs };
}

const maxChainLength = 10;

function userOf(leaf: Certificate, dialect: Dialect): UserInfo | undefined {
  if (leaf.commonName === '') return undefined;
  return {
    name: leaf.commonName,
    uid: '',
    groups: leaf.organizations,
    extra: { [dialect.label('credential-id', 'authentication')]: [`X509SHA256=${leaf.sha256}`] },
  };
}
