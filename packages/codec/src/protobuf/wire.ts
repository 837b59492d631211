/**
 * Protobuf's wire format: varints, lengths, field keys. Integers of 64 bits are exact (CODEC-8),
 * which is why this is ours: the usual libraries give numbers, or want a big-integer library.
 */

/** Bytes that are no protobuf, or more deeply nested than a server should follow. */
export class ProtobufError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'ProtobufError';
  }
}

export const wireVarint = 0;
export const wireFixed64 = 1;
export const wireBytes = 2;
const wireFixed32 = 5;

/** One field's key: its number and how its value is written. */
export interface FieldKey {
  readonly number: number;
  readonly wireType: number;
}

/** Reads one message's bytes from front to back; every read that would leave them throws. */
export class WireReader {
  readonly #bytes: Buffer;
  #at: number;
  readonly #end: number;

  constructor(bytes: Buffer, start = 0, end = bytes.length) {
    this.#bytes = bytes;
    this.#at = start;
    this.#end = end;
  }

  get isDone(): boolean {
    return this.#at >= this.#end;
  }

  key(): FieldKey {
    const value = this.#varint32();
    const number = value >>> 3;
    if (number === 0) throw new ProtobufError('proto: illegal tag 0');
    return { number, wireType: value & 7 };
  }

  /** A varint as a signed 64-bit integer: a number where one holds it exactly. */
  int64(): number | bigint {
    let low = 0;
    for (let shift = 0; shift < 28; shift += 7) {
      const byte = this.#byte();
      low |= (byte & 0x7f) << shift;
      if (byte < 0x80) return low;
    }
    let wide = BigInt(low);
    for (let shift = 28n; shift < 70n; shift += 7n) {
      const byte = this.#byte();
      wide |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return narrowed(BigInt.asIntN(64, wide));
    }
    throw new ProtobufError('proto: integer overflow');
  }

  /** The low 32 bits of a varint, signed: negative int32 values take ten bytes. */
  int32(): number {
    const value = this.int64();
    return typeof value === 'number' ? value | 0 : Number(BigInt.asIntN(32, value));
  }

  boolean(): boolean {
    const value = this.int64();
    return value !== 0;
  }

  double(): number {
    if (this.#at + 8 > this.#end) throw truncated();
    const value = this.#bytes.readDoubleLE(this.#at);
    this.#at += 8;
    return value;
  }

  /** Eight bytes as an unsigned integer. */
  fixed64(): bigint {
    if (this.#at + 8 > this.#end) throw truncated();
    const value = this.#bytes.readBigUInt64LE(this.#at);
    this.#at += 8;
    return value;
  }

  /** A length-delimited value; shares memory with the input. */
  bytes(): Buffer {
    const length = this.#varint32();
    if (length > this.#end - this.#at) throw truncated();
    const start = this.#at;
    this.#at += length;
    return this.#bytes.subarray(start, this.#at);
  }

  /** How long the length-delimited value is that comes next; moves nothing. */
  get nextLength(): number {
    const start = this.#at;
    const length = this.#varint32();
    this.#at = start;
    return length;
  }

  /** Passes over a field this schema does not know, as upstream does. */
  skip(wireType: number): void {
    if (wireType === wireVarint) this.int64();
    else if (wireType === wireFixed64) this.#advance(8);
    else if (wireType === wireBytes) this.bytes();
    else if (wireType === wireFixed32) this.#advance(4);
    else throw new ProtobufError(`proto: illegal wireType ${wireType}`);
  }

  #advance(count: number): void {
    if (count > this.#end - this.#at) throw truncated();
    this.#at += count;
  }

  #byte(): number {
    if (this.#at >= this.#end) throw truncated();
    return this.#bytes[this.#at++] ?? 0;
  }

  #varint32(): number {
    const value = this.int64();
    if (typeof value === 'bigint' || value < 0 || value > 0x7fffffff) {
      throw new ProtobufError('proto: negative length found during unmarshaling');
    }
    return value;
  }
}

function truncated(): ProtobufError {
  return new ProtobufError('unexpected EOF');
}

function narrowed(value: bigint): number | bigint {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}

const firstBytes = 1024;
/** Longer texts are written faster by native code. */
const shortTextMax = 48;
/** A writer that has grown beyond this is not used again. */
const keptBytesMax = 256 * 1024;

/**
 * Writes from back to front, so that a message's length is known when its head is written. What is
 * written first stands last: callers go through fields and lists in reverse.
 */
export class WireWriter {
  #bytes: Buffer;
  #at: number;

  /** @param bytes room to begin with; it grows */
  constructor(bytes = firstBytes) {
    this.#bytes = Buffer.allocUnsafe(bytes);
    this.#at = bytes;
  }

  /** Bytes written so far; the difference of two readings is a message's length. */
  get length(): number {
    return this.#bytes.length - this.#at;
  }

  key(number: number, wireType: number): void {
    this.#varint((number << 3) | wireType);
  }

  int64(value: number | bigint): void {
    if (typeof value === 'number' && value >= 0 && value <= 0x7fffffff) this.#varint(value);
    else this.#bigVarint(BigInt.asUintN(64, BigInt(value)));
  }

  boolean(value: boolean): void {
    this.#reserve(1);
    this.#bytes[--this.#at] = value ? 1 : 0;
  }

  double(value: number): void {
    this.#reserve(8);
    this.#at -= 8;
    this.#bytes.writeDoubleLE(value, this.#at);
  }

  /** Writes an unsigned integer in eight bytes. */
  fixed64(value: bigint): void {
    this.#reserve(8);
    this.#at -= 8;
    this.#bytes.writeBigUInt64LE(value, this.#at);
  }

  text(value: string): void {
    if (value.length <= shortTextMax && this.#shortText(value)) return;
    const size = Buffer.byteLength(value);
    this.#reserve(size);
    this.#at -= size;
    this.#bytes.write(value, this.#at, 'utf8');
    this.#varint(size);
  }

  /** Writes a text of ASCII without a call into native code; false for any other text. */
  #shortText(value: string): boolean {
    const { length } = value;
    this.#reserve(length);
    const start = this.#at - length;
    for (let index = 0; index < length; index += 1) {
      const code = value.charCodeAt(index);
      if (code > 0x7f) return false;
      this.#bytes[start + index] = code;
    }
    this.#at = start;
    this.#varint(length);
    return true;
  }

  bytes(value: Buffer): void {
    this.raw(value);
    this.#varint(value.length);
  }

  /** Bytes as they are, without a length. */
  raw(value: Buffer): void {
    this.#reserve(value.length);
    this.#at -= value.length;
    value.copy(this.#bytes, this.#at);
  }

  /** The length of what was written since `before` was read. */
  lengthSince(before: number): void {
    this.#varint(this.length - before);
  }

  /** Forgets the first so many bytes, those written last. */
  drop(count: number): void {
    this.#at += count;
  }

  finish(): Buffer {
    return this.#bytes.subarray(this.#at);
  }

  /** Forgets what was written, and with it what `finish` gave. False: make another writer. */
  clear(): boolean {
    this.#at = this.#bytes.length;
    return this.#bytes.length <= keptBytesMax;
  }

  #varint(value: number): void {
    this.#reserve(5);
    const size =
      value < 0x80 ? 1 : value < 0x4000 ? 2 : value < 0x200000 ? 3 : value < 0x10000000 ? 4 : 5;
    this.#at -= size;
    let rest = value;
    for (let index = 0; index < size - 1; index += 1) {
      this.#bytes[this.#at + index] = (rest & 0x7f) | 0x80;
      rest >>>= 7;
    }
    this.#bytes[this.#at + size - 1] = rest;
  }

  #bigVarint(value: bigint): void {
    const groups: number[] = [];
    let rest = value;
    do {
      groups.push(Number(rest & 0x7fn));
      rest >>= 7n;
    } while (rest > 0n);
    this.#reserve(groups.length);
    this.#at -= groups.length;
    groups.forEach((group, index) => {
      this.#bytes[this.#at + index] = index === groups.length - 1 ? group : group | 0x80;
    });
  }

  #reserve(count: number): void {
    if (count <= this.#at) return;
    const used = this.length;
    const larger = Buffer.allocUnsafe(Math.max(this.#bytes.length * 2, used + count));
    this.#bytes.copy(larger, larger.length - used, this.#at);
    this.#at = larger.length - used;
    this.#bytes = larger;
  }
}
