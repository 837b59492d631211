/** Exports for tests, benchmarks, and the siege, in addition to the public index. Not stable. */

export { expressionProblem } from './check-expression.ts';
