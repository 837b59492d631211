import {
  itemAt,
  type JsonArray,
  type JsonObject,
  type JsonValue,
  jsonObject,
  parseJson,
  setMember,
} from '@wheelhouse/machinery';

/** Target size of pieces in bytes, which take a few tenths of a millisecond to parse. */
const pieceBytes = 8 * 1024;

/** Bytes after which a step ends in any case, in less than a millisecond. */
const stepBytes = 256 * 1024;

const colon = 0x3a;

const quote = 0x22;
const backslash = 0x5c;

/** A value, and the number of the members of all its objects, without duplicates. */
interface ParsedPieces {
  readonly value: JsonValue;
  readonly members: number;
}

/**
 * Parses a JSON text of valid UTF-8 in steps with the built-in parser, which is several times
 * faster than `exactJsonSteps` but cannot pause: each step decodes and parses a run of members or
 * items of one container. Returns undefined for invalid text and for numbers beyond the range of a
 * float. Integers that a float cannot represent are rounded.
 */
export function* parseInPieces(bytes: Buffer): Generator<void, ParsedPieces | undefined> {
  try {
    return yield* new PieceParser(bytes).steps();
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** An open object or list. */
interface Frame {
  readonly isList: boolean;
  /** Offset of its opening bracket. */
  readonly start: number;
  /** Offset after its parsed part. */
  parsedTo: number;
  /** Offset of the current member or item. */
  memberStart: number;
  /** Whether the last member is a container that was parsed separately. */
  isAfterPart: boolean;
  /** The parsed part; undefined while it may still be parsed as part of an enclosing run. */
  container: JsonObject | JsonArray | undefined;
}

class PieceParser {
  readonly #bytes: Buffer;
  readonly #open: Frame[] = [];
  #members = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  *steps(): Generator<void, ParsedPieces | undefined> {
    const bytes = this.#bytes;
    let pauseAt = stepBytes;
    for (let at = 0; at < bytes.length; at += 1) {
      if (at >= pauseAt) {
        yield;
        pauseAt = at + stepBytes;
      }
      const code = bytes[at];
      if (code === quote) {
        let end = stringEnd(bytes, at, at + 1);
        while (end < 0) {
          yield;
          end = stringEnd(bytes, at, ~end);
        }
        at = end;
      } else if (code === 0x7b || code === 0x5b) this.#begin(at, code === 0x5b);
      else if (code === 0x2c) {
        if (this.#comma(at)) yield;
      } else if (code === 0x7d || code === 0x5d) {
        const root = this.#open.length === 1 ? this.#open[0] : undefined;
        const closed = this.#close(at, code === 0x5d);
        if (root !== undefined) return this.#whole(closed, { start: root.start, end: at });
        if (closed !== undefined) yield;
      }
    }
    return this.#open.length > 0 ? undefined : this.#wholeAtOnce();
  }

  #begin(at: number, isList: boolean): void {
    const next = at + 1;
    this.#open.push({
      isList,
      start: at,
      parsedTo: next,
      memberStart: next,
      isAfterPart: false,
      container: undefined,
    });
  }

  /** Passes a comma, and returns whether that parsed a run. */
  #comma(at: number): boolean {
    const frame = this.#open.at(-1);
    if (frame === undefined) throw new SyntaxError();
    const isRun = !frame.isAfterPart && at - frame.parsedTo >= pieceBytes;
    if (frame.isAfterPart) {
      this.#mustBeBlank(frame.parsedTo, at);
      frame.isAfterPart = false;
      frame.parsedTo = at + 1;
    } else if (isRun) {
      this.#parseRun(this.#open.length - 1, at);
      frame.parsedTo = at + 1;
    }
    frame.memberStart = at + 1;
    return isRun;
  }

  /** Closes a container, and returns it if it was parsed separately. */
  #close(at: number, isList: boolean): JsonObject | JsonArray | undefined {
    const depth = this.#open.length - 1;
    const frame = this.#open[depth];
    if (frame === undefined || frame.isList !== isList) throw new SyntaxError();
    const isShort = at - frame.start < pieceBytes;
    if (frame.container === undefined && isShort) {
      this.#open.pop();
      return undefined;
    }
    if (frame.isAfterPart) this.#mustBeBlank(frame.parsedTo, at);
    else this.#parseRun(depth, at);
    this.#open.pop();
    const { container } = frame;
    const parent = this.#open.at(-1);
    if (parent?.container === undefined || container === undefined) return container;
    this.#put(parent, container, this.#nameOf(parent, frame.start));
    parent.parsedTo = at + 1;
    parent.isAfterPart = true;
    return container;
  }

  /** Parses the rest of a container up to `end`. */
  #parseRun(depth: number, end: number): void {
    const frame = this.#separate(depth);
    const run = this.#bytes.toString('utf8', frame.parsedTo, end);
    if (run.trim() === '') throw new SyntaxError();
    if (frame.isList) {
      const items = JSON.parse(`[${run}]`) as JsonArray;
      this.#members += countMembers(items);
      for (const item of items) (frame.container as JsonArray).push(item);
      return;
    }
    const members = jsonObject(parseJson(`{${run}}`));
    this.#members += countMembers(members);
    const container = jsonObject(frame.container);
    for (const name of Object.keys(members)) {
      if (Object.hasOwn(container, name)) this.#members -= 1;
      setMember(container, name, members[name] ?? null);
    }
  }

  /** Makes the containers up to a depth be parsed separately, and returns the innermost one. */
  #separate(depth: number): Frame {
    const frame = itemAt(this.#open, depth);
    let first = depth;
    while (first >= 0 && this.#open[first]?.container === undefined) first -= 1;
    for (let at = first + 1; at <= depth; at += 1) {
      const next = itemAt(this.#open, at);
      const parent = this.#open[at - 1];
      next.container = next.isList ? [] : {};
      if (parent === undefined || parent.memberStart === parent.parsedTo) continue;
      const end = parent.memberStart - 1;
      this.#parseRun(at - 1, end);
      parent.parsedTo = parent.memberStart;
    }
    return frame;
  }

  #put(parent: Frame, value: JsonValue, name: string): void {
    if (Array.isArray(parent.container)) {
      parent.container.push(value);
      return;
    }
    const container = jsonObject(parent.container);
    if (!Object.hasOwn(container, name)) this.#members += 1;
    setMember(container, name, value);
  }

  /** Returns the name of the member whose value starts at `start`; empty for an item of a list. */
  #nameOf(parent: Frame, start: number): string {
    const { isList, memberStart } = parent;
    if (isList) {
      this.#mustBeBlank(memberStart, start);
      return '';
    }
    const nameEnd = this.#bytes.lastIndexOf(colon, start - 1);
    if (nameEnd < memberStart) throw new SyntaxError();
    this.#mustBeBlank(nameEnd + 1, start);
    const name: unknown = JSON.parse(this.#bytes.toString('utf8', memberStart, nameEnd));
    if (typeof name !== 'string') throw new SyntaxError();
    return name;
  }

  /** Returns the root: the container if it was parsed separately, or else the whole text. */
  #whole(
    container: JsonObject | JsonArray | undefined,
    { start, end }: { readonly start: number; readonly end: number },
  ): ParsedPieces {
    if (container === undefined) return this.#wholeAtOnce();
    this.#mustBeBlank(0, start);
    this.#mustBeBlank(end + 1, this.#bytes.length);
    return { value: container, members: this.#members };
  }

  #wholeAtOnce(): ParsedPieces {
    const value = parseJson(this.#bytes.toString('utf8'));
    return { value, members: countMembers(value) };
  }

  #mustBeBlank(from: number, to: number): void {
    for (let at = from; at < to; at += 1) {
      const code = this.#bytes[at];
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) throw new SyntaxError();
    }
  }
}

/** Bytes of a string that are searched before the search of the buffer, which starts slowly. */
const nearBytes = 32;

/** Number of escaped quotes of a string that are passed at once. */
const escapedMax = 8_192;

/**
 * Returns the index of the quote at or after `from` that ends the string at `start`; the length of
 * the text if there is none; or, after many escaped quotes, the complement of the index to continue
 * from.
 */
export function stringEnd(bytes: Buffer, start: number, from: number): number {
  let at = from;
  for (let left = escapedMax; left > 0; left -= 1) {
    const near = Math.min(bytes.length, at + nearBytes);
    while (at < near && bytes[at] !== quote) at += 1;
    if (at === near) at = bytes.indexOf(quote, at);
    if (at < 0) return bytes.length;
    if (!isEscaped(bytes, at, start)) return at;
    at += 1;
  }
  return ~at;
}

/** Whether a quote in the string that starts at `start` is escaped. */
function isEscaped(bytes: Buffer, at: number, start: number): boolean {
  let slashes = 0;
  while (bytes[at - 1 - slashes] === backslash && at - 1 - slashes > start) slashes += 1;
  return slashes % 2 === 1;
}

/**
 * Returns the number of the members of all objects in a value. Not recursive, because clients
 * choose the depth.
 * @throws SyntaxError for a number that overflowed
 */
export function countMembers(root: JsonValue): number {
  let count = 0;
  const open: JsonValue[] = [root];
  for (let value = open.pop(); value !== undefined; value = open.pop()) {
    if (value === Infinity || value === -Infinity) throw new SyntaxError();
    if (typeof value !== 'object' || value === null) continue;
    const items = Array.isArray(value) ? value : Object.values(value);
    if (!Array.isArray(value)) count += items.length;
    for (const item of items) {
      if (typeof item === 'number' ? !Number.isFinite(item) : isContainer(item)) {
        open.push(item as JsonValue);
      }
    }
  }
  return count;
}

function isContainer(value: unknown): boolean {
  return typeof value === 'object' && value !== null;
}

/** Starts of escapes of surrogates. */
const starts = [Buffer.from('\\ud'), Buffer.from('\\uD')];
/** U+FFFD as an escape, which is as long as the one that it replaces. */
const replacement = Buffer.from('\\ufffd');
/** Number of bytes that one step reads, in about a millisecond. */
const bytesPerStep = 262_144;

/**
 * Replaces escapes of lone surrogates in a JSON text with U+FFFD, as kube-apiserver does, because
 * UTF-8 cannot represent them. Returns the same buffer if there are none. Works in steps.
 */
export function* pairedSurrogatesSteps(json: Buffer): Generator<void, Buffer> {
  let paired = json;
  let stepEnd = bytesPerStep;
  for (let at = firstEscape(json); at < json.length; ) {
    if (at > stepEnd) {
      yield;
      stepEnd = at + bytesPerStep;
    }
    if (json[at] !== backslash) {
      at += 1;
      continue;
    }
    const half = surrogateAt(json, at);
    if (half === undefined) at += 2;
    else if (half === 'high' && surrogateAt(json, at + 6) === 'low') at += 12;
    else {
      if (paired === json) paired = Buffer.from(json);
      replacement.copy(paired, at);
      at += 6;
    }
  }
  return paired;
}

/** The index of the first escape that may be of a surrogate; the length of a text without any. */
function firstEscape(json: Buffer): number {
  if (!json.includes(backslash)) return json.length;
  let first = json.length;
  for (const start of starts) {
    const found = json.indexOf(start);
    if (found >= 0) first = Math.min(first, found);
  }
  // A backslash before the escape may escape its backslash.
  while (json[first - 1] === backslash) first -= 1;
  return first;
}

/** The half of a pair that an escape such as `\ud83d` stands for; undefined for other text. */
function surrogateAt(json: Buffer, at: number): 'high' | 'low' | undefined {
  const isEscape =
    json[at] === backslash && json[at + 1] === 0x75 && hexDigit(json[at + 2]) === 0xd;
  if (!isEscape || hexDigit(json[at + 4]) < 0 || hexDigit(json[at + 5]) < 0) return undefined;
  const digit = hexDigit(json[at + 3]);
  if (digit < 8) return undefined;
  return digit < 0xc ? 'high' : 'low';
}

/** The value of a hexadecimal digit; -1 for other characters. */
function hexDigit(character = 0): number {
  if (character >= 0x30 && character <= 0x39) return character - 0x30;
  const letter = character | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1;
}
