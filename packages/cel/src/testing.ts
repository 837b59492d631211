/** What tests, benchmarks, and the siege need besides the public index. No promise of stability. */

export { expressionProblem } from './check-expression.ts';
