import { X509Certificate } from 'node:crypto';
import { constraintProblem } from '@wheelhouse/codec';
import {
  type Clock,
  type Connection,
  type Dialect,
  type Exchange,
  largest,
  smallest,
  type UserInfo,
  WorkBudget,
} from '@wheelhouse/machinery';
import {
  bundleCertificates,
  type Certificate,
  parseCertificate,
  readingBudget,
} from './certificate.ts';
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
   * Origins besides the server's own whose pages may open WebSockets with a certificate; none if
   * absent.
   */
  readonly mayUpgradeFrom?: (origin: string) => boolean;
}): CertificateAuthenticator {
  let authorities = authoritiesOf(options.bundlePem);
  const memoKey = Symbol('client-certificate');
  const { clock, dialect, mayUpgradeFrom = () => false } = options;

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
        verified = verify(connection, { authorities, nowMs, dialect });
        connection.memo.set(memoKey, verified);
      }
      if (verified.endMs !== undefined) options.onLifetime?.((verified.endMs - nowMs) / 1000);
      if (verified.error !== undefined) throw verified.error;
      if (verified.user !== undefined && isCrossSite(exchange, mayUpgradeFrom)) return undefined;
      return verified.user;
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
  },
): Verified {
  const { nowMs, dialect, authorities } = options;
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
    verifyChain({ leaf, intermediates, roots, nowMs });
    user = userOf(leaf, dialect);
  } catch (failure) {
    error = failure instanceof Error ? failure : new Error(String(failure));
  }
  return { authorities: authorities, user, error, ...always, ...span };
}

/** Maximum number of certificates that a client may present. */
const chainLengthMax = 10;

function parseChain(encoded: readonly Buffer[]): readonly Certificate[] {
  if (encoded.length > chainLengthMax) throw new CertificateError('too many certificates');
  const budget = readingBudget();
  return encoded.map((der) => parseCertificate(der, budget));
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

/** The user that a certificate names; undefined without a common name. */
function userOf({ subject, sha256 }: Certificate, dialect: Dialect): UserInfo | undefined {
  if (subject.commonName === '') return undefined;
  return {
    name: subject.commonName,
    uid: '',
    groups: subject.organizations,
    extra: { [dialect.label('credential-id', 'authentication')]: [`X509SHA256=${sha256}`] },
  };
}

/** A chain that cannot be trusted; the message is for the log. */
class CertificateError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'CertificateError';
  }
}

/** The root authorities by name. */
interface TrustedRoots {
  readonly digests: ReadonlySet<string>;
  readonly bySubject: ReadonlyMap<string, readonly Certificate[]>;
}

function indexRoots(roots: readonly Certificate[]): TrustedRoots {
  return {
    digests: new Set(roots.map(({ sha256 }) => sha256)),
    bySubject: grouped(roots, subjectOf),
  };
}

const clientAuth = '1.3.6.1.5.5.7.3.2';
const anyUsage = '2.5.29.37.0';

/**
 * Maximum number of signature and name checks for one chain. The search descends from the roots and
 * follows only certificates with valid signatures, so a client without an authority's signature
 * costs at most one check for each pair of a presented certificate and a root of its issuer.
 */
const signatureChecksMax = 32;
const nameChecksMax = 20_000;

interface Search {
  readonly leaf: Certificate;
  /** The presented certificates by the name of their issuer. */
  readonly presented: ReadonlyMap<string, readonly Certificate[]>;
  readonly nowMs: number;
  readonly signatures: WorkBudget;
  readonly names: WorkBudget;
  /** Whether one certificate signed another, by their digests. */
  readonly signed: Map<string, boolean>;
  /** The most specific reason why a candidate failed. */
  problem: string;
}

/**
 * Finds a chain from `leaf` to one of `roots` that is valid at `nowMs` for client authentication.
 * Throws CertificateError if there is none, and WorkExceeded if the search takes too many checks.
 */
function verifyChain(options: {
  readonly leaf: Certificate;
  readonly intermediates: readonly Certificate[];
  readonly roots: TrustedRoots;
  readonly nowMs: number;
}): void {
  const { leaf, intermediates, roots, nowMs } = options;
  const why = usageProblem(leaf, nowMs);
  if (why !== undefined) throw new CertificateError(why);
  if (roots.digests.has(leaf.sha256)) return;
  const above = certificatesAbove(leaf, intermediates);
  const search: Search = {
    leaf,
    presented: grouped([leaf, ...above], issuerOf),
    nowMs,
    signatures: new WorkBudget({ what: 'the certificate chain', steps: signatureChecksMax }),
    names: new WorkBudget({ what: 'the certificate chain', steps: nameChecksMax }),
    signed: new Map(),
    problem: 'certificate signed by unknown authority',
  };
  for (const issuer of search.presented.keys()) {
    for (const root of roots.bySubject.get(issuer) ?? []) {
      if (leadsToLeaf([root], search)) return;
    }
  }
  throw new CertificateError(search.problem);
}

const subjectOf = ({ subjectDer }: Certificate) => subjectDer.toString('latin1');
const issuerOf = ({ issuerDer }: Certificate) => issuerDer.toString('latin1');

function grouped(
  certificates: readonly Certificate[],
  keyOf: (certificate: Certificate) => string,
): Map<string, Certificate[]> {
  const groups = new Map<string, Certificate[]>();
  for (const certificate of certificates) {
    const group = groups.get(keyOf(certificate));
    if (group === undefined) groups.set(keyOf(certificate), [certificate]);
    else group.push(certificate);
  }
  return groups;
}

/** The possible intermediates by issuer, each once. */
function certificatesAbove(
  leaf: Certificate,
  intermediates: readonly Certificate[],
): readonly Certificate[] {
  const bySubject = grouped(intermediates, subjectOf);
  const certificates = new Map<string, Certificate>();
  const waiting = [leaf];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    for (const issuer of bySubject.get(issuerOf(next)) ?? []) {
      if (certificates.has(issuer.sha256) || issuer.sha256 === leaf.sha256) continue;
      certificates.set(issuer.sha256, issuer);
      waiting.push(issuer);
    }
  }
  return [...certificates.values()];
}

/**
 * Whether a chain from a root, whose last certificate is an issuer, can be extended to the leaf.
 */
function leadsToLeaf(chain: readonly Certificate[], search: Search): boolean {
  const issuer = chain.at(-1)!;
  for (const next of search.presented.get(subjectOf(issuer)) ?? []) {
    if (chain.some(({ sha256 }) => sha256 === next.sha256)) continue;
    if (!hasSigned({ issuer, next }, search)) continue;
    const problem = linkProblem(chain, { next, search });
    if (problem !== undefined) search.problem = problem;
    else if (next === search.leaf || leadsToLeaf([...chain, next], search)) return true;
  }
  return false;
}

function hasSigned(
  { issuer, next }: { readonly issuer: Certificate; readonly next: Certificate },
  { signed, signatures }: Search,
): boolean {
  const pair = `${issuer.sha256} ${next.sha256}`;
  let verdict = signed.get(pair);
  if (verdict === undefined) {
    signatures.spend();
    verdict = next.x509.checkIssued(issuer.x509) && next.x509.verify(issuer.x509.publicKey);
    signed.set(pair, verdict);
  }
  return verdict;
}

/** Why a certificate that the chain's last one signed cannot extend the chain. */
function linkProblem(
  chain: readonly Certificate[],
  { next, search }: { readonly next: Certificate; readonly search: Search },
): string | undefined {
  const issuer = chain.at(-1)!;
  const why = usageProblem(issuer, search.nowMs);
  if (why !== undefined) return why;
  // A root of a version without basic constraints is an authority because it is trusted.
  const { isAuthority = chain.length === 1 && issuer.version < 3 } = issuer;
  if (!isAuthority) return 'parent certificate cannot sign this kind of certificate';
  const position = next === search.leaf ? chain.length : chain.length + 1;
  for (const [index, { pathLength, nameConstraints }] of chain.entries()) {
    const intermediatesBelow = position - 1 - index;
    if (pathLength !== undefined && intermediatesBelow > pathLength) {
      return 'too many intermediates for path length constraint';
    }
    const problem =
      nameConstraints && constraintProblem(nameConstraints, next.alternativeNames, search.names);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function usageProblem(certificate: Certificate, nowMs: number): string | undefined {
  if (nowMs < certificate.notBeforeMs) return 'certificate is not yet valid';
  if (nowMs > certificate.notAfterMs) return 'certificate has expired';
  const usages = certificate.extendedKeyUsages;
  if (usages !== undefined && !usages.includes(clientAuth) && !usages.includes(anyUsage)) {
    return 'certificate specifies an incompatible key usage';
  }
  const [unknown] = certificate.unknownCritical;
  return unknown === undefined ? undefined : `unhandled critical extension ${unknown}`;
}
