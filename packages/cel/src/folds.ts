import { capitalize, runInOnePiece, sortSteps } from '@wheelhouse/machinery';
import { showKey } from './library/conversions.ts';
import type { Expr, FoldExpr, FoldName } from './syntax/ast.ts';
import { type CallContext, noSuchOverload } from './types/functions.ts';
import {
  CelCostError,
  CelError,
  compare,
  EntryMap,
  entryKey,
  findEntry,
  type Items,
  isMapValue,
  kindOf,
  List,
  longTypeName,
  Opaque,
  Optional,
  TypeValue,
  Unreadable,
  unhashableType,
  type Value,
} from './values.ts';

/** The state of an evaluation: variables by slot, and its cost. */
export interface Frame extends CallContext {
  readonly slots: (Value | undefined)[];
  /** The cost so far. */
  readonly spent: () => number;
}

/** The state of an evaluation in steps. */
export interface SteppedFrame extends Frame {
  /** The values and failures of operands that were evaluated ahead of their call or literal. */
  readonly operands: Map<Expr, Value | CelError>;
}

/** A compiled node. Throws `CelError`. */
export type Step = (frame: Frame) => Value;

/** A compiled node whose macros and functions take steps (TRUST-2). Throws `CelError`. */
export type Work = (frame: SteppedFrame) => Generator<void, Value>;

/** Compiles nodes; `scope` lists the variables by slot. */
export interface Compiles {
  compile(expr: Expr, scope: readonly string[]): Step;
  /**
   * Whether the node has many nodes, or a macro or a function that takes long for long operands.
   */
  isDivided(expr: Expr): boolean;
  /** Whether a compiled node is constant. */
  isConstant(expr: Expr): boolean;
  /**
   * Whether the value of a node may be an optional that becomes an attribute: the node is neither a
   * variable with members that are read from it nor a choice of `?:`.
   */
  isReadAgain(expr: Expr, scope: readonly string[]): boolean;
  /** The cost of an attribute besides its members; 0 for other nodes. */
  wholeOf(expr: Expr, scope: readonly string[]): number;
  /** The node in steps; one step if it is not divided. */
  work(expr: Expr, scope: readonly string[]): Work;
}

type Entries = Map<string, readonly [Value, Value]>;

/** Sets or replaces an entry. Throws for an invalid key. */
export function setEntry(entries: Entries, key: Value, value: Value): void {
  const text = entryKey(key);
  if (text === undefined) throw unsupportedKey(key);
  entries.set(text, [key, value]);
}

/** Adds an entry that a macro makes. Throws for an invalid or duplicate key. */
function putEntry(entries: Entries, key: Value, value: Value): void {
  if (findEntry(entries, key) !== undefined) {
    throw new CelError(`insert failed: key ${showKey(key)} already exists`);
  }
  setEntry(entries, key, value);
}

function unsupportedKey(key: Value): CelError {
  const type = unhashableType(key) ?? kindOf(key);
  return new CelError(`internal error: runtime error: hash of unhashable type ${type}`);
}

/** The value of a step, or its failure. */
export function outcome(step: Step, frame: Frame): Value | CelError {
  try {
    return step(frame);
  } catch (error) {
    return failureOf(error);
  }
}

/** Returns a failure that operators may absorb; throws others. */
function failureOf(error: unknown): CelError {
  if (error instanceof CelError && !(error instanceof CelCostError)) return error;
  throw error;
}

/** `outcome` in steps. */
export function* outcomeSteps(work: Work, frame: SteppedFrame): Generator<void, Value | CelError> {
  try {
    return yield* work(frame);
  } catch (error) {
    return failureOf(error);
  }
}

/** Compiles a macro that walks a list or a map. */
export function foldStep(compiler: Compiles, expr: FoldExpr, scope: readonly string[]): Step {
  const inner = [...scope, ...expr.variables];
  const range = compiler.compile(expr.range, scope);
  const filter = expr.filter === undefined ? undefined : compiler.compile(expr.filter, inner);
  const body = compiler.compile(expr.body, inner);
  const isConstant = compiler.isConstant(expr.body);
  const kind = foldOf(expr.name);
  const { costs } = kind;
  const at = { slot: scope.length, variables: expr.variables.length, costs };
  return (frame) => {
    const elements = rangeOf(outcome(range, frame), at.variables);
    const fold = new Accumulation(kind, frame, isConstant);
    walk(elements, { ...at, frame }, (first) => {
      if (filter !== undefined && !fold.admits(outcome(filter, frame))) return undefined;
      return fold.take(first, outcome(body, frame));
    });
    frame.spend(costs.result);
    return runInOnePiece(fold.result());
  };
}

/** Compiles a macro to work that pauses between items. */
export function foldWork(compiler: Compiles, expr: FoldExpr, scope: readonly string[]): Work {
  const inner = [...scope, ...expr.variables];
  const range = compiler.work(expr.range, scope);
  const filter = expr.filter === undefined ? undefined : compiler.work(expr.filter, inner);
  // A short body needs no generator for each element.
  const step = compiler.isDivided(expr.body) ? undefined : compiler.compile(expr.body, inner);
  const body = compiler.work(expr.body, inner);
  const isConstant = compiler.isConstant(expr.body);
  const kind = foldOf(expr.name);
  const { costs } = kind;
  const slot = scope.length;
  const { length: variables } = expr.variables;
  return function* (frame) {
    const elements = rangeOf(yield* outcomeSteps(range, frame), variables);
    const keys = keysOf(elements, variables);
    const fold = new Accumulation(kind, frame, isConstant);
    // An iterator of pairs would cost more than most bodies.
    for (let index = 0; index < keys.length; index += 1) {
      if (frame.isStepOver()) yield;
      spendOnItem(frame, costs);
      const key = keys.at(index) ?? null;
      const isIndexed = variables === 2 && elements instanceof List;
      const first = isIndexed ? BigInt(index) : key;
      frame.slots[slot] = first;
      if (variables === 2) frame.slots[slot + 1] = memberOf(elements, key);
      if (filter !== undefined && !fold.admits(yield* outcomeSteps(filter, frame))) continue;
      const result = step === undefined ? yield* outcomeSteps(body, frame) : outcome(step, frame);
      if (fold.take(first, result) !== 'stop') continue;
      if (index + 1 < keys.length) frame.spend(costs.condition);
      break;
    }
    frame.spend(costs.result);
    return yield* fold.result();
  };
}

/** Sets the variables to each element in turn, until the visitor stops the walk. */
function walk(
  range: Value,
  at: {
    readonly frame: Frame;
    readonly slot: number;
    readonly variables: number;
    readonly costs: FoldCosts;
  },
  visit: (first: Value) => 'stop' | undefined,
): void {
  const { frame, slot, variables, costs } = at;
  const step = (first: Value, second: Value | undefined) => {
    spendOnItem(frame, costs);
    frame.slots[slot] = first;
    if (second !== undefined) frame.slots[slot + 1] = second;
    return visit(first);
  };
  let left = sizeOf(range);
  const isStopped = (outcome: 'stop' | undefined) => {
    if (outcome === undefined) return false;
    if (left > 0) frame.spend(costs.condition);
    return true;
  };
  if (range instanceof List) {
    let index = 0n;
    for (const item of range.items) {
      left -= 1;
      if (isStopped(variables === 1 ? step(item, undefined) : step(index, item))) return;
      index += 1n;
    }
    return;
  }
  if (!isMapValue(range)) throw notIterable(range, variables);
  for (const key of range.keys()) {
    left -= 1;
    if (isStopped(step(key, variables === 1 ? undefined : range.get(key)))) return;
  }
}

function sizeOf(range: Value): number {
  if (range instanceof List) return range.items.length;
  return isMapValue(range) ? range.size : 0;
}

/** The error of a macro over another value, which names the type in cel-go. */
function notIterable(value: Value, variables: number): CelError {
  const kind = longTypeName(kindOf(value));
  const name = kind.slice(kind.lastIndexOf('.') + 1).replace(/_type$/, '');
  const type = capitalize(name);
  const pointer = value instanceof Optional || value instanceof TypeValue ? '*' : '';
  const library = value instanceof Opaque ? 'cel' : 'types';
  const goType = `${pointer}${library}.${type}`;
  return variables === 2
    ? unsupportedRange(goType)
    : new CelError(`got '${goType}', expected iterable type`);
}

const unsupportedRange = (goType: string) =>
  new CelError(`unsupported comprehension range type: ${goType}`);

/** The range of a macro. Two variables hide its failure, as in cel-go. */
function rangeOf(result: Value | CelError, variables: number): Value {
  if (!(result instanceof CelError)) return result;
  throw variables === 2 ? unsupportedRange('*types.Err') : result;
}

/** The items of a list, or the keys of a map. */
function keysOf(range: Value, variables: number): Items {
  if (range instanceof List) return range.items;
  if (!isMapValue(range)) throw notIterable(range, variables);
  return range.keys();
}

/** The value of a map's key; for a list, the item itself. */
function memberOf(range: Value, key: Value): Value | undefined {
  return isMapValue(range) ? range.get(key) : key;
}

/** One walk of a macro: receives the result of the body for each element. */
interface Fold {
  take(first: Value, result: Value | CelError): 'stop' | undefined;
  /** The value of the macro, in steps. Throws `CelError`. */
  result(): Generator<void, Value>;
}

/** A result that takes no steps. */
// biome-ignore lint/correctness/useYield: it has nowhere to pause
function* atOnce(value: Value): Generator<void, Value> {
  return value;
}

/** What cel-go charges for the comprehension that a macro stands for, besides its operands. */
interface FoldCosts {
  /** The condition under which the walk continues, evaluated before each element. */
  readonly condition: number;
  /** The accumulation of each element. */
  readonly step: number;
  readonly result: number;
}

/** Charges for an element; free ones count as work, so that a long walk of them ends. */
function spendOnItem(frame: Frame, { condition, step }: FoldCosts): void {
  const cost = condition + step;
  if (cost === 0) frame.work(1);
  else frame.spend(cost);
}

/**
 * The accumulation of an element that a macro keeps: `result + 1`, `result + [item]`, and insertions
 * into a map. A list of a constant is a constant, too.
 */
const keptCosts = { counted: 2, item: 13, body: 12, constantBody: 2, member: 3, members: 2 };

interface FoldKind {
  /** Whether the body decides which elements count. */
  readonly isFilter?: true;
  readonly costs: FoldCosts;
  /** @param isConstant whether the body is constant */
  start(frame: Frame, isConstant: boolean): Fold;
}

const keeping: FoldCosts = { condition: 0, step: 0, result: 1 };
const sorting: FoldCosts = { condition: 0, step: 1, result: 0 };

const foldKinds: Readonly<Record<FoldName, FoldKind>> = {
  all: {
    costs: { condition: 2, step: 1, result: 1 },
    start: () => quantifier({ decides: false }),
  },
  exists: {
    costs: { condition: 3, step: 1, result: 1 },
    start: () => quantifier({ decides: true }),
  },
  exists_one: {
    isFilter: true,
    costs: { condition: 0, step: 0, result: 2 },
    start: existsOne,
  },
  filter: { isFilter: true, costs: keeping, start: filtered },
  map: { costs: keeping, start: transformed },
  transformList: { costs: keeping, start: transformed },
  sortBy: { costs: sorting, start: sortedBy },
  transformMap: { costs: keeping, start: transformedMap },
  transformMapEntry: { costs: keeping, start: transformedEntries },
};

const foldOf = (name: FoldName): FoldKind => foldKinds[name];

/**
 * A walk that goes on after a failure, as in cel-go, where the failure takes the place of what was
 * accumulated. A failing filter also replaces an earlier failure, whereas other failures do not.
 */
class Accumulation {
  readonly #fold: Fold;
  readonly #isFilter: boolean;
  #failure: CelError | undefined;

  constructor({ start, isFilter }: FoldKind, frame: Frame, isConstant: boolean) {
    this.#fold = start(frame, isConstant);
    this.#isFilter = isFilter === true;
  }

  /** Whether an element counts, given the result of the filter for it. */
  admits(result: Value | CelError): boolean {
    if (typeof result === 'boolean') return result;
    this.#failure = result instanceof CelError ? result : noSuchOverload();
    return false;
  }

  take(first: Value, result: Value | CelError): 'stop' | undefined {
    if (this.#isFilter && !this.admits(result)) return undefined;
    try {
      return this.#fold.take(first, result);
    } catch (error) {
      this.#failure ??= failureOf(error);
      return undefined;
    }
  }

  /** The value of the macro, in steps. Throws `CelError`. */
  result(): Generator<void, Value> {
    if (this.#failure !== undefined) throw this.#failure;
    return this.#fold.result();
  }
}

/** A failure of one element does not matter if another one decides. */
function quantifier({ decides }: { readonly decides: boolean }): Fold {
  let failure: CelError | undefined;
  let isDecided = false;
  return {
    take(_, result) {
      if (result === decides) {
        isDecided = true;
        return 'stop';
      }
      if (result instanceof CelError) failure ??= result;
      else if (typeof result !== 'boolean') failure ??= noSuchOverload();
      return undefined;
    },
    result() {
      if (isDecided) return atOnce(decides);
      if (failure !== undefined) throw failure;
      return atOnce(!decides);
    },
  };
}

/** A result whose failure is thrown. */
function thrown(result: Value | CelError): Value {
  if (result instanceof CelError) throw result;
  return result;
}

function existsOne(frame: Frame): Fold {
  let count = 0;
  return {
    take(_, result) {
      if (result !== true) return undefined;
      frame.spend(keptCosts.counted);
      count += 1;
      return undefined;
    },
    result: () => atOnce(count === 1),
  };
}

function filtered(frame: Frame): Fold {
  const items: Value[] = [];
  return {
    take(first, result) {
      if (result !== true) return undefined;
      if (first instanceof Unreadable) throw first.error;
      frame.spend(keptCosts.item);
      items.push(first);
      return undefined;
    },
    result: () => atOnce(new List(items)),
  };
}

function transformed(frame: Frame, isConstant: boolean): Fold {
  const items: Value[] = [];
  const cost = isConstant ? keptCosts.constantBody : keptCosts.body;
  return {
    take(_, result) {
      frame.spend(cost);
      items.push(thrown(result));
      return undefined;
    },
    result: () => atOnce(new List(items)),
  };
}

function sortedBy(frame: Frame): Fold {
  const keyed: { item: Value; key: Value }[] = [];
  return {
    take(item, result) {
      keyed.push({ item, key: thrown(result) });
      return undefined;
    },
    *result() {
      const order = (left: { key: Value }, right: { key: Value }) => {
        frame.spend(1);
        const result = compare(left.key, right.key);
        if (result === undefined) throw noSuchOverload();
        return result;
      };
      const sorted = yield* sortSteps(keyed, order, frame.isStepOver);
      return new List(sorted.map(({ item }) => item));
    },
  };
}

function transformedMap(frame: Frame): Fold {
  const entries = new Map<string, readonly [Value, Value]>();
  return {
    take(key, result) {
      frame.spend(keptCosts.member);
      putEntry(entries, key, thrown(result));
      return undefined;
    },
    result: () => atOnce(new EntryMap(entries)),
  };
}

function transformedEntries(frame: Frame): Fold {
  const entries = new Map<string, readonly [Value, Value]>();
  return {
    take(_, result) {
      frame.spend(keptCosts.members);
      const transformed = thrown(result);
      if (!isMapValue(transformed)) throw noSuchOverload();
      for (const key of transformed.keys()) putEntry(entries, key, transformed.get(key) ?? null);
      return undefined;
    },
    result: () => atOnce(new EntryMap(entries)),
  };
}
