import {
  CelError,
  type MapValue,
  type Program,
  requestResourceName,
  type Value,
} from '@wheelhouse/cel';
import { callCostMax, programOf } from '../cel/run.ts';
import type { NamedExpression } from '../webhooks/hooks.ts';

/** What an expression may name besides what all of them may. */
export interface ExpressionScope {
  readonly names: readonly string[];
  readonly variables: readonly NamedExpression[];
}

/** A policy's variables, each with its program or why it has none. */
export type VariablePrograms = ReadonlyMap<string, Program | { readonly problem: string }>;

/** Compiles a policy's variables, each seeing those before it. */
export function variablePrograms({ names, variables }: ExpressionScope): VariablePrograms {
  return new Map(
    variables.map(({ name, expression }, before) => [
      name,
      programOf(expression, {
        variables: names,
        wanted: [],
        own: { list: variables, before },
      }),
    ]),
  );
}

/**
 * Messages and annotations are evaluated without the authorizer, even if they use a variable that
 * needs it: such an expression fails.
 */
export function withoutAuthorizer(
  variables: ReadonlyMap<string, Value>,
): ReadonlyMap<string, Value> {
  const left = new Map(variables);
  for (const name of ['authorizer', requestResourceName]) left.delete(name);
  return left;
}

/** `variables` of one evaluation: each is computed at its first use and cached. */
export class LazyVariables implements MapValue {
  readonly isMap = true;
  readonly objectType = 'kubernetes.variables';
  readonly #programs: VariablePrograms;
  readonly #variables: ReadonlyMap<string, Value>;
  readonly #results = new Map<string, Value | CelError>();
  #cost = 0;

  /** @param variables all other variables; the caller adds this object to them */
  constructor(programs: VariablePrograms, variables: ReadonlyMap<string, Value>) {
    this.#programs = programs;
    this.#variables = variables;
  }

  get(key: Value): Value | undefined {
    if (typeof key !== 'string') return undefined;
    const program = this.#programs.get(key);
    if (program === undefined) return undefined;
    const result = this.#results.get(key) ?? this.#compute(key, program);
    this.#results.set(key, result);
    if (result instanceof CelError) throw result;
    return result;
  }

  #compute(name: string, program: Program | { readonly problem: string }): Value | CelError {
    const head = `composited variable ${JSON.stringify(name)} fails to`;
    if ('problem' in program) return new CelError(`${head} compile: ${program.problem}`);
    const measured = program.measure(this.#variables, callCostMax);
    this.#cost += measured.cost;
    if (measured.error === undefined) return measured.value;
    return new CelError(`${head} evaluate: ${measured.error.message}`);
  }

  keys(): readonly Value[] {
    return [...this.#programs.keys()];
  }

  get size(): number {
    return this.#programs.size;
  }

  /** The cost of variables since the last call. */
  takeCost(): number {
    const cost = this.#cost;
    this.#cost = 0;
    return cost;
  }
}
