import { YamlError } from './decode-limits.ts';

/**
 * Returns the error for a problem, with the line that kube-apiserver names.
 * @param line the number of the line; 0 names none
 */
export const faultAt = (line: number, problem: string): YamlError =>
  new YamlError(`yaml: ${line === 0 ? '' : `line ${line}: `}${problem}`);

const noLineEnd = 'did not find expected comment or line break';
const noUri = 'did not find expected tag URI';
const noHandleEnd = "did not find expected '!'";

const byteOrderMark = 0xfeff;
const tab = 0x09;
const lineFeed = 0x0a;
const carriageReturn = 0x0d;
const space = 0x20;
const quoteMark = 0x22;
/** The code of `#`, which begins a comment. */
export const hash = 0x23;
const apostrophe = 0x27;
const colon = 0x3a;
const backslash = 0x5c;
const smallU = 0x75;

/** Whether a code is a blank, ends a line, or, as NaN, the text. */
export const isBlank = (code: number): boolean =>
  !(code > space) &&
  (code === space ||
    code === lineFeed ||
    code === tab ||
    code === carriageReturn ||
    Number.isNaN(code));

/** Returns a table of ASCII codes, with a number for some characters and -1 for the others. */
function tableOf(numbers: Readonly<Record<string, number>>): Int8Array {
  const table = new Int8Array(128).fill(-1);
  for (const [characters, number] of Object.entries(numbers)) {
    for (const character of characters) table[character.charCodeAt(0)] = number;
  }
  return table;
}

/** The number of a code in a table. */
const numberIn = (table: Int8Array, code: number): number =>
  code < 128 ? (table[code] ?? -1) : -1;

/** Number of characters that are read between two pauses. */
const charactersPerPause = 131_072;

const documentMarker = /(?:---|\.\.\.)(?![^ \t\r\n])/y;
/**
 * The digits of an escape sequence, by what follows its backslash. Unlike in kube-apiserver, a
 * slash may follow, as in JSON, but no apostrophe, which the library does not know.
 */
const escapeDigits = tableOf({ '0abt\tnvfre "\\/N_LP': 0, x: 2, u: 4, U: 8 });
const hexDigits = tableOf(
  Object.fromEntries(
    Array.from('0123456789abcdefABCDEF', (digit) => [digit, Number.parseInt(digit, 16)]),
  ),
);
/** What may end a plain scalar or its line. */
const plainMarks = tableOf({ ' \t\n\r:': 0 });
const flowMarks = tableOf({ ' \t\n\r:': 0, ',?[]{}': 1 });
const word = /[\w-]*/y;
const uri = /(?:[\w;/?:@&=+$,.!~*'()[\]-]+|%[\da-f]{2})*/iy;
const header = /[|>](?:[-+](\d?)|(\d)[-+]?|)[ \t]*(?:#[^\r\n]*)?/y;

/** A tag as the parser of trees reads it: with a handle at most, and without indicators. */
const simpleTag = /^!(?:<|(?:[\w-]*!)?[^!,[\]{}]*$)/;
/** What ends the name of an anchor there. */
const nameEnd = /[ \t\r\n,[\]{}]|$/y;

/** A change to a text. */
export interface Edit {
  readonly at: number;
  /** What takes the place of as many characters, or, if it is a blank, is inserted. */
  readonly text: string;
}

/** A plain scalar that is read. */
interface PlainScalar {
  /** Outside of flow collections, lines to the left of this column end it. */
  readonly indent: number;
  readonly isFlow: boolean;
  /** Whether a line end precedes the position. */
  isNewLine: boolean;
  isPaused: boolean;
}

/**
 * A position in a YAML text. Its methods read what is there, and refuse what kube-apiserver's
 * decoder refuses.
 */
export class YamlCursor {
  readonly #text: string;
  /**
   * The changes without which the parser of trees reads tags and anchors otherwise. A tag that it
   * does not know becomes another tag without a meaning.
   */
  readonly edits: Edit[] = [];
  at = 0;
  /** The line, from zero. */
  line = 0;
  #lineStart = 0;
  #pauseAt = charactersPerPause;

  constructor(text: string) {
    this.#text = text;
  }

  /** Skips a byte order mark at the start of a line. */
  eatMark(): void {
    if (this.at === this.#lineStart && this.codeAt() === byteOrderMark) this.at += 1;
  }

  /** Ends an open line at the end of the text. */
  endLine(): void {
    if (this.column === 0) return;
    this.line += 1;
    this.#lineStart = this.at;
  }

  /** Puts off the next pause. */
  resume(): void {
    this.#pauseAt = this.at + charactersPerPause;
  }

  get column(): number {
    return this.at - this.#lineStart;
  }

  /** Returns the error for a problem at the current position. */
  fault(problem: string): YamlError {
    return faultAt(this.line === 0 ? 0 : this.line + 1, problem);
  }

  /** Moves behind a match at the current position, which it returns. */
  eat(pattern: RegExp): RegExpExecArray | undefined {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.#text);
    if (found === null) return undefined;
    this.at = pattern.lastIndex;
    return found;
  }

  codeAt(offset = 0): number {
    return this.#text.charCodeAt(this.at + offset);
  }

  /** Moves behind a line end; returns false if there is none. */
  eatLineEnd(): boolean {
    const code = this.codeAt();
    if (code !== lineFeed && code !== carriageReturn) return false;
    this.at += code === lineFeed ? 1 : 2;
    this.line += 1;
    this.#lineStart = this.at;
    return true;
  }

  eatToLineEnd(): void {
    const end = this.#text.indexOf('\n', this.at);
    this.at = end < 0 ? this.#text.length : end;
    if (end > 0 && this.codeAt(-1) === carriageReturn) this.at -= 1;
  }

  eatBlanks({ tabs }: { readonly tabs: boolean }): void {
    const text = this.#text;
    let at = this.at;
    for (let code = text.charCodeAt(at); code === space || (tabs && code === tab); ) {
      at += 1;
      code = text.charCodeAt(at);
    }
    this.at = at;
  }

  isAtMarker(): boolean {
    if (this.at !== this.#lineStart) return false;
    documentMarker.lastIndex = this.at;
    return documentMarker.test(this.#text);
  }

  /** Reads the name of an anchor. */
  readName(): string {
    this.at += 1;
    const [name = ''] = this.eat(word) ?? [];
    if (
      name !== '' &&
      (isBlank(this.codeAt()) || '?:,]}%@`'.includes(this.#text.charAt(this.at)))
    ) {
      nameEnd.lastIndex = this.at;
      if (!nameEnd.test(this.#text)) this.edits.push({ at: this.at, text: ' ' });
      return name;
    }
    throw this.fault('did not find expected alphabetic or numeric character');
  }

  /** Reads a tag; returns its handle, if it has one. */
  readTag(): string {
    const start = this.at;
    let handle = '';
    if (this.#text[this.at + 1] === '<') {
      this.at += 2;
      this.#readUri(0);
      if (this.#text[this.at] !== '>') throw this.fault("did not find the expected '>'");
      this.at += 1;
    } else {
      const name = this.#readHandle();
      if (name.length > 1 && name.endsWith('!')) handle = name;
      this.#readUri(handle === '' ? name.length : 0);
    }
    if (!isBlank(this.codeAt())) throw this.fault('did not find expected whitespace or line break');
    const tag = this.#text.slice(start, this.at);
    if (!simpleTag.test(tag))
      this.edits.push({ at: start, text: `!${'x'.repeat(tag.length - 1)}` });
    return handle;
  }

  /** Reads `!`, `!name!`, or the beginning of `!name`. */
  #readHandle(): string {
    const start = this.at;
    this.at += 1;
    this.eat(word);
    if (this.#text[this.at] === '!') this.at += 1;
    return this.#text.slice(start, this.at);
  }

  /** @param before number of characters of the tag that were read */
  #readUri(before: number): void {
    const [found = ''] = this.eat(uri) ?? [];
    if (this.#text[this.at] === '%') throw this.fault('did not find URI escaped octet');
    if (before + found.length === 0) throw this.fault(noUri);
  }

  /** Reads a directive with its line end; returns its version or its handle. */
  readDirective(): { readonly type: 'version' | 'tag-directive'; readonly text: string } {
    this.at += 1;
    const [name = ''] = this.eat(word) ?? [];
    if (name === '') throw this.fault('could not find expected directive name');
    if (!isBlank(this.codeAt())) throw this.fault('found unexpected non-alphabetical character');
    if (name !== 'YAML' && name !== 'TAG') throw this.fault('found unknown directive name');
    this.eatBlanks({ tabs: true });
    const type = name === 'YAML' ? 'version' : 'tag-directive';
    const text = type === 'version' ? this.#readVersion() : this.#readTagDirective();
    this.eatBlanks({ tabs: true });
    if (this.codeAt() === hash) this.eatToLineEnd();
    if (this.at < this.#text.length && !this.eatLineEnd()) throw this.fault(noLineEnd);
    return { type, text };
  }

  #readVersion(): string {
    const major = this.#readVersionNumber();
    if (this.#text[this.at] !== '.') {
      throw this.fault("did not find expected digit or '.' character");
    }
    this.at += 1;
    return `${major}.${this.#readVersionNumber()}`;
  }

  #readVersionNumber(): number {
    const [digits = ''] = this.eat(/\d*/y) ?? [];
    if (digits === '') throw this.fault('did not find expected version number');
    if (digits.length > 2) throw this.fault('found extremely long version number');
    return Number(digits);
  }

  #readTagDirective(): string {
    if (this.#text[this.at] !== '!') throw this.fault(noHandleEnd);
    const handle = this.#readHandle();
    if (!handle.endsWith('!')) throw this.fault(noHandleEnd);
    if (this.eat(/[ \t]+/y) === undefined) throw this.fault('did not find expected whitespace');
    this.#readUri(0);
    if (!isBlank(this.codeAt())) throw this.fault('did not find expected whitespace or line break');
    return handle;
  }

  /**
   * Reads a literal or folded scalar.
   * @param outer the column of the collection around it; -1 if there is none
   */
  readBlock(outer: number): void {
    const [, first, second] = this.eat(header) ?? [];
    const digit = first || second;
    if (digit === '0') throw this.fault('found an indentation indicator equal to 0');
    if (this.at < this.#text.length && !this.eatLineEnd()) throw this.fault(noLineEnd);
    const deepest = this.#eatBlanksOfBlock(digit ? Math.max(0, outer) + Number(digit) : 0);
    const indent = digit ? Math.max(0, outer) + Number(digit) : Math.max(deepest, outer + 1, 1);
    while (this.column === indent && this.at < this.#text.length) {
      this.eatToLineEnd();
      this.eatLineEnd();
      this.#eatBlanksOfBlock(indent);
    }
  }

  /** Skips indentation, up to a column unless that is 0, and blank lines; returns the deepest. */
  #eatBlanksOfBlock(indent: number): number {
    let deepest = 0;
    do {
      this.#eatIndent(indent);
      deepest = Math.max(deepest, this.column);
      if (this.codeAt() === tab && (indent === 0 || this.column < indent)) {
        throw this.fault('found a tab character where an indentation space is expected');
      }
    } while (this.eatLineEnd());
    return deepest;
  }

  /** Skips spaces, up to a column unless that is 0. */
  #eatIndent(indent: number): void {
    const text = this.#text;
    const end = indent === 0 ? text.length : this.#lineStart + indent;
    let at = this.at;
    while (at < end && text.charCodeAt(at) === space) at += 1;
    this.at = at;
  }

  /** Reads a quoted scalar behind its first quote up to its end or a pause. */
  readQuoted(quote: number): 'paused' | 'ended' {
    for (;;) {
      this.#eatUntil(quote);
      if (this.at >= this.#pauseAt) return 'paused';
      const code = this.codeAt();
      if (code === quote) {
        if (quote === quoteMark || this.codeAt(1) !== apostrophe) break;
        this.at += 2;
      } else if (code === backslash) this.#readEscape();
      else if (!this.eatLineEnd()) throw this.fault('found unexpected end of stream');
      if (this.isAtMarker()) throw this.fault('found unexpected document indicator');
    }
    this.at += 1;
    return 'ended';
  }

  /** Skips text of a quoted scalar up to its quote, an escape, the end of the line, or a pause. */
  #eatUntil(quote: number): void {
    const text = this.#text;
    const end = Math.min(text.length, this.#pauseAt);
    let at = this.at;
    for (; at < end; at += 1) {
      const code = text.charCodeAt(at);
      if (code === quote || code === lineFeed || code === carriageReturn) break;
      if (code === backslash && quote === quoteMark) break;
    }
    this.at = at;
  }

  #readEscape(): void {
    const digits = numberIn(escapeDigits, this.codeAt(1));
    if (digits < 0) {
      this.at += 1;
      if (this.eatLineEnd()) return;
      throw this.fault('found unknown escape character');
    }
    const code = this.#hexadecimalAt(2, digits);
    if (code < 0) throw this.fault('did not find expected hexdecimal number');
    let length = 2 + digits;
    if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) {
      // Unlike in kube-apiserver, two surrogates may make a character.
      if (digits !== 4 || code >= 0xdc00 || !this.#isLowSurrogate(length)) {
        throw this.fault('found invalid Unicode character escape code');
      }
      length *= 2;
    }
    this.at += length;
  }

  /** Returns the number that hexadecimal digits make; -1 if they are others. */
  #hexadecimalAt(offset: number, digits: number): number {
    let number = 0;
    for (let index = offset; index < offset + digits; index += 1) {
      const digit = numberIn(hexDigits, this.codeAt(index));
      if (digit < 0) return -1;
      number = number * 16 + digit;
    }
    return number;
  }

  #isLowSurrogate(offset: number): boolean {
    if (this.codeAt(offset) !== backslash || this.codeAt(offset + 1) !== smallU) return false;
    const code = this.#hexadecimalAt(offset + 2, 4);
    return code >= 0xdc00 && code <= 0xdfff;
  }

  /**
   * Reads a plain scalar up to its end or a pause.
   * @param scalar what the reading continues
   */
  readPlain(scalar: PlainScalar): 'paused' | 'ended' {
    const { indent, isFlow } = scalar;
    // In a word, where the reading may have paused, a hash starts no comment.
    while ((scalar.isPaused || this.codeAt() !== hash) && !this.isAtMarker()) {
      const start = this.at;
      this.#eatPlainLine(isFlow);
      if (this.at > start) scalar.isNewLine = false;
      scalar.isPaused = this.at >= this.#pauseAt;
      if (scalar.isPaused) return 'paused';
      if (Number.isNaN(this.codeAt()) || !isBlank(this.codeAt())) break;
      if (this.#eatBlanksOfPlain(indent)) scalar.isNewLine = true;
      if (!isFlow && this.column < indent) break;
    }
    return 'ended';
  }

  /** Skips the text of a plain scalar up to its end, a comment, the end of the line, or a pause. */
  #eatPlainLine(isFlow: boolean): void {
    const text = this.#text;
    const marks = isFlow ? flowMarks : plainMarks;
    const end = Math.min(text.length, this.#pauseAt);
    let at = this.at;
    for (; at < end; at += 1) {
      const code = text.charCodeAt(at);
      const mark = numberIn(marks, code);
      if (mark < 0) continue;
      if (mark > 0 || code === lineFeed || code === carriageReturn) break;
      if (code === colon && isBlank(text.charCodeAt(at + 1))) break;
      if ((code === space || code === tab) && text.charCodeAt(at + 1) === hash) break;
    }
    this.at = at;
  }

  /** Skips blanks and line ends; returns whether there was a line end. */
  #eatBlanksOfPlain(indent: number): boolean {
    let isNewLine = false;
    for (;;) {
      this.eatBlanks({ tabs: !isNewLine });
      if (isNewLine && this.codeAt() === tab) {
        if (this.column < indent)
          throw this.fault('found a tab character that violates indentation');
        this.eatBlanks({ tabs: true });
      }
      if (!this.eatLineEnd()) return isNewLine;
      isNewLine = true;
    }
  }
}
