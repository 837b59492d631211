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
 * Messages and annotations are worked out without the authorizer, also where a variable they use asks
 * it: what asks then fails.
 */
export function withoutAuthorizer(given: ReadonlyMap<string, Value>): ReadonlyMap<string, Value> {
  const left = new Map(given);
  for (const name of ['authorizer', requestResourceName]) left.delete(name);
  return left;
}

/** `variables` of one evaluation: each is worked out when it is first asked for, and kept. */
export class LazyVariables implements MapValue {
  readonly isMap = true;
  readonly objectType = 'kubernetes.variables';
  readonly #programs: VariablePrograms;
  readonly #given: ReadonlyMap<string, Value>;
  readonly #known = new Map<string, Value | CelError>();
  #cost = 0;

  /** @param given all other variables; must come to hold this one too */
  constructor(programs: VariablePrograms, given: ReadonlyMap<string, Value>) {
    this.#programs = programs;
    this.#given = given;
  }

  get(key: Value): Value | undefined {
    if (typeof key !== 'string') return undefined;
    const program = this.#programs.get(key);
    if (program === undefined) return undefined;
    const known = this.#known.get(key) ?? this.#compute(key, program);
    this.#known.set(key, known);
    if (known instanceof CelError) throw known;
    return known;
  }

  #compute(name: string, program: Program | { readonly problem: string }): Value | CelError {
    const head = `composited variable ${JSON.stringify(name)} fails to`;
    if ('problem' in program) return new CelError(`${head} compile: ${program.problem}`);
    const measured = program.measure(this.#given, callCostMax);
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

  /** What variables have cost since this was last asked. */
  takeCost(): number {
    const cost = this.#cost;
    this.#cost = 0;
    return cost;
  }
}
