/** Modules that are loaded on first use, to keep startup short. */

export const loadExpressionChecker = () => import('./check-expression.ts');
export const loadKindTypes = () => import('./types/kind-types.ts');
export const loadRuleChecker = () => import('./check-rules.ts');
export const loadRuleRunner = () => import('./run-rules.ts');
