import type { Certificate } from './certificate.ts';
import { constraintProblem } from './name-constraints.ts';

/** A chain that cannot be trusted; the message is for the log. */
export class CertificateError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'CertificateError';
  }
}

/** The time, in ms since the epoch, within which a verified chain stays valid as it is. */
export interface ValiditySpan {
  readonly fromMs: number;
  readonly toMs: number;
}

const clientAuth = '1.3.6.1.5.5.7.3.2';
const anyUsage = '2.5.29.37.0';

/** Most signatures checked for one chain, so that a hostile set of intermediates stays cheap. */
const signatureChecksMax = 50;

interface Search {
  readonly intermediates: readonly Certificate[];
  readonly roots: readonly Certificate[];
  readonly nowMs: number;
  signatureChecks: number;
  /** The most telling reason a candidate failed. */
  problem: string;
}

/**
 * Finds a chain from `leaf` to one of `roots` that is valid at `nowMs` and good for client
 * authentication, and gives how long it stays so. Throws CertificateError when there is none.
 */
export function verifyChain(options: {
  readonly leaf: Certificate;
  readonly intermediates: readonly Certificate[];
  readonly roots: readonly Certificate[];
  readonly nowMs: number;
}): ValiditySpan {
  const search: Search = {
    ...options,
    signatureChecks: 0,
    problem: 'certificate signed by unknown authority',
  };
  const { leaf } = options;
  const why = unusable(leaf, options.nowMs);
  if (why !== undefined) throw new CertificateError(why);
  const chain = options.roots.some((root) => root.sha256 === leaf.sha256)
    ? [leaf]
    : extend([leaf], search);
  if (chain === undefined) throw new CertificateError(search.problem);
  return {
    fromMs: Math.max(...chain.map((one) => one.notBeforeMs)),
    toMs: Math.min(...chain.map((one) => one.notAfterMs)),
  };
}

function extend(chain: readonly Certificate[], search: Search): Certificate[] | undefined {
  for (const root of search.roots) {
    if (signs(root, chain, search)) return [...chain, root];
  }
  for (const candidate of search.intermediates) {
    if (chain.some((one) => one.sha256 === candidate.sha256)) continue;
    if (!signs(candidate, chain, search)) continue;
    const found = extend([...chain, candidate], search);
    if (found !== undefined) return found;
  }
  return undefined;
}

function signs(issuer: Certificate, chain: readonly Certificate[], search: Search): boolean {
  const subject = chain.at(-1)!;
  if (subject.x509.issuer !== issuer.x509.subject) return false;
  search.signatureChecks += 1;
  if (search.signatureChecks > signatureChecksMax) {
    search.problem = 'too many signatures to check';
    return false;
  }
  if (!subject.x509.checkIssued(issuer.x509)) return false;
  if (!subject.x509.verify(issuer.x509.publicKey)) return false;
  const problem = unusable(issuer, search.nowMs) ?? unfitAuthority(issuer, chain);
  if (problem !== undefined) search.problem = problem;
  return problem === undefined;
}

function unusable(certificate: Certificate, nowMs: number): string | undefined {
  // Compared so that an unreadable date (NaN) is refused as well.
  if (!(nowMs >= certificate.notBeforeMs)) return 'certificate is not yet valid';
  if (!(nowMs <= certificate.notAfterMs)) return 'certificate has expired';
  const usages = certificate.extendedKeyUsages;
  if (usages !== undefined && !usages.includes(clientAuth) && !usages.includes(anyUsage)) {
    return 'certificate specifies an incompatible key usage';
  }
  const [unknown] = certificate.unknownCritical;
  return unknown === undefined ? undefined : `unhandled critical extension ${unknown}`;
}

function unfitAuthority(issuer: Certificate, chain: readonly Certificate[]): string | undefined {
  const intermediatesBelow = chain.length - 1;
  if (issuer.isAuthority !== true) return 'parent certificate cannot sign this kind of certificate';
  if (issuer.pathLength !== undefined && intermediatesBelow > issuer.pathLength) {
    return 'too many intermediates for path length constraint';
  }
  const { nameConstraints } = issuer;
  return nameConstraints === undefined ? undefined : constraintProblem(nameConstraints, chain);
}
