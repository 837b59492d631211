import { isObject, type JsonObject, type JsonValue, Stride } from '@wheelhouse/machinery';
import { fitsInt64 } from './item-types.ts';

/** The tag of self-described CBOR, which precedes every body. */
const selfDescribed = Buffer.from([0xd9, 0xd9, 0xf7]);

/** Whether bytes start with the self-described CBOR tag. */
export function isSelfDescribedCbor(bytes: Buffer): boolean {
  return bytes.subarray(0, selfDescribed.length).equals(selfDescribed);
}

/** Initial size of a buffer in bytes. */
const firstSize = 4096;

/** Encodes a value as kube-apiserver does: strings and keys become byte strings (CODEC-4). */
export function encodeCbor(value: JsonValue): Buffer {
  const writer = new Writer();
  writer.raw(selfDescribed);
  writer.item(value);
  return writer.finish();
}

/** Does the work of `encodeCbor` in steps (TRUST-2). */
export function* encodeCborSteps(value: JsonValue): Generator<void, Buffer> {
  const writer = new Writer();
  writer.raw(selfDescribed);
  yield* writer.itemSteps(value, new Stride());
  return writer.finish();
}

/** Target size of the pieces of a list in bytes. A single item may exceed it. */
const pieceBytes = 16 * 1024;
const noBytes = Buffer.alloc(0);

/**
 * Yields the encoding of an object whose last member is a list, item by item. An empty piece is a
 * chance to pause.
 * @param list.head the other members
 * @param list.member the name of the list
 * @param list.count the number of items
 * @param list.items the items; undefined stands for a pause before the next one
 */
export function* cborListPieces(list: {
  readonly head: JsonObject;
  readonly member: string;
  readonly count: number;
  readonly items: Iterable<JsonValue | undefined>;
}): Generator<Buffer> {
  const writer = new Writer();
  const stride = new Stride();
  writer.raw(selfDescribed);
  writer.listEnding(list);
  for (const item of list.items) {
    yield writer.length < pieceBytes ? noBytes : writer.take();
    if (item === undefined) continue;
    if (stride.weigh(item) === 'light') {
      writer.item(item);
      continue;
    }
    for (const _ of writer.itemSteps(item, stride)) {
      yield writer.length < pieceBytes ? noBytes : writer.take();
    }
  }
  yield writer.take();
}

/** Writes items into a buffer that grows. */
class Writer {
  #bytes = Buffer.allocUnsafe(firstSize);
  #at = 0;

  /** Returns the written bytes. */
  finish(): Buffer {
    return this.#bytes.subarray(0, this.#at);
  }

  /** The number of written bytes. */
  get length(): number {
    return this.#at;
  }

  /** Returns the written bytes, and starts a new buffer. */
  take(): Buffer {
    const bytes = this.finish();
    this.#bytes = Buffer.allocUnsafe(firstSize);
    this.#at = 0;
    return bytes;
  }

  /** Writes an object up to the items of its last member. */
  listEnding(list: {
    readonly head: JsonObject;
    readonly member: string;
    readonly count: number;
  }): void {
    const { head, member, count } = list;
    const names = Object.keys(head).filter((name) => head[name] !== undefined);
    this.#head(5, names.length + 1);
    for (const name of names) {
      this.#text(name);
      this.item(head[name] ?? null);
    }
    this.#text(member);
    this.#head(4, count);
  }

  /** Writes bytes without a head. */
  raw(bytes: Buffer): void {
    this.#reserve(bytes.length);
    bytes.copy(this.#bytes, this.#at);
    this.#at += bytes.length;
  }

  /** Writes a value. */
  item(value: JsonValue): void {
    if (value === null) this.#byte(0xf6);
    else if (typeof value === 'boolean') this.#byte(value ? 0xf5 : 0xf4);
    else if (typeof value === 'string') this.#text(value);
    else if (typeof value === 'bigint') this.#integer(value);
    else if (typeof value === 'number') this.#number(value);
    else if (Array.isArray(value)) {
      this.#head(4, value.length);
      for (const element of value) this.item(element);
    } else this.#map(value);
  }

  /** Does the work of `item` in steps. */
  *itemSteps(value: JsonValue, stride: Stride): Generator<void, void> {
    if (Array.isArray(value)) {
      this.#head(4, value.length);
      for (const element of value) yield* this.#partSteps(element, stride);
    } else if (isObject(value)) {
      for (const name of this.#mapHead(value)) {
        this.#text(name);
        yield* this.#partSteps(value[name] ?? null, stride);
      }
    } else this.item(value);
  }

  *#partSteps(value: JsonValue, stride: Stride): Generator<void, void> {
    if (stride.weigh(value) === 'light') this.item(value);
    else yield* this.itemSteps(value, stride);
    if (stride.isOver) yield;
  }

  #map(value: JsonObject): void {
    for (const name of this.#mapHead(value)) {
      this.#text(name);
      this.item(value[name] ?? null);
    }
  }

  /** Writes the head of a map, and returns the names of its members. */
  #mapHead(value: JsonObject): readonly string[] {
    const names = Object.keys(value).filter((name) => value[name] !== undefined);
    this.#head(5, names.length);
    return names;
  }

  #text(value: string): void {
    const size = Buffer.byteLength(value);
    this.#head(2, size);
    this.#reserve(size);
    this.#at += this.#bytes.write(value, this.#at, 'utf8');
  }

  #integer(value: bigint): void {
    // kube-apiserver's decoder refuses integers of more bits.
    if (!fitsInt64(value)) this.#float(Number(value));
    else if (value >= 0n) this.#head(0, value);
    else this.#head(1, -1n - value);
  }

  #number(value: number): void {
    if (Number.isInteger(value) && !Object.is(value, -0) && Number.isSafeInteger(value)) {
      if (value >= 0) this.#head(0, value);
      else this.#head(1, -1 - value);
      return;
    }
    this.#float(value);
  }

  #float(value: number): void {
    this.#reserve(9);
    this.#bytes[this.#at] = 0xfb;
    this.#bytes.writeDoubleBE(value, this.#at + 1);
    this.#at += 9;
  }

  #head(major: number, argument: number | bigint): void {
    this.#reserve(9);
    const first = major << 5;
    if (argument < 24) this.#bytes[this.#at++] = first | Number(argument);
    else if (argument < 0x100) {
      this.#bytes[this.#at++] = first | 24;
      this.#bytes[this.#at++] = Number(argument);
    } else if (argument < 0x10000) {
      this.#bytes[this.#at++] = first | 25;
      this.#at = this.#bytes.writeUInt16BE(Number(argument), this.#at);
    } else if (argument < 0x1_0000_0000) {
      this.#bytes[this.#at++] = first | 26;
      this.#at = this.#bytes.writeUInt32BE(Number(argument), this.#at);
    } else {
      this.#bytes[this.#at++] = first | 27;
      this.#at = this.#bytes.writeBigUInt64BE(BigInt(argument), this.#at);
    }
  }

  #byte(value: number): void {
    this.#reserve(1);
    this.#bytes[this.#at++] = value;
  }

  #reserve(count: number): void {
    if (this.#at + count <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafe(Math.max(this.#bytes.length * 2, this.#at + count));
    this.#bytes.copy(larger, 0, 0, this.#at);
    this.#bytes = larger;
  }
}
