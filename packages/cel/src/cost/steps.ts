import type { Expr } from '../syntax/ast.ts';
import type { CallContext } from '../types/functions.ts';
import { CelCostError, CelError, mapKey, type Value } from '../values.ts';

/** What one evaluation works with: variables by slot, and its cost. */
export interface Frame extends CallContext {
  readonly slots: (Value | undefined)[];
}

/** A compiled node. Throws `CelError`. */
export type Step = (frame: Frame) => Value;

/** Makes steps of nodes; `scope` lists the variables by slot. */
export interface Compiles {
  compile(expr: Expr, scope: readonly string[]): Step;
}

type Entries = Map<string, readonly [Value, Value]>;

/** Sets an entry, over one that stands there; throws for a key that is none. */
export function setEntry(entries: Entries, key: Value, value: Value): void {
  entries.set(entryKey(key), [key, value]);
}

/** Adds an entry; throws for a key that is none or stands there already. */
export function putEntry(entries: Entries, key: Value, value: Value): void {
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

/** A value, or the failure in its place. */
export function outcome(step: Step, frame: Frame): Value | CelError {
  try {
    return step(frame);
  } catch (error) {
    if (error instanceof CelError && !(error instanceof CelCostError)) return error;
    throw error;
  }
}
