import type { Checked } from '../checker.ts';
import { inPasses, type Pass } from '../passes.ts';
import {
  type BindExpr,
  type CallExpr,
  type Expr,
  type FoldExpr,
  type OptionalMapExpr,
  qualifiedName,
  type SelectExpr,
} from '../syntax/ast.ts';
import { namespacedName } from '../types/environment.ts';
import type { Functions } from '../types/functions.ts';
import type { DeclaredSize } from '../types/schema-types.ts';
import type { Type } from '../types/types.ts';
import {
  callCost,
  exactly,
  hull,
  nothing,
  plus,
  product,
  type Range,
  type Sized,
  sumOf,
  unknownSize,
} from './estimate.ts';

const listBase = exactly(10);
const mapBase = exactly(30);
const messageBase = exactly(40);
const one = exactly(1);

/**
 * Estimates the maximum cost of an expression in units of its runtime limit (CRD-3). Follows
 * cel-go's estimator exactly, because its figures decide whether definitions are rejected: a macro
 * costs as much as the loop to which cel-go expands it. `self` holds the sizes of the value that
 * rules see.
 */
export function* costSteps(
  expr: Expr,
  options: EstimatorOptions & { readonly pass?: Pass<Expr, Range> | undefined },
): Generator<void, number> {
  const estimator = new Estimator(options);
  const range = yield* inPasses(options.pass, () => estimator.cost(expr, undefined));
  return range.max;
}

interface EstimatorOptions {
  readonly checked: Checked;
  readonly functions: Functions;
  readonly self: DeclaredSize | undefined;
}

/** The place of a value below a variable, such as the items of `self.list`. */
interface Place {
  /** The declared sizes of the value; undefined if unknown. */
  readonly declared: DeclaredSize | undefined;
}

interface Scope {
  readonly name: string;
  readonly place: Place | undefined;
  readonly outer: Scope | undefined;
}

/** Static knowledge of a subexpression besides its cost. */
interface Estimate {
  /** Absent for a value that is not a part of a variable. */
  place?: Place | undefined;
  /** The size that a call or a macro computes for its result. */
  size?: Range | undefined;
}

class Estimator {
  readonly #checked: Checked;
  readonly #functions: Functions;
  readonly #self: DeclaredSize | undefined;
  readonly #estimates = new Map<Expr, Estimate>();

  readonly #pass: Pass<Expr, Range> | undefined;

  constructor(options: EstimatorOptions & { readonly pass?: Pass<Expr, Range> | undefined }) {
    this.#pass = options.pass;
    this.#checked = options.checked;
    this.#functions = options.functions;
    this.#self = options.self;
  }

  cost(expr: Expr, scope: Scope | undefined): Range {
    const pass = this.#pass;
    if (pass === undefined) return this.#costOf(expr, scope);
    return pass.resultOf(expr) ?? pass.finish(expr, this.#costOf(expr, scope));
  }

  #costOf(expr: Expr, scope: Scope | undefined): Range {
    switch (expr.kind) {
      case 'const':
        return nothing;
      case 'ident':
        this.#note(expr, this.#ofIdent(expr.name, scope));
        return one;
      case 'select':
        return this.#select(expr, scope);
      case 'call':
        return this.#call(expr, scope);
      case 'list': {
        const items = expr.items.map(({ value }) => this.cost(value, scope));
        return plus(sumOf(items), listBase);
      }
      case 'map': {
        const members = expr.entries.flatMap(({ key, value }) => [key, value]);
        return plus(sumOf(members.map((member) => this.cost(member, scope))), mapBase);
      }
      case 'struct': {
        const values = expr.fields.map(({ value }) => this.cost(value, scope));
        return plus(sumOf(values), messageBase);
      }
      case 'fold':
        return this.#fold(expr, scope);
      case 'optionalMap':
        return this.#optionalMap(expr, scope);
      case 'bind':
        return this.#bind(expr, scope);
    }
  }

  #note(expr: Expr, estimate: Estimate): void {
    const isEmpty = estimate.place === undefined && estimate.size === undefined;
    if (isEmpty && !this.#estimates.has(expr)) return;
    const existing = this.#estimates.get(expr);
    if (existing === undefined) this.#estimates.set(expr, estimate);
    else Object.assign(existing, estimate);
  }

  #ofIdent(name: string, scope: Scope | undefined): Estimate {
    for (let at = scope; at !== undefined; at = at.outer) {
      if (at.name === name) return { place: at.place };
    }
    return { place: this.#variable(name.replace(/^\./, '')) };
  }

  #typeOf(expr: Expr): Type | undefined {
    return this.#checked.types.get(expr);
  }

  #placeOf(expr: Expr): Place | undefined {
    return this.#estimates.get(expr)?.place;
  }

  /** The size of a literal, or the one computed for the result of a call or macro. */
  #computedSizeOf(expr: Expr): Range | undefined {
    return this.#estimates.get(expr)?.size ?? literalSize(expr);
  }

  /** The size that cel-go uses. */
  #sizeOf(expr: Expr): Range {
    const size = this.#computedSizeOf(expr) ?? sizeAt(this.#placeOf(expr));
    return size ?? (isScalar(this.#typeOf(expr)) ? one : unknownSize);
  }

  /**
   * The place of a variable: every variable has the sizes of `self`, unless those name another one.
   */
  #variable(name: string): Place {
    const self = this.#self;
    const isOther = self?.variable !== undefined && self.variable !== name;
    return { declared: isOther ? undefined : self };
  }

  /** A part of a place. cel-go assumes that a part of a value without one is as large as `self`. */
  #part(place: Place | undefined, name: string): Place {
    if (place === undefined) return this.#variable(name);
    const at = place.declared;
    if (at === undefined) return place;
    if (name === '@items' || name === '@values') return { declared: at.item };
    if (name === '@keys') return { declared: at.item === undefined ? undefined : (at.key ?? key) };
    return { declared: at.fields?.get(name) ?? at.others };
  }

  #sized(expr: Expr): Sized {
    const place = this.#placeOf(expr);
    const type = this.#typeOf(expr);
    const item = type?.args[0];
    return {
      type,
      size: this.#sizeOf(expr),
      computedSize: this.#computedSizeOf(expr),
      item:
        item === undefined
          ? undefined
          : {
              type: item,
              size:
                (place === undefined ? undefined : sizeAt(this.#part(place, '@items'))) ??
                unknownSize,
            },
      integer:
        expr.kind === 'const' && typeof expr.value === 'bigint' ? Number(expr.value) : undefined,
    };
  }

  #select(expr: SelectExpr, scope: Scope | undefined): Range {
    const name = qualifiedName(expr);
    if (name !== undefined && this.#typeOf(expr)?.name === 'type' && !expr.test) {
      // The qualified name of a type.
      this.#note(expr, { place: this.#variable(name) });
      return one;
    }
    const operand = this.cost(expr.operand, scope);
    // Presence tests are free in Kubernetes.
    if (expr.test) return operand;
    if (expr.optional) return plus(operand, one);
    this.#note(expr, { place: this.#part(this.#placeOf(expr.operand), expr.field) });
    const type = this.#typeOf(expr.operand);
    const counts = type !== undefined && (type.fields !== undefined || isMapOrOpen(type));
    return counts ? plus(operand, one) : operand;
  }

  #call(expr: CallExpr, scope: Scope | undefined): Range {
    const namespaced = namespacedName(expr, this.#functions);
    const name = namespaced ?? expr.name;
    const target = namespaced === undefined ? expr.target : undefined;
    const args = expr.args.map((arg) => this.cost(arg, scope));
    const ofTarget = target === undefined ? nothing : this.cost(target, scope);
    const sized = expr.args.map((arg) => this.#sized(arg));
    const receiver = target === undefined ? undefined : this.#sized(target);
    let cost: Range | undefined;
    let size: Range | undefined;
    for (const overload of this.#checked.overloads.get(expr) ?? []) {
      const call = { name, overload, target: receiver, args: sized, costs: args };
      const estimate = callCost(call);
      cost = cost === undefined ? estimate.cost : hull(cost, estimate.cost);
      if (estimate.size !== undefined)
        size = size === undefined ? estimate.size : hull(size, estimate.size);
    }
    this.#noteResult(expr, name, size);
    return plus(ofTarget, cost ?? nothing);
  }

  #noteResult(expr: CallExpr, name: string, size: Range | undefined): void {
    const [first] = expr.args;
    if (name === '_[_]' && first !== undefined) {
      const isMap = this.#typeOf(first)?.name === 'map';
      this.#note(expr, { place: this.#part(this.#placeOf(first), isMap ? '@values' : '@items') });
    } else this.#note(expr, { size });
  }

  #fold(expr: FoldExpr, scope: Scope | undefined): Range {
    const range = this.cost(expr.range, scope);
    const inner = this.#insideOf(expr, scope);
    const filter = expr.filter === undefined ? undefined : this.cost(expr.filter, inner);
    const body = this.cost(expr.body, inner);
    const { start, condition, step, result } = loopOf(expr, { filter, body });
    const count = this.#sizeOf(expr.range);
    const turn = plus(step, condition);
    const turns = { min: product(count.min, turn.min), max: product(count.max, turn.max) };
    // Even a boolean result is as large as the list.
    this.#note(expr, { size: count });
    return sumOf([range, start, result, turns]);
  }

  /**
   * The first variable of a macro with its place, which is that of the items even if it is an index.
   * Items of a range without a type have none. Any other variable of a macro counts as a variable
   * of the environment.
   */
  #insideOf(expr: FoldExpr, outer: Scope | undefined): Scope {
    const [name = ''] = expr.variables;
    const type = this.#typeOf(expr.range)?.name;
    const part = type === 'list' ? '@items' : type === 'map' ? '@keys' : undefined;
    const place = part === undefined ? undefined : this.#part(this.#placeOf(expr.range), part);
    return { name, place, outer };
  }

  /** A presence test, then an empty loop whose variable holds the value. */
  #optionalMap(expr: OptionalMapExpr, scope: Scope | undefined): Range {
    const target = this.cost(expr.target, scope);
    const body = this.cost(expr.body, scope);
    const has = plus(target, one);
    const bound = sumOf([listBase, plus(target, one), body]);
    this.#note(expr, { size: unknownSize });
    return plus(has, hull(expr.flat ? bound : plus(bound, one), one));
  }

  /** An empty loop whose variable holds the value and has the size of the empty list. */
  #bind(expr: BindExpr, scope: Scope | undefined): Range {
    const { value, body } = expr;
    const cost = sumOf([this.cost(value, scope), listBase, this.cost(body, scope)]);
    this.#note(expr, { size: nothing });
    return cost;
  }
}

/** Costs of a macro's loop: of its start, the condition and step of each turn, and its end. */
interface Loop {
  readonly start: Range;
  readonly condition: Range;
  readonly step: Range;
  readonly result: Range;
}

/** The loop to which cel-go expands a macro, given the costs of the parts of the macro. */
function loopOf(
  { name }: FoldExpr,
  { filter, body }: { readonly filter: Range | undefined; readonly body: Range },
): Loop {
  const chosen = (step: Range) => (filter === undefined ? step : plus(filter, hull(step, one)));
  switch (name) {
    case 'all':
    case 'exists': {
      const step = { min: 1, max: plus(one, body).max };
      const condition = exactly(name === 'all' ? 2 : 3);
      return { start: nothing, condition, step, result: one };
    }
    case 'exists_one': {
      const step = plus(body, { min: 1, max: 2 });
      return { start: nothing, condition: nothing, step, result: exactly(2) };
    }
    case 'filter': {
      const step = plus(body, { min: 1, max: 13 });
      return { start: listBase, condition: nothing, step, result: one };
    }
    case 'map':
    case 'transformList':
    case 'sortBy': {
      const step = chosen(plus(exactly(12), body));
      return { start: listBase, condition: nothing, step, result: one };
    }
    case 'transformMap':
    case 'transformMapEntry': {
      const step = chosen(plus(exactly(name === 'transformMap' ? 3 : 2), body));
      return { start: mapBase, condition: nothing, step, result: one };
    }
  }
}

const key: DeclaredSize = { max: 0, jsonBytesMin: 2 };

/** The sizes that a place declares. */
function sizeAt(place: Place | undefined): Range | undefined {
  return place?.declared === undefined ? undefined : { min: 0, max: place.declared.max };
}

const isMapOrOpen = (type: Type) => type.name === 'map' || type.isParameter === true;

const scalars = new Set(['bool', 'double', 'duration', 'int', 'timestamp', 'uint']);

function isScalar(type: Type | undefined): boolean {
  return type !== undefined && scalars.has(type.name);
}

function literalSize(expr: Expr): Range | undefined {
  if (expr.kind === 'list') return exactly(expr.items.length);
  if (expr.kind === 'map') return exactly(expr.entries.length);
  if (expr.kind !== 'const') return undefined;
  const { value } = expr;
  if (typeof value === 'string') return exactly(Array.from(value).length);
  return exactly(value instanceof Uint8Array ? value.length : 1);
}
