import type { CallExpr, Expr } from './ast.ts';
import { literalValue } from './evaluator.ts';
import type { Issue } from './issues.ts';
import { formatText } from './library/format-text.ts';
import { patternOf } from './library/strings.ts';
import { parseDuration, parseTimestamp } from './library/time-text.ts';
import { CelError, type Value } from './values.ts';

/** Literal texts of times, patterns and formats are read when an expression is compiled. */
export function literalIssues(expr: Expr): readonly Issue[] {
  const issues: Issue[] = [];
  const visit = (node: Expr): void => {
    if (node.kind === 'call') issues.push(...callIssues(node));
    for (const child of childrenOf(node)) visit(child);
  };
  visit(expr);
  return issues;
}

function callIssues(call: CallExpr): readonly Issue[] {
  const [first] = call.args;
  if (call.name === 'format' && call.target !== undefined) return formatIssues(call);
  if (first?.kind !== 'const' || typeof first.value !== 'string') return matchIssues(call);
  const { value, at } = first;
  if (call.target === undefined && call.name === 'timestamp') {
    return parseTimestamp(value) === undefined
      ? [{ at, message: 'invalid timestamp argument' }]
      : [];
  }
  if (call.target === undefined && call.name === 'duration') {
    return parseDuration(value) === undefined ? [{ at, message: 'invalid duration argument' }] : [];
  }
  return matchIssues(call);
}

function matchIssues(call: CallExpr): readonly Issue[] {
  const pattern = call.args.at(-1);
  const wanted = call.target === undefined ? 2 : 1;
  if (call.name !== 'matches' || call.args.length !== wanted) return [];
  if (pattern?.kind !== 'const' || typeof pattern.value !== 'string') return [];
  try {
    patternOf(pattern.value);
    return [];
  } catch {
    return [{ at: pattern.at, message: 'invalid matches argument' }];
  }
}

function formatIssues({ target, args }: CallExpr): readonly Issue[] {
  const [list] = args;
  if (target?.kind !== 'const' || typeof target.value !== 'string') return [];
  if (list?.kind !== 'list' || list.items.some((item) => item.optional)) return [];
  const values: Value[] = [];
  for (const { value } of list.items) {
    if (value.kind !== 'const') return [];
    values.push(literalValue(value.value));
  }
  try {
    formatText(target.value, values);
    return [];
  } catch (error) {
    if (error instanceof CelError) return [{ at: list.at, message: error.message }];
    throw error;
  }
}

function childrenOf(node: Expr): readonly Expr[] {
  switch (node.kind) {
    case 'const':
    case 'ident':
      return [];
    case 'select':
      return [node.operand];
    case 'call':
      return node.target === undefined ? node.args : [node.target, ...node.args];
    case 'list':
      return node.items.map(({ value }) => value);
    case 'map':
      return node.entries.flatMap(({ key, value }) => [key, value]);
    case 'struct':
      return node.fields.map(({ value }) => value);
    case 'fold':
      return [node.range, ...(node.filter === undefined ? [] : [node.filter]), node.body];
    case 'optionalMap':
      return [node.target, node.body];
  }
}
