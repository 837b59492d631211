import { createHash, X509Certificate } from 'node:crypto';
import { pemBlocks } from '../kinds/pem.ts';
import { type DerElement, DerError, derElements, derTag, directoryText, oidText } from './der.ts';
import {
  type AlternativeName,
  type NameConstraints,
  parseAlternativeNames,
  parseNameConstraints,
} from './name-constraints.ts';

/** What verification and naming need of one X.509 certificate. */
export interface Certificate {
  readonly x509: X509Certificate;
  /** Last common name of the subject; empty when it has none. */
  readonly commonName: string;
  readonly organizations: readonly string[];
  /** Milliseconds since the epoch, both inclusive. */
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
  /** Undefined: no basic constraints. */
  readonly isAuthority: boolean | undefined;
  /** Most intermediates allowed below this authority; undefined: any number. */
  readonly pathLength: number | undefined;
  /** Dotted identifiers; undefined: no restriction. */
  readonly extendedKeyUsages: readonly string[] | undefined;
  readonly alternativeNames: readonly AlternativeName[];
  /** What an authority may sign for; undefined: any name. */
  readonly nameConstraints: NameConstraints | undefined;
  /** Critical extensions this code does not evaluate; a chain with one must be refused. */
  readonly unknownCritical: readonly string[];
  readonly sha256: string;
}

const oids = {
  commonName: '2.5.4.3',
  organization: '2.5.4.10',
  basicConstraints: '2.5.29.19',
  extendedKeyUsage: '2.5.29.37',
  keyUsage: '2.5.29.15',
  subjectAlternativeName: '2.5.29.17',
  nameConstraints: '2.5.29.30',
} as const;

/** Longest certificate looked at; real ones are a few kilobytes. */
const certificateBytesMax = 64 * 1024;

/** Reads a DER certificate; throws on anything else. */
export function parseCertificate(der: Buffer): Certificate {
  if (der.length > certificateBytesMax) throw new DerError('certificate too long');
  const x509 = new X509Certificate(der);
  const parts = certificateParts(x509.raw);
  const subject = parseName(parts.subject);
  return {
    x509,
    ...subject,
    ...parseExtensions(parts.extensions),
    notBeforeMs: Date.parse(x509.validFrom),
    notAfterMs: Date.parse(x509.validTo),
    sha256: createHash('sha256').update(x509.raw).digest('hex'),
  };
}

/** All certificates of a PEM bundle, other blocks and text between them skipped. */
export function parsePemBundle(pem: string): readonly Certificate[] {
  const begin = '-----BEGIN CERTIFICATE-----';
  const end = '-----END CERTIFICATE-----';
  const certificates: Certificate[] = [];
  for (let from = pem.indexOf(begin); from >= 0; from = pem.indexOf(begin, from + 1)) {
    const to = pem.indexOf(end, from);
    if (to < 0) throw new Error('unterminated certificate in PEM bundle');
    const body = pem.slice(from + begin.length, to);
    certificates.push(parseCertificate(Buffer.from(body, 'base64')));
  }
  return certificates;
}

/**
 * What is wrong with the authorities a webhook is trusted by (base64 of PEM): nothing when one
 * certificate among them can be read, whatever else there is, or when there is no text.
 */
export function bundleProblems(bundle: string): readonly string[] {
  const pem = Buffer.from(bundle, 'base64').toString('latin1');
  const problem = pem === '' ? undefined : bundleProblem(pem);
  return problem === undefined ? [] : [`unable to load root certificates: ${problem}`];
}

function bundleProblem(pem: string): string | undefined {
  const blocks = pemBlocks(pem)
    .map(({ type, text }) => ({ type, text, body: bodyOf(text) }))
    .filter(({ body }) => blockBody.test(body));
  let problem: string | undefined;
  for (const { body } of blocks.filter(({ type }) => type === 'CERTIFICATE')) {
    // What has headers is encrypted.
    if (body.includes(':')) continue;
    try {
      parseCertificate(Buffer.from(body, 'base64'));
      return undefined;
    } catch {
      problem ??= 'failed to parse certificate: x509: malformed certificate';
    }
  }
  if (problem !== undefined) return problem;
  const last = blocks.at(-1)?.text;
  const endsWhole = last !== undefined && (pem.endsWith(last) || pem.endsWith(`${last}\n`));
  return endsWhole
    ? 'no valid certificate authority data seen'
    : 'unable to parse bytes as PEM block';
}

/** Headers, if any, and base64. A line is taken in one way alone: others' texts are matched here. */
const blockBody = /^(?:[^\n:]*:[^\n]*\n)*[A-Za-z0-9+/=\s]*$/;

function bodyOf(block: string): string {
  return block.slice(block.indexOf('\n') + 1, block.lastIndexOf('-----END '));
}

function children(element: DerElement | undefined): DerElement[] {
  if (element === undefined) throw new DerError('element missing in certificate');
  return derElements(element.content);
}

/** TBSCertificate is [0] version, serial, algorithm, issuer, validity, subject, …, [3] extensions. */
function certificateParts(der: Buffer): {
  subject: DerElement;
  extensions: DerElement | undefined;
} {
  const fields = children(children(derElements(der)[0])[0]);
  const base = fields[0]?.tag === 0xa0 ? 1 : 0;
  const subject = fields[base + 4];
  if (subject === undefined) throw new DerError('certificate without subject');
  return { subject, extensions: fields.find((field) => field.tag === 0xa3) };
}

function parseName(name: DerElement): { commonName: string; organizations: string[] } {
  let commonName = '';
  const organizations: string[] = [];
  for (const set of children(name)) {
    for (const pair of children(set)) {
      const [type, value] = children(pair);
      if (type === undefined || value === undefined) throw new DerError('malformed name');
      const oid = oidText(type.content);
      if (oid === oids.commonName) commonName = directoryText(value);
      else if (oid === oids.organization) organizations.push(directoryText(value));
    }
  }
  return { commonName, organizations };
}

interface Extensions {
  isAuthority: boolean | undefined;
  pathLength: number | undefined;
  extendedKeyUsages: readonly string[] | undefined;
  alternativeNames: readonly AlternativeName[];
  nameConstraints: NameConstraints | undefined;
  unknownCritical: string[];
}

function parseExtensions(element: DerElement | undefined): Extensions {
  const found: Extensions = {
    isAuthority: undefined,
    pathLength: undefined,
    extendedKeyUsages: undefined,
    alternativeNames: [],
    nameConstraints: undefined,
    unknownCritical: [],
  };
  if (element === undefined) return found;
  const seen = new Set<string>();
  for (const extension of children(children(element)[0])) {
    const parts = children(extension);
    const oid = oidText(parts[0]!.content);
    // Of two, one would count for less than it says.
    if (seen.has(oid)) throw new DerError('extension given twice');
    seen.add(oid);
    const critical = parts[1]?.tag === derTag.boolean && parts[1].content[0] !== 0;
    const value = parts.at(-1)!.content;
    applyExtension(found, { oid, critical, value });
  }
  return found;
}

function applyExtension(
  found: Extensions,
  { oid, critical, value }: { oid: string; critical: boolean; value: Buffer },
): void {
  if (oid === oids.basicConstraints) {
    const [first, second] = children(derElements(value)[0]);
    found.isAuthority = first?.tag === derTag.boolean && first.content[0] !== 0;
    const length = first?.tag === derTag.integer ? first : second;
    if (length !== undefined) {
      if (length.content.length !== 1) throw new DerError('path length out of range');
      found.pathLength = length.content[0];
    }
  } else if (oid === oids.extendedKeyUsage) {
    found.extendedKeyUsages = children(derElements(value)[0]).map((one) => oidText(one.content));
  } else if (oid === oids.subjectAlternativeName) {
    found.alternativeNames = parseAlternativeNames(value);
    if (critical && found.alternativeNames.length === 0) found.unknownCritical.push(oid);
  } else if (oid === oids.nameConstraints) {
    const { constraints, unhandled } = parseNameConstraints(value);
    found.nameConstraints = constraints;
    if (critical && unhandled) found.unknownCritical.push(oid);
  } else if (critical && oid !== oids.keyUsage) {
    found.unknownCritical.push(oid);
  }
}
