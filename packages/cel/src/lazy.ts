/** Modules that are loaded on first use, to keep startup short. */

/** Loads the compiler of expressions outside of schemas: policies, match conditions, and claims. */
export const loadExpressionChecker = () => import('./check-expression.ts');
/** Loads the CEL types of kinds, which type checking of policies needs. */
export const loadKindTypes = () => import('./types/kind-types.ts');
/**
 * Loads the compiler of `x-kubernetes-validations`, which runs when a definition is written
 * (CRD-3).
 */
export const loadRuleChecker = () => import('./check-rules.ts');
/** Loads the evaluator of `x-kubernetes-validations` for objects (CRD-3). */
export const loadRuleRunner = () => import('./run-rules.ts');
