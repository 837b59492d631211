import { compile } from './compile.ts';
import type { Environment } from './environment.ts';
import { CelCompileError } from './issues.ts';
import { parse } from './parser.ts';
import { standardFunctions } from './standard-functions.ts';
import { dynType, showType } from './types.ts';

/** What an expression may name, and what it must come to. */
export interface ExpressionUse {
  /** Names of its variables, whose types nobody knows beforehand. */
  readonly variables: readonly string[];
  /** Types it may have; empty: any. */
  readonly wanted: readonly string[];
}

/** Its functions are the admission gate's own and not declared here. */
const authorizer = /\bauthorizer\b/;

/**
 * Why an expression cannot be used so, in upstream's words; undefined when it can. One that asks the
 * authorizer is only read, not judged by its types.
 */
export function expressionProblem(source: string, use: ExpressionUse): string | undefined {
  const environment: Environment = {
    functions: standardFunctions(),
    variables: new Map(use.variables.map((name) => [name, dynType])),
  };
  try {
    if (use.variables.includes('authorizer') && authorizer.test(source)) {
      parse(source);
      return undefined;
    }
    const { type } = compile(source, environment);
    const { wanted } = use;
    if (wanted.length === 0 || wanted.includes(type.name)) return undefined;
    return wanted.length === 1
      ? `must evaluate to ${wanted[0]} but got ${showType(type)}`
      : `must evaluate to one of [${wanted.join(' ')}]`;
  } catch (error) {
    if (error instanceof CelCompileError) return `compilation failed: ${error.message}`;
    throw error;
  }
}
