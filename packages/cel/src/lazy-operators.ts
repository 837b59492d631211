import { type Compiles, outcome, outcomeSteps, type Step, type Work } from './folds.ts';
import { attributeStep, attributeWork } from './optional-attributes.ts';
import type { CallExpr, Expr } from './syntax/ast.ts';
import { noSuchOverload } from './types/functions.ts';
import { CelError, Optional, readContent, type Value } from './values.ts';

/** Operators and functions that do not evaluate all of their operands. */
const operators = new Set(['_&&_', '_||_', '_?_:_']);
const choices = new Set(['or', 'orValue']);

/** Compiles a call of `&&`, `||`, `?:`, `or`, or `orValue`; undefined for other calls. */
export function lazyStep(
  compiler: Compiles,
  expr: CallExpr,
  scope: readonly string[],
): Step | undefined {
  const operands = lazyOperands(expr);
  if (operands === undefined) return undefined;
  const [first, second, third] = operands.map((operand, index) => {
    const step = compiler.compile(operand, scope);
    return isChoice(expr, index) && compiler.isReadAgain(operand, scope)
      ? attributeStep(step)
      : step;
  });
  if (first === undefined || second === undefined) return undefined;
  const { name } = expr;
  if (choices.has(name)) {
    return (frame) => {
      const result = contentOf(name, first(frame));
      return result === undefined ? second(frame) : result;
    };
  }
  if (third !== undefined) {
    const refund = refundOf(operands, { compiler, scope });
    return (frame) => {
      const condition = first(frame);
      if (typeof condition !== 'boolean') throw noSuchOverload();
      frame.spend(-refund(condition));
      return condition ? second(frame) : third(frame);
    };
  }
  const decides = name === '_||_';
  return (frame) => {
    const firstOutcome = outcome(first, frame);
    if (firstOutcome === decides) return firstOutcome;
    return undecided([firstOutcome, outcome(second, frame)], { decides });
  };
}

/** What `?:` does not charge for its chosen operand, an attribute as a whole. */
function refundOf(
  [, chosen, other]: readonly Expr[],
  { compiler, scope }: { readonly compiler: Compiles; readonly scope: readonly string[] },
): (condition: boolean) => number {
  const [whenTrue, whenFalse] = [chosen, other].map((operand) =>
    operand === undefined ? 0 : compiler.wholeOf(operand, scope),
  );
  return (condition) => (condition ? whenTrue : whenFalse) ?? 0;
}

/** `lazyStep` in steps. */
export function lazyWork(
  compiler: Compiles,
  expr: CallExpr,
  scope: readonly string[],
): Work | undefined {
  const operands = lazyOperands(expr);
  if (operands === undefined) return undefined;
  const [first, second, third] = operands.map((operand, index) => {
    const work = compiler.work(operand, scope);
    return isChoice(expr, index) && compiler.isReadAgain(operand, scope)
      ? attributeWork(work)
      : work;
  });
  if (first === undefined || second === undefined) return undefined;
  const { name } = expr;
  if (choices.has(name)) {
    return function* (frame) {
      const result = contentOf(name, yield* first(frame));
      return result === undefined ? yield* second(frame) : result;
    };
  }
  if (third !== undefined) {
    const refund = refundOf(operands, { compiler, scope });
    return function* (frame) {
      const condition = yield* first(frame);
      if (typeof condition !== 'boolean') throw noSuchOverload();
      frame.spend(-refund(condition));
      return yield* (condition ? second : third)(frame);
    };
  }
  const decides = name === '_||_';
  return function* (frame) {
    const firstOutcome = yield* outcomeSteps(first, frame);
    if (firstOutcome === decides) return firstOutcome;
    return undecided([firstOutcome, yield* outcomeSteps(second, frame)], { decides });
  };
}

/** Whether an operand is one of those among which `?:` chooses. */
const isChoice = ({ name }: CallExpr, index: number) => name === '_?_:_' && index > 0;

function lazyOperands({ name, target, args }: CallExpr): readonly Expr[] | undefined {
  if (target === undefined) return operators.has(name) ? args : undefined;
  return choices.has(name) && args.length === 1 ? [target, ...args] : undefined;
}

/**
 * The result of `or` and `orValue`; undefined if it is the alternative. A value that is not an
 * optional is the result itself, as in cel-go.
 */
function contentOf(name: string, value: Value): Value | undefined {
  if (!(value instanceof Optional)) return value;
  if (name === 'or') return value.value === undefined ? undefined : value;
  return readContent(value);
}

/**
 * The result of `&&` or `||` if the first operand does not decide it: a deciding operand absorbs a
 * failure of the other one, and the first of two failures is reported.
 */
function undecided(
  [left, right]: readonly [Value | CelError, Value | CelError],
  { decides }: { readonly decides: boolean },
): Value {
  if (right === decides) return right;
  for (const operand of [left, right]) {
    if (operand instanceof CelError) throw operand;
    if (typeof operand !== 'boolean') throw noSuchOverload();
  }
  return !decides;
}
