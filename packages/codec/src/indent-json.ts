const newline = 0x0a;
const space = 0x20;
const quote = 0x22;
const comma = 0x2c;
const colon = 0x3a;
const backslash = 0x5c;
const isOpening = (byte: number | undefined) => byte === 0x7b || byte === 0x5b;
const isClosing = (byte: number | undefined) => byte === 0x7d || byte === 0x5d;
/** Shorter strings are copied by a loop, which is faster than a native copy. */
const loopBytesMax = 64;
/** Target size of pieces in bytes. The indentation of one line may exceed it. */
const pieceBytes = 16 * 1024;
const noBytes = Buffer.alloc(0);

/**
 * Indents JSON by two spaces, without a final newline, as Go's `MarshalIndent` does. In the input,
 * empty objects and lists must not contain whitespace. Numbers and escapes are not changed.
 * Indentation can enlarge deep values a thousandfold, so one input piece may yield many.
 * @param source the pieces of a JSON text
 */
export function* indentedPieces(source: Iterable<Buffer>): Generator<Buffer> {
  const layout = new Layout();
  for (const json of source) {
    for (let at = 0; at < json.length; ) {
      at = layout.add(json, at);
      if (layout.isFull) yield layout.take();
    }
    // The next input piece may take long, so the caller gets a chance to pause.
    yield layout.isFull ? layout.take() : noBytes;
  }
  layout.end();
  yield layout.take();
}

/** Returns the end of the string that continues at `start`; -1 if it is in a later piece. */
function stringEnd(json: Buffer, start: number): number {
  let at = start;
  while (at < json.length && json[at] !== quote) at += json[at] === backslash ? 2 : 1;
  return at < json.length ? at + 1 : -1;
}

/** Indents JSON into a buffer. */
class Layout {
  #out = Buffer.allocUnsafe(pieceBytes * 2);
  #end = 0;
  #depth = 0;
  /** Whether the last byte opened a list or object; a line follows unless it is empty. */
  #hasOpened = false;
  #inString = false;
  /** Whether the last byte of a piece was a backslash in a string. */
  #isEscaped = false;

  /** Whether the buffer contains a piece. */
  get isFull(): boolean {
    return this.#end >= pieceBytes;
  }

  /** Returns the contents of the buffer, and clears it. */
  take(): Buffer {
    const bytes = this.#out.subarray(0, this.#end);
    this.#out = Buffer.allocUnsafe(pieceBytes * 2);
    this.#end = 0;
    return bytes;
  }

  /** Indents `json` from `from` until the buffer is full, and returns where to continue. */
  add(json: Buffer, from: number): number {
    let at = from;
    while (at < json.length && !this.isFull) {
      if (this.#inString) at = this.#string(json, at);
      else this.#byte(json[at++] ?? 0);
    }
    return at;
  }

  /** Ends a text that is truncated after an opening bracket. */
  end(): void {
    if (this.#hasOpened) this.#line(1);
  }

  #byte(byte: number): void {
    if (byte <= space) return;
    if (isClosing(byte)) {
      if (!this.#hasOpened) this.#line(-1);
      this.#hasOpened = false;
      this.#put(byte);
      return;
    }
    if (this.#hasOpened) this.#line(1);
    this.#hasOpened = isOpening(byte);
    this.#put(byte);
    if (byte === quote) this.#inString = true;
    else if (byte === comma) this.#line(0);
    else if (byte === colon) this.#put(space);
  }

  /** Copies the rest of a string, as far as this piece contains it. */
  #string(json: Buffer, from: number): number {
    let start = from;
    if (this.#isEscaped) {
      this.#isEscaped = false;
      this.#put(json[start++] ?? 0);
    }
    const limit = Math.min(json.length, start + pieceBytes);
    const part = limit < json.length ? json.subarray(0, limit) : json;
    const end = stringEnd(part, start);
    const to = end < 0 ? limit : end;
    this.#copy(json, start, to);
    if (end < 0) this.#isEscaped = endsInBackslash(json, start, to);
    else this.#inString = false;
    return to;
  }

  #put(byte: number): void {
    this.#reserve(1);
    this.#out[this.#end] = byte;
    this.#end += 1;
  }

  /** Starts a line that is indented by `deeper` more levels than the previous one. */
  #line(deeper: number): void {
    this.#depth += deeper;
    const indent = Math.max(0, this.#depth) * 2;
    this.#reserve(indent + 1);
    const from = this.#end + 1;
    this.#out[this.#end] = newline;
    if (indent > loopBytesMax) this.#out.fill(space, from, from + indent);
    else for (let at = from; at < from + indent; at += 1) this.#out[at] = space;
    this.#end = from + indent;
  }

  #copy(source: Buffer, from: number, to: number): void {
    const size = to - from;
    this.#reserve(size);
    if (size > loopBytesMax) source.copy(this.#out, this.#end, from, to);
    else for (let at = 0; at < size; at += 1) this.#out[this.#end + at] = source[from + at] ?? 0;
    this.#end += size;
  }

  #reserve(size: number): void {
    if (this.#end + size <= this.#out.length) return;
    const larger = Buffer.allocUnsafe((this.#end + size) * 2);
    this.#out.copy(larger, 0, 0, this.#end);
    this.#out = larger;
  }
}

/** Whether a part of a string ends in a backslash that escapes the next character. */
function endsInBackslash(json: Buffer, from: number, to: number): boolean {
  let at = to;
  while (at > from && json[at - 1] === backslash) at -= 1;
  return (to - at) % 2 === 1;
}
