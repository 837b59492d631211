import { beforeStart, type Issue, nowhere } from '../issues.ts';
import type { CallExpr, Expr } from './ast.ts';
import { LexError, type Token } from './lexer.ts';
import { expandMacro, type MacroOptions } from './macros.ts';
import type { TreeNode } from './recovery.ts';

/** Maximum height of the tree of operators, selections, and calls. */
const heightMax = 250;

/** Names that are no variables or functions. */
export const reserved: ReadonlySet<string> = new Set(
  (
    'as break const continue else for function if import let loop package namespace return var ' +
    'void while'
  ).split(' '),
);

/** Number of nodes between two pauses. */
const nodesPerStep = 1_000;

/**
 * Adds in steps the issues of a tree with syntax errors that concern names, literals, and macros, in the
 * order in which cel-go reports them.
 */
export function* visitSteps(
  root: TreeNode,
  issues: Issue[],
  macros: MacroOptions,
): Generator<void, void> {
  try {
    yield* new Visitor(issues, macros).visit(root);
  } catch (error) {
    if (!(error instanceof TooHigh)) throw error;
    issues.push({ at: nowhere, message: 'max recursion depth exceeded' });
  }
}

class TooHigh extends Error {}

const isNode = (part: TreeNode | Token | undefined): part is TreeNode =>
  part !== undefined && 'rule' in part;

/** What stands for a part that a syntax error concerns. */
const missing = (at: number): Expr => ({ kind: 'const', at, value: null });

class Visitor {
  readonly #issues: Issue[];
  readonly #macros: MacroOptions;
  #height = 0;
  #nodes = 0;

  constructor(issues: Issue[], macros: MacroOptions) {
    this.#issues = issues;
    this.#macros = macros;
  }

  *visit(node: TreeNode | undefined): Generator<void, Expr> {
    this.#nodes += 1;
    if (this.#nodes % nodesPerStep === 0) yield;
    if (node === undefined) return missing(beforeStart);
    switch (node.rule) {
      case 'start':
        return yield* this.visit(nodesOf(node)[0]);
      case 'expr':
      case 'relation':
      case 'calc':
        return yield* this.#higher(this.#operation(node));
      case 'or':
      case 'and':
        return yield* this.#operation(node);
      case 'unary':
        return yield* this.#unary(node);
      case 'member':
        return node.way < 0 ? missing(beforeStart) : yield* this.#higher(this.#member(node));
      case 'primary':
        return yield* this.#primary(node);
      case 'literal':
        return this.#literal(node);
      default:
        return missing(beforeStart);
    }
  }

  *#higher(visit: Generator<void, Expr>): Generator<void, Expr> {
    this.#height += 1;
    if (this.#height > heightMax) throw new TooHigh();
    const expr = yield* visit;
    this.#height -= 1;
    return expr;
  }

  *#operation(node: TreeNode): Generator<void, Expr> {
    const args = yield* this.#all(nodesOf(node));
    const [operator] = tokensOf(node);
    return { kind: 'call', at: operator?.at ?? 0, name: '', target: undefined, args };
  }

  *#unary(node: TreeNode): Generator<void, Expr> {
    const signs = tokensOf(node);
    const operand = yield* this.visit(nodesOf(node)[0]);
    if (node.way < 0) return missing(node.first.at);
    if (signs.length % 2 === 0) return operand;
    return { kind: 'call', at: signs[0]?.at ?? 0, name: '', target: undefined, args: [operand] };
  }

  *#member(node: TreeNode): Generator<void, Expr> {
    const [target, inner] = nodesOf(node);
    const operand = yield* this.visit(target);
    const tokens = tokensOf(node);
    const [operator] = tokens;
    const name = tokens.find(({ kind }) => kind === 'name');
    if (operator === undefined) return missing(node.first.at);
    if (node.way === 2) {
      const index = yield* this.visit(inner);
      const args = [operand, index];
      return { kind: 'call', at: operator.at, name: '_[_]', target: undefined, args };
    }
    if (name === undefined) return missing(node.first.at);
    if (node.way === 0) {
      const optional = tokens.some(({ text }) => text === '?');
      const field = name.text.replaceAll('`', '');
      return { kind: 'select', at: operator.at, operand, field, test: false, optional };
    }
    return yield* this.#call(node, name.text, operand);
  }

  /** A call, whose parentheses may be missing. */
  *#call(node: TreeNode, name: string, target: Expr | undefined): Generator<void, Expr> {
    const open = tokensOf(node).find(({ text }) => text === '(');
    const list = nodesOf(node).find(({ rule }) => rule === 'arguments');
    const args = yield* this.#all(partsOf(list));
    const call: CallExpr = { kind: 'call', at: open?.at ?? 0, name, target, args };
    try {
      return expandMacro(call, this.#macros);
    } catch (error) {
      if (!(error instanceof LexError)) throw error;
      return this.#report(error.issue.at, error.issue.message);
    }
  }

  *#all(nodes: readonly TreeNode[]): Generator<void, Expr[]> {
    const exprs: Expr[] = [];
    for (const node of nodes) exprs.push(yield* this.visit(node));
    return exprs;
  }

  #report(at: number, message: string): Expr {
    this.#issues.push({ at, message });
    return missing(at);
  }

  *#primary(node: TreeNode): Generator<void, Expr> {
    const nodes = nodesOf(node);
    const tokens = tokensOf(node);
    switch (node.way) {
      case 0:
        return yield* this.#name(node, tokens);
      case 2:
        for (const item of partsOf(nodes[0])) yield* this.visit(nodesOf(item)[0]);
        return { kind: 'list', at: tokens[0]?.at ?? 0, items: [] };
      case 3:
        yield* this.#entries(nodes[0]);
        return { kind: 'map', at: tokens[0]?.at ?? 0, entries: [] };
      case 4: {
        yield* this.#fields(nodes[0]);
        const brace = tokens.find(({ text }) => text === '{');
        return { kind: 'struct', at: brace?.at ?? 0, name: '', fields: [] };
      }
      default:
        return missing(beforeStart);
    }
  }

  *#name(node: TreeNode, tokens: readonly Token[]): Generator<void, Expr> {
    const [first] = tokens;
    const name = tokens.find(({ kind }) => kind === 'name');
    if (name === undefined) return missing(node.first.at);
    if (reserved.has(name.text)) {
      return this.#report(node.first.at, `reserved identifier: ${name.text}`);
    }
    const isCall = tokens.some(({ text }) => text === '(');
    const dot = first !== name ? '.' : '';
    if (isCall) return yield* this.#call(node, `${dot}${name.text}`, undefined);
    return { kind: 'ident', at: name.at, name: `${dot}${name.text}` };
  }

  *#entries(list: TreeNode | undefined): Generator<void, void> {
    const colons = list === undefined ? [] : colonsOf(list);
    const nodes = partsOf(list);
    const keys = nodes.filter(({ rule }) => rule === 'item');
    const values = nodes.filter(({ rule }) => rule !== 'item');
    for (const [index] of colons.entries()) {
      if (index >= keys.length || index >= values.length) return;
      yield* this.visit(partsOf(keys[index])[0]);
      yield* this.visit(values[index]);
    }
  }

  *#fields(list: TreeNode | undefined): Generator<void, void> {
    const nodes = partsOf(list);
    const values = nodes.filter(({ rule }) => rule !== 'field');
    const colons = list === undefined ? [] : colonsOf(list);
    for (const [index, field] of nodes.filter(({ rule }) => rule === 'field').entries()) {
      if (index >= colons.length || index >= values.length) return;
      if (!tokensOf(field).some(({ kind }) => kind === 'name')) return;
      yield* this.visit(values[index]);
    }
  }

  #literal(node: TreeNode): Expr {
    const tokens = tokensOf(node);
    const token = tokens.at(-1);
    const problem = token === undefined ? undefined : literalProblem(token, tokens.length > 1);
    if (problem !== undefined) return this.#report(node.first.at, problem);
    return missing(node.first.at);
  }
}

/** Why a literal is invalid. */
export function literalProblem({ value, problem }: Token, isNegative: boolean): string | undefined {
  if (problem !== undefined) return problem;
  if (typeof value === 'bigint') {
    const integer = isNegative ? -value : value;
    return BigInt.asIntN(64, integer) === integer ? undefined : 'invalid int literal';
  }
  if (typeof value === 'number') {
    return Number.isFinite(value) ? undefined : 'invalid double literal';
  }
  if (typeof value !== 'object' || value === null || !('uint' in value)) return undefined;
  return BigInt.asUintN(64, value.uint) === value.uint ? undefined : 'invalid uint literal';
}

const nodesOf = ({ parts }: TreeNode): readonly TreeNode[] => parts.filter(isNode);
const partsOf = (node: TreeNode | undefined): readonly TreeNode[] =>
  node === undefined ? [] : nodesOf(node);
const tokensOf = ({ parts }: TreeNode): readonly Token[] =>
  parts.filter((part): part is Token => !isNode(part));
const colonsOf = (node: TreeNode): readonly Token[] =>
  tokensOf(node).filter(({ text }) => text === ':');
