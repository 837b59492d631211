import { fault, internedName, nameFaults, type Stretch, valueFaults } from './field-text.ts';
import { staticFields } from './hpack-static.ts';
import { huffmanDecode, huffmanDecodedMax } from './huffman.ts';
import { ConnectionError, errorCode } from './protocol.ts';

/** Takes the fields of a header block, in their order. */
export interface FieldSink {
  /** @param faults bits of `fault` in field-text.ts: what is wrong with name or value */
  field(name: string, value: string, faults: number): void;
}

const staticCount = staticFields.length;
const staticNames: readonly string[] = staticFields.map(([name]) => name);
const staticValues: readonly string[] = staticFields.map(([, value]) => value);

/** What an entry costs beside its texts (RFC 7541, 4.1). */
export const entryOverheadBytes = 32;

/** First bytes of a field, RFC 7541, section 6. */
const indexed = 0x80;
const literalIndexed = 0x40;
const sizeUpdate = 0x20;

let scratch: Buffer = Buffer.allocUnsafeSlow(8192);

/**
 * Reads header blocks of one connection (RFC 7541). Blocks must come in the order they were sent,
 * since they share the dynamic table. Any fault of a block's form throws a ConnectionError, after
 * which the table is of no use. The dynamic table is a ring, the newest entry at `#newest`.
 */
export class HpackDecoder {
  readonly #tableBytesLimit: number;
  readonly #names: string[] = [];
  readonly #values: string[] = [];
  readonly #faults: number[] = [];
  readonly #slots: number;
  #tableBytesMax: number;
  #tableBytes = 0;
  #newest = -1;
  #count = 0;
  readonly #text: Stretch = { bytes: scratch, start: 0, end: 0 };
  #block: Buffer = scratch;
  #at = 0;
  #end = 0;

  /** @param tableBytesLimit our SETTINGS_HEADER_TABLE_SIZE */
  constructor(tableBytesLimit: number) {
    this.#tableBytesLimit = tableBytesLimit;
    this.#tableBytesMax = tableBytesLimit;
    this.#slots = Math.max(1, Math.floor(tableBytesLimit / entryOverheadBytes));
  }

  /** Reads one whole block: `block` from `start` to `end`. */
  decode(block: Buffer, place: { readonly start: number; readonly end: number }, to: FieldSink) {
    this.#block = block;
    this.#at = place.start;
    this.#end = place.end;
    let mayResize = true;
    while (this.#at < this.#end) {
      const first = block[this.#at] as number;
      if ((first & indexed) !== 0) this.#indexed(to);
      else if ((first & literalIndexed) !== 0) this.#literal(to, 6);
      else if ((first & sizeUpdate) === 0) this.#literal(to, 4);
      else if (!mayResize) throw corrupt('a table size update after a field');
      else {
        this.#resize(this.#integer(5));
        continue;
      }
      mayResize = false;
    }
    this.#block = scratch;
    this.#text.bytes = scratch;
  }

  #indexed(to: FieldSink): void {
    const index = this.#integer(7);
    if (index > 0 && index <= staticCount) {
      to.field(staticNames[index - 1] as string, staticValues[index - 1] as string, 0);
      return;
    }
    const slot = this.#slotOf(index);
    to.field(
      this.#names[slot] as string,
      this.#values[slot] as string,
      this.#faults[slot] as number,
    );
  }

  /** @param prefixBits 6 for a field that enters the table, 4 for one that does not */
  #literal(to: FieldSink, prefixBits: 4 | 6): void {
    const index = this.#integer(prefixBits);
    let name: string;
    let faults = 0;
    if (index === 0) {
      this.#readText();
      faults = nameFaults(this.#text);
      name = faults === 0 ? internedName(this.#text) : this.#textAsString();
    } else if (index <= staticCount) name = staticNames[index - 1] as string;
    else {
      const slot = this.#slotOf(index);
      name = this.#names[slot] as string;
      faults = (this.#faults[slot] as number) & fault.name;
    }
    this.#readText();
    faults |= valueFaults(this.#text);
    const value = this.#textAsString();
    if (prefixBits === 6) this.#insert({ name, value, faults });
    to.field(name, value, faults);
  }

  /** The ring's place of an index beyond the static table. */
  #slotOf(index: number): number {
    const age = index - staticCount - 1;
    if (age < 0 || age >= this.#count) throw corrupt(`no entry ${index}`);
    const slot = this.#newest - age;
    return slot < 0 ? slot + this.#slots : slot;
  }

  #insert(entry: { name: string; value: string; faults: number }): void {
    const { name, value, faults } = entry;
    const bytes = name.length + value.length + entryOverheadBytes;
    this.#shrinkTo(this.#tableBytesMax - bytes);
    // An entry larger than the table empties it, and that is no error (RFC 7541, 4.4).
    if (bytes > this.#tableBytesMax) return;
    this.#newest = this.#newest + 1 === this.#slots ? 0 : this.#newest + 1;
    this.#names[this.#newest] = name;
    this.#values[this.#newest] = value;
    this.#faults[this.#newest] = faults;
    this.#count += 1;
    this.#tableBytes += bytes;
  }

  #resize(bytesMax: number): void {
    if (bytesMax > this.#tableBytesLimit) throw corrupt('a table larger than allowed');
    this.#tableBytesMax = bytesMax;
    this.#shrinkTo(bytesMax);
  }

  /** Evicts the oldest entries until the table has at most that many bytes. */
  #shrinkTo(bytesMax: number): void {
    while (this.#count > 0 && this.#tableBytes > bytesMax) {
      const slot = this.#slotOf(staticCount + this.#count);
      const [name, value] = [this.#names[slot] as string, this.#values[slot] as string];
      this.#tableBytes -= name.length + value.length + entryOverheadBytes;
      this.#names[slot] = '';
      this.#values[slot] = '';
      this.#count -= 1;
    }
  }

  /** An integer whose first byte has `prefixBits` bits of it (RFC 7541, 5.1). */
  #integer(prefixBits: number): number {
    const block = this.#block;
    const mask = (1 << prefixBits) - 1;
    let value = (block[this.#at++] as number) & mask;
    if (value < mask) return value;
    for (let shift = 0; shift <= 21; shift += 7) {
      if (this.#at >= this.#end) throw corrupt('an integer without an end');
      const byte = block[this.#at++] as number;
      value += (byte & 0x7f) << shift;
      if ((byte & 0x80) === 0) return value;
    }
    throw corrupt('an integer out of bounds');
  }

  /** Reads a string literal; `#text` is where its bytes are until the next one is read. */
  #readText(): void {
    if (this.#at >= this.#end) throw corrupt('a field without an end');
    const isCoded = ((this.#block[this.#at] as number) & 0x80) !== 0;
    const length = this.#integer(7);
    const start = this.#at;
    const end = start + length;
    if (end > this.#end) throw corrupt('a text without an end');
    this.#at = end;
    const text = this.#text;
    if (!isCoded) {
      text.bytes = this.#block;
      text.start = start;
      text.end = end;
      return;
    }
    const decodedMax = huffmanDecodedMax(length);
    if (decodedMax > scratch.length) scratch = Buffer.allocUnsafeSlow(2 * decodedMax);
    text.bytes = scratch;
    text.start = 0;
    text.end = huffmanDecode(this.#block, { start, end }, scratch);
    if (text.end < 0) throw corrupt('a text with a wrong code');
  }

  #textAsString(): string {
    const { bytes, start, end } = this.#text;
    return start === end ? '' : bytes.toString('latin1', start, end);
  }
}

function corrupt(why: string): ConnectionError {
  return new ConnectionError(errorCode.compressionError, `header block: ${why}`);
}
