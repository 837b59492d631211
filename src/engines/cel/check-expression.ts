import { type Compiled, compile } from './compile.ts';
import { CelCompileError } from './issues.ts';
import { requestEnvironment } from './request-types.ts';
import { showType, type Type } from './types.ts';
import { CelError } from './values.ts';

/** What an expression of a webhook or policy may name, and what it must come to. */
export interface ExpressionUse {
  /** Names of its variables: `object`, `request`, `params`, `variables`, … */
  readonly variables: readonly string[];
  /** Types it may have; empty: any. */
  readonly wanted: readonly string[];
  /** The policy's own variables, with their types; where absent, nothing is known of them. */
  readonly own?: ReadonlyMap<string, Type>;
}

/** An expression compiled for its use, or why it cannot be, in upstream's words. */
export function compileExpression(
  source: string,
  use: ExpressionUse,
): Compiled | { readonly problem: string } {
  const { own } = use;
  const environment = requestEnvironment({
    names: use.variables,
    ...(own === undefined ? {} : { variables: own }),
  });
  try {
    const compiled = compile(source, environment);
    const { wanted } = use;
    const shown = showType(compiled.type);
    if (wanted.length > 0 && !wanted.includes(compiled.type.name)) {
      const problem =
        wanted.length === 1
          ? `must evaluate to ${wanted[0]} but got ${shown}`
          : `must evaluate to one of [${wanted.join(' ')}]`;
      return { problem };
    }
    return compiled;
  } catch (error) {
    if (error instanceof CelCompileError) {
      return { problem: `compilation failed: ${error.message}` };
    }
    throw error;
  }
}

/** Why an expression cannot be used so; undefined when it can. */
export function expressionProblem(source: string, use: ExpressionUse): string | undefined {
  const compiled = compileExpression(source, use);
  if ('problem' in compiled) return compiled.problem;
  try {
    compiled.program();
    return undefined;
  } catch (error) {
    if (!(error instanceof CelError)) throw error;
    return `program instantiation failed: ${error.message}`;
  }
}
