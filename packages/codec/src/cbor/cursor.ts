/** Bytes that are no CBOR, or CBOR that cannot be what is wanted; `message` is upstream's. */
export class CborError extends Error {
  override readonly name = 'CborError';
}

/** The major types, and the one byte that ends what has no length. */
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
export const stop = 0xff;

/** What stands in a head beside the major type: where its argument is, or that there is none. */
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

/** What messages call a major type. */
export const majorName = (type: number): string => majorNames[type] ?? String(type);

/** Reads heads and what is behind them off bytes that are known to be well-formed. */
export class Cursor {
  readonly bytes: Buffer;
  at = 0;
  /** The last head's additional information. */
  info = 0;

  constructor(bytes: Buffer) {
    this.bytes = bytes;
  }

  /** The byte that the next item begins with. */
  get next(): number {
    return this.bytes[this.at] ?? 0;
  }

  /** The next item's major type. */
  get type(): number {
    return this.next >> 5;
  }

  /** Takes a head, and gives its argument. */
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

  /** Takes the head of what has items, and gives what tells whether one is left. */
  items(): () => boolean {
    const count = Number(this.head());
    let taken = 0;
    if (this.info === info.endless) return () => !this.isStop();
    return () => taken++ < count;
  }

  /** Takes the end of what has no length, if it is next. */
  isStop(): boolean {
    if (this.next !== stop) return false;
    this.at += 1;
    return true;
  }

  /** The pieces of a byte or text string: one, unless it has no length. */
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

  /** Passes over an item. */
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

/** Where the item ends that begins at `start`, among several that are known to be well-formed. */
export function itemEnd(bytes: Buffer, start: number): number {
  const cursor = new Cursor(bytes);
  cursor.at = start;
  cursor.skip();
  return cursor.at;
}

/** A float of the width that its head told, of 16, 32 or 64 bits. */
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

/** An IEEE 754 half. */
function half(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0) return sign * 2 ** -14 * (fraction / 1024);
  if (exponent === 31) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  return sign * 2 ** (exponent - 15) * (1 + fraction / 1024);
}
