import { isUtf8 } from 'node:buffer';
import { type JsonObject, type JsonValue, setMember } from '../../base/json.ts';

/** Bytes that are no CBOR, or CBOR that has no JSON counterpart. */
export class CborError extends Error {
  constructor(message: string) {
    super(`cbor: ${message}`);
    this.name = 'CborError';
  }
}

const depthMax = 64;
const itemsMax = 2_000_000;

const unsigned = 0;
const negative = 1;
const byteString = 2;
const textString = 3;
const list = 4;
const map = 5;
const tag = 6;
const indefinite = -1;
const stop = 0xff;

/**
 * Decodes one CBOR item to what JSON would hold (CODEC-4): byte strings are strings, since upstream
 * writes them so; the tags for times and for byte strings' text forms are followed, other tags
 * dropped. Twice the same key, integers beyond 64 bits, NaN and everything JSON lacks are refused.
 */
export function decodeCbor(bytes: Buffer): JsonValue {
  const reader = new Reader(bytes);
  const value = reader.item(0);
  if (!reader.isDone) throw new CborError('extraneous data after the item');
  return value;
}

class Reader {
  readonly #bytes: Buffer;
  #at = 0;
  #items = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get isDone(): boolean {
    return this.#at === this.#bytes.length;
  }

  item(depth: number): JsonValue {
    if (depth > depthMax) throw new CborError(`exceeded max nested level ${depthMax}`);
    this.#items += 1;
    if (this.#items > itemsMax) throw new CborError('too many items');
    const head = this.#byte();
    const major = head >> 5;
    const info = head & 0x1f;
    switch (major) {
      case unsigned:
        return integer(this.#argument(info));
      case negative:
        return integer(-1n - BigInt(this.#argument(info)));
      case byteString:
      case textString:
        return this.#text(major, info);
      case list:
        return this.#list(info, depth);
      case map:
        return this.#map(info, depth);
      case tag:
        return this.#tagged(Number(this.#argument(info)), depth);
      default:
        return this.#simple(info);
    }
  }

  #byte(): number {
    if (this.#at >= this.#bytes.length) throw new CborError('unexpected EOF');
    return this.#bytes[this.#at++] as number;
  }

  #take(length: number): Buffer {
    if (length > this.#bytes.length - this.#at) throw new CborError('unexpected EOF');
    this.#at += length;
    return this.#bytes.subarray(this.#at - length, this.#at);
  }

  #argument(info: number): number | bigint {
    if (info < 24) return info;
    if (info === 24) return this.#byte();
    if (info === 25) return this.#take(2).readUInt16BE();
    if (info === 26) return this.#take(4).readUInt32BE();
    if (info === 27) return this.#take(8).readBigUInt64BE();
    throw new CborError(`invalid additional information ${info}`);
  }

  /** A length, or `indefinite`; one that cannot fit what is left is refused before it is used. */
  #length(info: number): number {
    if (info === 31) return indefinite;
    const length = Number(this.#argument(info));
    if (length > this.#bytes.length - this.#at) throw new CborError('unexpected EOF');
    return length;
  }

  #isStop(): boolean {
    if (this.#bytes[this.#at] !== stop) return false;
    this.#at += 1;
    return true;
  }

  #string(major: number, info: number): Buffer {
    const length = this.#length(info);
    if (length !== indefinite) return this.#take(length);
    const chunks: Buffer[] = [];
    while (!this.#isStop()) {
      const head = this.#byte();
      if (head >> 5 !== major || (head & 0x1f) === 31) {
        throw new CborError('wrong element in an indefinite-length string');
      }
      chunks.push(this.#take(this.#length(head & 0x1f)));
    }
    return Buffer.concat(chunks);
  }

  #text(major: number, info: number): string {
    const bytes = this.#string(major, info);
    if (!isUtf8(bytes)) throw new CborError('invalid UTF-8 string');
    return bytes.toString('utf8');
  }

  #list(info: number, depth: number): JsonValue[] {
    const length = this.#length(info);
    const items: JsonValue[] = [];
    while (length === indefinite ? !this.#isStop() : items.length < length) {
      items.push(this.item(depth + 1));
    }
    return items;
  }

  #map(info: number, depth: number): JsonObject {
    const length = this.#length(info);
    const members: JsonObject = {};
    for (let count = 0; length === indefinite ? !this.#isStop() : count < length; count += 1) {
      const name = this.#key();
      if (Object.hasOwn(members, name)) {
        throw new CborError(
          `found duplicate map key ${JSON.stringify(name)} at map element index ${count}`,
        );
      }
      setMember(members, name, this.item(depth + 1));
    }
    return members;
  }

  #key(): string {
    const head = this.#byte();
    const major = head >> 5;
    if (major !== byteString && major !== textString) {
      throw new CborError('cannot unmarshal a map key that is no string');
    }
    return this.#text(major, head & 0x1f);
  }

  #tagged(number: number, depth: number): JsonValue {
    if (number === 0) return this.#timeText(depth);
    if (number === 1) return epochTime(this.item(depth + 1));
    if (number === 2 || number === 3)
      throw new CborError('bignums lose their distinction from floats');
    const encoding = bytesAs[number];
    if (encoding === undefined) return this.item(depth + 1);
    if ((this.#bytes[this.#at] ?? 0) >> 5 !== byteString) return this.item(depth + 1);
    return this.#string(byteString, this.#byte() & 0x1f).toString(encoding);
  }

  #timeText(depth: number): string {
    const major = (this.#bytes[this.#at] ?? 0) >> 5;
    if (major !== textString) {
      const got = major === byteString ? 'byte string' : 'another type';
      throw new CborError(`tag number 0 must be followed by text string, got ${got}`);
    }
    const text = this.item(depth + 1) as string;
    if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d/.test(text) || Number.isNaN(Date.parse(text))) {
      throw new CborError(`cannot set ${JSON.stringify(text.slice(0, 64))} as a time`);
    }
    return text;
  }

  #simple(info: number): JsonValue {
    if (info === 20) return false;
    if (info === 21) return true;
    if (info === 22) return null;
    if (info === 25) return finite(half(this.#take(2).readUInt16BE()));
    if (info === 26) return finite(this.#take(4).readFloatBE());
    if (info === 27) return finite(this.#take(8).readDoubleBE());
    const value = info === 24 ? this.#byte() : info;
    throw new CborError(`simple value ${value} is not recognized`);
  }
}

const bytesAs: Readonly<Record<number, 'base64url' | 'base64' | 'hex'>> = {
  21: 'base64url',
  22: 'base64',
  23: 'hex',
};

const int64Max = 2n ** 63n - 1n;
const int64Min = -(2n ** 63n);

function integer(value: number | bigint): number | bigint {
  if (typeof value === 'number') return value;
  if (value > int64Max || value < int64Min) throw new CborError(`${value} overflows int64`);
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}

function finite(value: number): number {
  if (!Number.isFinite(value))
    throw new CborError('floating-point NaN and infinities are not accepted');
  return value;
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

const epochLimit = 253_402_300_800;

function epochTime(value: JsonValue): string {
  const seconds = typeof value === 'bigint' ? Number(value) : value;
  if (typeof seconds !== 'number' || Math.abs(seconds) >= epochLimit) {
    throw new CborError('a time is out of range');
  }
  const text = new Date(seconds * 1000).toISOString();
  return text.replace(/\.?0*Z$/, 'Z');
}
