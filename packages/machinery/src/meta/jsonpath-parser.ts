import type { JsonValue } from '../base/json.ts';
import { appendAll } from '../base/lists.ts';
import { goEscapes } from './go-values.ts';

/** A path that cannot be parsed, or not evaluated. The message states the reason. */
export class JsonPathError extends Error {
  /** A value that the message contains, if there is one. */
  readonly value: JsonValue | undefined;

  constructor(message?: string, value?: JsonValue) {
    super(message);
    this.value = value;
  }
}

/** One step of an action, which maps values to others. */
export type JsonPathNode =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'constant'; readonly value: number | boolean; readonly isFloat: boolean }
  | { readonly kind: 'field'; readonly name: string }
  | { readonly kind: 'slice'; readonly slice: JsonPathSlice }
  | { readonly kind: 'all' }
  /** The value and all that it contains. */
  | { readonly kind: 'descend' }
  | { readonly kind: 'union'; readonly paths: readonly JsonPathAction[] }
  | { readonly kind: 'filter'; readonly filter: JsonPathFilter }
  /** A word: `range`, `end`, or an unknown one. */
  | { readonly kind: 'word'; readonly word: string };

/** The steps between a pair of braces. */
export type JsonPathAction = readonly JsonPathNode[];

/** Text and actions in the order of a template. */
export type JsonPath = readonly (string | JsonPathAction)[];

/** Negative numbers count from the end of a list. */
export interface JsonPathSlice {
  readonly start: number;
  /** Undefined: the end of the list. */
  readonly end: number | undefined;
  /** Whether only the item at `start` is selected. */
  readonly isOne: boolean;
  /** Undefined: 1. */
  readonly step: number | undefined;
}

/**
 * A condition on items: `?(@.type=="Ready")`. Its operands are paths below the item or constants.
 */
export interface JsonPathFilter {
  readonly left: JsonPathAction;
  readonly right: JsonPathAction;
  /** A comparison, or `exists`, which has no right operand. */
  readonly operator: string;
}

/** How deeply ranges, filters, and unions may contain others. */
export const depthMax = 64;

/**
 * Parses a JSONPath template: text with actions in braces. An action contains steps such as
 * `.spec.a`, `.items[-1:]`, `.conditions[?(@.type=="Ready")].status`, `..name`, and `['a','b']`,
 * quoted strings, and the words `range` and `end`.
 * @throws JsonPathError for a template that is malformed or nested too deeply.
 */
export function parseJsonPath(template: string): JsonPath {
  return parseTemplate(template, 0);
}

function parseTemplate(text: string, depth: number): JsonPath {
  const parts: (string | JsonPathAction)[] = [];
  for (let at = 0; at < text.length; ) {
    const open = text.indexOf('{', at);
    const end = open < 0 ? text.length : open;
    if (end > at) parts.push(text.slice(at, end));
    if (open < 0) break;
    const action = new ActionParser(text, open + 1, depth);
    parts.push(action.parse());
    at = action.at;
  }
  return parts;
}

/** Parses the steps of one action, which is part of another. */
function parseInner(text: string, depth: number): JsonPathAction {
  if (depth > depthMax) throw new JsonPathError('nested too deeply');
  const [action = []] = parseTemplate(`{${text}}`, depth);
  return typeof action === 'string' ? [] : action;
}

const letterForm = /[\p{L}\p{Nd}_]/u;
/** Matches a name up to a character that ends it. */
const nameForm = /(?:\\[\s\S]|[^\\ \t\r\n.,[\]$@{}])*\\?/y;
const wordForm = /[^ \t\r\n.,[\]$@{}]*/y;
const bracketForm = /[^\]\n]*/y;
const numberForm = /[+-]?[\d.]*/y;
const sliceForm = /^(-?\d*)(:-?\d*)?(:-?\d*)?$/;
const comparisonForm = /^([^!<>=]+)([!<>=]+)([^\n]+)$/;

class ActionParser {
  /** The position of the next character. */
  at: number;
  readonly #text: string;
  readonly #depth: number;
  readonly #nodes: JsonPathNode[] = [];

  /** @param at the position after the opening brace */
  constructor(text: string, at: number, depth: number) {
    this.#text = text;
    this.at = at;
    this.#depth = depth;
  }

  /** Parses up to the closing brace, and leaves `at` behind it. */
  parse(): JsonPathAction {
    while (!this.#skips('}')) appendAll(this.#nodes, this.#step());
    return this.#nodes;
  }

  #skips(prefix: string): boolean {
    if (!this.#text.startsWith(prefix, this.at)) return false;
    this.at += prefix.length;
    return true;
  }

  /** Skips what a sticky expression matches, and returns it. */
  #skipMatch(form: RegExp): string {
    form.lastIndex = this.at;
    const [match = ''] = form.exec(this.#text) ?? [];
    this.at += match.length;
    return match;
  }

  #step(): JsonPathAction {
    if (this.#skips('[?(')) return [this.#filter()];
    if (this.#skips('..')) return this.#descent();
    const code = this.#text.codePointAt(this.at);
    const character = code === undefined ? '\n' : String.fromCodePoint(code);
    if (character === '\n' || character === '\r') throw new JsonPathError('unclosed action');
    if (/[-+\d]/.test(character)) return [this.#number()];
    if (letterForm.test(character)) return [this.#word()];
    this.at += character.length;
    if (' @$'.includes(character)) return [];
    if (character === '.') return [this.#field()];
    if (character === '[') return this.#brackets();
    if (character === '"' || character === "'") return [this.#quoted(character)];
    throw new JsonPathError(`unrecognized character in action: ${unicodeName(character)}`);
  }

  #descent(): JsonPathAction {
    if (this.#nodes.at(-1)?.kind === 'descend') {
      throw new JsonPathError('invalid multiple recursive descent');
    }
    const code = this.#text.codePointAt(this.at) ?? 0;
    const hasName = letterForm.test(String.fromCodePoint(code));
    return hasName ? [{ kind: 'descend' }, this.#field()] : [{ kind: 'descend' }];
  }

  #field(): JsonPathNode {
    const name = this.#skipMatch(nameForm);
    return name === '*' ? { kind: 'all' } : { kind: 'field', name: name.replaceAll('\\', '') };
  }

  #word(): JsonPathNode {
    const word = this.#skipMatch(wordForm);
    if (word !== 'true' && word !== 'false') return { kind: 'word', word };
    return { kind: 'constant', value: word === 'true', isFloat: false };
  }

  #number(): JsonPathNode {
    const text = this.#skipMatch(numberForm);
    if (!/^[+-]?(?:\d+(?:\.\d*)?|\.\d+)$/.test(text)) {
      throw new JsonPathError(`cannot parse number ${text}`);
    }
    return { kind: 'constant', value: Number(text), isFloat: text.includes('.') };
  }

  #quoted(quote: string): JsonPathNode {
    const start = this.at - 1;
    const end = this.#findEnd(quote);
    const written = this.#text.slice(start, end + 1);
    this.at = end + 1;
    const text = unquote(written);
    if (text === undefined) {
      throw new JsonPathError(`unquote string ${written} error invalid syntax`);
    }
    return { kind: 'text', text };
  }

  /** Finds the quote that ends a string, which has no backslash in front of it. */
  #findEnd(quote: string): number {
    for (let at = this.at; at < this.#text.length; at += 1) {
      const found = this.#text[at];
      if (found === '\n') break;
      if (found === quote && this.#text[at - 1] !== '\\') return at;
    }
    throw new JsonPathError('unterminated quoted string');
  }

  #brackets(): JsonPathAction {
    const written = this.#skipMatch(bracketForm);
    if (!this.#skips(']')) throw new JsonPathError('unterminated array');
    const text = written === '*' ? ':' : written;
    const depth = this.#depth + 1;
    const parts = text.split(',').map((part) => part.replace(/^ +| +$/g, ''));
    if (parts.length > 1) {
      return [{ kind: 'union', paths: parts.map((part) => parseInner(`[${part}]`, depth)) }];
    }
    const name = /^'([^']*)'$/.exec(text)?.[1];
    // An unescaped dot separates names here too.
    if (name !== undefined) return parseInner(`.${name}`, depth);
    return [{ kind: 'slice', slice: parseSlice(text) }];
  }

  #filter(): JsonPathNode {
    const text = this.#filterText();
    if (!this.#skips(']')) throw new JsonPathError('unclosed array expect ]');
    const depth = this.#depth + 1;
    const [, left, operator = '', right = ''] = comparisonForm.exec(text) ?? [];
    const filter: JsonPathFilter =
      left === undefined
        ? { left: parseInner(text, depth), right: [], operator: 'exists' }
        : { left: parseInner(left, depth), right: parseInner(right, depth), operator };
    return { kind: 'filter', filter };
  }

  /** Skips the parenthesis that closes a filter, and returns the text before it. */
  #filterText(): string {
    const start = this.at;
    let quote = '';
    let isQuoteClosed = false;
    for (; this.at < this.#text.length && this.#text[this.at] !== '\n'; this.at += 1) {
      const character = this.#text[this.at] ?? '';
      if (character === '"' || character === "'") {
        if (quote === '') quote = character;
        else if (character === quote && this.#text[this.at - 1] !== '\\') isQuoteClosed = true;
      } else if (character === ')' && (quote === '' || isQuoteClosed)) {
        this.at += 1;
        return this.#text.slice(start, this.at - 1);
      }
    }
    throw new JsonPathError('unterminated filter');
  }
}

function parseSlice(text: string): JsonPathSlice {
  const match = sliceForm.exec(text);
  if (match === null) throw new JsonPathError(`invalid array index ${text}`);
  const [first, second, third] = match.slice(1).map((part: string | undefined) => {
    const digits = part?.replace(':', '') ?? '';
    if (digits === '-') throw new JsonPathError(`array index ${digits} is not a number`);
    return digits === '' ? undefined : Number(digits);
  });
  return { start: first ?? 0, end: second, isOne: match[2] === undefined, step: third };
}

/** Names a character as Go's `%#U` does. */
function unicodeName(character: string): string {
  const code = (character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0');
  const isPrintable = /[\p{L}\p{M}\p{N}\p{P}\p{S} ]/u.test(character);
  return isPrintable ? `U+${code} '${character}'` : `U+${code}`;
}

const escapeForm =
  /\\(?:x([\da-fA-F]{2})|u([\da-fA-F]{4})|U([\da-fA-F]{8})|([0-7]{3})|([abfnrtv\\]|["']))/y;

/** Decodes a quoted string with the escape sequences of Go; undefined if it is malformed. */
function unquote(written: string): string | undefined {
  const quote = written[0];
  const text = written.slice(1, -1);
  if (written.length < 2 || written.at(-1) !== quote) return undefined;
  let plain = '';
  for (let at = 0; at < text.length; ) {
    const character = text[at] ?? '';
    if (character === quote) return undefined;
    if (character !== '\\') {
      plain += character;
      at += 1;
      continue;
    }
    escapeForm.lastIndex = at;
    const [sequence, x, u, long, octal, letter] = escapeForm.exec(text) ?? [];
    if (sequence === undefined) return undefined;
    if (letter === undefined) {
      const code =
        octal === undefined ? Number.parseInt(x ?? u ?? long ?? '', 16) : Number.parseInt(octal, 8);
      if (code > 0x10ffff || (octal !== undefined && code > 255)) return undefined;
      plain += String.fromCodePoint(code);
    } else {
      const isOtherQuote = (letter === '"' || letter === "'") && letter !== quote;
      if (isOtherQuote) return undefined;
      plain += goEscapes[letter] ?? letter;
    }
    at += sequence.length;
  }
  return plain;
}
