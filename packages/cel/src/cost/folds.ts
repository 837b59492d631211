import type { FoldExpr } from '../syntax/ast.ts';
import { noSuchOverload } from '../types/functions.ts';
import { CelError, compare, EntryMap, isMapValue, List, type Value } from '../values.ts';
import { type Compiles, type Frame, outcome, putEntry, type Step } from './steps.ts';

interface Fold {
  readonly range: Step;
  readonly filter: Step | undefined;
  readonly body: Step;
  readonly slot: number;
  readonly variables: 1 | 2;
}

/** Compiles a macro that walks a list or a map. */
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

/** Sets the variables to each element in turn, until told to stop. */
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
