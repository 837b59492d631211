import { itemAt } from '@wheelhouse/machinery';
import {
  lex,
  TemplateError,
  type Token,
  type TokenKind,
  unquoteCharacter,
  unquoteString,
} from './lex.ts';

/** An operand of a command, with its offset in UTF-16 units and its text for messages. */
export type Operand = { readonly at: number; readonly text: string } & (
  | { readonly type: 'dot' | 'nil' }
  | { readonly type: 'bool'; readonly value: boolean }
  | { readonly type: 'number'; readonly value: number | bigint; readonly isFloat: boolean }
  | { readonly type: 'string'; readonly value: string }
  | { readonly type: 'identifier'; readonly name: string }
  | { readonly type: 'field'; readonly names: readonly string[] }
  | { readonly type: 'variable'; readonly name: string; readonly names: readonly string[] }
  | { readonly type: 'chain'; readonly operand: Operand; readonly names: readonly string[] }
  | { readonly type: 'pipe'; readonly pipe: Pipe }
);

/** A function call with its arguments, or a single operand. */
export interface Command {
  readonly at: number;
  readonly text: string;
  readonly operands: readonly Operand[];
}

/** A pipeline such as `$x, $y := a | b`. */
export interface Pipe {
  readonly at: number;
  readonly text: string;
  readonly variables: readonly string[];
  /** Whether the variables are assigned rather than declared. */
  readonly assigns: boolean;
  readonly commands: readonly Command[];
}

/** A part of a template: text, an action, or a block. */
export type Node =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'action'; readonly pipe: Pipe }
  | {
      readonly type: 'if' | 'with' | 'range';
      readonly pipe: Pipe;
      readonly body: readonly Node[];
      readonly elseBody: readonly Node[];
    }
  | {
      readonly type: 'template';
      readonly at: number;
      readonly text: string;
      readonly name: string;
      readonly pipe: Pipe | undefined;
    }
  | { readonly type: 'break' | 'continue' };

/** The source of a template, and the nodes of `output` and of the templates that it defines. */
export interface Templates {
  readonly source: string;
  readonly byName: ReadonlyMap<string, readonly Node[]>;
}

/** The name of the main template in messages. */
export const mainName = 'output';

/** Maximum nesting of blocks and parentheses. */
const depthMax = 200;
/** Maximum length of a template in UTF-16 units. */
const sourceLengthMax = 1024 * 1024;

/** Parses a template that may call `functions`. Throws TemplateError in Go's wording. */
export function parseGoTemplate(source: string, functions: ReadonlySet<string>): Templates {
  if (source.length > sourceLengthMax) throw new TemplateError('template is too long');
  return new Parser(source, functions).run();
}

/** A list of nodes and the token that ends it. */
interface Block {
  readonly nodes: readonly Node[];
  readonly end: 'end' | 'else' | 'eof';
}

class Parser {
  readonly #source: string;
  readonly #functions: ReadonlySet<string>;
  readonly #tokens: readonly Token[];
  readonly #byName = new Map<string, readonly Node[]>();
  #next = 0;
  #variables: string[] = ['$'];
  #ranges = 0;
  #depth = 0;
  #actionLine = 0;

  constructor(source: string, functions: ReadonlySet<string>) {
    this.#source = source;
    this.#functions = functions;
    this.#tokens = lex(source);
  }

  run(): Templates {
    const nodes: Node[] = [];
    for (;;) {
      const { nodes: parsed, end } = this.#list('top');
      nodes.push(...parsed);
      if (end === 'eof') break;
      this.#fail(`unexpected {{${end}}}`);
    }
    this.#byName.set(mainName, nodes);
    return { source: this.#source, byName: this.#byName };
  }

  #peek(): Token {
    return itemAt(this.#tokens, Math.min(this.#next, this.#tokens.length - 1));
  }

  #take(): Token {
    const token = this.#peek();
    this.#next += 1;
    return token;
  }

  #skipSpace(): Token {
    while (this.#peek().kind === 'space') this.#take();
    return this.#peek();
  }

  #fail(message: string): never {
    const last = this.#tokens[Math.max(0, Math.min(this.#next, this.#tokens.length) - 1)];
    throw new TemplateError(`template: ${mainName}:${last?.line ?? 1}: ${message}`);
  }

  #unexpected(token: Token, context: string): never {
    if (token.kind !== 'error') this.#fail(`unexpected ${tokenText(token)} in ${context}`);
    if (this.#actionLine === 0 || this.#actionLine === token.line) this.#fail(token.text);
    const suffix = ` in action started at ${mainName}:${this.#actionLine}`;
    const mentionsAction = token.text.endsWith(' action');
    this.#fail(token.text + (mentionsAction ? suffix.slice(' in action'.length) : suffix));
  }

  #expect(kind: TokenKind, context: string): Token {
    this.#skipSpace();
    const token = this.#take();
    if (token.kind !== kind) this.#unexpected(token, context);
    return token;
  }

  /** Parses one nesting level deeper. */
  #nest<T>(parse: () => T): T {
    this.#depth += 1;
    if (this.#depth > depthMax) this.#fail('nested too deeply');
    const parsed = parse();
    this.#depth -= 1;
    return parsed;
  }

  /** Parses nodes up to the action that ends them or, at the top, the end of the template. */
  #list(where: 'top' | 'inside'): Block {
    const nodes: Node[] = [];
    for (;;) {
      const token = this.#take();
      if (token.kind === 'eof') {
        if (where === 'top') return { nodes, end: 'eof' };
        this.#fail('unexpected EOF');
      }
      if (token.kind === 'text') {
        nodes.push({ type: 'text', text: token.text });
        continue;
      }
      if (token.kind !== 'left') this.#unexpected(token, 'input');
      this.#actionLine = token.line;
      const node = this.#action(where);
      if (node === 'end' || node === 'else') return { nodes, end: node };
      if (node !== undefined) nodes.push(node);
      this.#actionLine = 0;
    }
  }

  #action(where: 'top' | 'inside'): Node | 'end' | 'else' | undefined {
    const token = this.#skipSpace();
    if (token.kind !== 'keyword') {
      return { type: 'action', pipe: this.#pipeline({ context: 'command', end: 'right' }) };
    }
    this.#take();
    switch (token.text) {
      case 'if':
      case 'with':
      case 'range':
        return this.#branch(token.text);
      case 'end':
        this.#expect('right', 'end');
        return 'end';
      case 'else': {
        const next = this.#skipSpace();
        // `else if` is a nested branch that shares the `end`.
        if (next.kind === 'keyword' && (next.text === 'if' || next.text === 'with')) return 'else';
        this.#expect('right', 'else');
        return 'else';
      }
      case 'break':
      case 'continue':
        return this.#jump(token.text);
      case 'template':
        return this.#call();
      case 'block':
        return this.#block(token);
      default:
        if (where !== 'top' || this.#depth > 0) this.#unexpected(token, 'command');
        this.#define();
        return undefined;
    }
  }

  #jump(type: 'break' | 'continue'): Node {
    const next = this.#skipSpace();
    if (next.kind !== 'right') {
      this.#take();
      this.#unexpected(next, `{{${type}}}`);
    }
    this.#take();
    if (this.#ranges === 0) this.#fail(`{{${type}}} outside {{range}}`);
    return { type };
  }

  #branch(type: 'if' | 'with' | 'range'): Node {
    const variableCount = this.#variables.length;
    const pipe = this.#pipeline({ context: type, end: 'right' });
    return this.#nest(() => {
      if (type === 'range') this.#ranges += 1;
      const body = this.#list('inside');
      if (type === 'range') this.#ranges -= 1;
      const elseBody = body.end === 'else' ? this.#elseBody(type) : [];
      this.#variables.length = variableCount;
      return { type, pipe, body: body.nodes, elseBody };
    });
  }

  #elseBody(type: 'if' | 'with' | 'range'): readonly Node[] {
    const next = this.#skipSpace();
    const before = this.#tokens[this.#next - 1];
    if (before?.kind !== 'right' && next.kind === 'keyword') {
      this.#take();
      if (next.text !== type) this.#unexpected(next, 'input');
      return [this.#branch(type as 'if' | 'with')];
    }
    const { nodes, end } = this.#list('inside');
    if (end !== 'end') this.#fail(`expected end; found {{${end}}}`);
    return nodes;
  }

  #call(): Node {
    const token = this.#skipSpace();
    const name = this.#name('template clause');
    const pipe =
      this.#skipSpace().kind === 'right'
        ? undefined
        : this.#pipeline({ context: 'template clause', end: 'right' });
    if (pipe === undefined) this.#take();
    const rest = pipe === undefined ? '' : ` ${pipe.text}`;
    const text = `{{template ${JSON.stringify(name)}${rest}}}`;
    return { type: 'template', at: token.at, text, name, pipe };
  }

  #block(token: Token): Node {
    const name = this.#name('block clause');
    const pipe = this.#pipeline({ context: 'block clause', end: 'right' });
    this.#body(name);
    const text = `{{template ${JSON.stringify(name)} ${pipe.text}}}`;
    return { type: 'template', at: token.at, text, name, pipe };
  }

  #define(): void {
    const name = this.#name('define clause');
    this.#expect('right', 'define clause');
    this.#body(name);
  }

  /** Parses the body of a nested template, which has its own variables. */
  #body(name: string): void {
    const outer = { variables: this.#variables, ranges: this.#ranges };
    this.#variables = ['$'];
    this.#ranges = 0;
    const { nodes, end } = this.#nest(() => this.#list('inside'));
    if (end !== 'end') this.#fail(`unexpected {{${end}}} in define clause`);
    this.#byName.set(name, nodes);
    this.#variables = outer.variables;
    this.#ranges = outer.ranges;
  }

  #name(context: string): string {
    const token = this.#expect('string', context);
    return this.#text(token);
  }

  #text(token: Token): string {
    const text = unquoteString(token.text);
    return text ?? this.#fail('invalid syntax');
  }

  #pipeline({ context, end }: { context: string; end: 'right' | 'close' }): Pipe {
    const { at } = this.#skipSpace();
    const { variables, assigns } = this.#declaration(context);
    const commands: Command[] = [];
    for (;;) {
      const token = this.#skipSpace();
      if (token.kind === end) {
        this.#take();
        this.#checkCommands(commands, context);
        const declared =
          variables.length === 0 ? '' : `${variables.join(', ')} ${assigns ? '=' : ':='} `;
        const text = declared + commands.map((command) => command.text).join(' | ');
        return { at, text, variables, assigns, commands };
      }
      if (!startsOperand(token)) {
        this.#take();
        this.#unexpected(token, context);
      }
      commands.push(this.#command());
    }
  }

  #checkCommands(commands: readonly Command[], context: string): void {
    if (commands.length === 0) this.#fail(`missing value for ${context}`);
    for (const [index, { operands }] of commands.entries()) {
      const [first] = operands;
      const isValue =
        first !== undefined && ['bool', 'dot', 'nil', 'number', 'string'].includes(first.type);
      if (index > 0 && isValue) this.#fail(`non executable command in pipeline stage ${index + 1}`);
    }
  }

  #declaration(context: string): { variables: string[]; assigns: boolean } {
    const variables: string[] = [];
    let start = this.#next;
    for (;;) {
      const token = this.#skipSpace();
      if (token.kind !== 'variable') break;
      this.#take();
      const next = this.#skipSpace();
      if (next.kind === 'declare' || next.kind === 'assign') {
        this.#take();
        variables.push(token.text);
        if (next.kind === 'declare') this.#variables.push(...variables);
        return { variables, assigns: next.kind === 'assign' };
      }
      const isList = next.kind === 'character' && next.text === ',';
      if (!isList) break;
      this.#take();
      variables.push(token.text);
      if (context !== 'range' || variables.length > 1) {
        this.#fail(`too many declarations in ${context}`);
      }
      start = this.#next;
    }
    this.#next = start;
    return { variables: [], assigns: false };
  }

  #checkVariable(name: string): void {
    if (!this.#variables.includes(name)) this.#fail(`undefined variable ${JSON.stringify(name)}`);
  }

  #command(): Command {
    const { at } = this.#skipSpace();
    const operands: Operand[] = [];
    for (;;) {
      const token = this.#skipSpace();
      const operand = this.#operand();
      if (operand !== undefined) operands.push(operand);
      const next = this.#take();
      if (next.kind === 'space') continue;
      if (next.kind === 'right' || next.kind === 'close') this.#next -= 1;
      else if (next.kind !== 'pipe') {
        this.#unexpected(next, operand === undefined && token === next ? 'command' : 'operand');
      }
      break;
    }
    if (operands.length === 0) this.#fail('empty command');
    return { at, text: operands.map(operandText).join(' '), operands };
  }

  #operand(): Operand | undefined {
    const term = this.#term();
    if (term === undefined || this.#peek().kind !== 'field') return term;
    const { at } = this.#peek();
    const names: string[] = [];
    while (this.#peek().kind === 'field') names.push(this.#take().text.slice(1));
    const path = names.map((name) => `.${name}`).join('');
    switch (term.type) {
      case 'field':
        return { ...term, at, names: [...term.names, ...names], text: term.text + path };
      case 'variable':
        return { ...term, at, names: [...term.names, ...names], text: term.text + path };
      case 'bool':
      case 'string':
      case 'number':
      case 'nil':
      case 'dot':
        return this.#fail(`unexpected . after term ${JSON.stringify(term.text)}`);
      default:
        return { type: 'chain', at, operand: term, names, text: operandText(term) + path };
    }
  }

  #term(): Operand | undefined {
    const token = this.#skipSpace();
    const { at, text } = token;
    switch (token.kind) {
      case 'identifier':
        this.#take();
        if (!this.#functions.has(text)) this.#fail(`function ${JSON.stringify(text)} not defined`);
        return { type: 'identifier', at, name: text, text };
      case 'dot':
      case 'nil':
        this.#take();
        return { type: token.kind, at, text };
      case 'bool':
        this.#take();
        return { type: 'bool', at, value: text === 'true', text };
      case 'variable':
        this.#take();
        this.#checkVariable(text);
        return { type: 'variable', at, name: text, names: [], text };
      case 'field':
        this.#take();
        return { type: 'field', at, names: [text.slice(1)], text };
      case 'number':
      case 'char':
        this.#take();
        return this.#number(token);
      case 'string':
        this.#take();
        return { type: 'string', at, value: this.#text(token), text };
      case 'open': {
        this.#take();
        const pipe = this.#nest(() =>
          this.#pipeline({ context: 'parenthesized pipeline', end: 'close' }),
        );
        return { type: 'pipe', at, pipe, text: pipe.text };
      }
      default:
        return undefined;
    }
  }

  #number({ kind, text, at }: Token): Operand {
    if (kind === 'char') {
      const value = unquoteCharacter(text);
      if (value === undefined) this.#fail(`malformed character constant: ${text}`);
      return { type: 'number', at, value, isFloat: false, text };
    }
    const plain = text.replaceAll('_', '');
    const isInteger = /^[+-]?(?:\d+|0[xX][\da-fA-F]+|0[oO][0-7]+|0[bB][01]+)$/.test(plain);
    const isFloat = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/.test(plain);
    if (!isInteger && !isFloat) this.#fail(`bad number syntax: ${JSON.stringify(text)}`);
    const isFloatLiteral = /[.eE]/.test(plain) && !/^[+-]?0[xX]/.test(plain);
    const overflows = () => this.#fail(`integer overflow: ${JSON.stringify(text)}`);
    const digits = plain.replace(/^[+-]/, '');
    const isOctal = isInteger && /^0\d/.test(digits);
    if (isOctal && !/^[0-7]+$/.test(digits)) overflows();
    const size = isOctal ? Number.parseInt(digits, 8) : Number(digits);
    if (!isFloatLiteral && size >= 2 ** 63) overflows();
    const exact = isFloatLiteral || Number.isSafeInteger(size) ? size : BigInt(digits);
    const value = plain.startsWith('-') ? -exact : exact;
    return { type: 'number', at, value, isFloat: isFloatLiteral, text };
  }
}

const operandKinds: ReadonlySet<TokenKind> = new Set([
  'bool',
  'char',
  'dot',
  'field',
  'identifier',
  'number',
  'nil',
  'string',
  'variable',
  'open',
]);

const startsOperand = ({ kind }: Token): boolean => operandKinds.has(kind);

/** The text of an operand in messages, with the parentheses of a pipeline. */
export const operandText = (operand: Operand): string =>
  operand.type === 'pipe' ? `(${operand.text})` : operand.text;

function tokenText({ kind, text }: Token): string {
  if (kind === 'eof') return 'EOF';
  if (kind === 'keyword' || kind === 'dot' || kind === 'nil') return `<${text}>`;
  return text.length > 10 ? `${JSON.stringify(text.slice(0, 10))}...` : JSON.stringify(text);
}
