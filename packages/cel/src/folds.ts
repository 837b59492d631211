import type { Expr, FoldExpr } from './syntax/ast.ts';
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
interface Frame extends CallContext {
  readonly slots: (Value | undefined)[];
}

/** A compiled node. Throws `CelError`. */
export type Step = (frame: Frame) => Value;

/** Compiles nodes to steps; `scope` lists the variables by slot. */
export interface Compiles {
  compile(expr: Expr, scope: readonly string[]): Step;
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

interface Fold {
  readonly range: Step;
  readonly filter: Step | undefined;
  readonly body: Step;
  readonly slot: number;
  readonly variables: 1 | 2;
}

/** Compiles a macro that iterates over a list or map. */
export function foldStep(compiler: Compiles, expr: FoldExpr, scope: readonly string[]): Step {
  const inner = [...scope, ...expr.variables];
  const fold: Fold = {
    range: compiler.compile(expr.range, scope),
    filter: expr.filter === undefined ? undefined : compiler.compile(expr.filter, inner),
    body: compiler.compile(expr.body, inner),
    slot: scope.length,
    variables: expr.variables.length === 2 ? 2 : 1,
  };
  switch (expr.name) {
    case 'all':
      return quantifier(fold, { decides: false, name: '_&&_' });
    case 'exists':
      return quantifier(fold, { decides: true, name: '_||_' });
    case 'exists_one':
      return existsOne(fold);
    case 'filter':
      return filter(fold);
    case 'sortBy':
      return sortBy(fold);
    case 'map':
    case 'transformList':
      return transformed(fold);
    case 'transformMap':
      return transformedMap(fold);
    case 'transformMapEntry':
      return transformedEntries(fold);
  }
}

/** Sets the variables to each element in turn, until `visit` stops it. */
function walk(fold: Fold, frame: Frame, each: (first: Value) => 'stop' | undefined): void {
  const range = fold.range(frame);
  const { slot, variables } = fold;
  const step = (first: Value, second: Value | undefined) => {
    frame.spend(1);
    frame.slots[slot] = first;
    if (second !== undefined) frame.slots[slot + 1] = second;
    return each(first);
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

function quantifier(fold: Fold, at: { decides: boolean; name: string }): Step {
  return (frame) => {
    let failure: CelError | undefined;
    let decided = false;
    walk(fold, frame, () => {
      const value = outcome(fold.body, frame);
      if (value === at.decides) {
        decided = true;
        return 'stop';
      }
      if (value instanceof CelError) failure ??= value;
      else if (typeof value !== 'boolean') failure ??= noSuchOverload();
      return undefined;
    });
    if (decided) return at.decides;
    if (failure !== undefined) throw failure;
    return !at.decides;
  };
}

function isTrue(step: Step, frame: Frame): boolean {
  const value = step(frame);
  if (typeof value !== 'boolean') throw noSuchOverload();
  return value;
}

function existsOne(fold: Fold): Step {
  return (frame) => {
    let count = 0;
    walk(fold, frame, () => {
      if (isTrue(fold.body, frame)) count += 1;
      return undefined;
    });
    return count === 1;
  };
}

function filter(fold: Fold): Step {
  return (frame) => {
    const items: Value[] = [];
    walk(fold, frame, (item) => {
      if (isTrue(fold.body, frame)) items.push(item);
      return undefined;
    });
    return new List(items);
  };
}

function transformed(fold: Fold): Step {
  return (frame) => {
    const items: Value[] = [];
    walk(fold, frame, () => {
      if (fold.filter === undefined || isTrue(fold.filter, frame)) items.push(fold.body(frame));
      return undefined;
    });
    return new List(items);
  };
}

function sortBy(fold: Fold): Step {
  return (frame) => {
    const keyed: { item: Value; key: Value }[] = [];
    walk(fold, frame, (item) => {
      keyed.push({ item, key: fold.body(frame) });
      return undefined;
    });
    keyed.sort((one, other) => {
      frame.spend(1);
      const order = compare(one.key, other.key);
      if (order === undefined) throw noSuchOverload();
      return order;
    });
    return new List(keyed.map(({ item }) => item));
  };
}

function transformedMap(fold: Fold): Step {
  return (frame) => {
    const entries = new Map<string, readonly [Value, Value]>();
    walk(fold, frame, (key) => {
      if (fold.filter !== undefined && !isTrue(fold.filter, frame)) return undefined;
      putEntry(entries, key, fold.body(frame));
      return undefined;
    });
    return new EntryMap(entries);
  };
}

function transformedEntries(fold: Fold): Step {
  return (frame) => {
    const entries = new Map<string, readonly [Value, Value]>();
    walk(fold, frame, () => {
      if (fold.filter !== undefined && !isTrue(fold.filter, frame)) return undefined;
      const made = fold.body(frame);
      if (!isMapValue(made)) throw noSuchOverload();
      for (const key of made.keys()) putEntry(entries, key, made.get(key) ?? null);
      return undefined;
    });
    return new EntryMap(entries);
  };
}
