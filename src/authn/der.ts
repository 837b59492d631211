/** One DER element: its tag byte, its content, and the whole with the header. */
export interface DerElement {
  readonly tag: number;
  readonly content: Buffer;
  readonly whole: Buffer;
}

export const derTag = {
  boolean: 0x01,
  integer: 0x02,
  octetString: 0x04,
  oid: 0x06,
  sequence: 0x30,
  set: 0x31,
} as const;

export class DerError extends Error {}

/** Splits `bytes` into the elements it consists of. Throws DerError when it isn't whole DER. */
export function derElements(bytes: Buffer): DerElement[] {
  const elements: DerElement[] = [];
  for (let position = 0; position < bytes.length; ) {
    const { element, end } = readElement(bytes, position);
    elements.push(element);
    position = end;
  }
  return elements;
}

function readElement(bytes: Buffer, start: number): { element: DerElement; end: number } {
  const tag = bytes[start];
  const first = bytes[start + 1];
  if (tag === undefined || first === undefined) throw new DerError('truncated DER');
  if ((tag & 0x1f) === 0x1f) throw new DerError('unsupported DER tag');
  let header = 2;
  let length = first;
  if (first >= 0x80) {
    const count = first & 0x7f;
    if (count === 0 || count > 4) throw new DerError('unsupported DER length');
    if (start + 2 + count > bytes.length) throw new DerError('truncated DER');
    length = bytes.readUIntBE(start + 2, count);
    header += count;
  }
  const end = start + header + length;
  if (end > bytes.length) throw new DerError('truncated DER');
  const content = bytes.subarray(start + header, end);
  return { element: { tag, content, whole: bytes.subarray(start, end) }, end };
}

/** The dotted form of an object identifier's content. */
export function oidText(content: Buffer): string {
  const arcs: number[] = [];
  let value = 0;
  for (const byte of content) {
    value = value * 128 + (byte & 0x7f);
    if (value > Number.MAX_SAFE_INTEGER) throw new DerError('object identifier out of range');
    if (byte >= 0x80) continue;
    if (arcs.length === 0) {
      const head = Math.min(Math.floor(value / 40), 2);
      arcs.push(head, value - head * 40);
    } else {
      arcs.push(value);
    }
    value = 0;
  }
  return arcs.join('.');
}

/** The text of a directory string; the tag says how it is encoded. */
export function directoryText(element: DerElement): string {
  switch (element.tag) {
    case 0x0c:
    case 0x12:
    case 0x13:
    case 0x16:
      return new TextDecoder('utf-8', { fatal: true }).decode(element.content);
    case 0x14:
      return element.content.toString('latin1');
    case 0x1e: {
      const swapped = Buffer.from(element.content);
      if (swapped.length % 2 !== 0) throw new DerError('odd BMPString');
      return swapped.swap16().toString('utf16le');
    }
    default:
      throw new DerError('unsupported string type in a name');
  }
}
