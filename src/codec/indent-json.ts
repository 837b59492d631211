const newline = 0x0a;
const space = 0x20;
const quote = 0x22;
const comma = 0x2c;
const colon = 0x3a;
const backslash = 0x5c;
const isOpening = (byte: number | undefined) => byte === 0x7b || byte === 0x5b;
const isClosing = (byte: number | undefined) => byte === 0x7d || byte === 0x5d;
/** Shorter strings are copied sooner than a copy is called for. */
const briefBytes = 64;

/**
 * Lays out JSON bytes, two spaces an indent and a newline at the end, as upstream's printer does. What
 * it is given is JSON with empty objects and lists closed at once; numbers and escapes stay as they are.
 */
export function indentJson(json: Buffer): Buffer {
  const layout = new Layout(json.length * 2);
  for (let at = 0; at < json.length; at += 1) {
    const byte = json[at] as number;
    if (byte === quote) {
      const end = stringEnd(json, at);
      layout.copy(json, at, end);
      at = end - 1;
    } else if (isOpening(byte)) {
      layout.put(byte);
      if (isClosing(json[at + 1])) layout.put(json[++at] as number);
      else layout.line(1);
    } else if (isClosing(byte)) {
      layout.line(-1);
      layout.put(byte);
    } else if (byte === comma) {
      layout.put(byte);
      layout.line(0);
    } else if (byte === colon) {
      layout.put(byte);
      layout.put(space);
    } else if (byte > space) layout.put(byte);
  }
  layout.put(newline);
  return layout.bytes();
}

/** Where the string that begins at a quote is over. */
function stringEnd(json: Buffer, start: number): number {
  let at = start + 1;
  while (at < json.length && json[at] !== quote) at += json[at] === backslash ? 2 : 1;
  return Math.min(at + 1, json.length);
}

/** Bytes that grow, and how deep they are indented. */
class Layout {
  #out: Buffer;
  #end = 0;
  #depth = 0;

  constructor(size: number) {
    this.#out = Buffer.allocUnsafe(size + 1024);
  }

  put(byte: number): void {
    this.#reserve(1);
    this.#out[this.#end] = byte;
    this.#end += 1;
  }

  /** Begins a line, so many levels deeper than the one before. */
  line(deeper: number): void {
    this.#depth += deeper;
    const indent = Math.max(0, this.#depth) * 2;
    this.#reserve(indent + 1);
    const from = this.#end + 1;
    this.#out[this.#end] = newline;
    for (let at = from; at < from + indent; at += 1) this.#out[at] = space;
    this.#end = from + indent;
  }

  copy(source: Buffer, from: number, to: number): void {
    const size = to - from;
    this.#reserve(size);
    if (size > briefBytes) source.copy(this.#out, this.#end, from, to);
    else
      for (let at = 0; at < size; at += 1) this.#out[this.#end + at] = source[from + at] as number;
    this.#end += size;
  }

  bytes(): Buffer {
    return this.#out.subarray(0, this.#end);
  }

  #reserve(size: number): void {
    if (this.#end + size <= this.#out.length) return;
    const larger = Buffer.allocUnsafe((this.#end + size) * 2);
    this.#out.copy(larger, 0, 0, this.#end);
    this.#out = larger;
  }
}
