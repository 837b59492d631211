/**
 * The subset of DER (X.690) that writing certificates requires. Every function returns a complete
 * tag-length-value element.
 */
import { appendAll } from '@wheelhouse/machinery';

export function element(tag: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  return Buffer.concat([Buffer.from([tag]), lengthOctets(content.length), content]);
}

function lengthOctets(length: number): Buffer {
  if (length < 0x80) return Buffer.from([length]);
  const octets: number[] = [];
  for (let rest = length; rest > 0; rest >>>= 8) octets.unshift(rest & 0xff);
  return Buffer.from([0x80 | octets.length, ...octets]);
}

export function sequence(...parts: readonly Buffer[]): Buffer {
  return element(0x30, ...parts);
}

export function set(...parts: readonly Buffer[]): Buffer {
  return element(0x31, ...parts);
}

/** `[n]` wrapped around whole elements. */
export function explicit(number: number, ...parts: readonly Buffer[]): Buffer {
  return element(0xa0 | number, ...parts);
}

/** `[n]` instead of a primitive's own tag. */
export function implicit(number: number, content: Buffer): Buffer {
  return element(0x80 | number, content);
}

/** A non-negative integer from big-endian octets. */
export function integer(octets: Buffer): Buffer {
  let start = 0;
  while (start < octets.length - 1 && octets[start] === 0) start += 1;
  const significant = octets.subarray(start);
  const negative = ((significant[0] ?? 0) & 0x80) !== 0;
  return element(0x02, ...(negative ? [Buffer.from([0])] : []), significant);
}

export function trueValue(): Buffer {
  return element(0x01, Buffer.from([0xff]));
}

export function octetString(content: Buffer): Buffer {
  return element(0x04, content);
}

export function bitString(content: Buffer, unusedBits = 0): Buffer {
  return element(0x03, Buffer.from([unusedBits]), content);
}

export function utf8String(text: string): Buffer {
  return element(0x0c, Buffer.from(text));
}

/** `1.2.840.10045.4.3.2` */
export function objectIdentifier(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number);
  const octets = [first * 40 + second];
  for (const arc of rest) {
    const digits = [arc & 0x7f];
    for (let high = arc >>> 7; high > 0; high >>>= 7) digits.unshift(0x80 | (high & 0x7f));
    appendAll(octets, digits);
  }
  return element(0x06, Buffer.from(octets));
}

/** UTCTime before 2050 and GeneralizedTime from then on, as RFC 5280 requires. */
export function time(date: Date): Buffer {
  const digits = `${date.toISOString().slice(0, 19).replace(/[-T:]/g, '')}Z`;
  if (date.getUTCFullYear() >= 2050) return element(0x18, Buffer.from(digits));
  return element(0x17, Buffer.from(digits.slice(2)));
}
