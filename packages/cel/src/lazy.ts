/** Parts that are loaded when something first needs them, which keeps them out of a start. */

export const loadExpressionChecker = () => import('./check-expression.ts');
export const loadKindTypes = () => import('./types/kind-types.ts');
export const loadRuleChecker = () => import('./check-rules.ts');
export const loadRuleRunner = () => import('./run-rules.ts');
