import { goEscapes } from '@wheelhouse/machinery';
import type { Issue } from '../issues.ts';
import type { Literal } from './ast.ts';

/** A token of an expression; only a literal has a `value`, decoded. */
export interface Token {
  readonly kind: 'name' | 'literal' | 'operator' | 'end';
  readonly text: string;
  readonly at: number;
  readonly value?: Literal;
  /** Why the literal is invalid. */
  readonly problem?: string;
}

/** Thrown for what an expression must not contain; the parser converts it to an issue. */
export class LexError extends Error {
  readonly issue: Issue;
  constructor(at: number, message: string) {
    super(message);
    this.issue = { at, message };
  }
}

const comment = /\/\/[^\n]*/y;
const name = /[A-Za-z_][A-Za-z0-9_]*|`[A-Za-z0-9_.\-/ ]+`/y;
const number = /0x[0-9a-fA-F]+[uU]?|(?:\d+\.\d+|\.\d+)(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\d+[uU]?/y;
const opening = /[bB]?[rR]?("""|'''|"|')/y;
const operator = /&&|\|\||==|!=|<=|>=|[-+*/%<>!?:.,()[\]{}]/y;
/** Half of an operator, and the text in place of the other half. */
const half = /[&|=][\s\S]?/uy;
/** Stands for an integer that exceeds all types. */
const hugeValue = 2n ** 64n;

function match(pattern: RegExp, text: string, at: number): string | undefined {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0];
}

/** Text that is not a token, which is reported and skipped. */
interface NoToken {
  readonly kind: 'none';
  readonly text: string;
  readonly at: number;
}

/** What an expression consists of. */
export interface Tokens {
  readonly tokens: readonly Token[];
  /** Texts that are no tokens, which are reported and skipped. */
  readonly gaps: readonly { readonly at: number; readonly length: number }[];
}

/** Tokens and errors between two pauses. */
const tokensPerStep = 2_000;

/**
 * The tokens of an expression, including its end, in steps (TRUST-2). The parser
 * checks the range of numbers.
 */
export function* tokenize(text: string): Generator<void, Tokens> {
  const tokens: Token[] = [];
  const gaps: { at: number; length: number }[] = [];
  let at = 0;
  while (at < text.length) {
    const code = text.charCodeAt(at);
    if (isSpace(code)) {
      at += 1;
      continue;
    }
    const skipped = code === slash ? match(comment, text, at) : undefined;
    if (skipped !== undefined) {
      at += skipped.length;
      continue;
    }
    if ((tokens.length + gaps.length) % tokensPerStep === tokensPerStep - 1) yield;
    const token = nextToken(text, at);
    if (token.kind === 'none') gaps.push({ at, length: token.text.length });
    else tokens.push(token);
    at += token.text.length;
  }
  tokens.push({ kind: 'end', text: '<EOF>', at: text.length });
  return { tokens, gaps };
}

const slash = 0x2f;
const backslash = 0x5c;
const [lineFeed, carriageReturn] = [0x0a, 0x0d];

/** Tab, line feed, form feed, carriage return, and space. */
function isSpace(code: number): boolean {
  return code === 0x20 || (code >= 0x09 && code <= carriageReturn && code !== 0x0b);
}

/** The first characters of some kinds of tokens; names and operators are tried last. */
const kinds = {
  quoted: new Set(`"'`),
  prefixed: new Set('rRbB'),
  numeric: new Set('.0123456789'),
} as const;

function nextToken(text: string, at: number): Token | NoToken {
  const first = text.charAt(at);
  if (kinds.quoted.has(first) || kinds.prefixed.has(first)) {
    const start = match(opening, text, at);
    if (start !== undefined) return stringToken(text, at, start);
  }
  if (kinds.numeric.has(first)) {
    const digits = match(number, text, at);
    if (digits !== undefined) return numberToken(digits, at);
  }
  const word = match(name, text, at);
  if (word !== undefined) return { kind: 'name', text: word, at };
  const sign = match(operator, text, at);
  if (sign !== undefined) return { kind: 'operator', text: sign, at };
  const unknown = match(half, text, at) ?? String.fromCodePoint(text.codePointAt(at) ?? 0);
  return { kind: 'none', text: unknown, at };
}

/** An integer that exceeds all types; the conversion of a long one would be slow. */
const hugeInteger = /^(?:0*[1-9]\d{23,}|0x0*[1-9a-fA-F][0-9a-fA-F]{23,})[uU]?$/;

function numberToken(text: string, at: number): Token {
  const isHuge = text.length > 23 && hugeInteger.test(text);
  if (/[uU]$/.test(text)) {
    const uint = isHuge ? hugeValue : BigInt(text.slice(0, -1));
    return { kind: 'literal', text, at, value: { uint } };
  }
  const isInteger = /^(?:0x|\d+$)/.test(text);
  const value = isInteger ? (isHuge ? hugeValue : BigInt(text)) : Number(text);
  return { kind: 'literal', text, at, value };
}

function stringToken(text: string, at: number, start: string): Token | NoToken {
  const quote = start.replace(/^[rRbB]+/, '');
  const prefix = start.slice(0, start.length - quote.length).toLowerCase();
  const raw = prefix.includes('r');
  const from = at + start.length;
  let end = from;
  const mark = quote.charCodeAt(0);
  for (;;) {
    const code = text.charCodeAt(end);
    if (code === mark && text.startsWith(quote, end)) break;
    const endsLine = code === lineFeed || code === carriageReturn;
    if (end >= text.length || (endsLine && quote.length === 1)) {
      // The line end is part of what is skipped.
      return unquotedToken(text, { at, end: end + 1, prefix, quote });
    }
    if (code === backslash && !raw) {
      const length = escapeLength(text, end);
      if (length < 0) return unquotedToken(text, { at, end: end - length, prefix, quote });
      end += length;
    } else end += 1;
  }
  const body = text.slice(from, end).replace(/\r\n?/g, '\n');
  const whole = text.slice(at, end + quote.length);
  const value = textValue(body, { raw, isBytes: prefix.includes('b') });
  if (value !== undefined) return { kind: 'literal', text: whole, at, value };
  const none = prefix.includes('b') ? new Uint8Array() : '';
  return { kind: 'literal', text: whole, at, value: none, problem: 'unable to unescape string' };
}

/** The value of a text literal; undefined for one with an invalid escape. */
function textValue(
  body: string,
  { raw, isBytes }: { readonly raw: boolean; readonly isBytes: boolean },
): string | Uint8Array | undefined {
  try {
    if (isBytes) return bytesOf(body, { raw });
    return raw ? body : unescapeText(body);
  } catch (error) {
    if (error instanceof InvalidEscape) return undefined;
    throw error;
  }
}

class InvalidEscape extends Error {}

/** The token of a text in quotes that does not end, or has an invalid escape. */
function unquotedToken(
  text: string,
  parts: { readonly at: number; readonly end: number; prefix: string; quote: string },
): Token | NoToken {
  const { at, end, prefix, quote } = parts;
  // Two of three quotes are an empty text, and a prefix is a name.
  const length = prefix.length + (quote.length === 3 ? 2 : 0);
  const start = text.slice(at, at + length);
  if (quote.length === 3) {
    const value = prefix.includes('b') ? new Uint8Array() : '';
    return { kind: 'literal', text: start, at, value };
  }
  if (prefix !== '') return { kind: 'name', text: start, at };
  return { kind: 'none', text: text.slice(at, end), at };
}

const escapeForms: readonly (readonly [start: RegExp, digit: RegExp, count: number])[] = [
  [/[xX]/, /[0-9a-fA-F]/, 2],
  [/u/, /[0-9a-fA-F]/, 4],
  [/U/, /[0-9a-fA-F]/, 8],
  [/[0-3]/, /[0-7]/, 2],
  [/[abfnrtv"'\\?`]/, /./, 0],
];

/** The length of an escape; negative for an invalid one, up to the first wrong character. */
function escapeLength(text: string, at: number): number {
  const start = text.charAt(at + 1);
  const form = escapeForms.find(([starts]) => starts.test(start));
  if (form === undefined) return -2;
  const [, digit, count] = form;
  for (let index = 0; index < count; index += 1) {
    if (!digit.test(text.charAt(at + 2 + index))) return -(3 + index);
  }
  return 2 + count;
}

const escapePattern =
  /\\(?:x([0-9a-fA-F]{2})|X([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|([abfnrtv\\?"'`])|([\s\S]))/g;

/** The value of an escape: a number (code point or byte) or a character. */
function escaped(groups: readonly (string | undefined)[]): number | string {
  const [x, bigX, u, bigU, octal, plain] = groups;
  const hex = x ?? bigX ?? u ?? bigU;
  if (hex !== undefined) return Number.parseInt(hex, 16);
  if (octal !== undefined) return Number.parseInt(octal, 8);
  if (plain !== undefined) return goEscapes[plain] ?? plain;
  throw new InvalidEscape();
}

function unescapeText(body: string): string {
  if (!body.includes('\\')) return body;
  return body.replace(escapePattern, (_, ...groups: (string | undefined)[]) => {
    const value = escaped(groups);
    if (typeof value === 'string') return value;
    // Like a Go rune, the number has 32 bits, and those that are not characters are replaced.
    const point = value | 0;
    if (point > 0x10ffff) throw new InvalidEscape();
    const isCharacter = point >= 0 && (point < 0xd800 || point > 0xdfff);
    return isCharacter ? String.fromCodePoint(point) : '\ufffd';
  });
}

/**
 * Escapes with two hexadecimal or three octal digits are bytes here; Unicode escapes are rejected.
 */
function bytesOf(body: string, { raw }: { raw: boolean }): Uint8Array {
  if (raw || !body.includes('\\')) return new TextEncoder().encode(body);
  const parts: Buffer[] = [];
  let last = 0;
  for (const match of body.matchAll(escapePattern)) {
    parts.push(Buffer.from(body.slice(last, match.index)));
    last = match.index + match[0].length;
    if (match[3] !== undefined || match[4] !== undefined) {
      throw new InvalidEscape();
    }
    const value = escaped(match.slice(1));
    parts.push(typeof value === 'string' ? Buffer.from(value) : Buffer.from([value]));
  }
  parts.push(Buffer.from(body.slice(last)));
  return new Uint8Array(Buffer.concat(parts));
}
