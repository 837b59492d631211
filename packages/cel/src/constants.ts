import { type Step, setEntry } from './folds.ts';
import type { CallExpr, Expr, Literal } from './syntax/ast.ts';
import { CelError, EntryMap, List, mapKey, Uint, type Value } from './values.ts';

/** Functions that are evaluated with the program if their argument is constant. */
const conversions = new Set(
  'bool bytes double duration dyn int string timestamp type uint'.split(' '),
);

/** A step that returns a value at no cost. */
export const constant =
  (value: Value): Step =>
  () =>
    value;

/**
 * The constant nodes of an expression: literals, literal lists and maps of constants, and
 * conversions of constants. As in cel-go, they cost nothing at runtime.
 */
export class Constants {
  readonly #values = new WeakMap<Expr, Value>();
  readonly #items = new WeakMap<List, ConstantItems | 'not primitive'>();

  /** The value of a literal, or of a node that was folded before; undefined for other nodes. */
  valueOf(expr: Expr): Value | undefined {
    return expr.kind === 'const' ? literalValue(expr.value) : this.#values.get(expr);
  }

  /** Records the value of a node. */
  keep(expr: Expr, value: Value): Value {
    this.#values.set(expr, value);
    return value;
  }

  /** Whether a call converts a constant. */
  isConversion({ name, target, args }: CallExpr): boolean {
    const [argument] = args;
    if (target !== undefined || argument === undefined || args.length !== 1) return false;
    return conversions.has(name) && this.valueOf(argument) !== undefined;
  }

  /** Folds a list whose items are constant; undefined for other lists. */
  list(expr: Extract<Expr, { kind: 'list' }>): Value | undefined {
    const items: Value[] = [];
    for (const { value: item, optional } of expr.items) {
      const value = optional ? undefined : this.valueOf(item);
      if (value === undefined) return undefined;
      items.push(value);
    }
    return this.keep(expr, new List(items));
  }

  /** Folds a map whose keys and values are constant; undefined for others and for invalid keys. */
  map(expr: Extract<Expr, { kind: 'map' }>): Value | undefined {
    const entries = new Map<string, readonly [Value, Value]>();
    for (const entry of expr.entries) {
      const key = entry.optional ? undefined : this.valueOf(entry.key);
      const value = this.valueOf(entry.value);
      if (key === undefined || value === undefined) return undefined;
      try {
        setEntry(entries, key, value);
      } catch (error) {
        if (error instanceof CelError) return undefined;
        throw error;
      }
    }
    return this.keep(expr, new EntryMap(entries));
  }

  /**
   * The items to search in `x in [...]` with constant items of primitive types. Undefined for other
   * calls.
   */
  searched({ name, args: [, list] }: CallExpr): ConstantItems | undefined {
    if (name !== '@in' || list?.kind !== 'list') return undefined;
    const value = this.valueOf(list);
    if (!(value instanceof List)) return undefined;
    const items = this.#items.get(value) ?? itemsOf(value) ?? 'not primitive';
    this.#items.set(value, items);
    return items === 'not primitive' ? undefined : items;
  }
}

/** The items of a constant list. */
interface ConstantItems {
  readonly size: number;
  /** Whether an item equals the value, in a time that depends on the items alone. */
  has(value: Value): boolean;
}

function itemsOf({ items }: List): ConstantItems | undefined {
  const keys = new Set<string>();
  let lengthMax = 0;
  for (const item of items) {
    const key = primitiveKey(item);
    if (key === undefined) return undefined;
    keys.add(key);
    lengthMax = Math.max(lengthMax, key.length);
  }
  const has = (value: Value) => {
    // A long text would take long to hash.
    if (typeof value === 'string' && value.length > lengthMax) return false;
    const key = primitiveKey(value);
    return key !== undefined && keys.has(key);
  };
  return { size: keys.size, has };
}

/** A text that is the same for equal values of primitive types; undefined for other types. */
function primitiveKey(value: Value): string | undefined {
  if (value === null) return 'null';
  const isNumber = typeof value === 'number' && !Number.isNaN(value);
  return mapKey(value) ?? (isNumber ? `d${value}` : undefined);
}

function literalValue(value: Literal): Value {
  if (typeof value === 'object' && value !== null && !(value instanceof Uint8Array)) {
    return new Uint(value.uint);
  }
  return value;
}
