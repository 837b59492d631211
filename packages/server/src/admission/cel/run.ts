import {
  type AccessCosts,
  type AccessDecision,
  authorizerValue,
  CelError,
  type CheckAccess,
  compileExpression,
  EvaluationPaused,
  type ExpressionUse,
  isMapValue,
  jsonToValue,
  type MapValue,
  type Measured,
  type Program,
  requestResourceName,
  resourceCheckValue,
  type Value,
} from '@wheelhouse/cel';
import {
  type ApiObject,
  aggregateText,
  type Clock,
  type JsonObject,
  type MaybePromise,
  parseFieldSelector,
  parseLabelSelector,
  runInSlices,
  type UserInfo,
} from '@wheelhouse/machinery';
import type { RequestFacts } from '../matching/rules.ts';
import type { AdmissionTools } from '../tools.ts';
import type { NamedExpression } from '../webhooks/hooks.ts';

/** The inputs of expressions about a request. */
interface ExpressionInputs {
  readonly object: ApiObject | undefined;
  readonly old: ApiObject | undefined;
  /** `request`: an AdmissionRequest without its objects. */
  readonly request: JsonObject;
  readonly namespaceObject?: JsonObject | undefined;
  readonly params?: JsonObject | undefined;
  readonly user: UserInfo;
  readonly facts: RequestFacts;
}

/** Maximum cost of one evaluation. */
export const callCostMax = 1_000_000;

/**
 * The variables of expressions about a request, without the policy's own.
 * @param options.costs whether authorizer calls have a cost of their own, as from release 1.32 on
 */
export function requestVariables(
  inputs: ExpressionInputs,
  tools: Pick<AdmissionTools, 'authorize'>,
  { costs }: { readonly costs: AccessCosts } = { costs: 'counted' },
): Map<string, Value> {
  const plain = (json: JsonObject | undefined) =>
    json === undefined ? null : jsonToValue(json, {});
  const ask = askerFor(inputs.user, tools);
  const { resource, subresource, namespace, name } = inputs.facts;
  const at = { group: resource.group, resource: resource.resource, subresource, namespace, name };
  return new Map<string, Value>([
    ['object', plain(inputs.object)],
    ['oldObject', plain(inputs.old)],
    // Members of an AdmissionRequest that expressions see, but without content.
    ['request', plain({ uid: '', ...inputs.request, object: null, oldObject: null })],
    // Its times are declared as timestamps, but are plain strings as in objects.
    ['namespaceObject', plain(inputs.namespaceObject)],
    ['params', plain(inputs.params)],
    ['authorizer', authorizerValue(ask, costs)],
    [requestResourceName, resourceCheckValue(ask, at, costs)],
  ]);
}

function askerFor(user: UserInfo, tools: Pick<AdmissionTools, 'authorize'>): CheckAccess {
  return ({ user: account, path, fieldSelector, labelSelector, ...question }) => {
    const checkedUser = account === undefined ? user : serviceAccountUser(account);
    const selectors = readSelectors({ fieldSelector, labelSelector });
    const answer = tools.authorize({
      ...question,
      ...(path === undefined ? selectors : {}),
      user: checkedUser,
      isResourceRequest: path === undefined,
      version: path === undefined ? '*' : '',
      path: path ?? '',
    });
    const read = ({ decision, reason, error = '' }: Awaited<typeof answer>): AccessDecision => ({
      allowed: decision === 'allow',
      reason,
      error,
    });
    return answer instanceof Promise ? answer.then(read) : read(answer);
  };
}

function serviceAccountUser(name: string): UserInfo {
  const namespace = name.split(':')[2] ?? '';
  // No `system:authenticated`: the account did not log in.
  const groups = ['system:serviceaccounts', `system:serviceaccounts:${namespace}`];
  return { name, uid: '', groups, extra: {} };
}

/** A selector that does not parse restricts nothing, so it is the same as no selector. */
function readSelectors(selectors: { fieldSelector: string; labelSelector: string }) {
  const { fieldSelector, labelSelector } = selectors;
  return {
    ...(fieldSelector === '' ? {} : { fieldSelector: readable(fieldSelector, parseFieldSelector) }),
    ...(labelSelector === ''
      ? {}
      : {
          labelSelector: readable(labelSelector, (text) => parseLabelSelector(text).requirements),
        }),
  };
}

function readable<T>(text: string, parse: (text: string) => readonly T[]): readonly T[] {
  try {
    return parse(text);
  } catch {
    return [];
  }
}

/** Compiles an expression's program in steps (TRUST-2), or returns why it has none. */
export function* programOf(
  source: string,
  use: ExpressionUse,
): Generator<void, Program | { readonly problem: string }> {
  const compiled = yield* compileExpression(source, use);
  if ('problem' in compiled) return compiled;
  try {
    return yield* compiled.programSteps();
  } catch (error) {
    if (!(error instanceof CelError)) throw error;
    return { problem: `program instantiation failed: ${error.message}` };
  }
}

/** The expressions of one webhook or policy exceeded their common cost limit. */
export class OutOfBudget extends Error {
  constructor() {
    super(
      'validation failed due to running out of cost budget, no further validation rules will be run',
    );
  }
}

/** The remaining cost of the expressions of one run. */
export class Budget {
  #left: number;

  constructor(left: number) {
    this.#left = left;
  }

  /** Throws `OutOfBudget`. */
  spend(cost: number): void {
    if (cost > this.#left) throw new OutOfBudget();
    this.#left -= cost;
  }
}

/** Maximum number of authorizer calls in an evaluation. */
const pausesMax = 1000;

/** A value that has a cost to compute. */
interface Costly {
  takeCost(): number;
}

/** What an evaluation draws on. */
interface Spending {
  readonly budget: Budget;
  readonly own?: Costly | undefined;
  /** Divides long evaluations into slices (TRUST-2). */
  readonly clock: Pick<Clock, 'monotonic'>;
}

/** Runs a program, awaiting the authorizer when called. Throws `OutOfBudget`. */
export async function runExpression(
  program: Program,
  variables: ReadonlyMap<string, Value>,
  { budget, own, clock }: Spending,
): Promise<Measured> {
  for (let pauses = 0; ; pauses += 1) {
    try {
      const work = runInSlices(expressionSteps(program, variables), clock);
      const measured = work instanceof Promise ? await work : work;
      budget.spend(own?.takeCost() ?? 0);
      budget.spend(measured.cost);
      return measured;
    } catch (error) {
      if (!(error instanceof EvaluationPaused) || pauses === pausesMax) throw error;
      await error.answer;
    }
  }
}

/** Also many short evaluations in a row pause. */
function* expressionSteps(
  program: Program,
  variables: ReadonlyMap<string, Value>,
): Generator<void, Measured> {
  yield;
  return yield* program.steps(variables, callCostMax);
}

/** A compiled condition; `problem` says why it did not compile. */
export interface CompiledCondition extends NamedExpression {
  readonly program: Program | { readonly problem: string };
}

/** Maximum cost of all conditions of one webhook or policy. */
const costMax = 2_500_000;

const names = ['object', 'oldObject', 'request', 'namespaceObject', 'authorizer'];

/** Compiles the expressions of a list, with pauses between them. */
export function* compileEach<Source, Result>(
  sources: readonly Source[],
  compile: (source: Source, index: number) => Generator<void, Result>,
): Generator<void, readonly Result[]> {
  const results: Result[] = [];
  for (const [index, source] of sources.entries()) {
    yield;
    results.push(yield* compile(source, index));
  }
  return results;
}

/** Compiles conditions in steps. One that does not compile fails when it is evaluated. */
export function compileConditions(
  conditions: readonly NamedExpression[],
  scope: Omit<ExpressionUse, 'resultTypes'> = { variables: names },
): Generator<void, readonly CompiledCondition[]> {
  return compileEach(conditions, function* (condition) {
    const use = { ...scope, resultTypes: ['bool'] };
    return { ...condition, program: yield* programOf(condition.expression, use) };
  });
}

/** Conditions see no namespace object, and `resource` as the client requested it. */
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

/** The outcome of conditions: `failures` if some failed and none was false. */
type ConditionsResult =
  | { readonly matches: boolean; readonly failures?: never; readonly failed: number }
  | { readonly failures: string; readonly failed: number };

/**
 * Evaluates conditions in order. The first false one decides; failures count only if none is false.
 */
export async function evaluateConditions(
  conditions: readonly CompiledCondition[],
  variables: ReadonlyMap<string, Value>,
  { own, clock }: Omit<Spending, 'budget'>,
): Promise<ConditionsResult> {
  const seen = asConditionsSee(variables);
  const spending = { budget: new Budget(costMax), own, clock };
  const results: (boolean | string)[] = [];
  try {
    // All are run before any result is used, as in kube-apiserver, since costs add up.
    for (const condition of conditions) {
      results.push(await evaluateCondition(condition, seen, spending));
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
async function evaluateCondition(
  { program, expression }: CompiledCondition,
  variables: ReadonlyMap<string, Value>,
  spending: Spending,
): Promise<boolean | string> {
  if ('problem' in program) return `compilation error: ${program.problem}`;
  const measured = await runExpression(program, variables, spending);
  if (measured.error === undefined) return measured.value === true;
  return `expression '${expression}' resulted in error: ${measured.error.message}`;
}

/**
 * Compiles each source on first use, in slices, and keeps the result for as long as the source
 * lives. Requests that need it meanwhile wait for the same compilation.
 */
export function compiledOnce<Source extends object, Result extends object>(
  compile: (source: Source) => Generator<void, Result>,
): (source: Source, clock: Pick<Clock, 'monotonic'>) => MaybePromise<Result> {
  const results = new WeakMap<Source, MaybePromise<Result>>();
  return (source, clock) => {
    let result = results.get(source);
    if (result === undefined) {
      result = runInSlices(compile(source), clock);
      results.set(source, result);
      if (result instanceof Promise) {
        result.then(
          (compiled) => results.set(source, compiled),
          () => results.delete(source),
        );
      }
    }
    return result;
  };
}
