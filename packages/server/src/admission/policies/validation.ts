import {
  CelError,
  LongOperand,
  type MapValue,
  type Measured,
  type Program,
  requestResourceName,
  type Value,
} from '@wheelhouse/cel';
import { type Clock, type JsonObject, type StatusReason, textOf } from '@wheelhouse/machinery';
import {
  Budget,
  type CompiledCondition,
  callCostMax,
  compileConditions,
  compileEach,
  evaluateConditions,
  OutOfBudget,
  programOf,
  runExpression,
} from '../cel/run.ts';
import type { NamedExpression } from '../webhooks/hooks.ts';
import { type PolicyBasis, specObjects } from './hooks.ts';

type Runnable = Program | { readonly problem: string };

interface CompiledValidation {
  readonly expression: string;
  readonly program: Runnable;
  readonly message: string;
  readonly messageProgram: Runnable | undefined;
  readonly reason: StatusReason;
}

interface CompiledAnnotation {
  readonly key: string;
  readonly expression: string;
  readonly program: Runnable;
}

/** A compiled ValidatingAdmissionPolicy. */
interface CompiledPolicy {
  readonly policy: PolicyBasis;
  readonly conditions: readonly CompiledCondition[];
  readonly variables: VariablePrograms;
  readonly validations: readonly CompiledValidation[];
  readonly annotations: readonly CompiledAnnotation[];
}

/** The reason of a denial, for metrics. */
export type PolicyErrorType = 'no_error' | 'invalid_error' | 'out_of_budget' | 'compile_error';

/** The outcome of one validation. */
export interface Decision {
  readonly action: 'admit' | 'deny';
  readonly message: string;
  /** Empty: the default reason. */
  readonly reason: StatusReason | '';
  readonly error: PolicyErrorType;
  readonly durationMs: number;
}

/** The outcome of a policy for a request and one parameter. */
export interface PolicyResult {
  readonly decisions: readonly Decision[];
  readonly annotations: readonly { readonly key: string; readonly value: string }[];
  /** Annotations that failed and thus, by the failure policy, reject the request. */
  readonly failed: readonly Decision[];
}

const costMax = 10_000_000;
const messageBytesMax = 5 * 1024;
const uncompiled = 'compilation error';

/** Names that a policy's expressions may use. */
export function namesOf(policy: PolicyBasis): readonly string[] {
  const params = policy.paramKind === undefined ? [] : ['params'];
  const always = ['object', 'oldObject', 'request', 'namespaceObject'];
  return [...always, ...params, 'variables', 'authorizer'];
}

/** Compiles a policy in steps. An expression that does not compile fails when it is evaluated. */
export function* compilePolicy(policy: PolicyBasis): Generator<void, CompiledPolicy> {
  const names = namesOf(policy);
  const own = { list: policy.variables };
  const scope = { variables: names, own };
  const inMessage = { variables: names.filter((name) => name !== 'authorizer'), own };
  return {
    policy,
    conditions: yield* compileConditions(policy.conditions, scope),
    variables: yield* variablePrograms({ names, variables: policy.variables }),
    validations: yield* compileEach(specObjects(policy.spec, 'validations'), (validation) =>
      compileValidation(validation, scope, inMessage),
    ),
    annotations: yield* compileEach(
      specObjects(policy.spec, 'auditAnnotations'),
      function* (annotation) {
        const expression = textOf(annotation['valueExpression']);
        const use = { ...scope, resultTypes: ['string', 'null_type'] };
        return {
          key: textOf(annotation['key']),
          expression,
          program: yield* programOf(expression, use),
        };
      },
    ),
  };
}

type Scope = Omit<Parameters<typeof programOf>[1], 'resultTypes'>;

function* compileValidation(
  validation: JsonObject,
  scope: Scope,
  inMessage: Scope,
): Generator<void, CompiledValidation> {
  const expression = textOf(validation['expression']);
  const messageExpression = textOf(validation['messageExpression']);
  return {
    expression,
    program: yield* programOf(expression, { ...scope, resultTypes: ['bool'] }),
    message: textOf(validation['message']),
    messageProgram:
      messageExpression === ''
        ? undefined
        : yield* programOf(messageExpression, { ...inMessage, resultTypes: ['string'] }),
    reason: (textOf(validation['reason']) || 'Invalid') as StatusReason,
  };
}

/** One evaluation of a policy. */
interface Evaluation {
  readonly compiled: CompiledPolicy;
  readonly inputs: ReadonlyMap<string, Value>;
  readonly clock: Pick<Clock, 'monotonic'>;
}

/** Receives the outcome of a policy's match conditions. */
interface ConditionObserver {
  evaluated(run: { readonly durationMs: number; readonly failed: number }): void;
  excluded(): void;
}

/**
 * Evaluates a policy with one parameter. Decides nothing unless its conditions match; failures deny
 * or admit by its failure policy.
 */
export async function evaluatePolicy(
  evaluation: Evaluation,
  observer: ConditionObserver,
): Promise<PolicyResult> {
  const { compiled, clock } = evaluation;
  const nothing: PolicyResult = { decisions: [], annotations: [], failed: [] };
  if (compiled.conditions.length > 0) {
    const startMs = clock.monotonic();
    const { variables, own } = scopeOf(evaluation);
    const result = await evaluateConditions(compiled.conditions, variables, { own, clock });
    observer.evaluated({ durationMs: clock.monotonic() - startMs, failed: result.failed });
    if (result.failures !== undefined) {
      if (compiled.policy.failurePolicy === 'Fail') {
        const denied = failureOf(compiled, result.failures, 'invalid_error');
        return { ...nothing, decisions: [denied] };
      }
      observer.excluded();
      return nothing;
    }
    if (!result.matches) {
      observer.excluded();
      return nothing;
    }
  }
  try {
    const decisions = await evaluateAll(evaluation);
    const { annotations, failed } = await annotateAll(evaluation);
    return { decisions, annotations, failed };
  } catch (error) {
    if (!(error instanceof OutOfBudget)) throw error;
    return { ...nothing, decisions: [failureOf(compiled, error.message, 'out_of_budget')] };
  }
}

/** All variables of an evaluation, including the policy's own. */
export function scopeOf({
  compiled,
  inputs,
}: Pick<Evaluation, 'inputs'> & {
  readonly compiled: { readonly variables: VariablePrograms };
}): { variables: ReadonlyMap<string, Value>; own: LazyVariables } {
  const variables = new Map(inputs);
  const own = new LazyVariables(compiled.variables, variables);
  variables.set('variables', own);
  return { variables, own };
}

function failureOf(
  { policy }: CompiledPolicy,
  message: string,
  error: PolicyErrorType,
  durationMs = 0,
): Decision {
  const action = policy.failurePolicy === 'Ignore' ? 'admit' : 'deny';
  return { action, message, reason: '', error, durationMs };
}

async function evaluateAll(evaluation: Evaluation): Promise<readonly Decision[]> {
  const { compiled, clock } = evaluation;
  const { variables, own } = scopeOf(evaluation);
  const spending = { budget: new Budget(costMax), own, clock };
  const results: { readonly failure?: string; readonly holds: boolean; readonly ms: number }[] = [];
  for (const { program, expression } of compiled.validations) {
    const startMs = clock.monotonic();
    if ('problem' in program) {
      const failure = `${uncompiled}: ${program.problem}`;
      results.push({ failure, holds: false, ms: 0 });
      continue;
    }
    const measured = await runExpression(program, variables, spending);
    const ms = clock.monotonic() - startMs;
    if (measured.error === undefined) results.push({ holds: measured.value === true, ms });
    else {
      const failure = `expression '${expression}' resulted in error: ${measured.error.message}`;
      results.push({ failure, holds: false, ms });
    }
  }
  const messages = await messagesOf(evaluation, spending.budget);
  return compiled.validations.map((validation, index): Decision => {
    const { failure, holds = false, ms = 0 } = results[index] ?? {};
    if (failure !== undefined) return failureOf(compiled, failure, errorTypeOf(failure), ms);
    if (messages instanceof OutOfBudget) {
      const why = `failed messageExpression: ${messages.message}`;
      return failureOf(compiled, why, 'out_of_budget', ms);
    }
    const durationMs = ms;
    if (holds) return { action: 'admit', message: '', reason: '', error: 'no_error', durationMs };
    const message = messageFor(validation, messages[index]);
    // Metrics count a failed validation as invalid.
    return {
      action: 'deny',
      message,
      reason: validation.reason,
      error: 'invalid_error',
      durationMs,
    };
  });
}

/** Distinguishes a validation that does not compile from one that fails at run time. */
function errorTypeOf(failure: string): PolicyErrorType {
  return failure.startsWith(uncompiled) ? 'compile_error' : 'invalid_error';
}

/** The results of message expressions; undefined without an expression, and for one that failed. */
async function messagesOf(
  evaluation: Evaluation,
  budget: Budget,
): Promise<readonly (string | undefined)[] | OutOfBudget> {
  const { compiled, clock } = evaluation;
  const { validations } = compiled;
  if (validations.every(({ messageProgram }) => messageProgram === undefined)) return [];
  const { variables, own } = scopeOf({ compiled, inputs: withoutAuthorizer(evaluation.inputs) });
  const messages: (string | undefined)[] = [];
  try {
    for (const { messageProgram: program } of validations) {
      if (program === undefined || 'problem' in program) messages.push(undefined);
      else {
        const measured = await runExpression(program, variables, { budget, own, clock });
        const value = measured.error === undefined ? measured.value : undefined;
        messages.push(typeof value === 'string' ? value : undefined);
      }
    }
    return messages;
  } catch (error) {
    if (error instanceof OutOfBudget) return error;
    throw error;
  }
}

function messageFor(
  { message, expression }: CompiledValidation,
  computed: string | undefined,
): string {
  const trimmed = (computed ?? '').trim();
  const isShown = Buffer.byteLength(trimmed) <= messageBytesMax && !trimmed.includes('\n');
  if (trimmed !== '' && isShown) return trimmed;
  return message.trim() || `failed expression: ${expression.trim()}`;
}

async function annotateAll(
  evaluation: Evaluation,
): Promise<Pick<PolicyResult, 'annotations' | 'failed'>> {
  const { compiled, clock } = evaluation;
  const annotations: { key: string; value: string }[] = [];
  const failed: Decision[] = [];
  if (compiled.annotations.length === 0) return { annotations, failed };
  const { variables, own } = scopeOf({ compiled, inputs: withoutAuthorizer(evaluation.inputs) });
  const spending = { budget: new Budget(costMax), own, clock };
  const fail = (message: string, durationMs: number) => {
    if (compiled.policy.failurePolicy === 'Ignore') return;
    failed.push({ action: 'deny', message, reason: '', error: 'invalid_error', durationMs });
  };
  for (const { key, program, expression } of compiled.annotations) {
    const startMs = clock.monotonic();
    if ('problem' in program) {
      fail(`${uncompiled}: ${program.problem}`, 0);
      continue;
    }
    const measured = await runExpression(program, variables, spending);
    if (measured.error !== undefined) {
      const why = `expression '${expression}' resulted in error: ${measured.error.message}`;
      fail(why, clock.monotonic() - startMs);
      continue;
    }
    const value = typeof measured.value === 'string' ? measured.value.trim() : '';
    if (value !== '') annotations.push({ key, value });
  }
  return { annotations, failed };
}

/** Additional names that an expression may use. */
interface ExpressionScope {
  readonly names: readonly string[];
  readonly variables: readonly NamedExpression[];
}

/** A policy's variables, each with its program or the reason why it has none. */
export type VariablePrograms = ReadonlyMap<string, Program | { readonly problem: string }>;

/** Compiles a policy's variables in steps, each seeing those before it. */
export function* variablePrograms({
  names,
  variables,
}: ExpressionScope): Generator<void, VariablePrograms> {
  const programs = yield* compileEach(variables, function* ({ name, expression }, before) {
    const own = { list: variables, before };
    const program = yield* programOf(expression, { variables: names, resultTypes: [], own });
    return [name, program] as const;
  });
  return new Map(programs);
}

/**
 * Messages and annotations are evaluated without the authorizer, even if they use a variable that
 * needs it: such an expression fails.
 */
function withoutAuthorizer(variables: ReadonlyMap<string, Value>): ReadonlyMap<string, Value> {
  const left = new Map(variables);
  for (const name of ['authorizer', requestResourceName]) left.delete(name);
  return left;
}

const failedVariable = (name: string, why: string) =>
  new CelError(`composited variable ${JSON.stringify(name)} fails to ${why}`);

/** The cost of variables that are computed in one step. */
const attemptedCostMax = 10_000;

/** Variables that one step computes for one another. */
const depthMax = 4;

/** `variables` of one evaluation: each is computed at its first use and cached. */
class LazyVariables implements MapValue {
  readonly isMap = true;
  readonly objectType = 'kubernetes.variables';
  readonly #programs: VariablePrograms;
  readonly #variables: ReadonlyMap<string, Value>;
  readonly #results = new Map<string, Value | CelError>();
  #cost = 0;
  /** The cost of the variables that were computed since the last step began. */
  #attempted = 0;
  /** Variables that are being computed, each for the one before it. */
  #depth = 0;

  /** @param variables all other variables; the caller adds this object to them */
  constructor(programs: VariablePrograms, variables: ReadonlyMap<string, Value>) {
    this.#programs = programs;
    this.#variables = variables;
  }

  get(key: Value): Value | undefined {
    if (typeof key !== 'string') return undefined;
    const program = this.#programs.get(key);
    if (program === undefined) return undefined;
    if (!this.#results.has(key)) this.#compute(key, program);
    const result = this.#results.get(key);
    if (result instanceof CelError) throw result;
    return result;
  }

  /** Computes a variable that is short. Throws `LongOperand` for others. */
  #compute(name: string, program: Program | { readonly problem: string }): void {
    if ('problem' in program) {
      this.#results.set(name, failedVariable(name, `compile: ${program.problem}`));
      return;
    }
    const measured = this.#attempt(program);
    if (measured === undefined) throw new LongOperand(this.#steps(name, program));
    this.#keep(name, measured);
  }

  /** Evaluates a short program, unless this step has evaluated enough of them. */
  #attempt(program: Program): Measured | undefined {
    if (this.#depth === depthMax || this.#attempted > attemptedCostMax) return undefined;
    this.#depth += 1;
    try {
      const measured = program.attempt(this.#variables, callCostMax);
      this.#attempted += measured?.cost ?? attemptedCostMax;
      return measured;
    } finally {
      this.#depth -= 1;
    }
  }

  /** Computes a variable in steps. */
  *#steps(name: string, program: Program): Generator<void, void> {
    yield;
    this.#attempted = 0;
    this.#keep(name, yield* program.steps(this.#variables, callCostMax));
  }

  #keep(name: string, { cost, error, value }: Measured): void {
    this.#cost += cost;
    const isFailure = error !== undefined;
    this.#results.set(name, isFailure ? failedVariable(name, `evaluate: ${error.message}`) : value);
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
