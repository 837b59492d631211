import { type Compiles, type Frame, outcome, outcomeSteps, type Step, type Work } from './folds.ts';
import { asAttribute } from './optional-attributes.ts';
import type { BindExpr, OptionalMapExpr } from './syntax/ast.ts';
import { noSuchOverload } from './types/functions.ts';
import { CelError, Optional, Unreadable, type Value } from './values.ts';

/** The value of a variable that cel-go evaluates, and charges for, when it is read first. */
class PendingValue extends Unreadable {
  readonly result: Value | CelError;
  readonly cost: number;

  constructor(result: Value | CelError, cost: number) {
    super('not read');
    this.result = result;
    this.cost = cost;
  }
}

/** Reads a variable whose value is special. Throws its failure. */
export function readSpecial(value: Unreadable, frame: Frame, slot: number): Value {
  if (!(value instanceof PendingValue)) throw value.error;
  frame.spend(value.cost);
  if (value.result instanceof CelError) throw value.result;
  frame.slots[slot] = value.result;
  return value.result;
}

/** Compiles `x.optMap(v, f)` and `x.optFlatMap(v, f)`. */
export function optionalMapStep(
  compiler: Compiles,
  expr: OptionalMapExpr,
  scope: readonly string[],
): Step {
  const target = compiler.compile(expr.target, scope);
  const body = compiler.compile(expr.body, [...scope, expr.variable]);
  return (frame) => {
    const start = startOf(frame, scope.length);
    const isPresent = enter(target(frame), { frame, slot: scope.length, ...start });
    if (!isPresent) return none;
    return mapped(body(frame), expr, frame);
  };
}

/** Compiles an `optMap` or `optFlatMap` to work that pauses between its steps. */
export function optionalMapWork(
  compiler: Compiles,
  expr: OptionalMapExpr,
  scope: readonly string[],
): Work {
  const target = compiler.work(expr.target, scope);
  const body = compiler.work(expr.body, [...scope, expr.variable]);
  return function* (frame) {
    const start = startOf(frame, scope.length);
    const isPresent = enter(yield* target(frame), { frame, slot: scope.length, ...start });
    if (!isPresent) return none;
    return mapped(yield* body(frame), expr, frame);
  };
}

const none = new Optional();

/** The state of an evaluation before the target of a macro. */
interface Start {
  readonly spent: number;
  /** Variables by slot that were not read yet; absent if there are none. */
  readonly pending: ReadonlyMap<number, PendingValue> | undefined;
}

/** @param slots the number of variables outside the macro */
function startOf(frame: Frame, slots: number): Start {
  let pending: Map<number, PendingValue> | undefined;
  for (let slot = 0; slot < slots; slot += 1) {
    const value = frame.slots[slot];
    if (!(value instanceof PendingValue)) continue;
    pending ??= new Map();
    pending.set(slot, value);
  }
  return { spent: frame.spent(), pending };
}

/** The cost of evaluating the target again, when the variables that it reads have been read. */
function costAgain(frame: Frame, { spent, pending }: Start): number {
  let cost = frame.spent() - spent;
  for (const [slot, value] of pending ?? []) {
    if (frame.slots[slot] !== value) cost -= value.cost;
  }
  return cost;
}

/**
 * Sets the variable to the value of an optional; returns false if it has none. The macro asks the
 * target whether it has a value, and evaluates the target again where the variable is read.
 */
function enter(
  optional: Value,
  at: Start & { readonly frame: Frame; readonly slot: number },
): boolean {
  const { frame, slot } = at;
  const cost = costAgain(frame, at);
  frame.spend(1);
  if (!(optional instanceof Optional)) throw noSuchOverload({ name: 'hasValue', args: [optional] });
  if (optional.value === undefined) {
    frame.spend(1);
    return false;
  }
  const { value } = optional;
  const content = value instanceof Unreadable ? value.error : value;
  frame.slots[slot] = new PendingValue(content, cost + 1);
  return true;
}

function mapped(value: Value, { flat }: OptionalMapExpr, frame: Frame): Value {
  if (flat) return asAttribute(value);
  frame.spend(1);
  return asAttribute(new Optional(value));
}

/** Compiles `cel.bind(v, x, f)`. */
export function bindStep(compiler: Compiles, expr: BindExpr, scope: readonly string[]): Step {
  const value = compiler.compile(expr.value, scope);
  const body = compiler.compile(expr.body, [...scope, expr.variable]);
  return (frame) => {
    const before = frame.spent();
    bind(outcome(value, frame), { frame, slot: scope.length, before });
    return body(frame);
  };
}

/** Compiles a `cel.bind` to work that pauses between its steps. */
export function bindWork(compiler: Compiles, expr: BindExpr, scope: readonly string[]): Work {
  const value = compiler.work(expr.value, scope);
  const body = compiler.work(expr.body, [...scope, expr.variable]);
  return function* (frame) {
    const before = frame.spent();
    bind(yield* outcomeSteps(value, frame), { frame, slot: scope.length, before });
    return yield* body(frame);
  };
}

/** Sets the variable of a binding to a value or a failure, which count where it is read. */
function bind(
  result: Value | CelError,
  at: { readonly frame: Frame; readonly slot: number; readonly before: number },
): void {
  const { frame, slot, before } = at;
  const cost = frame.spent() - before;
  frame.spend(-cost);
  frame.slots[slot] = new PendingValue(result, cost);
}
