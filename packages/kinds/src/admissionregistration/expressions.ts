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
import type { MatchCondition } from '../gen/types/admissionregistration/v1alpha1.ts';
import { eachError, expressionsPerStep } from '../rules/checks.ts';
import type { Stored } from '../stored.ts';

/** A policy's variables and how many of them an expression may use. */
export interface OwnVariables {
  readonly list: readonly { readonly name: string; readonly expression: string }[];
  readonly before?: number;
}

/** What an expression may name, and the types of its result (none: any type). */
export interface ExpressionUse {
  readonly variables: readonly string[];
  readonly wanted: readonly string[];
  /** The policy's own variables: those before a position, or all. */
  readonly own?: OwnVariables;
  /** The expression makes a change, so it may construct objects and patch operations. */
  readonly patches?: boolean;
  /** Upper bound of the estimated cost; absent: no bound. */
  readonly costMax?: number;
}

/** Returns why an expression cannot be used in this way; undefined when it can. */
export type ExpressionChecker = (
  source: string,
  use: ExpressionUse,
) => { readonly detail: string; readonly type: 'invalid' | 'forbidden' | 'internal' } | undefined;

const conditionsMax = 64;

/** Validates the conditions under which a webhook or policy is called: named, each name once. */
export function* validateMatchConditions(
  conditions: readonly Stored<MatchCondition>[],
  path: string,
  options: { readonly check?: ExpressionChecker | undefined; readonly params?: boolean },
): Generator<void, FieldError[]> {
  const variables = namesFor({ params: options.params === true });
  const names = new Set<string>();
  const errors =
    conditions.length > conditionsMax ? [tooMany(path, conditions.length, conditionsMax)] : [];
  const validateCondition = (condition: Stored<MatchCondition>, index: number) => {
    const found: FieldError[] = [];
    const at = `${path}[${index}]`;
    const name = condition.name ?? '';
    const expression = (condition.expression ?? '').trim();
    const field = `${at}.expression`;
    if (expression === '') found.push(required(field));
    else {
      const { check } = options;
      appendAll(
        found,
        checkedExpression(expression, { field, check, variables, wanted: ['bool'] }),
      );
    }
    if (name === '') found.push(required(`${at}.name`));
    else appendAll(found, ruleErrors(`${at}.name`, name, qualifiedName));
    if (name !== '' && names.has(name)) found.push(duplicate(`${at}.name`, name));
    names.add(name);
    return found;
  };
  appendAll(errors, yield* eachError(conditions, validateCondition, expressionsPerStep));
  return errors;
}

/** Names that every expression about a request may use. */
const always = ['object', 'oldObject', 'request', 'namespaceObject'];

/** The names of an expression: parameters, variables of the policy, and the authorizer. */
export function namesFor(use: {
  readonly params?: boolean;
  readonly variables?: boolean;
  readonly authorizer?: boolean;
}): readonly string[] {
  return [
    ...always,
    ...(use.params === true ? ['params'] : []),
    ...(use.variables === true ? ['variables'] : []),
    ...(use.authorizer === false ? [] : ['authorizer']),
  ];
}

/** The error for an expression that cannot be used in this way. */
export function checkedExpression(
  source: string,
  at: ExpressionUse & {
    readonly field: string;
    readonly check: ExpressionChecker | undefined;
    /** The expression as the error shows it, when that differs from what was checked. */
    readonly shown?: string;
  },
): FieldError[] {
  const problem = at.check?.(source, at);
  if (problem === undefined) return [];
  const { detail, type } = problem;
  return [
    type === 'internal'
      ? internal(at.field, detail)
      : invalid(at.field, at.shown ?? source, detail),
  ];
}

/** What the kinds of this group need from a server. */
export interface AdmissionKindOptions {
  /** Absent: expressions are not compiled, as in a tool that only reads objects. */
  readonly checkExpression?: ExpressionChecker;
}
