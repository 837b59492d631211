import { goEscapes } from '@wheelhouse/machinery';

const simpleEscapes: Readonly<Record<string, string>> = { ...goEscapes, "'": "'", '"': '"' };

/** The value of a Go string literal, quoted or raw; undefined if it is malformed. */
export function unquoteString(literal: string): string | undefined {
  const inner = literal.slice(1, -1);
  if (literal.startsWith('`')) return inner.replaceAll('\r', '');
  return unescapeLiteral(inner, '"');
}

/** The code point of a Go character literal; undefined if it is malformed. */
export function unquoteCharacter(literal: string): number | undefined {
  const text = unescapeLiteral(literal.slice(1, -1), "'");
  const value = text?.codePointAt(0);
  const isOne = value !== undefined && String.fromCodePoint(value) === text;
  return isOne ? value : undefined;
}

function unescapeLiteral(inner: string, quote: string): string | undefined {
  // Collect bytes, since several escapes may form one character.
  const parts: Buffer[] = [];
  for (let at = 0; at < inner.length; ) {
    const slash = inner.indexOf('\\', at);
    const end = slash < 0 ? inner.length : slash;
    parts.push(Buffer.from(inner.slice(at, end)));
    if (slash < 0) break;
    const escapeSequence = escapeAt(inner.slice(slash + 1, slash + 10), quote);
    if (escapeSequence === undefined) return undefined;
    parts.push(escapeSequence.bytes);
    at = slash + 1 + escapeSequence.length;
  }
  return Buffer.concat(parts).toString();
}

function escapeAt(
  text: string,
  quote: string,
): { readonly bytes: Buffer; readonly length: number } | undefined {
  const [letter = ''] = text;
  if ((letter === '"' || letter === "'") && letter !== quote) return undefined;
  const plain = Object.hasOwn(simpleEscapes, letter) ? simpleEscapes[letter] : undefined;
  if (plain !== undefined) return { bytes: Buffer.from(plain), length: 1 };
  const byte = /^(?:x([\da-fA-F]{2})|([0-3][0-7]{2}))/.exec(text);
  if (byte !== null) {
    const value =
      byte[1] === undefined ? Number.parseInt(byte[2] ?? '', 8) : Number.parseInt(byte[1], 16);
    return { bytes: Buffer.from([value]), length: byte[0].length };
  }
  const point = /^(?:u([\da-fA-F]{4})|U([\da-fA-F]{8}))/.exec(text);
  const value = Number.parseInt(point?.[1] ?? point?.[2] ?? '', 16);
  if (point === null || value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) return undefined;
  return { bytes: Buffer.from(String.fromCodePoint(value)), length: point[0].length };
}

/** An error in a template; the message is Go's. */
export class TemplateError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'TemplateError';
  }
}

/** The kind of a token. The text of an `error` is its message. */
export type TokenKind =
  | 'text'
  | 'left'
  | 'right'
  | 'field'
  | 'variable'
  | 'identifier'
  | 'keyword'
  | 'bool'
  | 'nil'
  | 'dot'
  | 'number'
  | 'char'
  | 'string'
  | 'space'
  | 'pipe'
  | 'open'
  | 'close'
  | 'declare'
  | 'assign'
  | 'character'
  | 'eof'
  | 'error';

/** A token of a template. The texts of `field` and `variable` include the `.` or `$`. */
export interface Token {
  readonly kind: TokenKind;
  readonly text: string;
  /** Offset of the start in UTF-16 units. */
  readonly at: number;
  readonly line: number;
}

const keywords = new Set([
  'block',
  'break',
  'continue',
  'define',
  'else',
  'end',
  'if',
  'range',
  'template',
  'with',
]);

const wordCharacter = /[\p{L}\p{Nd}_]/u;
const blank = /[ \t\r\n]/;

/** Splits a template into tokens. The last one is `eof` or `error`. */
export function lex(source: string): Token[] {
  return new Lexer(source).run();
}

class Lexer {
  readonly #source: string;
  readonly #tokens: Token[] = [];
  #at = 0;
  #line = 1;
  #depth = 0;

  constructor(source: string) {
    this.#source = source;
  }

  run(): Token[] {
    let trims = false;
    while (this.#at < this.#source.length) {
      const open = this.#source.indexOf('{{', this.#at);
      const end = open < 0 ? this.#source.length : open;
      const trimsBefore = open >= 0 && /^\{\{-[ \t\r\n]/.test(this.#source.slice(open, open + 4));
      this.#text(end, { trims, trimsBefore });
      if (open < 0) break;
      const after = this.#action(trimsBefore);
      if (after === undefined) return this.#tokens;
      trims = after.trims;
    }
    this.#add('eof', '');
    return this.#tokens;
  }

  #add(kind: TokenKind, text: string): void {
    this.#tokens.push({ kind, text, at: this.#at, line: this.#line });
    this.#move(text.length);
  }

  #move(count: number): void {
    for (let remaining = count; remaining > 0; remaining -= 1) {
      if (this.#source[this.#at] === '\n') this.#line += 1;
      this.#at += 1;
    }
  }

  #text(end: number, { trims, trimsBefore }: { trims: boolean; trimsBefore: boolean }): void {
    const whole = this.#source.slice(this.#at, end);
    const trimmedStart = trims ? whole.replace(/^[ \t\r\n]+/, '') : whole;
    this.#move(whole.length - trimmedStart.length);
    const trimmed = trimsBefore ? trimEnd(trimmedStart) : trimmedStart;
    if (trimmed !== '') this.#add('text', trimmed);
    this.#move(trimmedStart.length - trimmed.length);
  }

  /** Reads one action or comment. Returns undefined after an error. */
  #action(trimsBefore: boolean): { readonly trims: boolean } | undefined {
    const lead = trimsBefore ? 3 : 2;
    const inner = this.#source.slice(this.#at + lead);
    const comment = /^[ \t\r\n]*\/\*/.exec(inner);
    const isComment = comment !== null && (trimsBefore || comment[0].length === 2);
    if (isComment) return this.#comment(lead + comment[0].length);
    this.#add('left', this.#source.slice(this.#at, this.#at + lead));
    this.#depth = 0;
    for (;;) {
      const trims = /^[ \t\r\n]-\}\}/.test(this.#source.slice(this.#at, this.#at + 4));
      if (trims || this.#source.startsWith('}}', this.#at)) {
        if (this.#depth > 0) return this.#fail('unclosed left paren');
        if (trims) this.#move(2);
        this.#add('right', '}}');
        return { trims };
      }
      if (!this.#token()) return undefined;
    }
  }

  #comment(lead: number): { readonly trims: boolean } | undefined {
    const close = this.#source.indexOf('*/', this.#at + lead);
    if (close < 0) return this.#fail('unclosed comment');
    const rest = /^(?:[ \t\r\n]+-)?\}\}/.exec(this.#source.slice(close + 2));
    if (rest === null) return this.#fail('comment ends before closing delimiter');
    this.#move(close + 2 + rest[0].length - this.#at);
    return { trims: rest[0].length > 2 };
  }

  #fail(message: string): undefined {
    this.#tokens.push({ kind: 'error', text: message, at: this.#at, line: this.#line });
    return undefined;
  }

  /** Reads one token of an action. Returns false after an error. */
  #token(): boolean {
    const rest = this.#source.slice(this.#at);
    const [character = ''] = rest;
    if (character === '') return this.#fail('unclosed action') === true;
    if (blank.test(character)) {
      // The space in a closing ` -}}` does not separate words.
      const spaces = /^[ \t\r\n]+?(?=[ \t\r\n]-\}\}|[^ \t\r\n]|$)/.exec(rest)?.[0] ?? character;
      return this.#addToken('space', spaces);
    }
    if (rest.startsWith(':=')) return this.#addToken('declare', ':=');
    if (character === ':') return this.#fail('expected :=') === true;
    if (character === '=') return this.#addToken('assign', '=');
    if (character === '|') return this.#addToken('pipe', '|');
    if (character === '"' || character === '`' || character === "'") return this.#quoted(character);
    if (character === '.' && !/^\.\d/.test(rest)) return this.#name('field', '.');
    if (character === '$') return this.#name('variable', '$');
    if (/^[+-]?\.?\d|^[+-]/.test(rest)) return this.#number(rest);
    if (wordCharacter.test(character)) return this.#name('identifier', '');
    return this.#paren(character);
  }

  #paren(character: string): boolean {
    if (character === '(') {
      this.#depth += 1;
      return this.#addToken('open', '(');
    }
    if (character === ')') {
      this.#depth -= 1;
      if (this.#depth < 0) return this.#fail('unexpected right paren') === true;
      return this.#addToken('close', ')');
    }
    if (character >= '!' && character <= '~') return this.#addToken('character', character);
    return this.#fail(`unrecognized character in action: ${codePoint(character)}`) === true;
  }

  #addToken(kind: TokenKind, text: string): true {
    this.#add(kind, text);
    return true;
  }

  #quoted(quote: string): boolean {
    let end = this.#at + 1;
    for (; end < this.#source.length && this.#source[end] !== quote; end += 1) {
      if (quote === '`') continue;
      if (this.#source[end] === '\n') break;
      if (this.#source[end] === '\\') end += 1;
    }
    if (this.#source[end] !== quote) {
      const raw = quote === '`' ? 'raw quoted string' : 'quoted string';
      const what = quote === "'" ? 'character constant' : raw;
      return this.#fail(`unterminated ${what}`) === true;
    }
    return this.#addToken(quote === "'" ? 'char' : 'string', this.#source.slice(this.#at, end + 1));
  }

  #name(kind: 'field' | 'variable' | 'identifier', head: string): boolean {
    let end = this.#at + head.length;
    while (end < this.#source.length && wordCharacter.test(characterAt(this.#source, end))) {
      end += characterAt(this.#source, end).length;
    }
    const text = this.#source.slice(this.#at, end);
    if (!this.#endsWord(end)) {
      const next = characterAt(this.#source, end);
      return this.#fail(`bad character ${codePoint(next)}`) === true;
    }
    if (kind === 'field' && text === '.') return this.#addToken('dot', '.');
    if (kind !== 'identifier') return this.#addToken(kind, text);
    if (keywords.has(text)) return this.#addToken('keyword', text);
    if (text === 'true' || text === 'false') return this.#addToken('bool', text);
    return this.#addToken(text === 'nil' ? 'nil' : 'identifier', text);
  }

  #endsWord(end: number): boolean {
    const next = this.#source[end];
    return next === undefined || /[ \t\r\n.,|:()]/.test(next) || this.#source.startsWith('}}', end);
  }

  #number(rest: string): boolean {
    const text = /^[+-]?[\w.]*(?:(?<=[\d.]e|[\d.]E)[+-]\d+)?/.exec(rest)?.[0] ?? '';
    return this.#addToken('number', text === '' ? rest.slice(0, 1) : text);
  }
}

function characterAt(text: string, at: number): string {
  return String.fromCodePoint(text.codePointAt(at) ?? 0);
}

/** `U+0026 '&'` */
function codePoint(character: string): string {
  const number = character.codePointAt(0) ?? 0;
  return `U+${number.toString(16).toUpperCase().padStart(4, '0')} '${character}'`;
}

/** Trims the end of a text. A regular expression would take quadratic time. */
function trimEnd(text: string): string {
  let end = text.length;
  while (end > 0 && blank.test(text.charAt(end - 1))) end -= 1;
  return text.slice(0, end);
}
