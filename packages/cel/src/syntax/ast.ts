/** The syntax tree of an expression. `at` is the offset to which errors about the node point. */

/** The value of a constant: an int is a bigint, a double a number. */
export type Literal = null | boolean | bigint | number | string | Uint8Array | UintLiteral;

/** An unsigned integer, which is a separate type. */
interface UintLiteral {
  readonly uint: bigint;
}

/**
 * A node of the syntax tree. Each has the offset `at` in the source, by which issues are located.
 * Macros are expanded: `has` is a `select`, comprehensions are folds.
 */
export type Expr =
  | ConstExpr
  | IdentExpr
  | SelectExpr
  | CallExpr
  | ListExpr
  | MapExpr
  | StructExpr
  | FoldExpr
  | OptionalMapExpr
  | BindExpr;

interface ConstExpr {
  readonly kind: 'const';
  readonly at: number;
  readonly value: Literal;
}
/** A name without qualifier, such as `self`; a leading dot stays in the name. */
export interface IdentExpr {
  readonly kind: 'ident';
  readonly at: number;
  readonly name: string;
}
/** `operand.field`, which the checker may resolve to a qualified name. */
export interface SelectExpr {
  readonly kind: 'select';
  readonly at: number;
  readonly operand: Expr;
  readonly field: string;
  /** `has(a.b)`. */
  readonly test: boolean;
  /** `a.?b`. */
  readonly optional: boolean;
}
/** A call of a function, a method of `target`, or an operator. */
export interface CallExpr {
  readonly kind: 'call';
  readonly at: number;
  /** The name of a function or operator (`_+_`). */
  readonly name: string;
  /** Whether the name is behind a leading dot. */
  readonly isAbsolute?: true;
  readonly target: Expr | undefined;
  readonly args: readonly Expr[];
}
/** An item of a list literal; `[?x]` is optional. */
export interface ListItem {
  readonly value: Expr;
  readonly optional: boolean;
}
interface ListExpr {
  readonly kind: 'list';
  readonly at: number;
  readonly items: readonly ListItem[];
}
/** An entry of a map literal; `{?'a': x}` is optional. */
export interface MapEntry {
  readonly at: number;
  readonly key: Expr;
  readonly value: Expr;
  readonly optional: boolean;
}
/** A map literal, with its entries in the order of the source. */
export interface MapExpr {
  readonly kind: 'map';
  readonly at: number;
  readonly entries: readonly MapEntry[];
}
/** The construction of an object of the type `name`: `Object.spec{replicas: 1}`. */
export interface StructExpr {
  readonly kind: 'struct';
  readonly at: number;
  readonly name: string;
  readonly fields: readonly StructField[];
}
/** A field in the construction of an object; `{?a: x}` is optional. */
export interface StructField {
  /** Offset of the colon after the name. */
  readonly at: number;
  readonly name: string;
  readonly value: Expr;
  readonly optional: boolean;
}

/** The macros that iterate, by the names under which expressions call them. */
export type FoldName =
  | 'all'
  | 'exists'
  | 'exists_one'
  | 'map'
  | 'filter'
  | 'sortBy'
  | 'transformList'
  | 'transformMap'
  | 'transformMapEntry';

/** A macro that iterates over a list or map. */
export interface FoldExpr {
  readonly kind: 'fold';
  readonly at: number;
  readonly name: FoldName;
  readonly range: Expr;
  readonly variables: readonly string[];
  readonly filter: Expr | undefined;
  readonly body: Expr;
}
/** `x.optMap(v, f)` and `x.optFlatMap(v, f)`. */
export interface OptionalMapExpr {
  readonly kind: 'optionalMap';
  readonly at: number;
  readonly target: Expr;
  readonly variable: string;
  readonly body: Expr;
  readonly flat: boolean;
}

/** `cel.bind(v, value, body)`. */
export interface BindExpr {
  readonly kind: 'bind';
  readonly at: number;
  readonly variable: string;
  readonly value: Expr;
  readonly body: Expr;
}

/**
 * Maximum number of parts of a name that denotes something: `google.protobuf.NullValue.NULL_VALUE`.
 */
const namePartsMax = 4;

/** `a.b.c` as one name; undefined for other expressions and for names of more than four parts. */
export function qualifiedName(expr: Expr, partsMax = namePartsMax): string | undefined {
  if (expr.kind === 'ident') return expr.name;
  if (expr.kind !== 'select' || expr.test || expr.optional || partsMax === 1) return undefined;
  const prefix = qualifiedName(expr.operand, partsMax - 1);
  return prefix === undefined ? undefined : `${prefix}.${expr.field}`;
}

/** The expressions directly below a node, in the order in which they are evaluated. */
export function operandsOf(expr: Expr): readonly Expr[] {
  switch (expr.kind) {
    case 'const':
    case 'ident':
      return [];
    case 'select':
      return [expr.operand];
    case 'call':
      return expr.target === undefined ? expr.args : [expr.target, ...expr.args];
    case 'list':
      return expr.items.map(({ value }) => value);
    case 'map':
      return expr.entries.flatMap(({ key, value }) => [key, value]);
    case 'struct':
      return expr.fields.map(({ value }) => value);
    case 'fold':
      return [expr.range, ...(expr.filter === undefined ? [] : [expr.filter]), expr.body];
    case 'optionalMap':
      return [expr.target, expr.body];
    case 'bind':
      return [expr.value, expr.body];
  }
}
