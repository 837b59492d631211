import { createRequire } from 'node:module';
import { errorText, type WorkBudget } from '@wheelhouse/machinery';
import type { BaseBlock, Constructed } from 'asn1js';

/** A DER element. */
export interface DerElement {
  /** The byte of the tag. */
  readonly tag: number;
  readonly content: Buffer;
  /** The whole encoding. */
  readonly whole: Buffer;
  /** Empty for a primitive element. */
  readonly children: readonly DerElement[];
}

/** Thrown for bytes that are not DER or do not have the expected structure. */
export class DerError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'DerError';
  }
}

/** Tags of elements. */
export const derTag = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  null: 0x05,
  oid: 0x06,
  utf8String: 0x0c,
  numericString: 0x12,
  printableString: 0x13,
  teletexString: 0x14,
  ia5String: 0x16,
  utcTime: 0x17,
  generalizedTime: 0x18,
  bmpString: 0x1e,
  sequence: 0x30,
  set: 0x31,
} as const;

let library: typeof import('asn1js') | undefined;

/**
 * Loads the ASN.1 library on first use, synchronously, because validation is synchronous. The
 * bundle has `require`, which resolves to a part of it; ES modules do not.
 */
const asn1 = () => {
  library ??= (
    typeof require === 'function' ? require('asn1js') : createRequire(import.meta.url)('asn1js')
  ) as typeof import('asn1js');
  return library;
};

const depthMax = 16;

/** Maximum number of elements of a certificate or request; most have about a hundred. */
export const elementsMax = 1024;

/**
 * Parses exactly one element in strict DER: asn1js parses BER, and this function rejects everything
 * that is not DER.
 * @param budget charged one step for each element
 * @throws DerError, or WorkExceeded if the budget is exceeded
 */
export function readDer(bytes: Buffer, budget?: WorkBudget): DerElement {
  const view = new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.length);
  const { offset, result } = parseBer(view);
  if (offset === -1) throw new DerError('not ASN.1');
  if (offset !== bytes.length) throw new DerError('trailing data after the ASN.1 element');
  return elementOf(result, budget);
}

/**
 * Parses DER that must be a sequence.
 * @throws DerError, or WorkExceeded if the budget is exceeded
 */
export function readSequence(bytes: Buffer, budget?: WorkBudget): DerElement {
  const element = readDer(bytes, budget);
  if (element.tag !== derTag.sequence) throw new DerError('not a sequence');
  return element;
}

function parseBer(view: Uint8Array): ReturnType<typeof import('asn1js').fromBER> {
  const { fromBER } = asn1();
  try {
    return fromBER(view, {
      maxDepth: depthMax,
      maxNodes: elementsMax,
      // Callers parse the contents of octet and bit strings.
      parseEmbedded: false,
      copyInput: false,
    });
  } catch (error) {
    // The library also decodes strings and throws the runtime's errors for invalid ones.
    throw new DerError(`not ASN.1: ${errorText(error)}`);
  }
}

function elementOf(block: BaseBlock, budget: WorkBudget | undefined): DerElement {
  budget?.spend();
  const { idBlock, lenBlock, valueBeforeDecodeView: view } = block;
  const whole = Buffer.from(view.buffer, view.byteOffset, view.length);
  const tag = whole[0] ?? 0;
  if (idBlock.blockLength !== 1 || (tag & 0x1f) === 0x1f) throw new DerError('unusual tag');
  const { length } = lenBlock;
  const header = 1 + lengthOctets(length);
  const isExact = !lenBlock.isIndefiniteForm && whole.length === header + length;
  if (!isExact || lenBlock.blockLength !== header - 1) throw new DerError('length is not minimal');
  const content = whole.subarray(header);
  // Checked first, because the library does not list the parts of a constructed string.
  checkContent(tag, content);
  const children = idBlock.isConstructed
    ? (block as Constructed).valueBlock.value.map((child) => elementOf(child, budget))
    : [];
  return { tag, content, whole, children };
}

/** Returns the number of octets of an encoded length. */
function lengthOctets(length: number): number {
  if (length < 0x80) return 1;
  return 1 + Math.ceil((32 - Math.clz32(length)) / 8);
}

/**
 * Checks that an element of a universal type has its only valid encoding; only sequences and sets
 * have children.
 */
function checkContent(tag: number, content: Buffer): void {
  if (tag >= 0x40 || tag === derTag.sequence || tag === derTag.set) return;
  const isPrimitive = tag < 0x20 && tag !== 0x10 && tag !== 0x11;
  const isCanonical = canonicalForms.get(tag)?.(content) ?? isPrimitive;
  if (!isCanonical) throw new DerError(`element of tag ${tag} is not in canonical form`);
}

const canonicalForms: ReadonlyMap<number, (content: Buffer) => boolean> = new Map([
  [derTag.boolean, ({ length, 0: value }) => length === 1 && (value === 0 || value === 0xff)],
  [derTag.integer, isMinimalInteger],
  [derTag.bitString, isMinimalBitString],
  [derTag.null, ({ length }) => length === 0],
  [derTag.oid, isMinimalOid],
]);

/** Whether the content of an integer is its shortest encoding. */
export function isMinimalInteger(content: Buffer): boolean {
  const [first, second] = content;
  if (first === undefined || second === undefined) return first !== undefined;
  return !(first === 0 && second < 0x80) && !(first === 0xff && second >= 0x80);
}

/** Whether the unused bits, whose number is in the first octet, are zero. */
function isMinimalBitString(content: Buffer): boolean {
  const unused = content[0];
  if (unused === undefined || unused > 7) return false;
  if (content.length === 1) return unused === 0;
  return ((content.at(-1) ?? 0) & ((1 << unused) - 1)) === 0;
}

function isMinimalOid(content: Buffer): boolean {
  let isFirstOfArc = true;
  for (const octet of content) {
    if (isFirstOfArc && octet === 0x80) return false;
    isFirstOfArc = octet < 0x80;
  }
  return content.length > 0 && isFirstOfArc;
}

/**
 * Returns the children of an element.
 * @param options.tags matches their tags in hexadecimal, separated by spaces: `/^30 30 03$/`
 * @param options.what the name of the element in the error
 * @throws DerError if the tags do not match
 */
export function childrenOf(
  element: DerElement | undefined,
  { tags, what }: { readonly tags: RegExp; readonly what: string },
): readonly DerElement[] {
  const found = element?.children.map(({ tag }) => tag.toString(16).padStart(2, '0')) ?? [];
  if (element === undefined || !tags.test(found.join(' '))) throw new DerError(`malformed ${what}`);
  return element.children;
}

/** Upper bound of an arc of an object identifier, as in Go. */
const arcMax = 2 ** 31 - 1;

/**
 * Returns the dotted form of an object identifier.
 * @throws DerError for an arc that Go rejects, because a long one would take quadratic time
 */
export function oidText({ content }: DerElement): string {
  const arcs: number[] = [];
  let value = 0;
  for (const octet of content) {
    value = value * 128 + (octet & 0x7f);
    if (value > arcMax) throw new DerError('object identifier with an arc of more than 31 bits');
    if (octet >= 0x80) continue;
    if (arcs.length > 0) {
      arcs.push(value);
    } else {
      const first = value < 80 ? Math.floor(value / 40) : 2;
      arcs.push(first, value - first * 40);
    }
    value = 0;
  }
  return arcs.join('.');
}
