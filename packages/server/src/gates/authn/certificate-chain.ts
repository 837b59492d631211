import { WorkBudget } from '@wheelhouse/machinery';
import type { Certificate } from './certificate.ts';
import { constraintProblem } from './name-constraints.ts';

/** A chain that cannot be trusted; the message is for the log. */
export class CertificateError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'CertificateError';
  }
}

/** The authorities that chains must end at, by their names. */
export interface TrustedRoots {
  readonly digests: ReadonlySet<string>;
  readonly bySubject: ReadonlyMap<string, readonly Certificate[]>;
}

export function indexRoots(roots: readonly Certificate[]): TrustedRoots {
  return {
    digests: new Set(roots.map(({ sha256 }) => sha256)),
    bySubject: grouped(roots, subjectOf),
  };
}

const clientAuth = '1.3.6.1.5.5.7.3.2';
const anyUsage = '2.5.29.37.0';

/**
 * Most signatures and names checked for one chain. The search goes down from the roots and follows
 * only certificates whose signature was right, so that a client that has none of an authority's
 * signatures costs at most one check for each certificate that it shows and root of its issuer.
 */
const signatureChecksMax = 32;
const nameChecksMax = 20_000;

interface Search {
  readonly leaf: Certificate;
  /** What the client has shown, by the name of the issuer. */
  readonly shown: ReadonlyMap<string, readonly Certificate[]>;
  readonly nowMs: number;
  readonly signatures: WorkBudget;
  readonly names: WorkBudget;
  /** Whether the first certificate signed the second, by their digests. */
  readonly signed: Map<string, boolean>;
  /** The most telling reason a candidate failed. */
  problem: string;
}

/**
 * Finds a chain from `leaf` to one of `roots` that is valid at `nowMs` and good for client
 * authentication. Throws CertificateError when there is none, and WorkExceeded when finding out
 * takes too many checks.
 */
export function verifyChain(options: {
  readonly leaf: Certificate;
  readonly intermediates: readonly Certificate[];
  readonly roots: TrustedRoots;
  readonly nowMs: number;
}): void {
  const { leaf, intermediates, roots, nowMs } = options;
  const why = unusable(leaf, nowMs);
  if (why !== undefined) throw new CertificateError(why);
  if (roots.digests.has(leaf.sha256)) return;
  const above = certificatesAbove(leaf, intermediates);
  const search: Search = {
    leaf,
    shown: grouped([leaf, ...above], issuerOf),
    nowMs,
    signatures: new WorkBudget({ what: 'the certificate chain', steps: signatureChecksMax }),
    names: new WorkBudget({ what: 'the certificate chain', steps: nameChecksMax }),
    signed: new Map(),
    problem: 'certificate signed by unknown authority',
  };
  for (const issuer of search.shown.keys()) {
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

/** The intermediates that could stand above the leaf, by their names, each once. */
function certificatesAbove(
  leaf: Certificate,
  intermediates: readonly Certificate[],
): readonly Certificate[] {
  const bySubject = grouped(intermediates, subjectOf);
  const found = new Map<string, Certificate>();
  const waiting = [leaf];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    for (const issuer of bySubject.get(issuerOf(next)) ?? []) {
      if (found.has(issuer.sha256) || issuer.sha256 === leaf.sha256) continue;
      found.set(issuer.sha256, issuer);
      waiting.push(issuer);
    }
  }
  return [...found.values()];
}

/** Extends a chain that begins at a root, and whose last certificate is an issuer, to the leaf. */
function leadsToLeaf(chain: readonly Certificate[], search: Search): boolean {
  const issuer = chain.at(-1)!;
  for (const next of search.shown.get(subjectOf(issuer)) ?? []) {
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

/** Why the chain may not go on with a certificate that its last one has signed. */
function linkProblem(
  chain: readonly Certificate[],
  { next, search }: { readonly next: Certificate; readonly search: Search },
): string | undefined {
  const issuer = chain.at(-1)!;
  const why = unusable(issuer, search.nowMs);
  if (why !== undefined) return why;
  if (issuer.isAuthority !== true) return 'parent certificate cannot sign this kind of certificate';
  const ownPlace = next === search.leaf ? chain.length : chain.length + 1;
  for (const [index, { pathLength, nameConstraints }] of chain.entries()) {
    const intermediatesBelow = ownPlace - 1 - index;
    if (pathLength !== undefined && intermediatesBelow > pathLength) {
      return 'too many intermediates for path length constraint';
    }
    const problem =
      nameConstraints && constraintProblem(nameConstraints, next.alternativeNames, search.names);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function unusable(certificate: Certificate, nowMs: number): string | undefined {
  if (nowMs < certificate.notBeforeMs) return 'certificate is not yet valid';
  if (nowMs > certificate.notAfterMs) return 'certificate has expired';
  const usages = certificate.extendedKeyUsages;
  if (usages !== undefined && !usages.includes(clientAuth) && !usages.includes(anyUsage)) {
    return 'certificate specifies an incompatible key usage';
  }
  const [unknown] = certificate.unknownCritical;
  return unknown === undefined ? undefined : `unhandled critical extension ${unknown}`;
}
