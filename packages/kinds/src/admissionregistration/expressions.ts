import {
  appendAll,
  duplicate,
  type FieldError,
  internal,
  invalid,
  qualifiedName,
  required,
  ruleErrors,
  tooMany,
} from '@wheelhouse/machinery';
import type { PatternAge } from '@wheelhouse/schema';
import type { MatchCondition } from '../gen/types/admissionregistration/v1alpha1.ts';
import type { Stored } from '../resource-def.ts';
import { expressionsPerStep, flatMapSteps } from '../rules/checks.ts';

/** The variables that a policy declares, of which an expression may use a prefix. */
export interface OwnVariables {
  readonly list: readonly { readonly name: string; readonly expression: string }[];
  /** Number of variables that precede the expression; absent: it may use all. */
  readonly before?: number;
}

/** The variables and the result types of an expression of a webhook or policy. */
interface ExpressionUse {
  /** Names that the expression may use. */
  readonly variables: readonly string[];
  /** Allowed result types; empty for any. */
  readonly resultTypes: readonly string[];
  readonly own?: OwnVariables;
  /** Whether it is a mutation, which may construct objects and patch operations. */
  readonly patches?: boolean;
  /** Upper bound of the estimated cost; absent: no bound. */
  readonly costMax?: number;
  /** Whether an update keeps the expression, so that the limit on new patterns does not apply. */
  readonly patterns?: PatternAge;
}

/** Why an expression cannot be used. */
interface ExpressionProblem {
  readonly detail: string;
  readonly type: 'invalid' | 'forbidden' | 'internal';
}

/**
 * Compiles an expression for a use, in steps. Returns the error; undefined for a valid expression.
 */
export type ExpressionChecker = (
  source: string,
  use: ExpressionUse,
) => Generator<void, ExpressionProblem | undefined>;

/** The checker of expressions that an update keeps. */
export function storedChecker(check: ExpressionChecker | undefined): ExpressionChecker | undefined {
  if (check === undefined) return undefined;
  return (source, use) => check(source, { ...use, patterns: 'stored' });
}

const conditionsMax = 64;

/**
 * Validates the match conditions of a webhook or policy, whose names must be unique.
 * @param options.params whether the conditions may use `params`
 */
export function* validateMatchConditions(
  conditions: readonly Stored<MatchCondition>[],
  path: string,
  options: { readonly check?: ExpressionChecker | undefined; readonly params?: boolean },
): Generator<void, FieldError[]> {
  const variables = namesFor({ params: options.params === true });
  const names = new Set<string>();
  const errors =
    conditions.length > conditionsMax ? [tooMany(path, conditions.length, conditionsMax)] : [];
  function* validateCondition(condition: Stored<MatchCondition>, index: number) {
    const conditionErrors: FieldError[] = [];
    const at = `${path}[${index}]`;
    const name = condition.name ?? '';
    const expression = (condition.expression ?? '').trim();
    const field = `${at}.expression`;
    if (expression === '') conditionErrors.push(required(field));
    else {
      const { check } = options;
      appendAll(
        conditionErrors,
        yield* checkedExpression(expression, { field, check, variables, resultTypes: ['bool'] }),
      );
    }
    if (name === '') conditionErrors.push(required(`${at}.name`));
    else appendAll(conditionErrors, ruleErrors(`${at}.name`, name, qualifiedName));
    if (name !== '' && names.has(name)) conditionErrors.push(duplicate(`${at}.name`, name));
    names.add(name);
    return conditionErrors;
  }
  appendAll(errors, yield* flatMapSteps(conditions, validateCondition, expressionsPerStep));
  return errors;
}

/** Names that every expression about a request may use. */
const requestVariables = ['object', 'oldObject', 'request', 'namespaceObject'];

/** The names that an expression may use; those of parameters and variables are optional. */
export function namesFor(use: {
  readonly params?: boolean;
  readonly variables?: boolean;
  readonly authorizer?: boolean;
}): readonly string[] {
  return [
    ...requestVariables,
    ...(use.params === true ? ['params'] : []),
    ...(use.variables === true ? ['variables'] : []),
    ...(use.authorizer === false ? [] : ['authorizer']),
  ];
}

/** Compiles an expression, and returns its error if it is invalid. */
export function* checkedExpression(
  source: string,
  at: ExpressionUse & {
    readonly field: string;
    readonly check: ExpressionChecker | undefined;
    /** The expression in the error, if it differs from the compiled one. */
    readonly shown?: string;
  },
): Generator<void, FieldError[]> {
  const problem = at.check === undefined ? undefined : yield* at.check(source, at);
  if (problem === undefined) return [];
  const { detail, type } = problem;
  return [
    type === 'internal'
      ? internal(at.field, detail)
      : invalid(at.field, at.shown ?? source, detail),
  ];
}

/** Functions that the kinds of this group need from a server. */
export interface AdmissionKindOptions {
  /** Absent: expressions are not compiled, as in a tool that only reads objects. */
  readonly checkExpression?: ExpressionChecker;
}
