import { type Compiled, compile } from './compile.ts';
import { CelCompileError } from './issues.ts';
import { requestEnvironment } from './request-types.ts';
import { dynType, showType, type Type } from './types.ts';
import { CelError, longTypeName } from './values.ts';

/** A variable of a policy: a name for what an expression comes to. */
export interface PolicyVariable {
  readonly name: string;
  readonly expression: string;
}

/** What an expression of a webhook or policy may name, and what it must come to. */
export interface ExpressionUse {
  /** Names of its variables: `object`, `request`, `params`, `variables`, … */
  readonly variables: readonly string[];
  /** Types it may have; empty: any. */
  readonly wanted: readonly string[];
  /** The policy's own variables, of which it may use those before the given place, or all. */
  readonly own?: { readonly list: readonly PolicyVariable[]; readonly before?: number };
  /** Types of variables that are known better here than in general. */
  readonly typed?: ReadonlyMap<string, Type>;
  /** It makes a change: objects and operations of patches may be written. */
  readonly patches?: boolean;
}

const typesOfLists = new WeakMap<readonly PolicyVariable[], readonly Type[]>();

/** The types that a policy's variables have, in their order; dyn for those that do not compile. */
function typesOf(list: readonly PolicyVariable[], use: ExpressionUse): readonly Type[] {
  const known = use.typed === undefined ? typesOfLists.get(list) : undefined;
  if (known !== undefined) return known;
  const names = [...new Set([...use.variables, 'authorizer'])];
  const types: Type[] = [];
  const fields = new Map<string, Type>();
  for (const { name, expression } of list) {
    const compiled = compiledIn(
      expression,
      { ...use, variables: names, wanted: [], patches: false },
      fields,
    );
    const type = 'problem' in compiled ? dynType : compiled.type;
    types.push(type);
    fields.set(name, type);
  }
  if (use.typed === undefined) typesOfLists.set(list, types);
  return types;
}

function fieldsFor(use: ExpressionUse): ReadonlyMap<string, Type> {
  const { list, before } = use.own ?? { list: [] };
  if (list.length === 0) return new Map();
  const types = typesOf(list, use);
  const seen = list.slice(0, before ?? list.length);
  return new Map(seen.map(({ name }, index) => [name, types[index] ?? dynType]));
}

/** An expression compiled for its use, or why it cannot be, in upstream's words. */
export function compileExpression(
  source: string,
  use: ExpressionUse,
): Compiled | { readonly problem: string } {
  return compiledIn(source, use, fieldsFor(use));
}

function compiledIn(
  source: string,
  use: ExpressionUse,
  variables: ReadonlyMap<string, Type>,
): Compiled | { readonly problem: string } {
  const { typed = new Map<string, Type>(), patches = false } = use;
  const environment = requestEnvironment({ names: use.variables, variables, typed, patches });
  try {
    const compiled = compile(source, environment);
    const { wanted } = use;
    const shown = showType(compiled.type);
    const isWanted = wanted.includes(longTypeName(compiled.type)) || wanted.includes(shown);
    if (wanted.length > 0 && !isWanted) {
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
