import { staticFields } from './hpack-static.ts';
import { ConnectionError, errorCode } from './protocol.ts';

/** Receives the fields of a header block in order. */
export interface FieldSink {
  /** @param faults bits of `fault`: what is wrong with the name or value */
  field(name: string, value: string, faults: number): void;
}

const staticCount = staticFields.length;
const staticNames: readonly string[] = staticFields.map(([name]) => name);
const staticValues: readonly string[] = staticFields.map(([, value]) => value);

/** Overhead of a table entry (RFC 7541, 4.1). */
export const entryOverheadBytes = 32;

/** First bytes of a field (RFC 7541, section 6). */
const indexed = 0x80;
const literalIndexed = 0x40;
const sizeUpdate = 0x20;

let scratch: Buffer = Buffer.allocUnsafeSlow(8192);

/**
 * Decodes the header blocks of one connection (RFC 7541) in the order in which they were sent,
 * because they share the dynamic table. Throws ConnectionError for a malformed block, after which
 * the table is invalid. The dynamic table is a ring with the newest entry at `#newest`.
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
  readonly #text: ByteRange = { bytes: scratch, start: 0, end: 0 };
  #block: Buffer = scratch;
  #at = 0;
  #end = 0;

  /** @param tableBytesLimit the server's SETTINGS_HEADER_TABLE_SIZE */
  constructor(tableBytesLimit: number) {
    this.#tableBytesLimit = tableBytesLimit;
    this.#tableBytesMax = tableBytesLimit;
    this.#slots = Math.max(1, Math.floor(tableBytesLimit / entryOverheadBytes));
  }

  /** Decodes one complete block: `block` from `start` to `end`. */
  decode(block: Buffer, place: { readonly start: number; readonly end: number }, to: FieldSink) {
    this.#block = block;
    this.#at = place.start;
    this.#end = place.end;
    let mayResize = true;
    while (this.#at < this.#end) {
      const first = block[this.#at] ?? 0;
      if ((first & indexed) !== 0) this.#indexed(to);
      else if ((first & literalIndexed) !== 0) this.#literal(to, 6);
      else if ((first & sizeUpdate) === 0) this.#literal(to, 4);
      else if (!mayResize) throw corrupt('table size update after a field');
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
      to.field(staticNames[index - 1] ?? '', staticValues[index - 1] ?? '', 0);
      return;
    }
    const slot = this.#slotOf(index);
    to.field(this.#names[slot] ?? '', this.#values[slot] ?? '', this.#faults[slot] ?? 0);
  }

  /** @param prefixBits 6 for a field that is added to the table, 4 for others */
  #literal(to: FieldSink, prefixBits: 4 | 6): void {
    const index = this.#integer(prefixBits);
    let name: string;
    let faults = 0;
    if (index === 0) {
      this.#readText();
      faults = nameFaults(this.#text);
      name = faults === 0 ? internedName(this.#text) : this.#textAsString();
    } else if (index <= staticCount) name = staticNames[index - 1] ?? '';
    else {
      const slot = this.#slotOf(index);
      name = this.#names[slot] ?? '';
      faults = (this.#faults[slot] ?? 0) & fault.name;
    }
    this.#readText();
    faults |= valueFaults(this.#text);
    const value = this.#textAsString();
    if (prefixBits === 6) this.#insert({ name, value, faults });
    to.field(name, value, faults);
  }

  /** The slot in the ring for an index beyond the static table. */
  #slotOf(index: number): number {
    const age = index - staticCount - 1;
    if (age < 0 || age >= this.#count) throw corrupt(`no table entry ${index}`);
    const slot = this.#newest - age;
    return slot < 0 ? slot + this.#slots : slot;
  }

  #insert(entry: { name: string; value: string; faults: number }): void {
    const { name, value, faults } = entry;
    const bytes = name.length + value.length + entryOverheadBytes;
    this.#shrinkTo(this.#tableBytesMax - bytes);
    // An entry larger than the table empties it, which is not an error (RFC 7541, 4.4).
    if (bytes > this.#tableBytesMax) return;
    this.#newest = this.#newest + 1 === this.#slots ? 0 : this.#newest + 1;
    this.#names[this.#newest] = name;
    this.#values[this.#newest] = value;
    this.#faults[this.#newest] = faults;
    this.#count += 1;
    this.#tableBytes += bytes;
  }

  #resize(bytesMax: number): void {
    if (bytesMax > this.#tableBytesLimit) throw corrupt('table size exceeds the limit');
    this.#tableBytesMax = bytesMax;
    this.#shrinkTo(bytesMax);
  }

  /** Evicts the oldest entries until the table has at most `bytesMax` bytes. */
  #shrinkTo(bytesMax: number): void {
    while (this.#count > 0 && this.#tableBytes > bytesMax) {
      const slot = this.#slotOf(staticCount + this.#count);
      const [name, value] = [this.#names[slot] ?? '', this.#values[slot] ?? ''];
      this.#tableBytes -= name.length + value.length + entryOverheadBytes;
      this.#names[slot] = '';
      this.#values[slot] = '';
      this.#count -= 1;
    }
  }

  /** Reads an integer with a prefix of `prefixBits` bits (RFC 7541, 5.1). */
  #integer(prefixBits: number): number {
    const block = this.#block;
    const mask = (1 << prefixBits) - 1;
    let value = (block[this.#at++] ?? 0) & mask;
    if (value < mask) return value;
    for (let shift = 0; shift <= 21; shift += 7) {
      if (this.#at >= this.#end) throw corrupt('truncated integer');
      const byte = block[this.#at++] ?? 0;
      value += (byte & 0x7f) << shift;
      if ((byte & 0x80) === 0) return value;
    }
    throw corrupt('integer out of range');
  }

  /** Reads a string literal. `#text` refers to its bytes until the next one is read. */
  #readText(): void {
    if (this.#at >= this.#end) throw corrupt('truncated field');
    const isHuffman = ((this.#block[this.#at] ?? 0) & 0x80) !== 0;
    const length = this.#integer(7);
    const start = this.#at;
    const end = start + length;
    if (end > this.#end) throw corrupt('truncated string');
    this.#at = end;
    const text = this.#text;
    if (!isHuffman) {
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
    if (text.end < 0) throw corrupt('invalid Huffman code');
  }

  #textAsString(): string {
    const { bytes, start, end } = this.#text;
    return start === end ? '' : bytes.toString('latin1', start, end);
  }
}

function corrupt(why: string): ConnectionError {
  return new ConnectionError(errorCode.compressionError, `header block: ${why}`);
}

/**
 * The Huffman code of RFC 7541, appendix B: the length in bits of each byte's code, and of the end
 * mark (256). The code is canonical, so the lengths determine it: assignCodes of one length ascend
 * in the order of their symbols, and longer assignCodes follow shorter ones.
 */
const bitsOfSymbol = Uint8Array.from([
  13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28,
  28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5,
  6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
  7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6,
  7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23,
  23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22,
  22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22,
  23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27,
  27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25,
  24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
]);

const endMark = 256;
const codeBitsMax = 30;

/** Returns the codes by symbol, in the low bits. */
function assignCodes(): Uint32Array {
  const table = new Uint32Array(bitsOfSymbol.length);
  let next = 0;
  for (let bits = 1; bits <= codeBitsMax; bits += 1) {
    next *= 2;
    for (let symbol = 0; symbol < bitsOfSymbol.length; symbol += 1) {
      if (bitsOfSymbol[symbol] === bits) table[symbol] = next++;
    }
  }
  return table;
}

/** A node of the code codeTree: its children by bit, or -1, and the symbol of a leaf, or -1. */
interface CodeTree {
  readonly children: Int16Array;
  readonly symbol: Int16Array;
}

function codeTree(): CodeTree {
  const nodes = 2 * bitsOfSymbol.length;
  const children = new Int16Array(2 * nodes).fill(-1);
  const symbol = new Int16Array(nodes).fill(-1);
  let used = 1;
  assignCodes().forEach((code, index) => {
    let node = 0;
    for (let bit = (bitsOfSymbol[index] ?? 0) - 1; bit >= 0; bit -= 1) {
      const edge = 2 * node + ((code >>> bit) & 1);
      if (children[edge] === -1) children[edge] = used++;
      node = children[edge] ?? 0;
    }
    symbol[node] = index;
  });
  return { children, symbol };
}

/** Bits of a step: the next state in the low bits, then the output. */
const stepEmits = 1 << 9;
const stepFails = 1 << 10;
const symbolShift = 16;
const stateMask = stepEmits - 1;

interface StepTable {
  readonly steps: Uint32Array;
  readonly accepts: Uint8Array;
}

/**
 * Transitions by state and half byte. A state is an inner node of the codeTree; a half byte
 * completes at most one symbol, since the shortest code has five bits. `accepts` marks the states
 * in which a text may end: padding is at most seven bits of the end mark, which is all ones.
 */
function buildStepTable(): StepTable {
  const { children, symbol } = codeTree();
  const inner: number[] = [];
  const stateOf = new Int16Array(symbol.length).fill(-1);
  for (let node = 0; node < symbol.length; node += 1) {
    if (children[2 * node] === -1) continue;
    stateOf[node] = inner.length;
    inner.push(node);
  }
  const steps = new Uint32Array(16 * inner.length);
  inner.forEach((start, state) => {
    for (let half = 0; half < 16; half += 1) {
      let node = start;
      let step = 0;
      for (let bit = 3; bit >= 0 && node !== -1; bit -= 1) {
        node = children[2 * node + ((half >>> bit) & 1)] ?? 0;
        const decoded = node === -1 ? -1 : (symbol[node] ?? 0);
        if (decoded === endMark) node = -1;
        else if (decoded !== -1) {
          step = stepEmits | (decoded << symbolShift);
          node = 0;
        }
      }
      steps[16 * state + half] = node === -1 ? stepFails : step | (stateOf[node] ?? 0);
    }
  });
  const accepts = new Uint8Array(inner.length);
  for (let node = 0, bits = 0; bits < 8; bits += 1) {
    accepts[stateOf[node] ?? 0] = 1;
    node = children[2 * node + 1] ?? 0;
  }
  return { steps, accepts };
}

/** Created for the first Huffman-coded text, to keep startup short. */
let huffmanTable: StepTable | undefined;

/** Upper bound of the decoded length of `bytes` encoded bytes: the shortest code has five bits. */
function huffmanDecodedMax(bytes: number): number {
  return Math.floor((bytes * 8) / 5);
}

/**
 * Decodes `source` from `start` to `end` into `target`, which must have room for
 * `huffmanDecodedMax` bytes.
 * @returns the decoded length; -1 if the text contains the end mark or has invalid padding
 */
function huffmanDecode(
  source: Uint8Array,
  place: { readonly start: number; readonly end: number },
  target: Uint8Array,
): number {
  huffmanTable ??= buildStepTable();
  const { steps, accepts } = huffmanTable;
  const { start, end } = place;
  let state = 0;
  let length = 0;
  for (let at = start; at < end; at += 1) {
    const byte = source[at] ?? 0;
    let step = steps[(state << 4) | (byte >>> 4)] ?? stepFails;
    if ((step & stepEmits) !== 0) target[length++] = step >>> symbolShift;
    if ((step & stepFails) !== 0) return -1;
    step = steps[((step & stateMask) << 4) | (byte & 15)] ?? stepFails;
    if ((step & stepEmits) !== 0) target[length++] = step >>> symbolShift;
    if ((step & stepFails) !== 0) return -1;
    state = step & stateMask;
  }
  return accepts[state] === 1 ? length : -1;
}

/** Faults of a received name or value; 0 for none. */
export const fault = { name: 1, value: 2 } as const;

/** The faults that a byte causes in a text that contains it. */
const faultsOfByte: Uint8Array = (() => {
  const token = /[!#$%&'*+\-.^_`|~0-9a-z]/;
  const table = new Uint8Array(256);
  for (let byte = 0; byte < table.length; byte += 1) {
    const isControl = (byte < 0x20 && byte !== 0x09) || byte === 0x7f;
    table[byte] = token.test(String.fromCharCode(byte)) ? 0 : fault.name;
    if (isControl) table[byte] = fault.name | fault.value;
  }
  return table;
})();

const colon = 0x3a;

/** A range of bytes, reused to avoid an allocation for each text. */
interface ByteRange {
  bytes: Buffer;
  start: number;
  end: number;
}

/**
 * `fault.name` unless the bytes are a lower-case token, optionally after the colon of a
 * pseudo-header.
 */
function nameFaults({ bytes, start, end }: ByteRange): number {
  const first = bytes[start] === colon ? start + 1 : start;
  if (first >= end) return fault.name;
  let faults = 0;
  for (let at = first; at < end; at += 1) faults |= faultsOfByte[bytes[at] ?? 0] ?? 0;
  return faults & fault.name;
}

/**
 * `fault.value` for control characters. Leading and trailing white space violates RFC 9113, 8.2.1,
 * but kube-apiserver accepts it, and clients send `authorization: Bearer ` without a token.
 */
function valueFaults({ bytes, start, end }: ByteRange): number {
  let faults = 0;
  for (let at = start; at < end; at += 1) faults |= faultsOfByte[bytes[at] ?? 0] ?? 0;
  return faults & fault.value;
}

const slotBits = 9;
const slots: string[] = new Array<string>(1 << slotBits).fill('');
const internedBytesMax = 40;

/**
 * Returns the text of a valid name, usually the same string object for the same name, to avoid
 * creating and hashing a string for each header of each request.
 */
function internedName(text: ByteRange): string {
  const { bytes, start, end } = text;
  const length = end - start;
  if (length > internedBytesMax) return bytes.toString('latin1', start, end);
  const middle = bytes[start + (length >> 1)] ?? 0;
  const mixed = (bytes[start] ?? 0) * 31 + middle * 7 + (bytes[end - 1] ?? 0) + length;
  const slot = mixed & ((1 << slotBits) - 1);
  const cachedText = slots[slot] ?? '';
  if (cachedText.length === length && isText(cachedText, text)) return cachedText;
  const name = internalize(bytes.toString('latin1', start, end));
  slots[slot] = name;
  return name;
}

/** Returns the engine's internalized string, which equal keys and literals share. */
function internalize(text: string): string {
  return Object.keys({ [text]: true })[0] ?? text;
}

function isText(cachedText: string, { bytes, start }: ByteRange): boolean {
  for (let at = 0; at < cachedText.length; at += 1) {
    if (cachedText.charCodeAt(at) !== bytes[start + at]) return false;
  }
  return true;
}
