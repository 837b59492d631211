import { isAscii, isUtf8 } from 'node:buffer';
import { childrenOf, type DerElement, DerError, derTag } from './der.ts';

/**
 * Who a certificate or a request is for. This is the one reading of a distinguished name: admission
 * judges it, and the authenticator makes the user's name and groups of it (TRUST-5).
 */
export interface Subject {
  /** Empty when the name has none. */
  readonly commonName: string;
  readonly organizations: readonly string[];
}

/** `2.5.4.3` and `2.5.4.10`, as their contents are encoded. */
const commonNameOid = Buffer.from('550403', 'hex');
const organizationOid = Buffer.from('55040a', 'hex');

/**
 * Reads a distinguished name. Throws DerError for a name that Go and OpenSSL read in different ways:
 * one with a NUL, with a character outside its string type, or with several common names, of which
 * one program takes the first and another the last.
 */
export function readName(name: DerElement): Subject {
  const commonNames: string[] = [];
  const organizations: string[] = [];
  for (const set of childrenOf(name, { shape: /^(31( 31)*)?$/, what: 'name' })) {
    for (const pair of childrenOf(set, { shape: /^30( 30)*$/, what: 'relative name' })) {
      const [type, value] = childrenOf(pair, { shape: /^06 [0-9a-f]{2}$/, what: 'attribute' });
      if (type === undefined || value === undefined) throw new DerError('malformed attribute');
      const text = directoryText(value);
      if (type.content.equals(commonNameOid)) commonNames.push(text);
      else if (type.content.equals(organizationOid)) organizations.push(text);
    }
  }
  if (commonNames.length > 1) throw new DerError('the name has several common names');
  return { commonName: commonNames[0] ?? '', organizations };
}

const printable = /^[A-Za-z0-9 '()+,\-./:=?*&]*$/;
const numeric = /^[0-9 ]*$/;

/** The text of an attribute's value, in the string types that Go reads. Throws DerError. */
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
      // Surrogates encode a character in four bytes, which this type does not know.
      return content.length % 2 === 0 && !/[\ud800-\udfff]/.test(text);
    case derTag.printableString:
      return printable.test(text);
    case derTag.numericString:
      return numeric.test(text);
    case derTag.ia5String:
    case derTag.teletexString:
      // Some programs read the rest of a TeletexString as Latin-1, others as bytes.
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
