import { appendAll } from '@wheelhouse/machinery';
import type { Expr } from '../syntax/ast.ts';
import { parse } from '../syntax/parser.ts';

/**
 * Whether an expression selects a field of a variable: `claims.email`, `has(claims.email)`, or
 * `claims.?email`. As in kube-apiserver, `claims['email']` does not count. Throws `CelCompileError`
 * for a malformed expression.
 */
export function selects(
  source: string,
  wanted: { readonly variable: string; readonly field: string },
): boolean {
  const open: Expr[] = [parse(source)];
  for (let expr = open.pop(); expr !== undefined; expr = open.pop()) {
    if (expr.kind === 'select' && expr.field === wanted.field) {
      const { operand } = expr;
      if (operand.kind === 'ident' && operand.name === wanted.variable) return true;
    }
    appendAll(open, childrenOf(expr));
  }
  return false;
}

function childrenOf(expr: Expr): readonly Expr[] {
  switch (expr.kind) {
    case 'const':
    case 'ident':
      return [];
    case 'select':
      return [expr.operand];
    case 'call':
      return expr.target === undefined ? expr.args : [expr.target, ...expr.args];
    case 'list':
      return expr.items.map(({ value }) => value);
    case 'map':
      return expr.entries.flatMap(({ key, value }) => [key, value]);
    case 'struct':
      return expr.fields.map(({ value }) => value);
    case 'fold':
      return [expr.range, ...(expr.filter === undefined ? [] : [expr.filter]), expr.body];
    case 'optionalMap':
      return [expr.target, expr.body];
    case 'bind':
      return [expr.value, expr.body];
  }
}
