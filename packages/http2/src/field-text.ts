/** What is wrong with a name or a value that came over the wire; 0 when nothing is. */
export const fault = { name: 1, value: 2 } as const;

/** By byte: the faults it makes of a text that holds it. */
const faultsOfByte: Uint8Array = (() => {
  const token = /[!#$%&'*+\-.^_`|~0-9a-z]/;
  const made = new Uint8Array(256);
  for (let byte = 0; byte < made.length; byte += 1) {
    const isControl = (byte < 0x20 && byte !== 0x09) || byte === 0x7f;
    made[byte] = token.test(String.fromCharCode(byte)) ? 0 : fault.name;
    if (isControl) made[byte] = fault.name | fault.value;
  }
  return made;
})();

const colon = 0x3a;

/** A stretch of bytes; read by one reader at a time, so that none is made for every text. */
export interface Stretch {
  bytes: Buffer;
  start: number;
  end: number;
}

/** `fault.name` unless the bytes are a lower-case token, perhaps after the colon of a pseudo-header. */
export function nameFaults({ bytes, start, end }: Stretch): number {
  const first = bytes[start] === colon ? start + 1 : start;
  if (first >= end) return fault.name;
  let faults = 0;
  for (let at = first; at < end; at += 1) faults |= faultsOfByte[bytes[at] as number] as number;
  return faults & fault.name;
}

/**
 * `fault.value` for control characters. White space at either end is against RFC 9113, 8.2.1, but
 * upstream lets it pass, and clients send `authorization: Bearer ` with nothing behind it.
 */
export function valueFaults({ bytes, start, end }: Stretch): number {
  let faults = 0;
  for (let at = start; at < end; at += 1) faults |= faultsOfByte[bytes[at] as number] as number;
  return faults & fault.value;
}

const slotBits = 9;
const slots: string[] = new Array<string>(1 << slotBits).fill('');
const internedBytesMax = 40;

/**
 * The text of a well-formed name: the same string object for the same name, most of the time, so
 * that nobody makes or hashes a string for every header of every request.
 */
export function internedName(text: Stretch): string {
  const { bytes, start, end } = text;
  const length = end - start;
  if (length > internedBytesMax) return bytes.toString('latin1', start, end);
  const middle = bytes[start + (length >> 1)] as number;
  const mixed = (bytes[start] as number) * 31 + middle * 7 + (bytes[end - 1] as number) + length;
  const slot = mixed & ((1 << slotBits) - 1);
  const known = slots[slot] as string;
  if (known.length === length && isText(known, text)) return known;
  const made = asKey(bytes.toString('latin1', start, end));
  slots[slot] = made;
  return made;
}

/** The string object that the host keeps for keys and for literals: equal ones are the same. */
function asKey(text: string): string {
  return Object.keys({ [text]: true })[0] ?? text;
}

function isText(known: string, { bytes, start }: Stretch): boolean {
  for (let at = 0; at < known.length; at += 1) {
    if (known.charCodeAt(at) !== bytes[start + at]) return false;
  }
  return true;
}
