import { appendAll, itemAt, runInOnePiece } from '@wheelhouse/machinery';
import { codePointCount } from '@wheelhouse/schema';
import { CelCompileError, type Issue, nowhere } from '../issues.ts';
import { inPasses, type Pass, passFor } from '../passes.ts';
import type { CallExpr, Expr, MapEntry, StructField } from './ast.ts';
import { LexError, type Token, tokenize } from './lexer.ts';
import { expandMacro, type MacroOptions } from './macros.ts';

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

const reserved = new Set(
  (
    'as break const continue else for function if import let loop package namespace return var ' +
    'void while'
  ).split(' '),
);
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
  const issues: Issue[] = [];
  // A part may be parsed again in a further pass.
  const reported = new Map<number, string>();
  try {
    const size = source.length > sizeMax ? codePointCount(source) : 0;
    if (size > sizeMax) {
      const limit = `size: ${size}, limit ${sizeMax}`;
      throw new LexError(nowhere, `expression code point size exceeds limit: ${limit}`);
    }
    const lexed = yield* tokenize(source);
    appendAll(issues, lexed.issues);
    const pass = passFor<number, Parsed>(source);
    const parser = new Parser(lexed.tokens, { macros: options, pass, reported });
    const expr = yield* inPasses(pass, () => parser.whole());
    if (issues.length === 0 && reported.size === 0) return expr;
  } catch (error) {
    if (!(error instanceof LexError)) throw error;
    issues.push(error.issue);
  }
  for (const [at, message] of reported) issues.push({ at, message });
  throw new CelCompileError(source, issues);
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
  /** Problems by their positions, besides the one at which the parser stops. */
  readonly #reported: Map<number, string>;
  /** What may follow the current expression, for each construct around it. */
  #closings: string[] = [];

  constructor(
    tokens: readonly Token[],
    options: {
      readonly macros: MacroOptions;
      readonly pass: Pass<number, Parsed> | undefined;
      readonly reported: Map<number, string>;
    },
  ) {
    this.#tokens = tokens;
    this.#macros = options.macros;
    this.#pass = options.pass;
    this.#reported = options.reported;
  }

  whole(): Expr {
    this.#next = 0;
    this.#depth = 0;
    this.#closings = [];
    const expr = this.#expression();
    if (this.#peek().kind !== 'end') this.#unexpected('<EOF>');
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
    if (!this.#is(text)) this.#unexpected(`'${text}'`);
    return this.#take();
  }

  /** @param expected the expected tokens; absent for an operand */
  #unexpected(...expected: readonly string[]): never {
    const at = this.#next;
    const closing = this.#closings.at(-1);
    throw new LexError(this.#peek().at, syntaxError(this.#tokens, { at, expected, closing }));
  }

  /** Parses an expression that these tokens may follow. */
  #inside(closing: string, parsePart = () => this.#expression()): Expr {
    this.#closings.push(closing);
    const expr = parsePart();
    this.#closings.pop();
    return expr;
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
      throw new LexError(at, `expression recursion limit exceeded: ${heightMax}`);
    }
  }

  #expression(): Expr {
    return this.#once(0, this.#wholeExpression);
  }

  readonly #wholeExpression = (): Expr => {
    this.#depth += 1;
    if (this.#depth > depthMax) {
      throw new LexError(nowhere, `expression recursion limit exceeded: ${depthMax}`);
    }
    const condition = this.#binary(0);
    const mark = this.#accept('?');
    let expr = condition;
    if (mark !== undefined) {
      let height = this.#height;
      const yes = this.#inside(':', () => this.#binary(0));
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
        throw new LexError(token.at, `expression recursion limit exceeded: ${chainMax}`);
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
      const inner = this.#inside(')');
      this.#expect(')');
      return inner;
    }
    if (this.#is('[')) return this.#list();
    if (this.#is('{')) return this.#map();
    if (token.kind === 'literal' || this.#is('-')) return this.#literal();
    if (this.#accept('.')) return this.#absolute(token);
    if (token.kind !== 'name' || token.text.startsWith('`')) this.#unexpected();
    this.#take();
    if (token.text === 'true' || token.text === 'false') {
      return { kind: 'const', at: token.at, value: token.text === 'true' };
    }
    if (token.text === 'null') return { kind: 'const', at: token.at, value: null };
    if (reserved.has(token.text)) {
      this.#reported.set(token.at, `reserved identifier: ${token.text}`);
    }
    if (token.text === 'in') this.#unexpected();
    return this.#named(token.text, token.at);
  }

  /** A name after a leading dot is absolute. */
  #absolute(dot: Token): Expr {
    const token = this.#take();
    const { kind, text, at } = token;
    if (kind === 'name' && reserved.has(text)) {
      this.#reported.set(dot.at, `reserved identifier: ${text}`);
    }
    if (kind === 'name' && !keywords.has(text) && !text.startsWith('`'))
      return this.#named(`.${text}`, at);
    throw noName(token, '.');
  }

  #literal(): Expr {
    const sign = this.#accept('-');
    const token = this.#take();
    const { value } = token;
    if (value === undefined) this.#unexpected();
    const at = sign?.at ?? token.at;
    if (typeof value === 'bigint') {
      const integer = sign === undefined ? value : -value;
      if (BigInt.asIntN(64, integer) !== integer) this.#reported.set(at, 'invalid int literal');
      return { kind: 'const', at, value: integer };
    }
    if (typeof value === 'number') {
      if (!Number.isFinite(value)) this.#reported.set(at, 'invalid double literal');
      return { kind: 'const', at, value: sign === undefined ? value : -value };
    }
    if (sign !== undefined) this.#unexpected();
    if (typeof value === 'object' && value !== null && 'uint' in value) {
      const isInRange = BigInt.asUintN(64, value.uint) === value.uint;
      if (!isInRange) this.#reported.set(at, 'invalid uint literal');
    }
    return { kind: 'const', at, value };
  }

  #named(name: string, at: number): Expr {
    const paren = this.#accept('(');
    if (paren === undefined) return this.#message(name, at) ?? { kind: 'ident', at, name };
    const args = this.#arguments();
    return this.#expanded({
      kind: 'call',
      at: paren.at,
      name: name.replace(/^\./, ''),
      target: undefined,
      args,
    });
  }

  #expanded(call: CallExpr): Expr {
    try {
      return expandMacro(call, this.#macros);
    } catch (error) {
      if (!(error instanceof LexError)) throw error;
      this.#reported.set(error.issue.at, error.issue.message);
      return call;
    }
  }

  /** The arguments of a call on a target of the current height. */
  #arguments(): readonly Expr[] {
    const args: Expr[] = [];
    const { at } = this.#peek();
    let height = this.#height;
    while (!this.#is(')')) {
      args.push(this.#inside('),'));
      height = Math.max(height, this.#height);
      if (!this.#accept(',')) break;
      if (this.#is(')')) this.#unexpected();
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
      if (dot?.text !== '.' || dot.kind !== 'operator' || field?.kind !== 'name') break;
      full += `.${field.text}`;
      end += 2;
    }
    const brace = this.#tokens[end];
    if (brace?.text !== '{' || brace.kind !== 'operator') return undefined;
    this.#next = end + 1;
    const fields: StructField[] = [];
    let height = 0;
    for (let isMore = this.#isFirst('}'); isMore; isMore = this.#isMore('}')) {
      const optional = this.#accept('?') !== undefined;
      const field = this.#peek();
      if (field.kind !== 'name') this.#unexpected("'}'", "','", "'?'", 'IDENTIFIER');
      this.#take();
      const { at: colon } = this.#expect(':');
      fields.push({ at: colon, name: field.text, value: this.#inside('},'), optional });
      height = Math.max(height, this.#height);
    }
    this.#expect('}');
    this.#rise(height, at);
    return { kind: 'struct', at: brace.at, name: full, fields };
  }

  /** Whether an item follows an opening bracket; a comma may be all that does. */
  #isFirst(end: ']' | '}'): boolean {
    return this.#accept(',') === undefined && !this.#is(end);
  }

  /** Whether another item follows one; a comma may follow the last one. */
  #isMore(end: ']' | '}'): boolean {
    if (this.#is(end)) return false;
    if (this.#accept(',') === undefined) this.#unexpected(`'${end}'`, "','");
    return this.#is('?') || beginsOperand(this.#peek());
  }

  #list(): Expr {
    const { at } = this.#expect('[');
    const items: { value: Expr; optional: boolean }[] = [];
    let height = 0;
    for (let isMore = this.#isFirst(']'); isMore; isMore = this.#isMore(']')) {
      const optional = this.#accept('?') !== undefined;
      items.push({ value: this.#inside('],'), optional });
      height = Math.max(height, this.#height);
      if (items.length > itemsMax) throw new LexError(at, 'list literal has too many elements');
    }
    this.#expect(']');
    this.#rise(height, at);
    return { kind: 'list', at, items };
  }

  #map(): Expr {
    const { at } = this.#expect('{');
    const entries: MapEntry[] = [];
    let height = 0;
    for (let isMore = this.#isFirst('}'); isMore; isMore = this.#isMore('}')) {
      const optional = this.#accept('?') !== undefined;
      const key = this.#inside(':');
      height = Math.max(height, this.#height);
      const colon = this.#expect(':');
      entries.push({ at: colon.at, key, value: this.#inside('},'), optional });
      height = Math.max(height, this.#height);
      if (entries.length > itemsMax) throw new LexError(at, 'map literal has too many entries');
    }
    this.#expect('}');
    this.#rise(height, at);
    return { kind: 'map', at, entries };
  }

  #member(start: Expr): Expr {
    let expr = start;
    for (let length = 0; ; length += 1) {
      if (length > chainMax) {
        throw new LexError(this.#peek().at, `expression recursion limit exceeded: ${chainMax}`);
      }
      const bracket = this.#accept('[');
      if (bracket !== undefined) {
        const name = this.#accept('?') === undefined ? '_[_]' : '_[?_]';
        const height = this.#height;
        expr = call(name, bracket.at, [expr, this.#inside(']')]);
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
      throw noName(token, optional ? '.?' : '.');
    }
    const field = token.text.replaceAll('`', '');
    const paren = optional || field !== token.text ? undefined : this.#accept('(');
    if (paren === undefined) {
      this.#rise(this.#height, dot.at);
      return { kind: 'select', at: dot.at, operand, field, test: false, optional };
    }
    const args = this.#arguments();
    return this.#expanded({ kind: 'call', at: paren.at, name: token.text, target: operand, args });
  }
}

/** The error of a token that is not the name after a dot. */
function noName({ kind, text, at }: Token, dot: '.' | '.?'): LexError {
  const problem =
    keywords.has(text) && text !== 'in' && dot === '.'
      ? `mismatched input '${text}' expecting IDENTIFIER`
      : `no viable alternative at input '${dot}${kind === 'end' ? '' : text}'`;
  return new LexError(at, `Syntax error: ${problem}`);
}

function call(name: string, at: number, args: readonly Expr[]): Expr {
  return { kind: 'call', at, name, target: undefined, args };
}

/** Tokens that can start an operand, in the order of cel-go's grammar. */
const starts =
  "'[' '{' '(' '.' '-' '!' 'true' 'false' 'null' NUM_FLOAT NUM_INT NUM_UINT STRING BYTES IDENTIFIER";
/** All symbols in the order of the grammar, which error messages use. */
const order = "'[' ']' '{' '}' '(' ')' '.' ',' '-' '!' '?'".split(' ');

/** Tokens that are allowed besides an operand, by the opening token and its predecessor. */
function besides(opening: Token | undefined, before: Token | undefined): readonly string[] {
  if (opening?.kind !== 'operator') return [];
  const isBehindValue =
    before !== undefined && (before.kind !== 'operator' || /^[)\]}]$/.test(before.text));
  if (opening.text === '(') return isBehindValue ? ["')'"] : [];
  if (opening.text === '[') return isBehindValue ? ["'?'"] : ["']'", "','", "'?'"];
  return opening.text === '{' ? ["'}'", "','", "'?'"] : [];
}

function operands(others: readonly string[]): string {
  const signs = order.filter((sign) => others.includes(sign) || starts.split(' ').includes(sign));
  const words = starts.split(' ').filter((word) => !order.includes(word));
  return `{${[...signs, ...words].join(', ')}}`;
}

function beginsOperand({ kind, text }: Token): boolean {
  if (kind === 'operator') return /^[[{(.\-!]$/.test(text);
  return kind === 'literal' || (kind === 'name' && text !== 'in');
}

/**
 * Whether a token can follow a closing bracket.
 * @param closing what may follow the expression around it; absent for the whole expression
 */
function follows({ kind, text }: Token, closing: string | undefined): boolean {
  if (kind === 'end') return closing === undefined;
  if (kind === 'name') return text === 'in';
  return kind === 'operator' && (!/^[(){}\]!,:]$/.test(text) || closing?.includes(text) === true);
}

/**
 * The error for an unexpected token in the words of cel-go's parser, which first tries to delete
 * the token and then to insert the expected one.
 *
 * @param expected the expected tokens; empty for an operand
 */
function syntaxError(
  tokens: readonly Token[],
  options: {
    readonly at: number;
    readonly expected: readonly string[];
    readonly closing: string | undefined;
  },
): string {
  const { at, expected, closing } = options;
  const token = itemAt(tokens, at);
  const shown = `'${token.text}'`;
  const isOperand = expected.length === 0;
  const others = isOperand ? besides(tokens[at - 1], tokens[at - 2]) : expected;
  const [only = ''] = expected;
  const expecting = isOperand
    ? operands(others)
    : expected.length === 1
      ? only
      : `{${expected.join(', ')}}`;
  const next = tokens[at + 1];
  if (next !== undefined && (isExpected(next, others) || (isOperand && beginsOperand(next)))) {
    return `Syntax error: extraneous input ${shown} expecting ${expecting}`;
  }
  const canInsert = only === "':'" ? beginsOperand(token) : follows(token, closing);
  if (expected.length === 1 && only !== '<EOF>' && canInsert) {
    return `Syntax error: missing ${only} at ${shown}`;
  }
  return `Syntax error: mismatched input ${shown} expecting ${expecting}`;
}

const isExpected = ({ kind, text }: Token, expected: readonly string[]): boolean =>
  expected.includes(kind === 'name' ? 'IDENTIFIER' : kind === 'end' ? '<EOF>' : `'${text}'`);
