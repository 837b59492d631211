import type { Checked } from '../checker.ts';
import { inPasses, type Pass } from '../passes.ts';
import {
  type BindExpr,
  type CallExpr,
  type Expr,
  type FoldExpr,
  type ListExpr,
  type MapExpr,
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

/** Sizes of the content of a list or map; known only for those constructed in the expression. */
interface Entries {
  readonly of: 'list' | 'map';
  readonly key: Range;
  readonly value: Range;
}

function hullOfEntries(a: Entries | undefined, b: Entries | undefined): Entries | undefined {
  if (a === undefined || b === undefined) return undefined;
  return { of: a.of, key: hull(a.key, b.key), value: hull(a.value, b.value) };
}

/** The place of a value below a variable, such as the items of `self.list`. */
interface Place {
  /** The declared sizes of the value; undefined if unknown. */
  readonly declared: DeclaredSize | undefined;
}

interface Scope {
  readonly name: string;
  readonly place: Place | undefined;
  readonly size: Range | undefined;
  readonly outer: Scope | undefined;
}

/** Static knowledge of a subexpression besides its cost. */
interface Estimate {
  /** Absent for a value that is not a part of a variable. */
  place?: Place | undefined;
  size?: Range | undefined;
  entries?: Entries | undefined;
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
      case 'list':
        return this.#list(expr, scope);
      case 'map':
        return this.#map(expr, scope);
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
    const { place, size, entries } = estimate;
    const isEmpty = place === undefined && size === undefined && entries === undefined;
    if (isEmpty && !this.#estimates.has(expr)) return;
    const existing = this.#estimates.get(expr);
    if (existing === undefined) this.#estimates.set(expr, estimate);
    else Object.assign(existing, estimate);
  }

  #ofIdent(name: string, scope: Scope | undefined): Estimate {
    for (let at = scope; at !== undefined; at = at.outer) {
      if (at.name === name) return { place: at.place, size: at.size };
    }
    return { place: this.#variable(name.replace(/^\./, '')) };
  }

  #typeOf(expr: Expr): Type | undefined {
    return this.#checked.types.get(expr);
  }

  #placeOf(expr: Expr): Place | undefined {
    return this.#estimates.get(expr)?.place;
  }

  #entriesOf(expr: Expr): Entries | undefined {
    return this.#estimates.get(expr)?.entries;
  }

  /** The size that cel-go uses; undefined if it has none. */
  #sizeOf(expr: Expr): Range | undefined {
    const estimate = this.#estimates.get(expr);
    const isVariable = expr.kind === 'ident';
    if (!isVariable && estimate?.size !== undefined) return estimate.size;
    return (
      literalSize(expr) ??
      sizeAt(estimate?.place) ??
      (isScalar(this.#typeOf(expr)) ? one : undefined) ??
      estimate?.size
    );
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
      size: this.#sizeOf(expr) ?? unknownSize,
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
    if (name === 'dyn' && expr.args[0] !== undefined)
      return this.#dyn(expr, expr.args[0], args[0]!);
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

  #dyn(expr: CallExpr, arg: Expr, cost: Range): Range {
    this.#note(expr, { size: this.#sizeOf(arg), entries: this.#entriesOf(arg) });
    return plus(one, cost);
  }

  #noteResult(expr: CallExpr, name: string, size: Range | undefined): void {
    const [first, second, third] = expr.args;
    if (name === '_[_]' && first !== undefined) {
      const isMap = this.#typeOf(first)?.name === 'map';
      const entries = this.#entriesOf(first);
      this.#note(expr, {
        size: entries?.value,
        place: this.#part(this.#placeOf(first), isMap ? '@values' : '@items'),
      });
      return;
    }
    let entries: Entries | undefined;
    if (name === '_?_:_' && second !== undefined && third !== undefined) {
      entries = hullOfEntries(this.#entriesOf(second), this.#entriesOf(third));
    } else if (name === '_+_' && first !== undefined && second !== undefined) {
      entries = hullOfEntries(this.#entriesOf(first), this.#entriesOf(second));
    }
    this.#note(expr, { size, entries });
  }

  #list(expr: ListExpr, scope: Scope | undefined): Range {
    const costs = expr.items.map(({ value }) => this.cost(value, scope));
    const value = this.#hullOfSizes(expr.items.map((item) => item.value));
    this.#note(expr, { entries: { of: 'list', key: one, value } });
    return plus(sumOf(costs), listBase);
  }

  #map(expr: MapExpr, scope: Scope | undefined): Range {
    const costs = expr.entries.flatMap((entry) => [
      this.cost(entry.key, scope),
      this.cost(entry.value, scope),
    ]);
    const keySize = this.#hullOfSizes(expr.entries.map((entry) => entry.key));
    const value = this.#hullOfSizes(expr.entries.map((entry) => entry.value));
    this.#note(expr, { entries: { of: 'map', key: keySize, value } });
    return plus(sumOf(costs), mapBase);
  }

  #hullOfSizes(exprs: readonly Expr[]): Range {
    const sizes = exprs.map((expr) => this.#sizeOf(expr) ?? unknownSize);
    return sizes.length === 0 ? nothing : sizes.reduce(hull);
  }

  #fold(expr: FoldExpr, scope: Scope | undefined): Range {
    const range = this.cost(expr.range, scope);
    const inner = this.#insideOf(expr, scope);
    const filter = expr.filter === undefined ? undefined : this.cost(expr.filter, inner);
    const body = this.cost(expr.body, inner);
    const { start, condition, step, result, entries } = this.#loop(expr, { filter, body, inner });
    const count = this.#sizeOf(expr.range) ?? unknownSize;
    const turn = plus(step, condition);
    const turns = { min: product(count.min, turn.min), max: product(count.max, turn.max) };
    const makes = entries !== undefined;
    this.#note(expr, makes ? { size: count, entries } : { size: one });
    return sumOf([range, start, result, turns]);
  }

  /** The variables of a macro with their places and sizes. */
  #insideOf(expr: FoldExpr, scope: Scope | undefined): Scope {
    const [first = '', second] = expr.variables;
    const entries = this.#entriesOf(expr.range);
    const isList = (entries?.of ?? this.#typeOf(expr.range)?.name) === 'list';
    const part = (name: string) => this.#part(this.#placeOf(expr.range), name);
    const value = { place: part(isList ? '@items' : '@values'), size: entries?.value };
    const keyPart = { place: part(isList ? '@indices' : '@keys'), size: entries?.key };
    if (second === undefined) {
      return { name: first, outer: scope, ...(isList ? value : keyPart) };
    }
    return { name: second, ...value, outer: { name: first, ...keyPart, outer: scope } };
  }

  /**
   * Costs of the loop to which cel-go expands a macro: initialization, condition, step, and result.
   */
  #loop(
    expr: FoldExpr,
    at: { filter: Range | undefined; body: Range; inner: Scope },
  ): { start: Range; condition: Range; step: Range; result: Range; entries?: Entries } {
    const { body, filter } = at;
    const chosen = (step: Range) => (filter === undefined ? step : plus(filter, hull(step, one)));
    switch (expr.name) {
      case 'all':
      case 'exists': {
        const step = { min: 1, max: plus(one, body).max };
        const condition = exactly(expr.name === 'all' ? 2 : 3);
        return { start: nothing, condition, step, result: one };
      }
      case 'exists_one': {
        const step = plus(body, { min: 1, max: 2 });
        return { start: nothing, condition: nothing, step, result: exactly(2) };
      }
      case 'filter': {
        const step = plus(body, { min: 1, max: 13 });
        const variable: Expr = { kind: 'ident', at: expr.at, name: expr.variables[0] ?? '' };
        this.#note(variable, this.#ofIdent(variable.name, at.inner));
        const value = hull(nothing, this.#sizeOf(variable) ?? unknownSize);
        const entries: Entries = { of: 'list', key: { min: 0, max: 1 }, value };
        return { start: listBase, condition: nothing, step, result: one, entries };
      }
      case 'map':
      case 'transformList':
      case 'sortBy': {
        const step = chosen(plus(exactly(12), body));
        const value = hull(nothing, this.#sizeOf(expr.body) ?? unknownSize);
        const entries: Entries = { of: 'list', key: { min: 0, max: 1 }, value };
        return { start: listBase, condition: nothing, step, result: one, entries };
      }
      case 'transformMap':
      case 'transformMapEntry': {
        const step = chosen(plus(exactly(expr.name === 'transformMap' ? 3 : 2), body));
        const entries: Entries = { of: 'map', key: unknownSize, value: unknownSize };
        return { start: mapBase, condition: nothing, step, result: one, entries };
      }
    }
  }

  /** A presence test, then an empty loop whose variable holds the value. */
  #optionalMap(expr: OptionalMapExpr, scope: Scope | undefined): Range {
    const target = this.cost(expr.target, scope);
    const inner = { name: expr.variable, place: undefined, size: undefined, outer: scope };
    const body = this.cost(expr.body, inner);
    const has = plus(target, one);
    const bound = sumOf([listBase, plus(target, one), body]);
    return plus(has, hull(expr.flat ? bound : plus(bound, one), one));
  }

  /** An empty loop whose variable holds the value and has the size of the empty list. */
  #bind(expr: BindExpr, outer: Scope | undefined): Range {
    const { variable: name, value, body } = expr;
    const rangeCost = plus(this.cost(value, outer), listBase);
    const inner = { name, place: this.#variable(name), size: undefined, outer };
    const cost = plus(rangeCost, this.cost(body, inner));
    this.#note(expr, { size: nothing });
    return cost;
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
  if (type?.name === 'optional_type') return isScalar(type.args[0]);
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
