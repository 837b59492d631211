/**
 * The Common Expression Language with the Kubernetes libraries: type checker, cost estimator, and
 * evaluator.
 */

export { compileExpression, type ExpressionUse, requestResourceName } from './check-expression.ts';
export { type Compiled, compile, compileSteps } from './compile.ts';
export type { Measured, Program } from './evaluator.ts';
export { setEntry } from './folds.ts';
export { CelCompileError } from './issues.ts';
export { jsonToValue, ResultReader } from './json-values.ts';
export { loadExpressionChecker, loadKindTypes, loadRuleChecker, loadRuleRunner } from './lazy.ts';
export {
  type AccessCosts,
  type AccessDecision,
  authorizerValue,
  type CheckAccess,
  resourceCheckValue,
} from './library/authorizer.ts';
export type { RuleMeter } from './run-rules.ts';
export type { Environment } from './types/environment.ts';
export { selects } from './types/selections.ts';
export { standardFunctions } from './types/standard-functions.ts';
export {
  dynType,
  kubernetesType,
  listType,
  mapType,
  stringType,
  type Type,
} from './types/types.ts';
export {
  CelError,
  EntryMap,
  EvaluationPaused,
  isMapValue,
  List,
  LongOperand,
  type MapValue,
  StructValue,
  type Value,
} from './values.ts';
