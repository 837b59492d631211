import { appendAll } from '@wheelhouse/machinery';
import { type Expr, operandsOf } from '../syntax/ast.ts';
import { parse } from '../syntax/parser.ts';

/**
 * Whether an expression selects a field of a variable: `claims.email`, `has(claims.email)`, or
 * `claims.?email`. As in kube-apiserver, `claims['email']` does not count. Throws `CelCompileError`
 * for a malformed expression.
 */
export function selects(
  source: string,
  selection: { readonly variable: string; readonly field: string },
): boolean {
  const open: Expr[] = [parse(source)];
  for (let expr = open.pop(); expr !== undefined; expr = open.pop()) {
    if (expr.kind === 'select' && expr.field === selection.field) {
      const { operand } = expr;
      if (operand.kind === 'ident' && operand.name === selection.variable) return true;
    }
    appendAll(open, operandsOf(expr));
  }
  return false;
}
