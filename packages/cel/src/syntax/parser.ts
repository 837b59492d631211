import { itemAt, runInOnePiece } from '@wheelhouse/machinery';
import { codePointCount } from '@wheelhouse/schema';
import { CelCompileError, type Issue, nowhere } from '../issues.ts';
import { inPasses, type Pass, passFor } from '../passes.ts';
import type { Expr, MapEntry, StructField } from './ast.ts';
import { LexError, type Token, tokenize } from './lexer.ts';
import { expandMacro, type MacroOptions } from './macros.ts';
import { literalProblem, reserved, visitSteps } from './recovered-tree.ts';
import { recoverySteps } from './recovery.ts';

/** Maximum number of code points in an expression. */
const sizeMax = 100_000;
/** Maximum nesting depth of expressions. */
const depthMax = 250;
/** Maximum length of a chain of operators or selections. */
const chainMax = 600;
/**
 * Maximum height of the tree, to which nested chains add up. Recursive passes over this height need
 * two thirds of the stack that Node has by default.
 */
const heightMax = 600;
const itemsMax = 100_000;

const keywords = new Set(['in', 'true', 'false', 'null']);

/** `parseSteps` in one piece, for callers that delay no other request. */
export function parse(source: string): Expr {
  return runInOnePiece(parseSteps(source, {}));
}

/**
 * Parses an expression and expands its macros, in steps if it is long (TRUST-2). Supports the whole
 * grammar of CEL, including optional syntax. Throws `CelCompileError` with positions.
 */
export function* parseSteps(source: string, options: MacroOptions): Generator<void, Expr> {
  const size = source.length > sizeMax ? codePointCount(source) : 0;
  if (size > sizeMax) {
    const limit = `size: ${size}, limit ${sizeMax}`;
    const message = `expression code point size exceeds limit: ${limit}`;
    throw new CelCompileError(source, [{ at: nowhere, message }]);
  }
  const lexed = yield* tokenize(source);
  if (lexed.gaps.length === 0) {
    const pass = passFor<number, Parsed>(source);
    const parser = new Parser(lexed.tokens, { macros: options, pass });
    try {
      return yield* inPasses(pass, () => parser.whole());
    } catch (error) {
      if (error instanceof LimitError) throw new CelCompileError(source, [error.issue]);
      if (!(error instanceof Misplaced || error instanceof LexError)) throw error;
    }
  }
  const issues: Issue[] = [];
  const root = yield* recoverySteps(source, lexed, issues);
  if (root !== undefined) yield* visitSteps(root, issues, options);
  throw new CelCompileError(source, issues);
}

/** Thrown for an invalid expression, whose issues the recovery finds. */
class Misplaced extends Error {}

/** Thrown for an expression that exceeds a limit. */
class LimitError extends Error {
  readonly issue: Issue;

  constructor(at: number, message: string) {
    super(message);
    this.issue = { at, message };
  }
}

const levels: readonly ReadonlyMap<string, string>[] = [
  new Map([['||', '_||_']]),
  new Map([['&&', '_&&_']]),
  new Map([
    ['<', '_<_'],
    ['<=', '_<=_'],
    ['>', '_>_'],
    ['>=', '_>=_'],
    ['==', '_==_'],
    ['!=', '_!=_'],
    ['in', '@in'],
  ]),
  new Map([
    ['+', '_+_'],
    ['-', '_-_'],
  ]),
  new Map([
    ['*', '_*_'],
    ['/', '_/_'],
    ['%', '_%_'],
  ]),
];

/** The work of parsing a part, compared with that of checking a node. */
const parsingWork = 0.5;

/** A part of an expression that begins at some token. */
interface Parsed {
  readonly expr: Expr;
  readonly height: number;
  /** The index of the token after it. */
  readonly end: number;
}

/** The state of the parser. */
class Parser {
  readonly #tokens: readonly Token[];
  readonly #macros: MacroOptions;
  /** Results by twice the index of the first token, plus 1 for an operand. */
  readonly #pass: Pass<number, Parsed> | undefined;
  #next = 0;
  #depth = 0;
  /** The height of the tree that was parsed last. */
  #height = 0;

  constructor(
    tokens: readonly Token[],
    options: { readonly macros: MacroOptions; readonly pass: Pass<number, Parsed> | undefined },
  ) {
    this.#tokens = tokens;
    this.#macros = options.macros;
    this.#pass = options.pass;
  }

  whole(): Expr {
    this.#next = 0;
    this.#depth = 0;
    const expr = this.#expression();
    if (this.#peek().kind !== 'end') throw new Misplaced();
    return expr;
  }

  #peek(): Token {
    return itemAt(this.#tokens, this.#next);
  }

  #take(): Token {
    const token = this.#peek();
    if (token.kind !== 'end') this.#next += 1;
    return token;
  }

  #is(text: string): boolean {
    const token = this.#peek();
    return token.text === text && token.kind !== 'literal' && token.kind !== 'end';
  }

  #accept(text: string): Token | undefined {
    return this.#is(text) ? this.#take() : undefined;
  }

  #expect(text: string): Token {
    if (!this.#is(text)) throw new Misplaced();
    return this.#take();
  }

  /** Parses a part at the current token, unless an earlier pass has. */
  #once(part: 0 | 1, parsePart: () => Expr): Expr {
    const pass = this.#pass;
    if (pass === undefined) return parsePart();
    const start = 2 * this.#next + part;
    const finished = pass.resultOf(start);
    if (finished === undefined) {
      const expr = parsePart();
      pass.finish(start, { expr, height: this.#height, end: this.#next }, parsingWork);
      return expr;
    }
    this.#next = finished.end;
    this.#height = finished.height;
    return finished.expr;
  }

  /** Notes the height of a node over the parts with the given height. */
  #rise(height: number, at: number): void {
    this.#height = height + 1;
    if (this.#height > heightMax) {
      throw new LimitError(at, `expression recursion limit exceeded: ${heightMax}`);
    }
  }

  #expression(): Expr {
    return this.#once(0, this.#wholeExpression);
  }

  readonly #wholeExpression = (): Expr => {
    this.#depth += 1;
    if (this.#depth > depthMax) {
      throw new LimitError(nowhere, `expression recursion limit exceeded: ${depthMax}`);
    }
    const condition = this.#binary(0);
    const mark = this.#accept('?');
    let expr = condition;
    if (mark !== undefined) {
      let height = this.#height;
      const yes = this.#binary(0);
      height = Math.max(height, this.#height);
      this.#expect(':');
      const no = this.#expression();
      this.#rise(Math.max(height, this.#height), mark.at);
      expr = call('_?_:_', mark.at, [condition, yes, no]);
    }
    this.#depth -= 1;
    return expr;
  };

  #binary(level: number): Expr {
    const operators = levels[level];
    if (operators === undefined) return this.#once(1, this.#unary);
    let left = this.#binary(level + 1);
    for (let length = 0; ; length += 1) {
      const token = this.#peek();
      const name = token.kind === 'literal' ? undefined : operators.get(token.text);
      if (name === undefined) return left;
      if (length > chainMax) {
        throw new LimitError(token.at, `expression recursion limit exceeded: ${chainMax}`);
      }
      this.#take();
      const height = this.#height;
      left = call(name, token.at, [left, this.#binary(level + 1)]);
      this.#rise(Math.max(height, this.#height), token.at);
    }
  }

  readonly #unary = (): Expr => {
    const first = this.#peek();
    const isOperator = this.#is('!') || (this.#is('-') && !this.#isNumberAfter());
    if (!isOperator) return this.#member(this.#primary());
    let count = 0;
    const { text } = first;
    while (this.#is(text)) {
      this.#take();
      count += 1;
    }
    const operand = this.#member(this.#primary());
    if (count % 2 === 0) return operand;
    this.#rise(this.#height, first.at);
    return call(text === '!' ? '!_' : '-_', first.at, [operand]);
  };

  /** A single minus before a number belongs to it; of several, all are operators. */
  #isNumberAfter(): boolean {
    const after = this.#tokens[this.#next + 1];
    if (after?.kind !== 'literal') return false;
    return typeof after.value === 'bigint' || typeof after.value === 'number';
  }

  #primary(): Expr {
    const token = this.#peek();
    this.#height = 0;
    if (this.#accept('(')) {
      const inner = this.#expression();
      this.#expect(')');
      return inner;
    }
    if (this.#is('[')) return this.#list();
    if (this.#is('{')) return this.#map();
    if (token.kind === 'literal' || this.#is('-')) return this.#literal();
    if (this.#accept('.')) return this.#absolute();
    if (token.kind !== 'name' || token.text.startsWith('`')) throw new Misplaced();
    this.#take();
    if (token.text === 'true' || token.text === 'false') {
      return { kind: 'const', at: token.at, value: token.text === 'true' };
    }
    if (token.text === 'null') return { kind: 'const', at: token.at, value: null };
    if (token.text === 'in') throw new Misplaced();
    return this.#named(token.text, token.at);
  }

  /** A name after a leading dot is absolute. */
  #absolute(): Expr {
    const { kind, text, at } = this.#take();
    if (kind === 'name' && !keywords.has(text) && !text.startsWith('`')) {
      return this.#named(`.${text}`, at);
    }
    throw new Misplaced();
  }

  #literal(): Expr {
    const sign = this.#accept('-');
    const token = this.#take();
    const { value } = token;
    const isNumber = typeof value === 'bigint' || typeof value === 'number';
    if (value === undefined || (sign !== undefined && !isNumber)) throw new Misplaced();
    if (literalProblem(token, sign !== undefined) !== undefined) throw new Misplaced();
    const at = sign?.at ?? token.at;
    return { kind: 'const', at, value: sign !== undefined && isNumber ? -value : value };
  }

  #named(name: string, at: number): Expr {
    const paren = this.#accept('(');
    const message = paren === undefined ? this.#message(name, at) : undefined;
    if (message !== undefined) return message;
    if (reserved.has(name.replace(/^\./, ''))) throw new Misplaced();
    if (paren === undefined) return { kind: 'ident', at, name };
    const args = this.#arguments();
    // A macro has no leading dot, and a function may have one.
    const called = name === '.has' ? name : name.replace(/^\./, '');
    const plain = { kind: 'call', at: paren.at, name: called, target: undefined, args } as const;
    const call = called === name ? plain : ({ ...plain, isAbsolute: true } as const);
    return expandMacro(call, this.#macros);
  }

  /** The arguments of a call on a target of the current height. */
  #arguments(): readonly Expr[] {
    const args: Expr[] = [];
    const { at } = this.#peek();
    let height = this.#height;
    while (!this.#is(')')) {
      args.push(this.#expression());
      height = Math.max(height, this.#height);
      if (!this.#accept(',')) break;
      if (this.#is(')')) throw new Misplaced();
    }
    this.#expect(')');
    this.#rise(height, at);
    return args;
  }

  /** Parses `a.b.C{…}`, starting at a name. */
  #message(name: string, at: number): Expr | undefined {
    let end = this.#next;
    let full = name;
    for (;;) {
      const dot = this.#tokens[end];
      const field = this.#tokens[end + 1];
      if (dot?.text !== '.' || dot.kind !== 'operator' || !isName(field)) break;
      full += `.${field.text}`;
      end += 2;
    }
    const brace = this.#tokens[end];
    if (brace?.text !== '{' || brace.kind !== 'operator') return undefined;
    this.#next = end + 1;
    const fields = this.#elements({ at, end: '}' }, (optional): StructField => {
      const field = this.#peek();
      if (!isName(field)) throw new Misplaced();
      this.#take();
      const { at: colon } = this.#expect(':');
      return { at: colon, name: field.text, value: this.#expression(), optional };
    });
    return { kind: 'struct', at: brace.at, name: full, fields };
  }

  /** Whether an item follows an opening bracket; a comma may be all that does. */
  #isFirst(end: ']' | '}'): boolean {
    return this.#accept(',') === undefined && !this.#is(end);
  }

  /** Whether another item follows one; a comma may follow the last one. */
  #isMore(end: ']' | '}'): boolean {
    if (this.#is(end)) return false;
    if (this.#accept(',') === undefined) throw new Misplaced();
    return this.#is('?') || beginsOperand(this.#peek());
  }

  #list(): Expr {
    const { at } = this.#expect('[');
    const literal = { at, end: ']', tooMany: 'list literal has too many elements' } as const;
    const items = this.#elements(literal, (optional) => ({ value: this.#expression(), optional }));
    return { kind: 'list', at, items };
  }

  #map(): Expr {
    const { at } = this.#expect('{');
    const literal = { at, end: '}', tooMany: 'map literal has too many entries' } as const;
    const entries = this.#elements(literal, (optional): MapEntry => {
      const key = this.#expression();
      const height = this.#height;
      const colon = this.#expect(':');
      const value = this.#expression();
      this.#height = Math.max(height, this.#height);
      return { at: colon.at, key, value, optional };
    });
    return { kind: 'map', at, entries };
  }

  /**
   * Reads the elements of a literal and its end.
   *
   * @param literal.tooMany the error if there are more than `itemsMax` elements; no limit without
   */
  #elements<T>(
    literal: { readonly at: number; readonly end: ']' | '}'; readonly tooMany?: string },
    read: (optional: boolean) => T,
  ): readonly T[] {
    const { at, end, tooMany } = literal;
    const elements: T[] = [];
    let height = 0;
    for (let isMore = this.#isFirst(end); isMore; isMore = this.#isMore(end)) {
      elements.push(read(this.#accept('?') !== undefined));
      height = Math.max(height, this.#height);
      if (tooMany !== undefined && elements.length > itemsMax) throw new LimitError(at, tooMany);
    }
    this.#expect(end);
    this.#rise(height, at);
    return elements;
  }

  #member(start: Expr): Expr {
    let expr = start;
    for (let length = 0; ; length += 1) {
      if (length > chainMax) {
        throw new LimitError(this.#peek().at, `expression recursion limit exceeded: ${chainMax}`);
      }
      const bracket = this.#accept('[');
      if (bracket !== undefined) {
        const name = this.#accept('?') === undefined ? '_[_]' : '_[?_]';
        const height = this.#height;
        expr = call(name, bracket.at, [expr, this.#expression()]);
        this.#rise(Math.max(height, this.#height), bracket.at);
        this.#expect(']');
        continue;
      }
      const dot = this.#accept('.');
      if (dot === undefined) return expr;
      expr = this.#selected(expr, dot);
    }
  }

  #selected(operand: Expr, dot: Token): Expr {
    const optional = this.#accept('?') !== undefined;
    const token = this.#take();
    if (token.kind !== 'name' || keywords.has(token.text)) {
      throw new Misplaced();
    }
    const field = token.text.replaceAll('`', '');
    const paren = optional || field !== token.text ? undefined : this.#accept('(');
    if (paren === undefined) {
      this.#rise(this.#height, dot.at);
      return { kind: 'select', at: dot.at, operand, field, test: false, optional };
    }
    const args = this.#arguments();
    const call: Expr = { kind: 'call', at: paren.at, name: token.text, target: operand, args };
    return expandMacro(call, this.#macros);
  }
}

const isName = (token: Token | undefined): token is Token =>
  token?.kind === 'name' && !keywords.has(token.text);

function call(name: string, at: number, args: readonly Expr[]): Expr {
  return { kind: 'call', at, name, target: undefined, args };
}

function beginsOperand({ kind, text }: Token): boolean {
  if (kind === 'operator') return /^[[{(.\-!]$/.test(text);
  return kind === 'literal' || (kind === 'name' && text !== 'in');
}
