import { narrowed } from '@wheelhouse/machinery';
import { TooManyValues } from '../decode-limits.ts';

/** Thrown for malformed or too deeply nested protobuf. */
export class ProtobufError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'ProtobufError';
  }
}

/** The wire type of integers and booleans. */
export const wireVarint = 0;
/** The wire type of eight bytes. */
export const wireFixed64 = 1;
/** The wire type of bytes with a length: texts and messages. */
export const wireBytes = 2;
const wireStartGroup = 3;
const wireEndGroup = 4;
const wireFixed32 = 5;

/** The key of a field: its number and wire type. */
export interface FieldKey {
  readonly number: number;
  readonly wireType: number;
}

/**
 * Reads the bytes of one message from front to back. 64-bit integers are exact (CODEC-8). Methods
 * throw ProtobufError for malformed bytes and at the end.
 */
export class WireReader {
  readonly #bytes: Buffer;
  #at = 0;
  readonly #end: number;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
    this.#end = bytes.length;
  }

  /** Whether all bytes are read. */
  get isDone(): boolean {
    return this.#at >= this.#end;
  }

  /**
   * Reads the key of a field.
   * @param message the name of the message in errors
   */
  key(message = 'message'): FieldKey {
    const { number, wireType, wide } = this.#key();
    if (wireType === wireEndGroup) {
      throw new ProtobufError(`proto: ${message}: wiretype end group for non-group`);
    }
    if (number > 0) return { number, wireType };
    throw new ProtobufError(`proto: ${message}: illegal tag ${number} (wire type ${wide})`);
  }

  /** Reads the key of a field of an entry of a map, where any number is permitted. */
  entryKey(): FieldKey {
    return this.#key();
  }

  #key(): FieldKey & { readonly wide: number | bigint } {
    const value = this.int64();
    const isSmall = typeof value === 'number' && value >= 0 && value <= 0x7fffffff;
    if (isSmall) return { number: value >>> 3, wireType: value & 7, wide: value };
    const wide = BigInt.asUintN(64, BigInt(value));
    return { number: Number(BigInt.asIntN(32, wide >> 3n)), wireType: Number(wide & 7n), wide };
  }

  /** Reads a signed 64-bit integer: a number if that is exact, and otherwise a bigint. */
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

  /** Reads a signed 32-bit integer, which takes ten bytes if it is negative. */
  int32(): number {
    const value = this.int64();
    return typeof value === 'number' ? value | 0 : Number(BigInt.asIntN(32, value));
  }

  /** Reads a boolean. */
  boolean(): boolean {
    const value = this.int64();
    return value !== 0;
  }

  /** Reads a 64-bit float. */
  double(): number {
    if (this.#at + 8 > this.#end) throw truncated();
    const value = this.#bytes.readDoubleLE(this.#at);
    this.#at += 8;
    return value;
  }

  /** Reads eight bytes as an unsigned integer. */
  fixed64(): bigint {
    if (this.#at + 8 > this.#end) throw truncated();
    const value = this.#bytes.readBigUInt64LE(this.#at);
    this.#at += 8;
    return value;
  }

  /** Reads a length-delimited value, which shares memory with the input. */
  bytes(): Buffer {
    const length = this.#length();
    if (length > this.#end - this.#at) throw truncated();
    const start = this.#at;
    this.#at += length;
    return this.#bytes.subarray(start, this.#at);
  }

  /** The length of the next length-delimited value, which is not read. */
  get nextLength(): number {
    const start = this.#at;
    const length = this.#length();
    this.#at = start;
    return length;
  }

  /** Skips the value of a field. The fields in a group count as values. */
  skip(wireType: number): void {
    if (wireType === wireVarint) this.int64();
    else if (wireType === wireFixed64) this.#advance(8);
    else if (wireType === wireBytes) this.bytes();
    else if (wireType === wireFixed32) this.#advance(4);
    else if (wireType === wireStartGroup) this.#skipGroup();
    else if (wireType === wireEndGroup) throw new ProtobufError('proto: unexpected end of group');
    else throw new ProtobufError(`proto: illegal wireType ${wireType}`);
  }

  #skipGroup(): void {
    for (let depth = 1; depth > 0; ) {
      countValues();
      const { wireType } = this.#key();
      if (wireType === wireStartGroup) depth += 1;
      else if (wireType === wireEndGroup) depth -= 1;
      else this.skip(wireType);
    }
  }

  #advance(count: number): void {
    if (count > this.#end - this.#at) throw truncated();
    this.#at += count;
  }

  #byte(): number {
    if (this.#at >= this.#end) throw truncated();
    return this.#bytes[this.#at++] ?? 0;
  }

  #length(): number {
    const value = this.int64();
    if (value < 0) throw new ProtobufError('proto: negative length found during unmarshaling');
    if (typeof value === 'bigint') throw truncated();
    return value;
  }
}

function truncated(): ProtobufError {
  return new ProtobufError('unexpected EOF');
}

/** Initial capacity of a writer in bytes. */
const firstBytes = 1024;
/** Native code writes longer texts faster. */
const shortTextMax = 48;
/** A writer with a larger buffer is not reused. */
const reusedBytesMax = 256 * 1024;

/**
 * Writes a message from back to front, so that its length is determined before its head is written.
 * Callers write fields, items of lists, and values before their keys, in reverse order.
 */
export class WireWriter {
  #bytes: Buffer;
  #at: number;

  /** @param bytes initial capacity, which grows as needed */
  constructor(bytes = firstBytes) {
    this.#bytes = Buffer.allocUnsafe(bytes);
    this.#at = bytes;
  }

  /** Number of bytes written so far; the difference of two values is the length of a message. */
  get length(): number {
    return this.#bytes.length - this.#at;
  }

  /** Writes the key of a field. */
  key(number: number, wireType: number): void {
    this.#varint((number << 3) | wireType);
  }

  /** Writes a signed 64-bit integer. */
  int64(value: number | bigint): void {
    if (typeof value === 'number' && value >= 0 && value <= 0x7fffffff) this.#varint(value);
    else this.#bigVarint(BigInt.asUintN(64, BigInt(value)));
  }

  /** Writes a boolean. */
  boolean(value: boolean): void {
    this.#reserve(1);
    this.#bytes[--this.#at] = value ? 1 : 0;
  }

  /** Writes a 64-bit float. */
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

  /** Writes a text with its length. */
  text(value: string): void {
    if (value.length <= shortTextMax && this.#shortText(value)) return;
    const size = Buffer.byteLength(value);
    this.#reserve(size);
    this.#at -= size;
    this.#bytes.write(value, this.#at, 'utf8');
    this.#varint(size);
  }

  /** Writes an ASCII text without a call into native code; returns false for other texts. */
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

  /** Writes bytes with their length. */
  bytes(value: Buffer): void {
    this.raw(value);
    this.#varint(value.length);
  }

  /** Writes bytes without a length. */
  raw(value: Buffer): void {
    this.#reserve(value.length);
    this.#at -= value.length;
    value.copy(this.#bytes, this.#at);
  }

  /** Writes the number of bytes written since `before`. */
  lengthSince(before: number): void {
    this.#varint(this.length - before);
  }

  /** Removes the first `count` bytes, which were written last. */
  drop(count: number): void {
    this.#at += count;
  }

  /** Returns the written bytes, which share memory with the writer. */
  finish(): Buffer {
    return this.#bytes.subarray(this.#at);
  }

  /**
   * Removes all bytes, which invalidates the result of `finish`. Returns whether the writer may be
   * reused.
   */
  clear(): boolean {
    this.#at = this.#bytes.length;
    return this.#bytes.length <= reusedBytesMax;
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

/** Maximum number of values of a message that this server or a tool reads for its own use. */
export const messageValuesMax = 2_000_000;

/** Remaining number of values of the message being decoded, or of the one whose step is running. */
let left = messageValuesMax;
let max = messageValuesMax;

/** Decodes one message of at most `valuesMax` values; `countValues` throws TooManyValues. */
export function countingValues<T>(valuesMax: number, decode: () => T): T {
  left = valuesMax;
  max = valuesMax;
  return decode();
}

/** Does the work of `countingValues` in steps, between which other messages may be decoded. */
export function* countingValuesSteps<T>(
  valuesMax: number,
  decode: Generator<void, T>,
): Generator<void, T> {
  let ownLeft = valuesMax;
  for (;;) {
    left = ownLeft;
    max = valuesMax;
    const step = decode.next();
    ownLeft = left;
    if (step.done === true) return step.value;
    yield;
  }
}

/**
 * Counts values of the message that is being decoded.
 * @throws TooManyValues if the message has too many
 */
export function countValues(count = 1): void {
  left -= count;
  if (left < 0) throw new TooManyValues(max);
}
