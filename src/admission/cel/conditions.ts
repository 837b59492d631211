import { compileExpression } from '../../engines/cel/check-expression.ts';
import type { Program } from '../../engines/cel/evaluator.ts';
import { CelError, type Value } from '../../engines/cel/values.ts';
import type { NamedExpression } from '../webhooks/hooks.ts';
import { Budget, OutOfBudget, runExpression } from './run.ts';

/** A condition that was compiled; `problem` says why it was not. */
export interface CompiledCondition extends NamedExpression {
  readonly program: Program | { readonly problem: string };
}

/** What all the conditions of one webhook or policy may cost. */
const costMax = 2_500_000;

const names = ['object', 'oldObject', 'request', 'namespaceObject', 'authorizer'];

/** Compiles conditions; those that cannot be are failures when they are asked. */
export function compileConditions(
  conditions: readonly NamedExpression[],
  more: readonly string[] = [],
): readonly CompiledCondition[] {
  const variables = [...names, ...more];
  return conditions.map((condition) => ({
    ...condition,
    program: programOf(condition.expression, { variables, wanted: ['bool'] }),
  }));
}

/** Makes an expression's program, or says why it has none. */
export function programOf(
  source: string,
  use: Parameters<typeof compileExpression>[1],
): Program | { readonly problem: string } {
  const compiled = compileExpression(source, use);
  if ('problem' in compiled) return compiled;
  try {
    return compiled.program();
  } catch (error) {
    if (!(error instanceof CelError)) throw error;
    return { problem: `program instantiation failed: ${error.message}` };
  }
}

/** What conditions come to: `failures` when some failed and none was false. */
export type ConditionsResult =
  | { readonly matches: boolean; readonly failures?: never; readonly failed: number }
  | { readonly failures: string; readonly failed: number };

/**
 * Asks the conditions in their order, the first that is false decides; failures count only where
 * none is.
 */
export async function askConditions(
  conditions: readonly CompiledCondition[],
  variables: ReadonlyMap<string, Value>,
): Promise<ConditionsResult> {
  const budget = new Budget(costMax);
  const results: (boolean | string)[] = [];
  try {
    // All are run before any is looked at, as upstream: their costs add up.
    for (const condition of conditions) results.push(await ask(condition, variables, budget));
  } catch (error) {
    if (!(error instanceof OutOfBudget)) throw error;
    return { failures: error.message, failed: 0 };
  }
  const failures: string[] = [];
  for (const result of results) {
    if (result === false) return { matches: false, failed: failures.length };
    if (typeof result === 'string') failures.push(result);
  }
  if (failures.length === 0) return { matches: true, failed: 0 };
  const unique = [...new Set(failures)];
  const shown = unique.length === 1 ? (unique[0] ?? '') : `[${unique.join(', ')}]`;
  return { failures: shown, failed: failures.length };
}

/** Whether a condition holds, or how it failed. */
async function ask(
  { program, expression }: CompiledCondition,
  variables: ReadonlyMap<string, Value>,
  budget: Budget,
): Promise<boolean | string> {
  if ('problem' in program) return `compilation error: ${program.problem}`;
  const measured = await runExpression(program, variables, budget);
  if (measured.error === undefined) return measured.value === true;
  return `expression '${expression}' resulted in error: ${measured.error.message}`;
}
