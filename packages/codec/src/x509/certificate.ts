import type { WorkBudget } from '@wheelhouse/machinery';
import { childrenOf, type DerElement, DerError, derTag } from './der.ts';
import { type Extension, readExtensions, readSequence } from './extensions.ts';
import { readName, type Subject } from './name.ts';

/** The parts of an X.509 certificate, as its bytes have them; nothing of it is verified. */
export interface CertificateParts {
  readonly subject: Subject;
  /** The encoded names, which link a certificate to its issuer when they are equal. */
  readonly subjectDer: Buffer;
  readonly issuerDer: Buffer;
  /** Milliseconds since the epoch, both inclusive. */
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
  /** By dotted identifier. */
  readonly extensions: ReadonlyMap<string, Extension>;
}

/** Longest certificate that is read, in bytes; ordinary ones have a few thousand. */
export const certificateBytesMax = 64 * 1024;

const tbsShape = /^(a0 )?02 30 30 30 30 30( 81)?( 82)?( a3)?$/;

/**
 * Reads a certificate in the one encoding that DER allows. Throws DerError for everything else, and
 * where Go and OpenSSL differ (TRUST-5): signature algorithms inside and outside that are not the
 * same, negative serial numbers, extensions of a version that has none.
 */
export function readCertificate(der: Buffer, budget?: WorkBudget): CertificateParts {
  if (der.length > certificateBytesMax) throw new DerError('certificate too long');
  const [tbs, outerAlgorithm] = childrenOf(readSequence(der, budget), {
    shape: /^30 30 03$/,
    what: 'certificate',
  });
  const fields = childrenOf(tbs, { shape: tbsShape, what: 'tbs certificate' });
  const version = versionOf(fields[0]);
  const [serial, algorithm, issuer, validity, subject, key, ...rest] =
    version === 1 ? fields : fields.slice(1);
  if (issuer === undefined || subject === undefined) throw new DerError('malformed certificate');
  if ((serial?.content[0] ?? 0x80) >= 0x80) throw new DerError('negative serial number');
  if (algorithm === undefined || outerAlgorithm?.whole.equals(algorithm.whole) !== true) {
    throw new DerError("inner and outer signature algorithm identifiers don't match");
  }
  checkAlgorithm(algorithm);
  checkPublicKey(key);
  const wrapped = rest.find(({ tag }) => tag === 0xa3);
  if (rest.length > 0 && version === 1) throw new DerError('malformed tbs certificate');
  if (wrapped !== undefined && version !== 3) throw new DerError('extensions of a version 2');
  const [list] =
    wrapped === undefined ? [] : childrenOf(wrapped, { shape: /^30$/, what: 'extensions' });
  // Both names are read, so that no chain has an authority whose name has two readings.
  readName(issuer);
  return {
    subject: readName(subject),
    subjectDer: subject.whole,
    issuerDer: issuer.whole,
    ...readValidity(validity),
    extensions: list === undefined ? new Map() : readExtensions(list),
  };
}

/** The version, counted from 1, which is the one of a certificate that does not name it. */
function versionOf(field: DerElement | undefined): 1 | 2 | 3 {
  if (field?.tag !== 0xa0) return 1;
  const [number] = childrenOf(field, { shape: /^02$/, what: 'version' });
  const value = number?.content;
  if (value?.length !== 1 || (value[0] !== 1 && value[0] !== 2)) {
    throw new DerError('invalid version');
  }
  return value[0] === 1 ? 2 : 3;
}

/** Throws DerError for what is no algorithm with its parameters. */
export function checkAlgorithm(element: DerElement | undefined): void {
  childrenOf(element, { shape: /^06( [0-9a-f]{2})?$/, what: 'algorithm identifier' });
}

/** Throws DerError for what is no public key with its algorithm. */
export function checkPublicKey(element: DerElement | undefined): void {
  const [algorithm] = childrenOf(element, { shape: /^30 03$/, what: 'public key' });
  checkAlgorithm(algorithm);
}

function readValidity(element: DerElement | undefined) {
  const [from, to] = childrenOf(element, { shape: /^1[78] 1[78]$/, what: 'validity' });
  return { notBeforeMs: timeOf(from), notAfterMs: timeOf(to) };
}

const timePattern = /^(\d{4})(\d{2})(\d{2})(\d{2})(\d{2})(\d{2})Z$/;

/** Milliseconds since the epoch; seconds are given, and the zone is UTC, as RFC 5280 has it. */
function timeOf(element: DerElement | undefined): number {
  let text = element?.content.toString('latin1') ?? '';
  if (element?.tag === derTag.utcTime) text = (text < '50' ? '20' : '19') + text;
  const match = timePattern.exec(text);
  if (match === null) throw new DerError('malformed time');
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = match
    .slice(1)
    .map(Number);
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  date.setUTCHours(hour, minute, second);
  // A thirtieth of February becomes another day.
  const isSame = `${date.toISOString().slice(0, 19).replace(/[-T:]/g, '')}Z` === text;
  if (!isSame) throw new DerError('malformed time');
  return date.getTime();
}
