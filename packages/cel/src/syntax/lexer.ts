import { goEscapes } from '@wheelhouse/machinery';
import type { Issue } from '../issues.ts';
import type { Literal } from './ast.ts';

export interface Token {
  readonly kind: 'name' | 'literal' | 'operator' | 'end';
  readonly text: string;
  readonly at: number;
  readonly value?: Literal;
}

/** Thrown for an invalid token; the parser converts it to an issue. */
export class LexError extends Error {
  readonly issue: Issue;
  constructor(at: number, message: string) {
    super(message);
    this.issue = { at, message };
  }
}

const space = /[\t\n\f\r ]+/y;
const comment = /\/\/[^\n]*/y;
const name = /[A-Za-z_][A-Za-z0-9_]*|`[A-Za-z0-9_.\-/ ]+`/y;
const number =
  /0[xX][0-9a-fA-F]+[uU]?|(?:\d+\.\d+|\.\d+)(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\d+[uU]?/y;
const opening = /(?:[rR][bB]?|[bB][rR]?)?("""|'''|"|')/y;
const operator = /&&|\|\||==|!=|<=|>=|[-+*/%<>!?:.,()[\]{}]/y;
/** Half of an operator, and the text in place of the other half. */
const half = /[&|=][\s\S]?/uy;
const int64Min = -(2n ** 63n);
const uint64Max = 2n ** 64n - 1n;

function match(pattern: RegExp, text: string, at: number): string | undefined {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0];
}

/** Text that is not a token, which is reported and skipped. */
class NoToken extends LexError {
  readonly length: number;
  constructor(at: number, text: string) {
    super(at, `Syntax error: token recognition error at: '${text}'`);
    this.length = text.length;
  }
}

/**
 * The tokens of an expression, including its end, and the issues. The parser checks the range of
 * integers. Throws `LexError` for an invalid literal.
 */
export function tokenize(text: string): {
  readonly tokens: readonly Token[];
  readonly issues: readonly Issue[];
} {
  const tokens: Token[] = [];
  const issues: Issue[] = [];
  let at = 0;
  while (at < text.length) {
    const skipped = match(space, text, at) ?? match(comment, text, at);
    if (skipped !== undefined) {
      at += skipped.length;
      continue;
    }
    try {
      const token = nextToken(text, at);
      tokens.push(token);
      at += token.text.length;
    } catch (error) {
      if (!(error instanceof NoToken)) throw error;
      issues.push(error.issue);
      at += error.length;
    }
  }
  tokens.push({ kind: 'end', text: '<EOF>', at: text.length });
  return { tokens, issues };
}

function nextToken(text: string, at: number): Token {
  const start = match(opening, text, at);
  if (start !== undefined) return stringToken(text, at, start);
  const digits = match(number, text, at);
  if (digits !== undefined) return numberToken(digits, at);
  const word = match(name, text, at);
  if (word !== undefined) return { kind: 'name', text: word, at };
  const sign = match(operator, text, at);
  if (sign !== undefined) return { kind: 'operator', text: sign, at };
  throw new NoToken(at, match(half, text, at) ?? String.fromCodePoint(text.codePointAt(at) ?? 0));
}

function numberToken(text: string, at: number): Token {
  if (/[uU]$/.test(text)) {
    const uint = BigInt(text.slice(0, -1));
    if (uint > uint64Max) throw new LexError(at, 'invalid uint literal');
    return { kind: 'literal', text, at, value: { uint } };
  }
  const isInteger = /^(?:0[xX]|\d+$)/.test(text);
  if (!isInteger) return { kind: 'literal', text, at, value: Number(text) };
  const value = BigInt(text);
  if (-value < int64Min) throw new LexError(at, 'invalid int literal');
  return { kind: 'literal', text, at, value };
}

function stringToken(text: string, at: number, start: string): Token {
  const quote = start.replace(/^[rRbB]+/, '');
  const prefix = start.slice(0, start.length - quote.length).toLowerCase();
  const raw = prefix.includes('r');
  const from = at + start.length;
  let end = from;
  while (!text.startsWith(quote, end)) {
    const unclosed = end >= text.length || (quote.length === 1 && /[\n\r]/.test(text[end] ?? ''));
    if (unclosed) {
      throw new NoToken(at, text.slice(at, end));
    }
    end += !raw && text[end] === '\\' ? 2 : 1;
  }
  const body = text.slice(from, end).replace(/\r\n?/g, '\n');
  const whole = text.slice(at, end + quote.length);
  const value = prefix.includes('b')
    ? bytesOf(body, { raw, at })
    : raw
      ? body
      : unescapeText(body, at);
  return { kind: 'literal', text: whole, at, value };
}

const escapePattern =
  /\\(?:x([0-9a-fA-F]{2})|X([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|([abfnrtv\\?"'`])|([\s\S]))/g;

/** The value of an escape: a number (code point or byte) or a character. */
function escaped(groups: readonly (string | undefined)[], at: number): number | string {
  const [x, bigX, u, bigU, octal, plain] = groups;
  const hex = x ?? bigX ?? u ?? bigU;
  if (hex !== undefined) return Number.parseInt(hex, 16);
  if (octal !== undefined) return Number.parseInt(octal, 8);
  if (plain !== undefined) return goEscapes[plain] ?? plain;
  throw new LexError(at, 'Syntax error: token recognition error: unable to unescape string');
}

function unescapeText(body: string, at: number): string {
  if (!body.includes('\\')) return body;
  return body.replace(escapePattern, (_, ...groups: (string | undefined)[]) => {
    const value = escaped(groups, at);
    if (typeof value === 'string') return value;
    if (value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff)) {
      throw new LexError(at, 'Syntax error: invalid unicode code point');
    }
    return String.fromCodePoint(value);
  });
}

/**
 * Escapes with two hexadecimal or three octal digits are bytes here; Unicode escapes are rejected.
 */
function bytesOf(body: string, { raw, at }: { raw: boolean; at: number }): Uint8Array {
  if (raw || !body.includes('\\')) return new TextEncoder().encode(body);
  const parts: Buffer[] = [];
  let last = 0;
  for (const found of body.matchAll(escapePattern)) {
    parts.push(Buffer.from(body.slice(last, found.index)));
    last = found.index + found[0].length;
    if (found[3] !== undefined || found[4] !== undefined) {
      throw new LexError(at, 'Syntax error: unable to unescape bytes: unicode escape');
    }
    const value = escaped(found.slice(1), at);
    parts.push(typeof value === 'string' ? Buffer.from(value) : Buffer.from([value]));
  }
  parts.push(Buffer.from(body.slice(last)));
  return new Uint8Array(Buffer.concat(parts));
}
