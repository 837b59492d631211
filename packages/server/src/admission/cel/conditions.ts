import {
  type ExpressionUse,
  isMapValue,
  type MapValue,
  type Program,
  type Value,
} from '@wheelhouse/cel';
import { aggregateText } from '@wheelhouse/machinery';
import type { NamedExpression } from '../webhooks/hooks.ts';
import { Budget, OutOfBudget, programOf, runExpression } from './run.ts';

/** A condition that was compiled; `problem` says why it was not. */
export interface CompiledCondition extends NamedExpression {
  readonly program: Program | { readonly problem: string };
}

/** What all the conditions of one webhook or policy may cost. */
const costMax = 2_500_000;

const names = ['object', 'oldObject', 'request', 'namespaceObject', 'authorizer'];

/** Compiles conditions. One that does not compile fails when it is evaluated. */
export function compileConditions(
  conditions: readonly NamedExpression[],
  scope: Omit<ExpressionUse, 'wanted'> = { variables: names },
): readonly CompiledCondition[] {
  return conditions.map((condition) => ({
    ...condition,
    program: programOf(condition.expression, { ...scope, wanted: ['bool'] }),
  }));
}

/** Conditions have no namespace object; their `resource` is the one the client requested. */
function asConditionsSee(variables: ReadonlyMap<string, Value>): ReadonlyMap<string, Value> {
  const request = variables.get('request');
  const seen = new Map(variables).set('namespaceObject', null);
  if (request === undefined || !isMapValue(request)) return seen;
  const asAsked: MapValue = {
    isMap: true,
    objectType: request.objectType,
    size: request.size,
    get: (key) => request.get(key === 'resource' ? 'requestResource' : key),
    keys: () => request.keys(),
  };
  return seen.set('request', asAsked);
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
  own?: { takeCost(): number },
): Promise<ConditionsResult> {
  const seen = asConditionsSee(variables);
  const spending = { budget: new Budget(costMax), own };
  const results: (boolean | string)[] = [];
  try {
    // All are run before any is looked at, as upstream: their costs add up.
    for (const condition of conditions) {
      results.push(await ask(condition, seen, spending));
    }
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
  return { failures: aggregateText(failures), failed: failures.length };
}

/** Whether a condition holds, or how it failed. */
async function ask(
  { program, expression }: CompiledCondition,
  variables: ReadonlyMap<string, Value>,
  spending: Parameters<typeof runExpression>[2],
): Promise<boolean | string> {
  if ('problem' in program) return `compilation error: ${program.problem}`;
  const measured = await runExpression(program, variables, spending);
  if (measured.error === undefined) return measured.value === true;
  return `expression '${expression}' resulted in error: ${measured.error.message}`;
}
