import {
  goFloat,
  itemAt,
  type JsonArray,
  type JsonObject,
  type JsonValue,
  sortSteps,
} from '@wheelhouse/machinery';
import { readsAsOther } from './yaml-types.ts';

/** Upper bound of the bytes of a key that is not written after a question mark. */
const simpleKeyMax = 128;

/** Target size of pieces in UTF-16 units, which take a few tenths of a millisecond. */
const pieceUnits = 8 * 1024;
/** Longer texts are written in parts, and longer lists of names are sorted in steps. */
const longTextUnits = 16 * 1024;
const manyNames = 1024;

/**
 * Encodes a value as block YAML, as kube-apiserver does (CODEC-2): two spaces of indentation,
 * sorted members, sequences that are not indented, quotes around strings that would be other
 * values, and literal blocks for strings of several lines. Long lines are not folded.
 */
export function encodeYaml(value: JsonValue): string {
  return [...yamlPieces(value)].join('');
}

/**
 * Yields the text of `encodeYaml` in pieces, each in a fraction of a millisecond. An empty piece is
 * a chance to pause.
 */
export function* yamlPieces(value: JsonValue): Generator<string> {
  const writer = new BlockWriter();
  if (!isContainer(value)) writer.scalar(value, '  ');
  else if (isEmpty(value)) writer.put(Array.isArray(value) ? '[]\n' : '{}\n');
  else writer.open(value, '');
  yield* writer.pieces();
}

/**
 * Yields the YAML of an object with one list member whose items are produced on demand.
 * @param list.head the other members
 * @param list.member the name of the list
 * @param list.items the items; undefined stands for a pause before the next one
 */
export function* yamlListPieces(list: {
  readonly head: JsonObject;
  readonly member: string;
  readonly items: Iterable<JsonValue | undefined>;
}): Generator<string> {
  const { head, member, items } = list;
  const names = [...Object.keys(head), member].sort(compareNaturally);
  for (const name of names) {
    if (name === member) yield* listMemberPieces(member, items);
    else if (head[name] !== undefined) yield* yamlPieces({ [name]: head[name] });
  }
}

function* listMemberPieces(
  member: string,
  items: Iterable<JsonValue | undefined>,
): Generator<string> {
  let isEmptyList = true;
  for (const item of items) {
    if (item === undefined) {
      yield '';
      continue;
    }
    if (isEmptyList) yield `${member}:\n`;
    isEmptyList = false;
    // Producing an item and encoding it may both take long.
    yield '';
    yield* yamlPieces([item]);
  }
  if (isEmptyList) yield `${member}: []\n`;
}

/** Formats a number as Go does: integers of 64 bits by their digits, and others as floats. */
function numberText(value: number): string {
  const isInteger = Number.isInteger(value) && value > -(2 ** 63) && value < 2 ** 64;
  return isInteger ? String(value) : goFloat(value);
}

function isContainer(value: JsonValue): value is JsonObject | JsonArray {
  return typeof value === 'object' && value !== null;
}

function isEmpty(value: JsonObject | JsonArray): boolean {
  if (Array.isArray(value)) return value.length === 0;
  for (const name of Object.keys(value)) if (value[name] !== undefined) return false;
  return true;
}

/** A part of a value that is not yet written. */
type Frame =
  | { readonly type: 'list'; readonly items: JsonArray; readonly indent: string; at: number }
  | {
      readonly type: 'members';
      readonly value: JsonObject;
      readonly names: readonly string[];
      readonly indent: string;
      at: number;
      hasKey: boolean;
    }
  /** Names being sorted. */
  | {
      readonly type: 'sorting';
      readonly value: JsonObject;
      readonly names: Generator<void, readonly string[]>;
      readonly indent: string;
    }
  /** Parts of a long text. */
  | { readonly type: 'text'; readonly parts: Iterator<string> };

/** Writes values in steps. Not recursive, because clients choose the depth. */
class BlockWriter {
  /** The open parts, outermost first. */
  readonly #frames: Frame[] = [];
  #out: string[] = [];
  #units = 0;

  *pieces(): Generator<string> {
    for (let frame = this.#frames.at(-1); frame !== undefined; frame = this.#frames.at(-1)) {
      if (frame.type === 'sorting') yield '';
      this.#step(frame);
      if (this.#units >= pieceUnits) yield this.#take();
    }
    if (this.#units > 0) yield this.#take();
  }

  put(text: string): void {
    this.#out.push(text);
    this.#units += text.length;
  }

  /** Writes the lines of a nonempty container, of which the first continues the current line. */
  open(value: JsonObject | JsonArray, indent: string): void {
    if (Array.isArray(value)) {
      this.#frames.push({ type: 'list', items: value, indent, at: 0 });
      return;
    }
    const names = Object.keys(value).filter((name) => value[name] !== undefined);
    if (names.length > manyNames) {
      this.#frames.push({
        type: 'sorting',
        value,
        names: sortSteps(names, compareNaturally),
        indent,
      });
    } else {
      names.sort(compareNaturally);
      this.#frames.push({ type: 'members', value, names, indent, at: 0, hasKey: false });
    }
  }

  /** Writes a scalar and the end of its line. */
  scalar(value: JsonValue, indent: string): void {
    if (typeof value === 'string') this.#text({ value, indent, suffix: '\n' });
    else this.put(`${typeof value === 'number' ? numberText(value) : String(value)}\n`);
  }

  /** @param text.indent indentation of literal blocks; empty if they are not allowed (in keys) */
  #text(text: { readonly value: string; readonly indent: string; readonly suffix: string }): void {
    const { value, indent, suffix } = text;
    if (value.length <= longTextUnits) this.put(textScalar(value, indent) + suffix);
    else this.#frames.push({ type: 'text', parts: longTextParts(text) });
  }

  #take(): string {
    const text = this.#out.join('');
    this.#out = [];
    this.#units = 0;
    return text;
  }

  #step(frame: Frame): void {
    switch (frame.type) {
      case 'list':
        this.#writeItem(frame);
        break;
      case 'members':
        this.#writeMember(frame);
        break;
      case 'sorting': {
        const next = frame.names.next();
        if (next.done !== true) break;
        this.#frames.pop();
        const { value, indent } = frame;
        this.#frames.push({
          type: 'members',
          value,
          names: next.value,
          indent,
          at: 0,
          hasKey: false,
        });
        break;
      }
      case 'text': {
        const next = frame.parts.next();
        if (next.done === true) this.#frames.pop();
        else this.put(next.value);
        break;
      }
    }
  }

  #writeItem(frame: Extract<Frame, { type: 'list' }>): void {
    const { items, indent, at } = frame;
    frame.at += 1;
    if (frame.at === items.length) this.#frames.pop();
    if (at > 0) this.put(indent);
    const item = itemAt(items, at);
    if (isContainer(item) && !isEmpty(item)) {
      this.put('- ');
      this.open(item, `${indent}  `);
    } else {
      this.put('-');
      this.#writeInline(item, indent);
    }
  }

  /** Writes a key or a value: each has a step of its own, because either may be a long text. */
  #writeMember(frame: Extract<Frame, { type: 'members' }>): void {
    const { value, names, indent, at } = frame;
    const name = itemAt(names, at);
    frame.hasKey = !frame.hasKey;
    if (frame.hasKey) {
      if (at > 0) this.put(indent);
      this.#writeKey(name, indent);
      return;
    }
    frame.at += 1;
    if (frame.at === names.length) this.#frames.pop();
    const member = value[name] ?? null;
    if (!isContainer(member) || isEmpty(member)) {
      this.#writeInline(member, indent);
      return;
    }
    const inner = Array.isArray(member) ? indent : `${indent}  `;
    this.put(`\n${inner}`);
    this.open(member, inner);
  }

  /** Writes a key; one that is too long for an implicit key follows a question mark. */
  #writeKey(name: string, indent: string): void {
    const key = name.length <= simpleKeyMax ? textScalar(name, '') : undefined;
    if (key !== undefined && isSimpleKey(key)) {
      this.put(`${key}:`);
      return;
    }
    this.put('? ');
    this.#text({ value: name, indent: '', suffix: `\n${indent}:` });
  }

  #writeInline(value: JsonValue, indent: string): void {
    if (isContainer(value)) this.put(Array.isArray(value) ? ' []\n' : ' {}\n');
    else {
      this.put(' ');
      this.scalar(value, `${indent}  `);
    }
  }
}

function isSimpleKey(key: string): boolean {
  // A unit takes at most three bytes, so short texts need no encoding.
  return key.length * 3 <= simpleKeyMax || new TextEncoder().encode(key).length <= simpleKeyMax;
}

/** How a text is written. */
type TextStyle = 'plain' | 'single' | 'double' | 'literal';

/**
 * Returns the style of a text.
 * @param indent indentation of literal blocks; empty if they are not allowed (in keys)
 */
function styleOf(text: string, indent: string): TextStyle {
  if (readsAsOther(text)) return 'double';
  if (text.includes('\n')) {
    const canBeLiteral = indent !== '' && !/ $| \n/.test(text) && !needsEscapes.test(text);
    return canBeLiteral ? 'literal' : 'double';
  }
  if (needsEscapes.test(text)) return 'double';
  return plainIsUnsafe(text) ? 'single' : 'plain';
}

function textScalar(text: string, indent: string): string {
  switch (styleOf(text, indent)) {
    case 'double':
      return `"${escaped(text)}"`;
    case 'literal':
      return `${literalHead(text)}\n${literalLines(literalBody(text), indent)}`;
    case 'single':
      return `'${text.replaceAll("'", "''")}'`;
    case 'plain':
      return text;
  }
}

/** Yields the text of `textScalar` and the end of the line, in parts. */
function* longTextParts(long: {
  readonly value: string;
  readonly indent: string;
  readonly suffix: string;
}): Generator<string> {
  const { value, indent, suffix } = long;
  const style = styleOf(value, indent);
  if (style === 'double') {
    yield '"';
    for (const part of partsOf(value)) yield escaped(part);
    yield '"';
  } else if (style === 'literal') {
    yield `${literalHead(value)}\n`;
    yield* literalParts(literalBody(value), indent);
  } else if (style === 'single') {
    yield "'";
    for (const part of partsOf(value)) yield part.replaceAll("'", "''");
    yield "'";
  } else yield value;
  yield suffix;
}

/** Yields parts of a text that do not split surrogate pairs. */
function* partsOf(text: string): Generator<string> {
  for (let at = 0; at < text.length; ) {
    let end = Math.min(text.length, at + pieceUnits);
    const last = text.charCodeAt(end - 1);
    if (last >= 0xd800 && last < 0xdc00) end += 1;
    yield text.slice(at, end);
    at = end;
  }
}

/** Yields the lines of a literal block in parts of several lines. */
function* literalParts(body: string, indent: string): Generator<string> {
  for (let at = 0; at <= body.length; ) {
    const newline = body.indexOf('\n', at + pieceUnits);
    const end = newline < 0 ? body.length : newline;
    const lines = literalLines(body.slice(at, end), indent);
    yield newline < 0 ? lines : `${lines}\n`;
    at = end + 1;
  }
}

const needsEscapes =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: those are the ones to be escaped
  /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]/;
const indicators = new Set('#,[]{}&*!|>\'"%@`?:');

function plainIsUnsafe(text: string): boolean {
  const first = text.charAt(0);
  if (first === ' ' || text.endsWith(' ')) return true;
  if (text.startsWith('---') || text.startsWith('...')) return true;
  if (text.includes(' #') || text.includes(': ') || text.endsWith(':')) return true;
  if (first === '-') return text.length === 1 || text[1] === ' ';
  if (first === '?' || first === ':') return text.length === 1 || text[1] === ' ';
  return indicators.has(first);
}

/** Returns the header of a literal block. */
function literalHead(text: string): string {
  const hint = /^[ \n]/.test(text) ? '2' : '';
  const chomp = text.endsWith('\n') ? (/(?:^|\n)\n$/.test(text) ? '+' : '') : '-';
  return `|${hint}${chomp}`;
}

function literalBody(text: string): string {
  return text.endsWith('\n') ? text.slice(0, -1) : text;
}

function literalLines(body: string, indent: string): string {
  const lines = body.split('\n').map((line) => (line === '' ? '' : indent + line));
  return lines.join('\n');
}

const shortEscapes: Readonly<Record<string, string>> = {
  '\0': '\\0',
  '\x07': '\\a',
  '\b': '\\b',
  '\t': '\\t',
  '\n': '\\n',
  '\v': '\\v',
  '\f': '\\f',
  '\r': '\\r',
  '\x1b': '\\e',
  '"': '\\"',
  '\\': '\\\\',
  '\x85': '\\N',
  '\u2028': '\\L',
  '\u2029': '\\P',
};

/** Returns the content of a double-quoted text. */
function escaped(text: string): string {
  return text.replace(
    // biome-ignore lint/suspicious/noControlCharactersInRegex: those are the ones to be escaped
    /[\u0000-\u001f"\\\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff\u{10000}-\u{10ffff}]/gu,
    (character) => shortEscapes[character] ?? hexEscape(character.codePointAt(0) ?? 0),
  );
}

function hexEscape(code: number): string {
  const hex = code.toString(16).toUpperCase();
  if (code > 0xffff) return `\\U${hex.padStart(8, '0')}`;
  return code < 0x100 ? `\\x${hex.padStart(2, '0')}` : `\\u${hex.padStart(4, '0')}`;
}

/**
 * Compares names in the order of kube-apiserver's YAML: numbers in names by value (`a2` before
 * `a10`), letters after other characters, otherwise by code point.
 */
export function compareNaturally(left: string, right: string): number {
  const ends = Math.min(left.length, right.length);
  let at = 0;
  while (at < ends && left[at] === right[at]) at += 1;
  if (at === ends) return left.length - right.length;
  const leftCharacter = left.charAt(at);
  const rightCharacter = right.charAt(at);
  const isLeftLetter = isLetter(leftCharacter);
  const isRightLetter = isLetter(rightCharacter);
  if (isLeftLetter !== isRightLetter) return isRightLetter ? -1 : 1;
  if (!isLeftLetter) {
    const bySize = compareNumbers(left, right, at);
    if (bySize !== 0) return bySize;
  }
  return leftCharacter < rightCharacter ? -1 : 1;
}

/** Compares the numbers at `at`. After a common number, a zero counts as one of its digits. */
function compareNumbers(left: string, right: string, at: number): number {
  const follows = (left[at] === '0' || right[at] === '0') && hasNumberBefore(left, at) ? '1' : '0';
  const leftDigits = digitsFrom(left, at);
  const rightDigits = digitsFrom(right, at);
  const byValue = Number(follows + leftDigits) - Number(follows + rightDigits);
  return byValue !== 0 ? byValue : leftDigits.length - rightDigits.length;
}

function hasNumberBefore(text: string, at: number): boolean {
  for (let back = at - 1; back >= 0 && isDigit(text[back]); back -= 1) {
    if (text[back] !== '0') return true;
  }
  return false;
}

function digitsFrom(text: string, at: number): string {
  let end = at;
  while (end < text.length && isDigit(text[end])) end += 1;
  return text.slice(at, end);
}

function isDigit(character: string | undefined): boolean {
  return character !== undefined && character >= '0' && character <= '9';
}

function isLetter(character: string): boolean {
  return character < '\u0080' ? /[A-Za-z]/.test(character) : /\p{L}/u.test(character);
}
