import { isAscii, isUtf8 } from 'node:buffer';
import type { WorkBudget } from '@wheelhouse/machinery';
import { childrenOf, type DerElement, DerError, derTag, oidText, readSequence } from './der.ts';
import {
  type CertificateExtensions,
  type Extension,
  evaluateExtensions,
  hasAlternativeNames,
  readAlternativeNames,
  readExtensions,
} from './extensions.ts';
import type { AlternativeName } from './name-constraints.ts';
import { checkPublicKey, readAlgorithm } from './public-key.ts';

/** The parts of an X.509 certificate, whose signature is not verified. */
export interface CertificateParts extends CertificateExtensions {
  /** Only version 3 has extensions. */
  readonly version: 1 | 2 | 3;
  /** The identifier of the algorithm of its signature, encoded. */
  readonly signatureAlgorithm: Buffer;
  readonly subject: Subject;
  /** The encoded names, which are compared to link a certificate to its issuer. */
  readonly subjectDer: Buffer;
  readonly issuerDer: Buffer;
  /** Milliseconds since the epoch, both inclusive. */
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
}

/** Maximum size of a certificate in bytes; most have a few thousand. */
const certificateBytesMax = 64 * 1024;

const noExtensions: ReadonlyMap<string, Extension> = new Map();

const tbsTags = /^(a0 )?02 30 30 30 30 30( 81)?( 82)?( a3)?$/;

/**
 * Parses a certificate in strict DER.
 * @param budget charged one step for each element
 * @throws DerError for other encodings, and for what Go and OpenSSL interpret differently
 *   (TRUST-5): different inner and outer signature algorithms, negative serial numbers, extensions
 *   in a version without them
 */
export function readCertificate(der: Buffer, budget?: WorkBudget): CertificateParts {
  if (der.length > certificateBytesMax) throw new DerError('certificate too long');
  const [tbs, outerAlgorithm] = childrenOf(readSequence(der, budget), {
    tags: /^30 30 03$/,
    what: 'certificate',
  });
  const fields = childrenOf(tbs, { tags: tbsTags, what: 'tbs certificate' });
  const version = versionOf(fields[0]);
  const [serial, algorithm, issuer, validity, subject, key, ...rest] =
    version === 1 ? fields : fields.slice(1);
  if (issuer === undefined || subject === undefined) throw new DerError('malformed certificate');
  if ((serial?.content[0] ?? 0x80) >= 0x80) throw new DerError('negative serial number');
  if (algorithm === undefined || outerAlgorithm?.whole.equals(algorithm.whole) !== true) {
    throw new DerError("inner and outer signature algorithm identifiers don't match");
  }
  readAlgorithm(algorithm);
  checkPublicKey(key);
  const wrapped = rest.find(({ tag }) => tag === 0xa3);
  if (rest.length > 0 && version === 1) throw new DerError('malformed tbs certificate');
  if (wrapped !== undefined && version !== 3) throw new DerError('extensions of a version 2');
  const [list] =
    wrapped === undefined ? [] : childrenOf(wrapped, { tags: /^30$/, what: 'extensions' });
  // The issuer is checked too, so that no chain contains an authority with an ambiguous name.
  readName(issuer);
  const extensions = list === undefined ? noExtensions : readExtensions(list);
  return {
    version,
    signatureAlgorithm: algorithm.whole,
    subject: readName(subject),
    subjectDer: subject.whole,
    issuerDer: issuer.whole,
    ...readValidity(validity),
    ...evaluateExtensions(extensions, budget),
  };
}

/** Returns the version of a certificate: 1 if it is absent. */
function versionOf(field: DerElement | undefined): 1 | 2 | 3 {
  if (field?.tag !== 0xa0) return 1;
  const [number] = childrenOf(field, { tags: /^02$/, what: 'version' });
  const value = number?.content;
  if (value?.length !== 1 || (value[0] !== 1 && value[0] !== 2)) {
    throw new DerError('invalid version');
  }
  return value[0] === 1 ? 2 : 3;
}

function readValidity(element: DerElement | undefined) {
  const [from, to] = childrenOf(element, { tags: /^1[78] 1[78]$/, what: 'validity' });
  return { notBeforeMs: timeOf(from), notAfterMs: timeOf(to) };
}

const timePattern = /^(\d{4})(\d{2})(\d{2})(\d{2})(\d{2})(\d{2})Z$/;

/**
 * Parses a time to milliseconds since the epoch. Seconds are required, and the zone must be UTC
 * (RFC 5280).
 */
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
  // Date normalizes invalid days such as February 30.
  const isSame = `${date.toISOString().slice(0, 19).replace(/[-T:]/g, '')}Z` === text;
  if (!isSame) throw new DerError('malformed time');
  return date.getTime();
}

/** The parts of a PKCS#10 certificate request. The signature is not verified. */
export interface RequestParts {
  readonly subject: Subject;
  /** Whether it requests alternative names, which `alternativeNames` lists only of some kinds. */
  readonly hasAlternatives: boolean;
  readonly alternativeNames: readonly AlternativeName[];
  /** The signed bytes. */
  readonly signedDer: Buffer;
  /** The public key as SubjectPublicKeyInfo. */
  readonly publicKeyDer: Buffer;
  readonly algorithm: DerElement;
  readonly signature: Buffer;
}

/** Maximum size of a request in bytes. */
const requestBytesMax = 64 * 1024;

const extensionRequest = '1.2.840.113549.1.9.14';
/** An attribute that OpenSSL interprets as an extension request and Go does not. */
const otherExtensionRequest = '1.3.6.1.4.1.311.2.1.14';

/**
 * Parses a request in strict DER.
 * @throws DerError
 */
export function readRequest(der: Buffer): RequestParts {
  if (der.length > requestBytesMax) throw new DerError('request too long');
  const [info, algorithm, signature] = childrenOf(readSequence(der), {
    tags: /^30 30 03$/,
    what: 'certificate request',
  });
  const [version, subject, key, attributes] = childrenOf(info, {
    tags: /^02 30 30 a0$/,
    what: 'certificate request info',
  });
  if (info === undefined || subject === undefined || key === undefined) {
    throw new DerError('malformed certificate request');
  }
  if (algorithm === undefined || signature?.content[0] !== 0) {
    throw new DerError('malformed signature');
  }
  if (!version?.content.equals(Buffer.from([0]))) throw new DerError('invalid version');
  readAlgorithm(algorithm);
  checkPublicKey(key);
  const extensions = requestedExtensions(attributes);
  return {
    subject: readName(subject),
    hasAlternatives: hasAlternativeNames(extensions),
    alternativeNames: readAlternativeNames(extensions),
    signedDer: info.whole,
    publicKeyDer: key.whole,
    algorithm,
    // A bit string starts with the number of its unused bits.
    signature: signature.content.subarray(1),
  };
}

function requestedExtensions(attributes: DerElement | undefined): ReadonlyMap<string, Extension> {
  let extensions: ReadonlyMap<string, Extension> | undefined;
  for (const attribute of childrenOf(attributes, { tags: /^(30( 30)*)?$/, what: 'attributes' })) {
    const [type, values] = childrenOf(attribute, { tags: /^06 31$/, what: 'attribute' });
    if (type === undefined || values === undefined) throw new DerError('malformed attribute');
    const oid = oidText(type);
    if (oid === otherExtensionRequest) throw new DerError('unsupported extension request');
    if (oid !== extensionRequest) continue;
    const [list] = childrenOf(values, { tags: /^30$/, what: 'extension request' });
    if (extensions !== undefined) throw new DerError('several extension requests');
    extensions = readExtensions(list);
  }
  return extensions ?? noExtensions;
}

/**
 * The subject of a certificate or request. This is the only parser of distinguished names:
 * admission validates the result, and the authenticator derives the user's name and groups from it
 * (TRUST-5).
 */
export interface Subject {
  /** Empty if the name has none. */
  readonly commonName: string;
  readonly organizations: readonly string[];
  /** The values of all attributes, those above included, by dotted identifier. */
  readonly attributes: ReadonlyMap<string, readonly string[]>;
}

/** The identifiers of attributes of names. */
export const attributeOids = {
  commonName: '2.5.4.3',
  serialNumber: '2.5.4.5',
  country: '2.5.4.6',
  locality: '2.5.4.7',
  province: '2.5.4.8',
  streetAddress: '2.5.4.9',
  organization: '2.5.4.10',
  organizationalUnit: '2.5.4.11',
  postalCode: '2.5.4.17',
} as const;

/**
 * Parses a distinguished name. Throws DerError for a name that Go and OpenSSL interpret
 * differently: one with a NUL, with a character outside its string type, or with several common
 * names, of which one takes the first and the other the last.
 */
function readName(name: DerElement): Subject {
  const attributes = new Map<string, string[]>();
  for (const set of childrenOf(name, { tags: /^(31( 31)*)?$/, what: 'name' })) {
    for (const pair of childrenOf(set, { tags: /^30( 30)*$/, what: 'relative name' })) {
      const [type, value] = childrenOf(pair, { tags: /^06 [0-9a-f]{2}$/, what: 'attribute' });
      if (type === undefined || value === undefined) throw new DerError('malformed attribute');
      const [oid, text] = [oidText(type), directoryText(value)];
      const values = attributes.get(oid);
      if (values === undefined) attributes.set(oid, [text]);
      else values.push(text);
    }
  }
  const [commonName = '', ...others] = attributes.get(attributeOids.commonName) ?? [];
  if (others.length > 0) throw new DerError('the name has several common names');
  return {
    commonName,
    organizations: attributes.get(attributeOids.organization) ?? [],
    attributes,
  };
}

const printable = /^[A-Za-z0-9 '()+,\-./:=?*&]*$/;
const numeric = /^[0-9 ]*$/;

/** Returns the text of an attribute value in the string types that Go supports. Throws DerError. */
function directoryText({ tag, content }: DerElement): string {
  const text = tag === derTag.bmpString ? bmpText(content) : content.toString('utf8');
  if (!isOfType(tag, text, content) || text.includes('\0')) {
    throw new DerError('malformed text in a name');
  }
  return text;
}

function isOfType(tag: number, text: string, content: Buffer): boolean {
  switch (tag) {
    case derTag.utf8String:
      return isUtf8(content);
    case derTag.bmpString:
      // BMPString does not allow surrogates.
      return content.length % 2 === 0 && !/[\ud800-\udfff]/.test(text);
    case derTag.printableString:
      return printable.test(text);
    case derTag.numericString:
      return numeric.test(text);
    case derTag.ia5String:
    case derTag.teletexString:
      // Programs interpret other characters of a TeletexString as Latin-1 or as bytes.
      return isAscii(content);
    default:
      return false;
  }
}

function bmpText(content: Buffer): string {
  return Buffer.from(content.subarray(0, content.length & ~1))
    .swap16()
    .toString('utf16le');
}
