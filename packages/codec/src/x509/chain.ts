import { createHash, X509Certificate } from 'node:crypto';
import { WorkBudget } from '@wheelhouse/machinery';
import { type CertificateParts, readCertificate } from './certificate.ts';
import { elementsMax } from './der.ts';
import { constraintProblem } from './name-constraints.ts';
import { pemBlocks, pemBytes } from './pem.ts';
import { isSoundSignature } from './public-key.ts';

/** The parts of an X.509 certificate that the verification of chains uses. */
export interface Certificate extends CertificateParts {
  /** Used only to verify signatures. */
  readonly x509: X509Certificate;
  readonly sha256: string;
}

/** The work budget for reading the certificates that one client presents. */
const readingBudget = (): WorkBudget =>
  new WorkBudget({ what: 'the certificate chain', steps: elementsMax });

/**
 * Parses a DER certificate. Throws for malformed input, and WorkExceeded if it has more elements
 * than the budget allows.
 */
export function parseCertificate(der: Buffer, budget = readingBudget()): Certificate {
  return {
    ...readCertificate(der, budget),
    x509: new X509Certificate(der),
    sha256: createHash('sha256').update(der).digest('hex'),
  };
}

/**
 * The DER of each certificate of a PEM bundle; other blocks and text between them are skipped.
 * Throws if a certificate is not base64.
 */
export const bundleCertificates = (pem: string): readonly Buffer[] => [...certificatesIn(pem)];

/** The certificates of `bundleCertificates`, each decoded when it is read. */
export function* certificatesIn(pem: string): Generator<Buffer, void> {
  for (const block of pemBlocks(pem)) {
    if (block.type !== 'CERTIFICATE') continue;
    const der = pemBytes(block);
    if (der === undefined) throw new Error('malformed certificate in PEM bundle');
    yield der;
  }
}

/** Maximum number of certificates that a peer may present. */
const chainLengthMax = 10;

/** Parses what a peer presents. Throws for malformed input, and for too much of it. */
export function parseChain(encoded: readonly Buffer[]): readonly Certificate[] {
  if (encoded.length > chainLengthMax) throw new CertificateError('too many certificates');
  const budget = readingBudget();
  return encoded.map((der) => parseCertificate(der, budget));
}

/** A chain that cannot be trusted; the message is for the log. */
export class CertificateError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'CertificateError';
  }
}

/** The root authorities by name. */
export interface TrustedRoots {
  readonly digests: ReadonlySet<string>;
  readonly bySubject: ReadonlyMap<string, readonly Certificate[]>;
}

/** Roots in the form that `verifyChain` searches. */
export function indexRoots(roots: readonly Certificate[]): TrustedRoots {
  return {
    digests: new Set(roots.map(({ sha256 }) => sha256)),
    bySubject: grouped(roots, subjectOf),
  };
}

/** What a certificate must permit its owner to be, by object identifier. */
const usages = { client: '1.3.6.1.5.5.7.3.2', server: '1.3.6.1.5.5.7.3.1' } as const;
const anyUsage = '2.5.29.37.0';

/** The side of a connection that presents a certificate. */
type CertificateUsage = keyof typeof usages;

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
  readonly usage: CertificateUsage;
  readonly signatures: WorkBudget;
  readonly names: WorkBudget;
  /** Whether one certificate signed another, by their digests. */
  readonly signed: Map<string, boolean>;
  /** The most specific reason why a candidate failed. */
  problem: string;
}

/**
 * Finds a chain from `leaf` to one of `roots` that is valid at `nowMs` for a usage.
 * Throws CertificateError if there is none, and WorkExceeded if the search takes too many checks.
 */
export function verifyChain(options: {
  readonly leaf: Certificate;
  readonly intermediates: readonly Certificate[];
  readonly roots: TrustedRoots;
  readonly nowMs: number;
  readonly usage: CertificateUsage;
}): void {
  const { leaf, intermediates, roots, nowMs, usage } = options;
  const why = usageProblem(leaf, { nowMs, usage });
  if (why !== undefined) throw new CertificateError(why);
  if (roots.digests.has(leaf.sha256)) return;
  const above = certificatesAbove(leaf, intermediates);
  const search: Search = {
    leaf,
    presented: grouped([leaf, ...above], issuerOf),
    nowMs,
    usage,
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
    verdict =
      isSoundSignature(next.signatureAlgorithm) &&
      next.x509.checkIssued(issuer.x509) &&
      next.x509.verify(issuer.x509.publicKey);
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
  const why = usageProblem(issuer, search);
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

function usageProblem(
  certificate: Certificate,
  { nowMs, usage }: Pick<Search, 'nowMs' | 'usage'>,
): string | undefined {
  if (nowMs < certificate.notBeforeMs) return 'certificate is not yet valid';
  if (nowMs > certificate.notAfterMs) return 'certificate has expired';
  const permitted = certificate.extendedKeyUsages;
  if (
    permitted !== undefined &&
    !permitted.includes(usages[usage]) &&
    !permitted.includes(anyUsage)
  ) {
    return 'certificate specifies an incompatible key usage';
  }
  const [unknown] = certificate.unknownCritical;
  return unknown === undefined ? undefined : `unhandled critical extension ${unknown}`;
}
