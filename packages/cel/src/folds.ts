import { runInOnePiece } from '@wheelhouse/machinery';
import { sortSteps } from './sort.ts';
import type { Expr, FoldExpr, FoldName } from './syntax/ast.ts';
import { type CallContext, noSuchOverload } from './types/functions.ts';
import {
  CelCostError,
  CelError,
  compare,
  EntryMap,
  isMapValue,
  List,
  mapKey,
  type Value,
} from './values.ts';

/** The state of an evaluation: variables by slot, and its cost. */
export interface Frame extends CallContext {
  readonly slots: (Value | undefined)[];
}

/** The state of an evaluation in steps. */
export interface SteppedFrame extends Frame {
  /** The values of operands that were evaluated ahead of their call or literal. */
  readonly operands: Map<Expr, Value>;
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
  /** The node in steps; one step if it is not divided. */
  work(expr: Expr, scope: readonly string[]): Work;
}

type Entries = Map<string, readonly [Value, Value]>;

/** Sets or replaces an entry. Throws for an invalid key. */
export function setEntry(entries: Entries, key: Value, value: Value): void {
  entries.set(entryKey(key), [key, value]);
}

/** Adds an entry. Throws for an invalid or duplicate key. */
function putEntry(entries: Entries, key: Value, value: Value): void {
  if (entries.has(entryKey(key))) {
    throw new CelError(`insert failed: key ${String(key)} already exists`);
  }
  setEntry(entries, key, value);
}

function entryKey(key: Value): string {
  const text = typeof key === 'number' ? undefined : mapKey(key);
  if (text === undefined) throw new CelError(`unsupported key type: ${typeof key}`);
  return text;
}

/** The value of a step, or its failure. */
export function outcome(step: Step, frame: Frame): Value | CelError {
  try {
    return step(frame);
  } catch (error) {
    if (error instanceof CelError && !(error instanceof CelCostError)) return error;
    throw error;
  }
}

/** `outcome` in steps. */
export function* outcomeSteps(work: Work, frame: SteppedFrame): Generator<void, Value | CelError> {
  try {
    return yield* work(frame);
  } catch (error) {
    if (error instanceof CelError && !(error instanceof CelCostError)) return error;
    throw error;
  }
}

/** Compiles a macro that walks a list or a map. */
export function foldStep(compiler: Compiles, expr: FoldExpr, scope: readonly string[]): Step {
  const inner = [...scope, ...expr.variables];
  const range = compiler.compile(expr.range, scope);
  const filter = expr.filter === undefined ? undefined : compiler.compile(expr.filter, inner);
  const body = compiler.compile(expr.body, inner);
  const { start, takesFailures } = foldOf(expr.name);
  const at = { slot: scope.length, variables: expr.variables.length };
  return (frame) => {
    const elements = range(frame);
    const fold = start(frame);
    walk(elements, { ...at, frame }, (first) => {
      if (filter !== undefined && !isTrue(filter(frame))) return undefined;
      return fold.take(first, takesFailures ? outcome(body, frame) : body(frame));
    });
    return runInOnePiece(fold.result());
  };
}

/** The same in steps. */
export function foldWork(compiler: Compiles, expr: FoldExpr, scope: readonly string[]): Work {
  const inner = [...scope, ...expr.variables];
  const range = compiler.work(expr.range, scope);
  const filter = expr.filter === undefined ? undefined : compiler.work(expr.filter, inner);
  // A short body needs no generator for each element.
  const step = compiler.isDivided(expr.body) ? undefined : compiler.compile(expr.body, inner);
  const body = compiler.work(expr.body, inner);
  const { start, takesFailures } = foldOf(expr.name);
  const slot = scope.length;
  const inPiece = takesFailures ? outcome : (run: Step, frame: Frame) => run(frame);
  const inSteps = takesFailures ? outcomeSteps : (run: Work, frame: SteppedFrame) => run(frame);
  const { length: variables } = expr.variables;
  return function* (frame) {
    const elements = yield* range(frame);
    const keys = keysOf(elements);
    const fold = start(frame);
    // An iterator of pairs would cost more than most bodies.
    for (let index = 0; index < keys.length; index += 1) {
      if (frame.isStepOver()) yield;
      frame.spend(1);
      const key = keys[index] ?? null;
      const isIndexed = variables === 2 && elements instanceof List;
      const first = isIndexed ? BigInt(index) : key;
      frame.slots[slot] = first;
      if (variables === 2) frame.slots[slot + 1] = memberOf(elements, key);
      if (filter !== undefined && !isTrue(yield* filter(frame))) continue;
      const result = step === undefined ? yield* inSteps(body, frame) : inPiece(step, frame);
      if (fold.take(first, result) === 'stop') break;
    }
    return yield* fold.result();
  };
}

/** Sets the variables to each element in turn, until the visitor stops the walk. */
function walk(
  range: Value,
  at: { readonly frame: Frame; readonly slot: number; readonly variables: number },
  visit: (first: Value) => 'stop' | undefined,
): void {
  const { frame, slot, variables } = at;
  const step = (first: Value, second: Value | undefined) => {
    frame.spend(1);
    frame.slots[slot] = first;
    if (second !== undefined) frame.slots[slot + 1] = second;
    return visit(first);
  };
  if (range instanceof List) {
    let index = 0n;
    for (const item of range.items) {
      const stop = variables === 1 ? step(item, undefined) : step(index, item);
      if (stop !== undefined) return;
      index += 1n;
    }
    return;
  }
  if (!isMapValue(range)) throw noSuchOverload();
  for (const key of range.keys()) {
    if (step(key, variables === 1 ? undefined : range.get(key)) !== undefined) return;
  }
}

/** The items of a list, or the keys of a map. */
function keysOf(range: Value): readonly Value[] {
  if (range instanceof List) return range.items;
  if (!isMapValue(range)) throw noSuchOverload();
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

interface FoldKind {
  /** Whether a failure of the body is a result like others. */
  readonly takesFailures: boolean;
  start(frame: Frame): Fold;
}

function foldOf(name: FoldName): FoldKind {
  switch (name) {
    case 'all':
      return { takesFailures: true, start: () => quantifier({ decides: false }) };
    case 'exists':
      return { takesFailures: true, start: () => quantifier({ decides: true }) };
    case 'exists_one':
      return { takesFailures: false, start: existsOne };
    case 'filter':
      return { takesFailures: false, start: filtered };
    case 'sortBy':
      return { takesFailures: false, start: sortedBy };
    case 'map':
    case 'transformList':
      return { takesFailures: false, start: transformed };
    case 'transformMap':
      return { takesFailures: false, start: transformedMap };
    case 'transformMapEntry':
      return { takesFailures: false, start: transformedEntries };
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

function isTrue(value: Value | CelError): boolean {
  if (typeof value !== 'boolean') throw noSuchOverload();
  return value;
}

/** A result whose failure is thrown. */
function thrown(result: Value | CelError): Value {
  if (result instanceof CelError) throw result;
  return result;
}

function existsOne(): Fold {
  let count = 0;
  return {
    take(_, result) {
      if (isTrue(result)) count += 1;
      return undefined;
    },
    result: () => atOnce(count === 1),
  };
}

function filtered(): Fold {
  const items: Value[] = [];
  return {
    take(first, result) {
      if (isTrue(result)) items.push(first);
      return undefined;
    },
    result: () => atOnce(new List(items)),
  };
}

function transformed(): Fold {
  const items: Value[] = [];
  return {
    take(_, result) {
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

function transformedMap(): Fold {
  const entries = new Map<string, readonly [Value, Value]>();
  return {
    take(key, result) {
      putEntry(entries, key, thrown(result));
      return undefined;
    },
    result: () => atOnce(new EntryMap(entries)),
  };
}

function transformedEntries(): Fold {
  const entries = new Map<string, readonly [Value, Value]>();
  return {
    take(_, result) {
      const transformed = thrown(result);
      if (!isMapValue(transformed)) throw noSuchOverload();
      for (const key of transformed.keys()) putEntry(entries, key, transformed.get(key) ?? null);
      return undefined;
    },
    result: () => atOnce(new EntryMap(entries)),
  };
}
