import { check } from './checker.ts';
import { estimatedCost } from './cost/cost.ts';
import type { DeclaredSize } from './cost/declared-sizes.ts';
import { type Program, program } from './evaluator.ts';
import { CelCompileError } from './issues.ts';
import type { Expr } from './syntax/ast.ts';
import { literalIssues } from './syntax/literals.ts';
import { parse } from './syntax/parser.ts';
import type { Environment } from './types/environment.ts';
import type { Type } from './types/types.ts';

/** An expression that was parsed and whose types fit. */
export interface Compiled {
  readonly type: Type;
  /** Variables of the environment that it uses. */
  readonly used: ReadonlySet<string>;
  /** Throws `CelError` where constants alone show that it cannot work. */
  program(): Program;
  /** The most it may cost, in the units of the run-time limit, for a `self` of these sizes. */
  costMax(self: DeclaredSize | undefined): number;
}

/** Compiles an expression. Throws `CelCompileError` with all that is wrong and where. */
export function compile(source: string, environment: Environment): Compiled {
  const expr: Expr = parse(source, environment);
  const checked = check(expr, environment);
  const issues = checked.issues.length > 0 ? checked.issues : literalIssues(expr, checked.types);
  if (issues.length > 0) throw new CelCompileError(source, issues);
  return {
    type: checked.type,
    used: checked.used,
    program: () => program(expr, { environment, declared: checked.overloads }),
    costMax: (self) => estimatedCost(expr, { checked, functions: environment.functions, self }),
  };
}
