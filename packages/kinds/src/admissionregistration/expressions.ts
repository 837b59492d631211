import { type FieldError, internal, invalid } from '@wheelhouse/machinery';

/** What an expression may name, and what types it may have; none: any. */
export interface ExpressionUse {
  readonly variables: readonly string[];
  readonly wanted: readonly string[];
  /** The policy's own variables; it may use those before a place, or all. */
  readonly own?: OwnVariables;
  /** It makes a change: objects and operations of patches may be written. */
  readonly patches?: boolean;
  /** The most it may cost by the estimate; anything when absent. */
  readonly costMax?: number;
}

/** A policy's variables, and up to which of them an expression may use. */
export interface OwnVariables {
  readonly list: readonly { readonly name: string; readonly expression: string }[];
  readonly before?: number;
}

/** Says why an expression cannot be used so; undefined when it can. */
export type ExpressionChecker = (
  source: string,
  use: ExpressionUse,
) => { readonly detail: string; readonly type: 'invalid' | 'forbidden' | 'internal' } | undefined;

/** What the kinds of this group work with that only a server has. */
export interface AdmissionKindOptions {
  /** Absent: expressions are not compiled, as for a tool that only reads objects. */
  readonly checkExpression?: ExpressionChecker;
}

/** What every expression about a request may name. */
const always = ['object', 'oldObject', 'request', 'namespaceObject'];

/** Names an expression has: of parameters, of variables of the policy, and of the authorizer. */
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

/** The complaint about an expression that cannot be used so. */
export function checkedExpression(
  source: string,
  at: ExpressionUse & {
    readonly field: string;
    readonly check: ExpressionChecker | undefined;
    /** How the complaint shows it, where it is not checked as it was written. */
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
