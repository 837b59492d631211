import { type JsonValue, parseGoTime, problemText } from '@wheelhouse/machinery';

/** Thrown for CBOR that is malformed or has another type, with kube-apiserver's message. */
export class CborError extends Error {
  override readonly name = 'CborError';
}

/** The major types of items. */
export const major = {
  unsigned: 0,
  negative: 1,
  bytes: 2,
  text: 3,
  list: 4,
  map: 5,
  tag: 6,
  primitive: 7,
} as const;
/** The break byte, which ends an item of indefinite length. */
const stop = 0xff;

/** Values of the additional information in a head: the size of the argument, or its absence. */
export const info = {
  oneByte: 24,
  twoBytes: 25,
  fourBytes: 26,
  eightBytes: 27,
  endless: 31,
} as const;

const majorNames = [
  'positive integer',
  'negative integer',
  'byte string',
  'UTF-8 text string',
  'array',
  'map',
  'tag',
  'primitives',
];

/** Returns the name of a major type in messages. */
export const majorName = (type: number): string => majorNames[type] ?? String(type);

/** Reads items from well-formed bytes. */
export class Cursor {
  readonly bytes: Buffer;
  /** The offset of the next item. */
  at = 0;
  /** The additional information of the last head. */
  info = 0;

  constructor(bytes: Buffer) {
    this.bytes = bytes;
  }

  /** The first byte of the next item. */
  get next(): number {
    return this.bytes[this.at] ?? 0;
  }

  /** The major type of the next item. */
  get type(): number {
    return this.next >> 5;
  }

  /** Reads a head and returns its argument. */
  head(): number | bigint {
    const { bytes } = this;
    this.info = (bytes[this.at] ?? 0) & 0x1f;
    this.at += 1;
    const { at } = this;
    switch (this.info) {
      case info.oneByte:
        this.at += 1;
        return bytes[at] ?? 0;
      case info.twoBytes:
        this.at += 2;
        return bytes.readUInt16BE(at);
      case info.fourBytes:
        this.at += 4;
        return bytes.readUInt32BE(at);
      case info.eightBytes:
        this.at += 8;
        return bytes.readBigUInt64BE(at);
      default:
        return this.info;
    }
  }

  /**
   * Reads the head of a container, and returns a function that returns whether another item
   * follows.
   */
  items(): () => boolean {
    let left = Number(this.head());
    if (this.info === info.endless) return () => !this.isStop();
    return () => left-- > 0;
  }

  /** Whether the break byte is next, which is then read. */
  isStop(): boolean {
    if (this.next !== stop) return false;
    this.at += 1;
    return true;
  }

  /** Reads the chunks of a byte or text string: one, unless its length is indefinite. */
  pieces(): Buffer[] {
    const length = Number(this.head());
    if (this.info !== info.endless) return [this.#take(length)];
    const pieces: Buffer[] = [];
    while (!this.isStop()) pieces.push(this.#take(Number(this.head())));
    return pieces;
  }

  #take(length: number): Buffer {
    this.at += length;
    return this.bytes.subarray(this.at - length, this.at);
  }

  /** Skips an item. */
  skip(): void {
    const { type } = this;
    if (type === major.bytes || type === major.text) this.pieces();
    else if (type === major.list || type === major.map) {
      const more = this.items();
      while (more()) {
        this.skip();
        if (type === major.map) this.skip();
      }
    } else {
      this.head();
      if (type === major.tag) this.skip();
    }
  }
}

/** Returns the end of the well-formed item that starts at `start`. */
export function itemEnd(bytes: Buffer, start: number): number {
  const cursor = new Cursor(bytes);
  cursor.at = start;
  cursor.skip();
  return cursor.at;
}

/**
 * Returns a float of 16, 32, or 64 bits.
 * @param width the additional information in its head
 */
export function floatOf(width: number, argument: number | bigint): number {
  const bytes = Buffer.alloc(8);
  if (width === info.twoBytes) return half(Number(argument));
  if (width === info.fourBytes) {
    bytes.writeUInt32BE(Number(argument));
    return bytes.readFloatBE();
  }
  bytes.writeBigUInt64BE(BigInt(argument));
  return bytes.readDoubleBE();
}

/** Returns a float of 16 bits. */
function half(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0) return sign * 2 ** -14 * (fraction / 1024);
  if (exponent === 31) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  return sign * 2 ** (exponent - 15) * (1 + fraction / 1024);
}

/** An error in an item. Decoding continues after it, and the first one is reported. */
export type Fault = Misfit | { readonly kind: 'unknown' | 'other'; readonly text: string };

/** An item of the wrong Go type. */
interface Misfit {
  readonly kind: 'misfit';
  /** The name of its major type. */
  readonly item: string;
  readonly goType: string;
  /** The end of the message. */
  readonly why: string;
  /** The outermost member that contains the item. */
  readonly field: string | undefined;
}

/** Returns the fault of an item of the wrong Go type. */
export function misfit(type: number, goType: string, why?: string): Fault {
  const tail = why === undefined ? '' : ` (${why})`;
  return { kind: 'misfit', item: majorName(type), goType, why: tail, field: undefined };
}

/** Returns a fault with this message. */
export const otherFault = (text: string): Fault => ({ kind: 'other', text });

/** Returns the fault of a member that the struct does not have. */
export const unknownMember = (index: number): Fault => ({
  kind: 'unknown',
  text: `cbor: found unknown field at map element index ${index}`,
});

/** Returns the fault of a key that occurs twice in a map. */
export const duplicateKey = (key: string, index: number): Fault =>
  otherFault(`cbor: found duplicate map key "${key}" at map element index ${index}`);

/** Returns a fault with the enclosing member of a struct. */
export function within(fault: Fault, field: string): Fault {
  return fault.kind === 'misfit' ? { ...fault, field } : fault;
}

/** Returns the message of a fault. */
export function textOfFault(fault: Fault): string {
  if (fault.kind !== 'misfit') return fault.text;
  const { item: what, goType: type, why, field } = fault;
  return problemText({ code: 'misfit', format: 'cbor', what, type, field }) + why;
}

/** The text form of a time in an untyped value, or a fault. */
type Time = { readonly text: string } | { readonly fault: Fault };

const noText =
  'cbor: decoded time cannot be represented in RFC3339 format with sub-second precision: ' +
  'Time.MarshalText: year outside of range [0,9999]';

/** Formats the content of tag 0 (text time) as Go does: nanoseconds without trailing zeros. */
export function timeOfText(text: string): Time {
  const parsed = parseGoTime(text);
  if ('error' in parsed) {
    return { fault: otherFault(`cbor: cannot set ${text} for time.Time: ${parsed.error}`) };
  }
  const [, date, fraction = '', zone] = /^([^.,Z+]{19})(?:[.,](\d+))?(.*)$/.exec(text) ?? [];
  const isUtc = zone === 'Z' || zone?.slice(1) === '00:00';
  return { text: `${date}${nanos(fraction)}${isUtc ? 'Z' : zone}` };
}

function nanos(fraction: string): string {
  const digits = fraction.slice(0, 9).replace(/0+$/, '');
  return digits === '' ? '' : `.${digits}`;
}

const firstSecond = -62_167_219_200;
const lastSecond = 253_402_300_799;

/** Formats the content of tag 1 (epoch time). */
export function timeOfSeconds(seconds: JsonValue): Time {
  const value = Number(seconds);
  let whole = Math.trunc(value);
  let part = Math.trunc((value - whole) * 1e9);
  if (part < 0) {
    whole -= 1;
    part += 1e9;
  }
  if (whole < firstSecond || whole > lastSecond) return { fault: otherFault(noText) };
  const text = new Date(whole * 1000).toISOString().slice(0, 19);
  return { text: `${text}${nanos(String(part).padStart(9, '0'))}Z` };
}

/** Returns the fault of an epoch time beyond Go's range. */
export function secondsOverflow(type: number, value: bigint): Fault {
  return misfit(type, 'time.Time', `${value} overflows Go's int64`);
}

/**
 * Returns the type of item that must follow a tag; undefined if the item that starts with `next`
 * may. Bignums have been rejected before.
 */
export function typeAfterTag(tag: number, next: number): string | undefined {
  const type = next >> 5;
  if (tag === 0 && type !== major.text) return 'text string';
  const isNumber = type <= major.negative || (next >= 0xf9 && next <= 0xfb);
  return tag === 1 && !isNumber ? 'integer or floating-point number' : undefined;
}
